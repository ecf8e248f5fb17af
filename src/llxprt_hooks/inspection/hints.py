"""Advice for hook authors on common mistakes, based on a hook's result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llxprt_hooks.engine.advice import fields_not_read, program_not_found
from llxprt_hooks.engine.results import is_blocked
from llxprt_hooks.events import Effect, OutputKind
from llxprt_hooks.foreign import CLAUDE_FIELDS
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.protocol.exit_codes import EXIT_CODE_BLOCKING_ERROR, EXIT_CODE_SUCCESS, TRACEBACK
from llxprt_hooks.protocol.json_codec import read_json_text
from llxprt_hooks.protocol.outputs import SPECIFIC_FIELDS, misread_fields, output_problems
from llxprt_hooks.text import one_line

if TYPE_CHECKING:
    from llxprt_hooks.engine.results import HookExecutionResult
    from llxprt_hooks.protocol.outputs import DefaultHookOutput

Advice = Iterator[str]

_CANNOT_OPEN = re.compile("can(?:'|no)t open", re.IGNORECASE)


def hints_on(result: HookExecutionResult) -> list[str]:
    """Return advice for the author of a hook; empty if no mistake was found, or if its error says all."""
    name, error = one_line(result.hook_config.identity), str(result.error or "")
    hints = dict.fromkeys(hint for advise in _ADVISERS for hint in advise(result))
    return [f"{name}: {hint}" for hint in hints if hint not in error]


def _from_protocol(result: HookExecutionResult) -> Advice:
    if result.hint:
        yield result.hint


def _json_lost_to_exit_code(result: HookExecutionResult) -> Advice:
    if result.exit_code in (None, EXIT_CODE_SUCCESS) or result.hint or _object(result.stdout) is None:
        return
    yield (
        f"it printed JSON but exited with {result.exit_code}, so the JSON was not read: "
        "exit 0 with a JSON decision, or exit 2 with the reason on stderr"
    )


def _text_around_json(result: HookExecutionResult) -> Advice:
    text = result.stdout
    if not _was_read(result) or _object(text) is not None:
        return
    effect = "it is not an answer" if result.error else "all of it was treated as a message"
    start, end = text.find("{"), text.rfind("}")
    if start >= 0 and _object(text[start : end + 1]):
        yield f"it printed other text around its JSON, so {effect}: print only JSON"
    elif text.strip().startswith("{") and text.strip().endswith("}"):
        yield f"its output looks like JSON but is not valid ({_json_error(text)}), so {effect}"


def _exit_1_for_2(result: HookExecutionResult) -> Advice:
    if result.exit_code != 1 or result.hook_config.fail_closed:
        return
    if TRACEBACK in result.stderr:
        consequence = ', so the call goes ahead; `"failClosed": true` would block it' * result.event_name.spec.can_block
        yield f"it ended with a Python exception{consequence}"
    elif result.event_name.spec.can_block and _object(result.stdout) is None:
        yield ("exit code 1 is a failure, so the call goes ahead; to block, exit with 2 and print the reason to stderr")


def _short_timeout(result: HookExecutionResult) -> Advice:
    timeout = result.hook_config.timeout
    if not result.timed_out:
        return
    if timeout < 1000:
        meant = f"{timeout:g} s would be {timeout * 1000:g}"
        yield f"its timeout is {timeout:g} ms, because `timeout` is in milliseconds; {meant}"
    else:
        yield "does it wait for input, a lock or the network? If it just takes long, give it a longer `timeout`"


def _shell_error(result: HookExecutionResult) -> Advice:
    if result.exit_code == EXIT_CODE_BLOCKING_ERROR and "syntax error" in result.stderr:
        yield "the shell could not parse the command and exited with 2, which blocks"


def _script_not_found(result: HookExecutionResult) -> Advice:
    """python3, dash and others exit with 2 if the script does not exist; bash exits with 127."""
    if result.exit_code == EXIT_CODE_BLOCKING_ERROR and _CANNOT_OPEN.search(result.stderr):
        yield "its interpreter did not find the script and exited with 2, which blocks: is the path right?"


def _program_not_found(result: HookExecutionResult) -> Advice:
    if advice := program_not_found(result):
        yield advice


def _fields(result: HookExecutionResult) -> Advice:
    """Report fields that are not read: an unknown name, the wrong place, or the wrong type."""
    fields = _object(result.stdout) if _was_read(result) else None
    if fields is None:
        return
    yield from misread_fields(fields)
    specific = fields.get("hookSpecificOutput")
    for name, meant in CLAUDE_FIELDS.items():
        if isinstance(specific, dict) and name in specific:
            yield f"`hookSpecificOutput.{name}` is not read: did you mean `{meant}`?"
    if advice := fields_not_read(result):
        yield advice
    if "stopReason" in fields and fields.get("continue") is not False:
        yield '`stopReason` counts only beside `"continue": false`'
    yield from output_problems(fields)


def _not_awaited(result: HookExecutionResult) -> Advice:
    """Report answers to an event whose caller does not wait for its hooks."""
    event, output = result.event_name, _answer(result)
    if output is None or event.spec.awaited:
        return
    if not output.implied:
        yield f"the agent does not wait for {event} hooks, so what they decide has no effect on it"
    elif event.spec.prints_context_elsewhere and result.stdout.strip():
        yield f"the agent does not wait for {event} hooks, so what they print is not added to the conversation"


def _decision_without_effect(result: HookExecutionResult) -> Advice:
    event, output = result.event_name, _awaited_answer(result)
    if output is None:
        return
    if output.is_blocking_decision():
        if not is_blocked(event, output):
            instead = "; to tell the model something, exit with 0 and print it"
            advice = instead if Effect.ADD_CONTEXT in event.spec.effects else ""
            yield f"{event} cannot be blocked, so its decision has no effect{advice}"
    elif "ask" in (output.decision, output.permission_decision):
        yield "`ask` lets the call go ahead: hooks cannot have the user asked"


def _field_without_effect(result: HookExecutionResult) -> Advice:
    event, output = result.event_name, _awaited_answer(result)
    if output is None:
        return
    applied = {effect.field for effect in event.spec.effects}
    if event.spec.output is OutputKind.BEFORE_TOOL:
        applied.update(("permissionDecision", "permissionDecisionReason"))
    for name in output.hook_specific_output or ():
        if name in SPECIFIC_FIELDS and name not in applied:
            yield f"`hookSpecificOutput.{name}` has no effect in {event}"


def _answer_without_block(result: HookExecutionResult) -> Advice:
    output = _awaited_answer(result)
    if output is None or Effect.ANSWER_FOR_MODEL not in result.event_name.spec.effects:
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
    output = _answer(result)
    if output is None or not result.event_name.spec.awaited:
        return None
    return create_specific_hook_output(result.event_name, output.to_dict())


_ADVISERS: Sequence[Callable[[HookExecutionResult], Advice]] = (
    _from_protocol,
    _json_lost_to_exit_code,
    _text_around_json,
    _exit_1_for_2,
    _short_timeout,
    _shell_error,
    _script_not_found,
    _program_not_found,
    _fields,
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
    try:
        read_json_text(text)
    except json.JSONDecodeError as error:
        return f"{error.msg.lower()}, line {error.lineno} column {error.colno}"
    except ValueError as error:
        return str(error)
    return "an object is expected"
