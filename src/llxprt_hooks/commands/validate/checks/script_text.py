"""Checks of the text of scripts: common mistakes with exit codes and stdout, and names of Claude Code's tools."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import shorten
from llxprt_hooks.commands.validate.checks.commands import exit_two_advice
from llxprt_hooks.commands.validate.claude_names import compared_tools
from llxprt_hooks.commands.validate.diagnostic import Diagnostic, diagnostic_at
from llxprt_hooks.commands.validate.entries import FileHook, Role
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.commands.validate.started_programs import Script, scripts
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.other_agents import CLAUDE_TOOLS
from llxprt_hooks.settings.trust.started import files_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.commands.validate.inspection import Inspection

_LINE: Final = r"^(?![ \t]*(?:\#|//|trap[ \t]))[^\n]*?"
_NOT_AFTER_OR: Final = r"(?<!\|\| )(?<!\|\|)"
"""``cd folder || exit 1`` is not a decision about a call."""
_EXITS: Final = r"\bexit[ \t]+{0}\b|\b(?:sys\.exit|process\.exit|exit|quit)\([ \t]*{0}[ \t]*\)"
_EXIT_WITH_TEXT: Final = r"\b(?:sys\.exit|SystemExit)\([ \t]*[fFrR]{0,2}[\"'][^\n]*"
"""Python prints the text to stderr, and exits with 1."""
_EXIT_ONE: Final = re.compile(f"{_LINE}{_NOT_AFTER_OR}({_EXITS.format(1)}|{_EXIT_WITH_TEXT})", re.MULTILINE)
_FINDS_PROGRAM: Final = re.compile(
    r"(?:\bcommand[ \t]+-[vV][ \t]|\b(?:which|type|hash)[ \t]+[^\n;|&>]+(?:&|2)?>|shutil\.which\()"
    r"[^\n]*(?:\Z|(?:then|[:{])[ \t]*\n)"
)
"""A look for a program, in the last line or as the condition above it."""
_EXIT_TWO: Final = re.compile(f"{_LINE}({_EXITS.format(2)})", re.MULTILINE)
_GUARDS: Final = re.compile(
    r"block|den[yi]|forb[ia]d|refus|reject|prohibit|not allowed|must not|&&[ \t]*exit", re.IGNORECASE
)
"""Words in a script that decides about calls."""

_STDERR: Final = re.compile(r">&\s*2|stderr|console\.error|STDERR|\bwarn\b")
_TO_STDERR: Final = {
    "python": 'print("…", file=sys.stderr)',
    "pypy": 'print("…", file=sys.stderr)',
    "node": 'console.error("…")',
    "ruby": 'warn "…"',
    "perl": 'warn "…"',
}
"""How to print to stderr, by the start of the interpreter's name; else as in a shell."""
_IN_HOOKS: Final = r"[^\s\"';|&<>()]*\.llxprt/hooks/[^\s\"';|&<>()]+"
_WRITES_BELOW_HOOKS: Final = re.compile(
    rf"""^(?![ \t]*\#).*?
    (?:>>?[ \t]*["']? | \btee[ \t]+(?:-a[ \t]+)?["']? | \bopen\([ \t]*["'](?=[^"']*["'][ \t]*,[ \t]*["'][wax]))
    ({_IN_HOOKS})""",
    re.MULTILINE | re.VERBOSE,
)
_LOG_NAME: Final = re.compile(r"(?i)\.(?:log|jsonl|out|count|tmp|pid)$|(?:log|count|counter|state|history)\.\w+$")
_WRITE_TO_STATE: Final = "Let the hook write below `.llxprt/state/`, which no approval covers."
_SECRETS: Final = re.compile(
    rf"{_LINE}(\bsk-\w*|AKIA|PRIVATE KEY|api[_-]?key|secrets?\b|passwords?\b|credentials\b|redact)",
    re.MULTILINE | re.IGNORECASE,
)
_SECRET_NAME: Final = re.compile(r"secret|\bkeys?\b|apikey|password|credential|redact|leak", re.IGNORECASE)
"""In the name of a hook, whatever its type."""
_MAX_EXIT: Final = 40
_MAX_LINE: Final = 400
_MAX_EXITS: Final = 20
_DECIDES: Final = re.compile(r"decision|permissionDecision|hookSpecificOutput|\bcontinue\\?[\"']|systemMessage")
_PROSE: Final = re.compile(
    r"""^[ \t]*(
          echo[ \t]+(?:-[neE]+[ \t]+)?(?:"[A-Za-z](?:[^"\\\n]|\\[^\n])*"|'[A-Za-z][^'\n]*'|[A-Za-z])[^\n>|]*(?<!\\)
        | print\([ \t]*[frFR]{0,2}["'][A-Za-z](?:(?!file[ \t]*=)[^\n])*
        | console\.log\([ \t]*["'`][A-Za-z][^\n]*
    )$""",
    re.MULTILINE | re.VERBOSE,
)
"""A line that prints text to stdout. The end of a command that goes on in the next line may send it elsewhere."""
_ASKS: Final = re.compile(r"(?:decision|permissionDecision)\\?[\"']?[ \t]*:[ \t]*(\\?[\"']ask\\?[\"'])")
_ALLOWS: Final = re.compile(r"permissionDecision\\?[\"']?[ \t]*:[ \t]*(\\?[\"']allow\\?[\"'])")
_SPECIFIC: Final = r"hookSpecificOutput\\?[\"']?[ \t]*:[ \t]*\{{[^{{}}]{{0,200}}?\b({})\b\\?[\"']?[ \t]*:"
_COMMENT: Final = re.compile(r"^[ \t]*(?:#|//)[^\n]*", re.MULTILINE)
_KEYS: Final = r"(?:decision|permissionDecision|hookSpecificOutput|\bcontinue|systemMessage)"
_JSON_KEY: Final = re.compile(_KEYS + r"(?:\\?[\"']|[ \t]*:)")
"""A key of an answer, in JSON or in the source of an object."""
_PRINTED_DICT: Final = re.compile(rf"^[ \t]*(print\(\s*\{{\s*[\"']{_KEYS}[\"']\s*:)", re.MULTILINE)
_THEN_EXIT_TWO: Final = re.compile(rf"\s*(?:{_EXITS.format(2)})")


def check_script_text(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find guards that exit with 1, blocks without a reason, and text where JSON is needed."""
    for script in scripts(inspection, hook):
        if script.may_be_shown and b"\0" not in script.data:
            can_block = hook.spec and hook.spec.can_block
            yield from _exit_codes(script) if can_block else _without_effect(script)
            yield from _prose(script, text_fails=bool(can_block and hook.fails_closed))
            yield from _python_dict(script)
            yield from _needs_profile(script)
            yield from _allows_late(script) if inspection.asks_first else ()
            yield from _written(script, hook)


def check_full_view(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find guards that look for secrets in requests, and are not shown where most of them are (D-142)."""
    if hook.event is not HookEventName.BEFORE_MODEL or hook.file.acts:
        return
    message, fix = "this looks for secrets, but does not see tool results", "Set `hooksConfig.profile` to `full`."
    if found := _SECRETS.search(hook.command):
        yield hook.in_command(Rule.NEEDS_FULL_VIEW, found.span(1), message, fix)
    elif hook.name_node and _SECRET_NAME.search(hook.name or ""):
        yield hook.file.at(Rule.NEEDS_FULL_VIEW, hook.name_node, message, fix)
    for script in scripts(inspection, hook) if hook.command_node else ():
        if script.may_be_shown and (found := _SECRETS.search(script.source.text)):
            yield diagnostic_at(script.source, Rule.NEEDS_FULL_VIEW, *found.span(1), message, fix)


def check_compared_tools(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find commands and scripts that compare the tool's name with a name that it has in Claude Code only."""
    if not (hook.event and hook.event.spec.is_about_tool):
        return
    for start, name in _foreign(inspection, hook.command):
        yield hook.in_command(Rule.SCRIPT_CLAUDE_TOOL, (start, start + len(name)), *_claude_advice(name))
    for script in scripts(inspection, hook):
        if script.may_be_shown and b"\0" not in script.data:
            for start, name in _foreign(inspection, script.source.text):
                end = start + len(name)
                yield diagnostic_at(script.source, Rule.SCRIPT_CLAUDE_TOOL, start, end, *_claude_advice(name))


def _foreign(inspection: Inspection, text: str) -> Iterator[tuple[int, str]]:
    """Yield the first use of each name that is not one of the program's own tools."""
    first: dict[str, int] = {}
    for start, name in compared_tools(text):
        if name not in inspection.tools:
            first.setdefault(name, start)
    return ((start, name) for name, start in first.items())


def _claude_advice(name: str) -> tuple[str, str]:
    ours = CLAUDE_TOOLS[name]
    return (
        f"`{name}` is Claude Code's name for the tool, which is `{ours}` here",
        f"Compare with `{ours}`; with both, if Claude Code uses the script too.",
    )


def check_written_arguments(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find logs and counters that a command names as an argument, and that an approval covers (D-100)."""
    if hook.file.role is not Role.PROJECT or not hook.command_node:
        return
    named = files_of(hook.command, str(inspection.directory))
    for path in sorted(named.read - named.written) if named else ():
        if _LOG_NAME.search(path) and (inspection.directory / path).is_file():
            start = max(hook.command.find(path), 0)
            message = f"if the hook writes to `{shorten(path, _MAX_EXIT)}`, its approval ends"
            yield hook.in_command(Rule.WRITES_COVERED, (start, start + len(path)), message, _WRITE_TO_STATE)


def _needs_profile(script: Script) -> Iterator[Diagnostic]:
    """Find answers that only hooks that act can give (D-46)."""
    hook = script.hook
    if hook.file.acts or not hook.event:
        return
    acting = hook.event.spec.acting
    fields = {effect.field for effect in acting.effects} - {effect.field for effect in hook.event.spec.effects}
    words = [("ask", _ASKS)] if acting.asks else []
    words += [(name, re.compile(_SPECIFIC.format(name))) for name in sorted(fields)]
    for word, pattern in words:
        if found := pattern.search(script.source.text):
            message = f"`{word}` has no effect for {hook.event} without the profile `full`"
            fix = "Set `hooksConfig.profile` to `full`." + " To block instead, answer `deny`." * (word == "ask")
            yield diagnostic_at(script.source, Rule.NEEDS_PROFILE, *found.span(1), message, fix)


def _allows_late(script: Script) -> Iterator[Diagnostic]:
    """Find answers to a question that has been asked before the hook runs."""
    is_before = script.hook.event is HookEventName.BEFORE_TOOL and script.hook.file.acts
    if is_before and (found := _ALLOWS.search(script.source.text)):
        message = "`permissionDecision` allows nothing here: the framework asks a person before BeforeTool hooks run"
        fix = "See the integration's page for what works there."
        yield diagnostic_at(script.source, Rule.LOST_EFFECT, *found.span(1), message, fix)


def _written(script: Script, hook: FileHook) -> Iterator[Diagnostic]:
    if hook.file.role is not Role.PROJECT:
        return
    for found in islice(_WRITES_BELOW_HOOKS.finditer(script.source.text), 1):
        message = f"this writes to `{shorten(found[1], _MAX_EXIT)}`, which ends the approval"
        yield diagnostic_at(script.source, Rule.WRITES_COVERED, *found.span(1), message, _WRITE_TO_STATE)


def _exit_codes(script: Script) -> Iterator[Diagnostic]:
    text = script.source.text
    two = _EXIT_TWO.search(text)
    guards = not two and _GUARDS.search(text) and not _DECIDES.search(text)
    exits = (one for one in islice(_EXIT_ONE.finditer(text), _MAX_EXITS) if not _needs_program(one))
    for number, one in enumerate(exits):
        if not script.hook.fails_closed and (_follows_message(one) or (guards and not number)):
            message = f"`{shorten(one[1], _MAX_EXIT)}` does not block {script.hook.event}"
            fix = "To block, print the reason to stderr and exit with 2."
            yield diagnostic_at(script.source, Rule.EXIT_ONE, *one.span(1), message, fix)
    if two and not _STDERR.search(text):
        message = "this blocks without a reason: nothing in the script writes to stderr"
        fix = f"Print the reason to stderr: `{_print_to_stderr(script)}`."
        yield diagnostic_at(script.source, Rule.EXIT_TWO_SILENT, *two.span(1), message, fix)


def _follows_message(exits: re.Match[str]) -> bool:
    """Return whether a message is written to stderr in the same line, or in the one before."""
    return bool(_STDERR.search(_lines_before(exits, 1)))


def _needs_program(exits: re.Match[str]) -> bool:
    """Return whether a script ends because a program is not installed: that is not a decision about a call."""
    return bool(_FINDS_PROGRAM.search(_lines_before(exits, 2)))


def _lines_before(exits: re.Match[str], count: int) -> str:
    """Return the last lines before an exit, including its own if that has text before it."""
    start = exits.start(1)
    return "\n".join(exits.string[max(0, start - _MAX_LINE) : start].rstrip().rsplit("\n", count)[-count:])


def _print_to_stderr(script: Script) -> str:
    return next((code for name, code in _TO_STDERR.items() if script.interpreter.startswith(name)), 'echo "…" >&2')


def _without_effect(script: Script) -> Iterator[Diagnostic]:
    text, event = script.source.text, script.hook.event
    if event and (two := _EXIT_TWO.search(text)) and "hook_event_name" not in text:
        yield diagnostic_at(script.source, Rule.EXIT_TWO_NO_EFFECT, *two.span(1), *exit_two_advice(event, two[1]))


def _prose(script: Script, *, text_fails: bool) -> Iterator[Diagnostic]:
    text = script.source.text
    fix = f"Send it to stderr: `{_print_to_stderr(script)}`."
    if text_fails:
        prose = next((found for found in _PROSE.finditer(text) if not _THEN_EXIT_TWO.match(text, found.end())), None)
        if prose is not None:
            message = "with `failClosed`, this text on stdout counts as a failure, and the call is blocked"
            yield diagnostic_at(script.source, Rule.FAIL_CLOSED_TEXT, *prose.span(1), message, fix)
    elif (prose := _PROSE.search(text)) and _prints_json(text) and not _EXIT_TWO.search(text):
        message = "this line prints text to stdout, where the script also prints JSON"
        yield diagnostic_at(script.source, Rule.STDOUT_NOISE, *prose.span(1), message, fix)


def _python_dict(script: Script) -> Iterator[Diagnostic]:
    if script.interpreter.startswith(("python", "pypy")) and (found := _PRINTED_DICT.search(script.source.text)):
        message = "this prints a Python dict, which is not JSON"
        yield diagnostic_at(script.source, Rule.PRINTED_DICT, *found.span(1), message, "Write `print(json.dumps(…))`.")


def _prints_json(text: str) -> bool:
    """Return whether a script seems to print an answer. Messages and comments may use the same words."""
    code = _COMMENT.sub("", _PROSE.sub("", text))
    return any(_JSON_KEY.search(line) and not _STDERR.search(line) for line in code.splitlines())
