"""Checks of the text of scripts: common mistakes with exit codes and stdout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from llxprt_hooks.diagnosis.diagnostic import Diagnostic, diagnostic_at
from llxprt_hooks.diagnosis.rules import Rule
from llxprt_hooks.diagnosis.started_programs import Script, scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.diagnosis.entries import HookEntry
    from llxprt_hooks.diagnosis.inspection import Inspection

_LINE: Final = r"^(?![ \t]*(?:\#|//|trap[ \t]))[^\n]*?"
_NOT_AFTER_OR: Final = r"(?<!\|\| )(?<!\|\|)"
"""``cd folder || exit 1`` is not a decision about a call."""
_EXITS: Final = r"\bexit[ \t]+{0}\b|\b(?:sys\.exit|process\.exit|exit|quit)\([ \t]*{0}[ \t]*\)"
_EXIT_ONE: Final = re.compile(f"{_LINE}{_NOT_AFTER_OR}({_EXITS.format(1)})", re.MULTILINE)
_EXIT_TWO: Final = re.compile(f"{_LINE}({_EXITS.format(2)})", re.MULTILINE)
_GUARDS: Final = re.compile(
    r"block|den[yi]|forb[ia]d|refus|reject|prohibit|not allowed|must not|&&[ \t]*exit", re.IGNORECASE
)
"""Words in a script that decides about calls."""

_STDERR: Final = re.compile(r">&\s*2|stderr|console\.error|STDERR|\bwarn\b")
_DECIDES: Final = re.compile(r"decision|permissionDecision|hookSpecificOutput|\bcontinue\\?[\"']|systemMessage")
_PROSE: Final = re.compile(
    r"""^[ \t]*(
          echo[ \t]+(?:-[neE]+[ \t]+)?["']?[A-Za-z][^\n>|]*
        | print\([ \t]*[frFR]{0,2}["'][A-Za-z](?:(?!file[ \t]*=)[^\n])*
        | console\.log\([ \t]*["'`][A-Za-z][^\n]*
    )$""",
    re.MULTILINE | re.VERBOSE,
)
"""A line that prints text to stdout."""


def check_script_text(inspection: Inspection, hook: HookEntry) -> Iterator[Diagnostic]:
    """Find guards that exit with 1, blocks without a reason, and text around JSON."""
    for script in scripts(inspection, hook):
        if script.may_be_shown and b"\0" not in script.data:
            yield from _exit_codes(script) if hook.event and hook.event.spec.can_block else ()
            yield from _prose(script)


def _exit_codes(script: Script) -> Iterator[Diagnostic]:
    text = script.source.text
    one, two = _EXIT_ONE.search(text), _EXIT_TWO.search(text)
    guards = _GUARDS.search(text) and not _DECIDES.search(text)
    if one and not two and guards and not script.hook.fails_closed:
        message = f"`{one[1]}` does not block {script.hook.event}"
        yield diagnostic_at(
            script.source, Rule.EXIT_ONE, *one.span(1), message, "To block, print the reason to stderr and exit with 2."
        )
    if two and not _STDERR.search(text):
        message = "this blocks without a reason: nothing in the script writes to stderr"
        yield diagnostic_at(
            script.source, Rule.EXIT_TWO_SILENT, *two.span(1), message, 'Print the reason to stderr: `echo "…" >&2`.'
        )


def _prose(script: Script) -> Iterator[Diagnostic]:
    text = script.source.text
    if (prose := _PROSE.search(text)) and _DECIDES.search(text) and not _EXIT_TWO.search(text):
        message = "this line prints text to stdout, where the script also prints JSON"
        yield diagnostic_at(script.source, Rule.STDOUT_NOISE, *prose.span(1), message, "Send it to stderr: `>&2`.")
