"""The exit-code protocol: what the end of a hook's process means.

``_TABLE`` is the canonical exit-code table (requirements, section 35). This module reads bytes and exit codes and knows
nothing about starting processes. Reading never raises, whatever the bytes are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from llxprt_hooks._support.json_codec import NODE_WHITESPACE, decode_text, read_json, read_json_text
from llxprt_hooks.core.protocol.outputs import BeforeToolHookOutput, DefaultHookOutput
from llxprt_hooks.model.answers import request_problems

if TYPE_CHECKING:
    from llxprt_hooks.process import Completed

EXIT_CODE_SUCCESS = 0
EXIT_CODE_NON_BLOCKING_ERROR = 1
EXIT_CODE_BLOCKING_ERROR = 2

DEFAULT_BLOCK_REASON = "Blocked by hook"
STDOUT_IGNORED_HINT = (
    "exit code 2 takes its reason from stderr, but this hook wrote to stdout only: "
    "print the reason to stderr, or exit 0 with a JSON decision"
)
NOT_EXECUTABLE_HINT = "126 means that a file cannot be executed: try `chmod +x`, and look at its first line"
NOT_FOUND_HINT = "127 means that a program was not found: check its path, as seen from the project folder"
NO_INTERPRETER_HINT = (
    "127 here means that the script's first line names a missing program, or has a Windows line ending (CRLF)"
)

TRACEBACK = "Traceback (most recent call last):"
"""How Python's report of an exception begins; its exit code is 1."""

_NO_INTERPRETER = re.compile(rb"bad interpreter|required file not found|env: .*(?:No such file|not found)")


MakeOutput = Callable[..., DefaultHookOutput]
"""The output class of an event; takes the fields, and whether the decision is only implied."""


class Reading(msgspec.Struct, frozen=True):
    """What the end of one run means: whether it went well, and what the hook answered."""

    success: bool
    exit_code: int | None = None
    output: DefaultHookOutput | None = None
    error: str | None = None
    """What went wrong, as the end of a sentence that starts with the hook: "timed out after 5 ms"."""
    hint: str | None = None


def read_outcome(ended: Completed, make: MakeOutput = DefaultHookOutput) -> Reading:
    """Return what the end of a hook's process means; ``make`` is the output class of its event.

    >>> from llxprt_hooks.process import Completed
    >>> read_outcome(Completed(exit_code=2, stderr=b"no secrets")).output
    DefaultHookOutput({'decision': 'deny', 'reason': 'no secrets'})
    """
    for applies, read in _TABLE:
        if applies(ended):
            return read(ended, make)
    return _exit_other(ended, make)


def read_answer(
    answer: bytes | str | Mapping[str, Any] | None, make: MakeOutput = DefaultHookOutput
) -> DefaultHookOutput | None:
    """Return the output in a successful answer, from stdout, an HTTP response or a function alike.

    An answer that is not a JSON object is plain text (HOOK-212). An empty answer has no output (HOOK-065).

    >>> read_answer('{"decision": "allow"}'), read_answer({"continue": False}), read_answer("  ")
    (DefaultHookOutput({'decision': 'allow'}), DefaultHookOutput({'continue': False}), None)
    """
    if answer is None:
        return None
    if not isinstance(answer, (bytes, str)):
        return make(answer)
    fields = _json_object(answer) if answer else None
    if fields is not None:
        return make(fields)
    text = _trimmed(answer)
    return convert_plain_text_to_hook_output(text, EXIT_CODE_SUCCESS, make) if text else None


def convert_plain_text_to_hook_output(
    text: str, exit_code: int, make: MakeOutput = DefaultHookOutput
) -> DefaultHookOutput:
    """Convert plain text to an output: a message on success, a block on exit code 2, a warning otherwise."""
    if exit_code == EXIT_CODE_SUCCESS:
        return make({"decision": "allow", "systemMessage": text}, implied=True)
    if exit_code == EXIT_CODE_BLOCKING_ERROR:
        return make({"decision": "deny", "reason": text})
    return make({"decision": "allow", "systemMessage": f"Warning: {text}"}, implied=True)


def fail_closed_block(what: str, answer: DefaultHookOutput | None = None, *, key: str = "failClosed") -> dict[str, Any]:
    """Return the block for a failed hook that has ``failClosed``. It keeps a stop that the hook asked for."""
    block: dict[str, Any] = {"decision": "deny", "reason": f"blocked because {key} is set: {what}"}
    if answer is not None and answer.should_stop_execution():
        block |= {"continue": False, "stopReason": answer.get_stop_reason()}
    return block


def unreadable_decision(output: DefaultHookOutput | None) -> str | None:
    """Return why a successful answer leaves open what the hook decided or changed, as the end of a sentence (D-27).

    >>> unreadable_decision(read_answer("looks fine to me"))
    'printed something other than one JSON object'
    """
    if output is None:
        return None
    if output.implied:
        return "printed something other than one JSON object"
    if output.unclear is not None:
        return f"gave no clear answer: {output.unclear}"
    changes = (output.hook_specific_output or {}).get("llm_request")
    problems = [output.unusable] if output.unusable else request_problems(changes) if changes else []
    return f"made a change that cannot be applied: {problems[0]}" if problems else None


def cannot_run_block(what: str) -> dict[str, Any]:
    """Return the block for a call from a place where no hook can run, so that no guard would work (D-60)."""
    return {"decision": "deny", "reason": f"blocked because hooks cannot run here: {what}"}


def _timed_out(ended: Completed, make: MakeOutput) -> Reading:
    return Reading(False, error=f"timed out after {ended.timed_out_after:.15g} ms")


def _signal(ended: Completed, make: MakeOutput) -> Reading:
    # HOOK-196 requires exit code 0 for a hook that a signal ended; `success` and `signal` show what happened.
    return Reading(False, EXIT_CODE_SUCCESS, _warning(ended, make), error=f"was ended by {ended.signal}")


def _status_unknown(ended: Completed, make: MakeOutput) -> Reading:
    # The exit status is unknown, so the output is ignored unless it is an explicit refusal.
    output = _explicit_refusal(ended.stdout, make) or _warning(ended, make)
    cause = (
        "the interpreter that ran it was ended" if ended.warm else "something else collected it (is SIGCHLD ignored?)"
    )
    return Reading(False, None, output, error=f"ended with an unknown exit status: {cause}")


def _explicit_refusal(stdout: bytes, make: MakeOutput) -> DefaultHookOutput | None:
    """Return the output of a hook that blocks or stops, as a block: a failed hook has no other effect (D-05)."""
    fields = _json_object(stdout)
    if fields is None:
        return None
    answer = BeforeToolHookOutput(fields)
    if not (answer.is_blocking_decision() or answer.should_stop_execution()):
        return None
    return make({**answer.to_dict(), "decision": "deny", "reason": answer.get_effective_reason()})


def _exit_0(ended: Completed, make: MakeOutput) -> Reading:
    return Reading(True, EXIT_CODE_SUCCESS, read_answer(ended.stdout, make))


def _exit_0_too_long(ended: Completed, make: MakeOutput) -> Reading:
    error = f"wrote more to stdout than the limit of {len(ended.stdout)} bytes; none of it was used"
    return Reading(False, EXIT_CODE_SUCCESS, error=error)


def _exit_2(ended: Completed, make: MakeOutput) -> Reading:
    reason = _trimmed(ended.stderr)
    hint = STDOUT_IGNORED_HINT if not reason and _trimmed(ended.stdout) else None
    output = convert_plain_text_to_hook_output(reason or DEFAULT_BLOCK_REASON, EXIT_CODE_BLOCKING_ERROR, make)
    return Reading(False, EXIT_CODE_BLOCKING_ERROR, output, hint=hint)


def _exit_other(ended: Completed, make: MakeOutput) -> Reading:
    error = f"exited with code {ended.exit_code}"
    return Reading(False, ended.exit_code, _warning(ended, make), error=error, hint=_not_started_hint(ended))


def _not_started_hint(ended: Completed) -> str | None:
    """Return what the exit codes mean with which a shell reports that it could not start a program."""
    if ended.exit_code == 126:
        return NOT_EXECUTABLE_HINT
    if ended.exit_code != 127:
        return None
    return NO_INTERPRETER_HINT if _NO_INTERPRETER.search(ended.stderr) else NOT_FOUND_HINT


def _is_usual(ended: Completed) -> bool:
    exited = ended.exit_code == EXIT_CODE_SUCCESS and ended.signal is None and ended.timed_out_after is None
    return exited and not ended.stdout_cut


_TABLE: Sequence[tuple[Callable[[Completed], bool], Callable[[Completed, MakeOutput], Reading]]] = (
    (_is_usual, _exit_0),
    (lambda ended: ended.timed_out, _timed_out),
    (lambda ended: ended.signal is not None, _signal),
    (lambda ended: ended.exit_code is None, _status_unknown),
    (lambda ended: ended.exit_code == EXIT_CODE_SUCCESS, _exit_0_too_long),
    (lambda ended: ended.exit_code == EXIT_CODE_BLOCKING_ERROR, _exit_2),
)
"""The first row whose condition holds applies, otherwise ``_exit_other``. Most hooks end as in the first one."""


def _json_object(answer: bytes | str) -> Mapping[str, Any] | None:
    try:
        value = read_json(answer) if isinstance(answer, bytes) else read_json_text(answer)
        if isinstance(value, str):
            value = read_json_text(value)  # JSON encoded twice (HOOK-193)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _warning(ended: Completed, make: MakeOutput) -> DefaultHookOutput | None:
    text = _trimmed(ended.stderr)
    return convert_plain_text_to_hook_output(text, EXIT_CODE_NON_BLOCKING_ERROR, make) if text else None


def _trimmed(answer: bytes | str) -> str:
    text = decode_text(answer) if isinstance(answer, bytes) else answer
    return text.strip(NODE_WHITESPACE)
