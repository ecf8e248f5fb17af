"""What is probably wrong with a hook, from its result: one statement per mistake.

The engine logs those in ``LOGGED`` once per hook, because a guard may be without effect; ``fire`` shows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from llxprt_hooks._support.json_codec import read_json_text
from llxprt_hooks._support.text import one_line
from llxprt_hooks.core.engine.results import is_blocked, is_refusal
from llxprt_hooks.core.protocol.exit_codes import EXIT_CODE_BLOCKING_ERROR, EXIT_CODE_SUCCESS, TRACEBACK
from llxprt_hooks.core.protocol.outputs import FIELDS, SPECIFIC_FIELDS, misread_fields, output_problems
from llxprt_hooks.events import Effect, OutputKind
from llxprt_hooks.settings.other_agents import CLAUDE_FIELDS

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.core.protocol.outputs import DefaultHookOutput

Hint: TypeAlias = "Callable[[HookExecutionResult], str | None]"
"""Returns what to say about a run, as a sentence about the hook; None if it does not have this mistake."""
Hints = Iterator[str]

_READ: Final = 64 * 1024
"""Characters of a stream that are searched."""

_LIKE_A_DECISION: Final = re.compile(
    r"""["'](?:decision|permissionDecision|continue)\\?["']\s*:|\bpermissionDecision\s*:"""
)
_NOT_FOUND: Final = re.compile(
    r"""^[^\n]*?:[ ](?:line[ ])?\d+:[ ](?P<name>[^\n:]+):[ ](?:command[ ])?not[ ]found$  # bash, dash, busybox
      | :\d+:[ ]command[ ]not[ ]found:[ ](?P<zsh>[^\n]+)$""",
    re.MULTILINE | re.VERBOSE,
)
_PROGRAM: Final = re.compile(r"[a-z][a-z+._-]{0,19}[0-9]{0,3}")
"""A usual name of a program. Others are not shown: a script that runs a variable by mistake could log a secret."""
_CANNOT_OPEN: Final = re.compile("can(?:'|no)t open", re.IGNORECASE)


_REASONS: Final = frozenset({"reason", "stopReason"})
_REASON_ALONE: Final = (
    'it gives a reason, but decides nothing, so nothing is blocked: to block, add `"decision": "deny"`, '
    'and to stop the agent `"continue": false`'
)


def fields_not_read(result: HookExecutionResult) -> str | None:
    """A misspelled or misplaced decision, or an answer without effect: of unknown fields, or only of a reason."""
    output = result.answer
    if output is None or result.error is not None:
        return None
    if output.unclear is not None:
        return None if output.unclear in output.problems else output.unclear
    if not result.spec.can_block or _has_effect(output):
        return None
    if not output.unknown:
        return _REASON_ALONE if output.to_dict().keys() & _REASONS else None
    names, verb = ", ".join(f"`{name}`" for name in output.unknown), "are" if len(output.unknown) > 1 else "is"
    return f"its answer has no effect: {names} {verb} not read; known fields: {', '.join(FIELDS)}"


def _has_effect(output: DefaultHookOutput) -> bool:
    given = output.to_dict().keys() - _REASONS - {"hookSpecificOutput"}
    return bool(given or SPECIFIC_FIELDS.keys() & (output.hook_specific_output or {}).keys())


def text_like_a_decision(result: HookExecutionResult) -> str | None:
    """A decision that cannot be read, because it is not one JSON object."""
    output = result.answer
    if output is None or not output.implied or not result.success:
        return None
    if _LIKE_A_DECISION.search((output.system_message or "")[:_READ]) is None:
        return None
    return (
        "it printed text that looks like a decision, but is not one JSON object: "
        "that is passed on as a message, and nothing is blocked"
    )


def ask_asks_nobody(result: HookExecutionResult) -> str | None:
    """The answer ``ask``."""
    output = result.answer
    if output is None or result.spec.asks or not result.spec.can_block or is_refusal(output):
        return None
    if "ask" not in (output.decision, (output.hook_specific_output or {}).get("permissionDecision")):
        return None
    to_ask = "; to ask a person, set `hooksConfig.profile` to `full`" * result.event_name.spec.acting.asks
    return f"`ask` doesn't prompt anyone here, and the call goes ahead{to_ask}; to block it, return `deny`"


def program_not_found(result: HookExecutionResult) -> str | None:
    """A script that went on without a program that its shell did not find."""
    if not result.stderr or not result.success or is_refusal(result.answer):
        return None
    found = _NOT_FOUND.search(result.stderr[:_READ])
    if found is None:
        return None
    name = found["name"] or found["zsh"]
    program = f"the program `{name}`" if _PROGRAM.fullmatch(name) else "a program"
    fail_closed = "" if result.hook_config.fail_closed else ' and set "failClosed": true'
    return (
        f"it did not find {program} and went on without it, so a check may have been skipped: install it. "
        f"If that is intended, send its stderr to /dev/null; otherwise begin the script with `set -eu`{fail_closed}"
    )


LOGGED: Final[Sequence[Hint]] = (fields_not_read, text_like_a_decision, ask_asks_nobody, program_not_found)


def hints_on(result: HookExecutionResult) -> list[str]:
    """Return advice for the author of a hook; empty if no mistake was found, or if its error says all."""
    name, error = one_line(result.hook_config.identity), str(result.error or "")
    if result.hook_config.foreign is not None:  # the others are about answers in our own language
        return [f"{name}: {hint}"] if (hint := program_not_found(result)) else []
    hints = (result.hint, *(hint for find in _ALL for hint in find(result)))
    return [f"{name}: {hint}" for hint in dict.fromkeys(hints) if hint and hint not in error]


def _logged(result: HookExecutionResult) -> Hints:
    return (sentence for hint in (fields_not_read, ask_asks_nobody, program_not_found) if (sentence := hint(result)))


def _json_lost_to_exit_code(result: HookExecutionResult) -> Hints:
    if result.exit_code in (None, EXIT_CODE_SUCCESS) or result.hint or _object(result.stdout) is None:
        return
    yield (
        f"it printed JSON but exited with {result.exit_code}, so the JSON was not read: "
        "exit 0 with a JSON decision, or exit 2 with the reason on stderr"
    )


def _text_around_json(result: HookExecutionResult) -> Hints:
    text = result.stdout
    if not _was_read(result) or _object(text) is not None:
        return
    effect = "it is not an answer" if result.error else "all of it was treated as a message"
    start, end = text.find("{"), text.rfind("}")
    if start >= 0 and _object(text[start : end + 1]):
        yield f"it printed other text around its JSON, so {effect}: print only JSON"
    elif text.strip().startswith("{") and text.strip().endswith("}"):
        yield f"its output looks like JSON but is not valid ({_json_error(text)}), so {effect}"


def _exit_1_for_2(result: HookExecutionResult) -> Hints:
    if result.exit_code != 1 or result.hook_config.fail_closed:
        return
    if TRACEBACK in result.stderr:
        consequence = ', so the call goes ahead; `"failClosed": true` would block it' * result.spec.can_block
        yield f"it ended with a Python exception{consequence}"
    elif result.spec.can_block and _object(result.stdout) is None:
        yield ("exit code 1 is a failure, so the call goes ahead; to block, exit with 2 and print the reason to stderr")


def _short_timeout(result: HookExecutionResult) -> Hints:
    timeout = result.hook_config.timeout
    if not result.timed_out:
        return
    if timeout < 1000:
        meant = f"{timeout:g} s would be {timeout * 1000:g}"
        yield f"its timeout is {timeout:g} ms, because `timeout` is in milliseconds; {meant}"
    else:
        yield "does it wait for input, a lock or the network? If it just takes long, give it a longer `timeout`"


def _shell_error(result: HookExecutionResult) -> Hints:
    if result.exit_code == EXIT_CODE_BLOCKING_ERROR and "syntax error" in result.stderr:
        yield "the shell could not parse the command and exited with 2, which blocks"


def _script_not_found(result: HookExecutionResult) -> Hints:
    """python3, dash and others exit with 2 if the script does not exist; bash exits with 127."""
    if result.exit_code == EXIT_CODE_BLOCKING_ERROR and _CANNOT_OPEN.search(result.stderr):
        yield "its interpreter did not find the script and exited with 2, which blocks: is the path right?"


def _fields(result: HookExecutionResult) -> Hints:
    """Report fields that are not read: an unknown name, the wrong place, or the wrong type."""
    fields = _object(result.stdout) if _was_read(result) else None
    if fields is None:
        return
    yield from misread_fields(fields)
    specific = fields.get("hookSpecificOutput")
    for name, meant in CLAUDE_FIELDS.items():
        if isinstance(specific, dict) and name in specific:
            yield f"`hookSpecificOutput.{name}` is not read: did you mean `{meant}`?"
    if "stopReason" in fields and fields.get("continue") is not False:
        yield '`stopReason` counts only beside `"continue": false`'
    yield from output_problems(fields)


def _not_awaited(result: HookExecutionResult) -> Hints:
    """Report answers to an event whose caller does not wait for its hooks."""
    event, output = result.event_name, _answer(result)
    if output is None or result.spec.awaited:
        return
    if not output.implied:
        yield f"the agent does not wait for {event} hooks, so what they decide has no effect on it"
    elif event.spec.prints_context_elsewhere and result.stdout.strip():
        yield f"the agent does not wait for {event} hooks, so what they print is not added to the conversation"


def _decision_without_effect(result: HookExecutionResult) -> Hints:
    event, output = result.event_name, _awaited_answer(result)
    if output is None:
        return
    if output.is_blocking_decision() and not is_blocked(result.spec, output):
        instead = "; to tell the model something, exit with 0 and print it"
        advice = instead if Effect.ADD_CONTEXT in result.spec.effects else ""
        yield f"{event} cannot be blocked, so its decision has no effect{advice}"


def _field_without_effect(result: HookExecutionResult) -> Hints:
    event, output = result.event_name, _awaited_answer(result)
    if output is None:
        return
    applied = {effect.field for effect in result.spec.effects}
    if result.spec.output is OutputKind.BEFORE_TOOL:
        applied.update(("permissionDecision", "permissionDecisionReason"))
    for name in output.hook_specific_output or ():
        if name in SPECIFIC_FIELDS and name not in applied:
            yield f"`hookSpecificOutput.{name}` has no effect in {event}"


def _answer_without_block(result: HookExecutionResult) -> Hints:
    output = _awaited_answer(result)
    if output is None or Effect.ANSWER_FOR_MODEL not in result.spec.effects:
        return
    answers = "llm_response" in (output.hook_specific_output or {})
    if answers and not (output.is_blocking_decision() or output.should_stop_execution()):
        yield '`llm_response` counts only beside a block: add `"decision": "block"`'


def _was_read(result: HookExecutionResult) -> bool:
    """Return whether stdout was read for an answer; an unclear one is a failure of a hook with ``failClosed``."""
    ended_well = result.exit_code == EXIT_CODE_SUCCESS and result.signal is None
    return result.success or (result.hook_config.fail_closed and ended_well)


def _answer(result: HookExecutionResult) -> DefaultHookOutput | None:
    """Return the output of a hook that did not fail."""
    return result.answer if result.error is None else None


def _awaited_answer(result: HookExecutionResult) -> DefaultHookOutput | None:
    """Return the output of a hook that did not fail, as the caller reads it, if the caller waits for hooks."""
    return _answer(result) if result.spec.awaited else None


_ALL: Sequence[Callable[[HookExecutionResult], Hints]] = (
    _json_lost_to_exit_code,
    _text_around_json,
    _exit_1_for_2,
    _short_timeout,
    _shell_error,
    _script_not_found,
    _fields,
    _logged,
    _not_awaited,
    _decision_without_effect,
    _field_without_effect,
    _answer_without_block,
)


def _object(text: str) -> Mapping[str, Any] | None:
    """Parse a JSON object as hook output is parsed: it may be encoded twice (HOOK-193)."""
    try:
        value = read_json_text(text)
        if isinstance(value, str):
            value = read_json_text(value)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _json_error(text: str) -> str:
    message = ""
    try:
        read_json_text(text)
    except ValueError as error:
        message = str(error)
    return re.sub(r": (line \d+ column \d+) \(char \d+\)$", r", \1", message).lower()
