"""The exit-code protocol: what the end of a hook's process means.

``_TABLE`` is the canonical exit-code table (requirements, section 35). This module reads bytes and exit codes and knows
nothing about running processes. Reading never raises, whatever the bytes are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from llxprt_hooks.protocol.json_codec import NODE_WHITESPACE, decode_text, read_json, read_json_text
from llxprt_hooks.protocol.outputs import BeforeToolHookOutput, DefaultHookOutput

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


class ProcessOutcome(msgspec.Struct, frozen=True):
    """How a hook's process ended, and what it wrote to its streams."""

    exit_code: int | None = None
    signal: str | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_cut: bool = False
    timed_out_after: float | None = None
    """The timeout in milliseconds, if it was reached."""
    warm: bool = False
    """A waiting interpreter ran it."""


class HookVerdict(msgspec.Struct, frozen=True):
    """What one run of a hook means. A hook that is not a process has no exit code, signal or streams."""

    success: bool
    exit_code: int | None = None
    output: DefaultHookOutput | None = None
    error: str | None = None
    """What went wrong, as the end of a sentence that starts with the hook: "timed out after 5 ms"."""
    hint: str | None = None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""
    warm: bool = False
    """A waiting interpreter ran it."""
    timed_out: bool = False


def read_outcome(outcome: ProcessOutcome) -> HookVerdict:
    """Return what the end of a hook's process means.

    >>> read_outcome(ProcessOutcome(exit_code=2, stderr=b"no secrets")).output
    DefaultHookOutput({'decision': 'deny', 'reason': 'no secrets'})
    """
    read = next(read for applies, read in _TABLE if applies(outcome))
    stdout, stderr = decode_text(outcome.stdout), decode_text(outcome.stderr)
    return replace(read(outcome), signal=outcome.signal, stdout=stdout, stderr=stderr, warm=outcome.warm)


def read_answer(answer: bytes | str | Mapping[str, Any] | None) -> DefaultHookOutput | None:
    """Return the output in a successful answer, from stdout, an HTTP response or a function alike.

    An answer that is not a JSON object is plain text (HOOK-212). An empty answer has no output (HOOK-065).

    >>> read_answer('{"decision": "allow"}'), read_answer({"continue": False}), read_answer("  ")
    (DefaultHookOutput({'decision': 'allow'}), DefaultHookOutput({'continue': False}), None)
    """
    if answer is None or isinstance(answer, Mapping):
        return None if answer is None else DefaultHookOutput(answer)
    fields = _json_object(answer) if answer else None
    if fields is not None:
        return DefaultHookOutput(fields)
    text = _trimmed(answer)
    return convert_plain_text_to_hook_output(text, EXIT_CODE_SUCCESS) if text else None


def timed_out(milliseconds: float) -> HookVerdict:
    """Return the verdict on a hook that did not answer in time."""
    return HookVerdict(False, error=f"timed out after {milliseconds:.15g} ms", timed_out=True)


def convert_plain_text_to_hook_output(text: str, exit_code: int) -> DefaultHookOutput:
    """Convert plain text to an output: a message on success, a block on exit code 2, a warning otherwise."""
    if exit_code == EXIT_CODE_SUCCESS:
        return DefaultHookOutput({"decision": "allow", "systemMessage": text}, implied=True)
    if exit_code == EXIT_CODE_BLOCKING_ERROR:
        return DefaultHookOutput({"decision": "deny", "reason": text})
    return DefaultHookOutput({"decision": "allow", "systemMessage": f"Warning: {text}"}, implied=True)


def fail_closed_block(
    what: str, answer: DefaultHookOutput | None = None, *, key: str = "failClosed"
) -> DefaultHookOutput:
    """Return the block for a failed hook that has ``failClosed``. It keeps a stop that the hook asked for."""
    block: dict[str, Any] = {"decision": "deny", "reason": f"blocked because {key} is set: {what}"}
    if answer is not None and answer.should_stop_execution():
        block |= {"continue": False, "stopReason": answer.get_stop_reason()}
    return DefaultHookOutput(block)


def unreadable_decision(output: DefaultHookOutput | None) -> str | None:
    """Return why a successful answer leaves open what the hook decided (D-27), as the end of a sentence; else None.

    >>> unreadable_decision(read_answer("looks fine to me"))
    'printed something other than one JSON object'
    """
    if output is None:
        return None
    if output.implied:
        return "printed something other than one JSON object"
    return None if output.unclear is None else f"gave no clear answer: {output.unclear}"


def cannot_run_block(what: str) -> DefaultHookOutput:
    """Return the block for a call from a place where no hook can run, so that no guard would work (D-60)."""
    return DefaultHookOutput({"decision": "deny", "reason": f"blocked because hooks cannot run here: {what}"})


def _timed_out(outcome: ProcessOutcome) -> HookVerdict:
    return timed_out(outcome.timed_out_after or 0.0)


def _signal(outcome: ProcessOutcome) -> HookVerdict:
    # HOOK-196 requires exit code 0 for a hook that a signal ended; `success` and `signal` show what happened.
    return HookVerdict(False, EXIT_CODE_SUCCESS, _warning(outcome), error=f"was ended by {outcome.signal}")


def _status_unknown(outcome: ProcessOutcome) -> HookVerdict:
    # The exit status is unknown, so the output is ignored unless it is an explicit refusal.
    output = _explicit_refusal(outcome.stdout) or _warning(outcome)
    cause = (
        "the interpreter that ran it was ended" if outcome.warm else "something else collected it (is SIGCHLD ignored?)"
    )
    return HookVerdict(False, None, output, error=f"ended with an unknown exit status: {cause}")


def _explicit_refusal(stdout: bytes) -> DefaultHookOutput | None:
    """Return the output of a hook that blocks or stops, as a block: a failed hook has no other effect (D-05)."""
    fields = _json_object(stdout)
    if fields is None:
        return None
    answer = BeforeToolHookOutput(fields)
    if not (answer.is_blocking_decision() or answer.should_stop_execution()):
        return None
    return DefaultHookOutput({**answer.to_dict(), "decision": "deny", "reason": answer.get_effective_reason()})


def _exit_0(outcome: ProcessOutcome) -> HookVerdict:
    return HookVerdict(True, EXIT_CODE_SUCCESS, read_answer(outcome.stdout))


def _exit_0_too_long(outcome: ProcessOutcome) -> HookVerdict:
    return HookVerdict(
        False,
        EXIT_CODE_SUCCESS,
        error=f"wrote more to stdout than the limit of {len(outcome.stdout)} bytes; none of it was used",
    )


def _exit_2(outcome: ProcessOutcome) -> HookVerdict:
    reason = _trimmed(outcome.stderr)
    hint = STDOUT_IGNORED_HINT if not reason and _trimmed(outcome.stdout) else None
    output = convert_plain_text_to_hook_output(reason or DEFAULT_BLOCK_REASON, EXIT_CODE_BLOCKING_ERROR)
    return HookVerdict(False, EXIT_CODE_BLOCKING_ERROR, output, hint=hint)


def _exit_other(outcome: ProcessOutcome) -> HookVerdict:
    error = f"exited with code {outcome.exit_code}"
    return HookVerdict(False, outcome.exit_code, _warning(outcome), error=error, hint=_not_started_hint(outcome))


def _not_started_hint(outcome: ProcessOutcome) -> str | None:
    """Return what the exit codes mean with which a shell reports that it could not start a program."""
    if outcome.exit_code == 126:
        return NOT_EXECUTABLE_HINT
    if outcome.exit_code != 127:
        return None
    return NO_INTERPRETER_HINT if _NO_INTERPRETER.search(outcome.stderr) else NOT_FOUND_HINT


_TABLE: Sequence[tuple[Callable[[ProcessOutcome], bool], Callable[[ProcessOutcome], HookVerdict]]] = (
    (lambda outcome: outcome.timed_out_after is not None, _timed_out),
    (lambda outcome: outcome.signal is not None, _signal),
    (lambda outcome: outcome.exit_code is None, _status_unknown),
    (lambda outcome: outcome.exit_code == EXIT_CODE_SUCCESS and outcome.stdout_cut, _exit_0_too_long),
    (lambda outcome: outcome.exit_code == EXIT_CODE_SUCCESS, _exit_0),
    (lambda outcome: outcome.exit_code == EXIT_CODE_BLOCKING_ERROR, _exit_2),
    (lambda outcome: True, _exit_other),
)
"""The first row whose condition holds applies."""


def _json_object(answer: bytes | str) -> Mapping[str, Any] | None:
    try:
        value = read_json(answer) if isinstance(answer, bytes) else read_json_text(answer)
        if isinstance(value, str):
            value = read_json_text(value)  # JSON encoded twice (HOOK-193)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _warning(outcome: ProcessOutcome) -> DefaultHookOutput | None:
    text = _trimmed(outcome.stderr)
    return convert_plain_text_to_hook_output(text, EXIT_CODE_NON_BLOCKING_ERROR) if text else None


def _trimmed(answer: bytes | str) -> str:
    text = decode_text(answer) if isinstance(answer, bytes) else answer
    return text.strip(NODE_WHITESPACE)
