"""The protocol: how a hook ended, and what that means.

This is the canonical exit-code table (requirements, section 35) as a table. It knows bytes and exit codes, not how a
process is run; whatever the bytes are, reading them never raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from llxprt_hooks.protocol.json_codec import NODE_WHITESPACE, decode_text, read_json, read_json_text
from llxprt_hooks.protocol.outputs import DefaultHookOutput

EXIT_CODE_SUCCESS = 0
EXIT_CODE_NON_BLOCKING_ERROR = 1
EXIT_CODE_BLOCKING_ERROR = 2

DEFAULT_BLOCK_REASON = "Blocked by hook"
STDOUT_IGNORED_HINT = (
    "exit code 2 takes its reason from stderr, but this hook wrote to stdout only: "
    "print the reason to stderr, or exit 0 with a JSON decision"
)


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How a hook's process ended, and what it wrote to its streams."""

    exit_code: int | None = None
    signal: str | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_cut: bool = False
    timed_out_after: float | None = None
    """The timeout in milliseconds, if it was reached."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What one run of a hook means. A hook that is not a process has no exit code, signal or streams."""

    success: bool
    exit_code: int | None = None
    output: DefaultHookOutput | None = None
    error: str | None = None
    """What went wrong, as the end of a sentence about the hook: "timed out after 5 ms"."""
    hint: str | None = None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""


class Case(Enum):
    """The rows of the table."""

    TIMED_OUT = auto()
    SIGNAL = auto()
    STATUS_UNKNOWN = auto()
    EXIT_0 = auto()
    EXIT_0_TOO_LONG = auto()
    EXIT_2 = auto()
    EXIT_OTHER = auto()


def read_outcome(outcome: ProcessOutcome) -> HookVerdict:
    """What the end of a hook's process means.

    >>> read_outcome(ProcessOutcome(exit_code=2, stderr=b"no secrets")).output
    DefaultHookOutput({'decision': 'deny', 'reason': 'no secrets'})
    """
    return replace(
        _TABLE[_case(outcome)](outcome),
        signal=outcome.signal,
        stdout=decode_text(outcome.stdout),
        stderr=decode_text(outcome.stderr),
    )


def read_answer(answer: bytes | str | Mapping[str, Any] | None) -> DefaultHookOutput | None:
    """The output that a successful answer stands for, wherever it comes from: stdout, a response, a function.

    JSON first, plain text otherwise (HOOK-212); silence is no output (HOOK-065).

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
    """The verdict on a hook that did not answer in time."""
    return HookVerdict(False, error=f"timed out after {milliseconds:.15g} ms")


def convert_plain_text_to_hook_output(text: str, exit_code: int) -> DefaultHookOutput:
    """The output that plain text stands for: a message on success, a block on 2, a warning on anything else."""
    if exit_code == EXIT_CODE_SUCCESS:
        return DefaultHookOutput({"decision": "allow", "systemMessage": text}, implied=True)
    if exit_code == EXIT_CODE_BLOCKING_ERROR:
        return DefaultHookOutput({"decision": "deny", "reason": text})
    return DefaultHookOutput({"decision": "allow", "systemMessage": f"Warning: {text}"}, implied=True)


def fail_closed_block(what: str) -> DefaultHookOutput:
    """The block of a hook that failed although its settings say that it must not (``failClosed``)."""
    return DefaultHookOutput({"decision": "deny", "reason": f"blocked because failClosed is set: {what}"})


def _case(outcome: ProcessOutcome) -> Case:
    if outcome.timed_out_after is not None:
        return Case.TIMED_OUT
    if outcome.signal is not None:
        return Case.SIGNAL
    if outcome.exit_code is None:
        return Case.STATUS_UNKNOWN
    if outcome.exit_code == EXIT_CODE_SUCCESS:
        return Case.EXIT_0_TOO_LONG if outcome.stdout_cut else Case.EXIT_0
    return Case.EXIT_2 if outcome.exit_code == EXIT_CODE_BLOCKING_ERROR else Case.EXIT_OTHER


def _timed_out(outcome: ProcessOutcome) -> HookVerdict:
    return timed_out(outcome.timed_out_after or 0.0)


def _signal(outcome: ProcessOutcome) -> HookVerdict:
    # The exit code of a hook that a signal ended is 0 by HOOK-196; `success` and `signal` tell the truth.
    return HookVerdict(False, EXIT_CODE_SUCCESS, _warning(outcome), error=f"was ended by {outcome.signal}")


def _status_unknown(outcome: ProcessOutcome) -> HookVerdict:
    # The exit status is unknown, so the output is ignored unless it is an explicit block.
    fields = _json_object(outcome.stdout)
    answer = None if fields is None else DefaultHookOutput(fields)
    output = answer if answer is not None and answer.is_blocking_decision() else _warning(outcome)
    return HookVerdict(
        False, None, output, error="ended, but something else collected its exit status (is SIGCHLD ignored?)"
    )


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
    return HookVerdict(False, outcome.exit_code, _warning(outcome), error=f"exited with code {outcome.exit_code}")


_TABLE: Mapping[Case, Callable[[ProcessOutcome], HookVerdict]] = {
    Case.EXIT_0: _exit_0,
    Case.EXIT_0_TOO_LONG: _exit_0_too_long,
    Case.EXIT_2: _exit_2,
    Case.EXIT_OTHER: _exit_other,
    Case.SIGNAL: _signal,
    Case.STATUS_UNKNOWN: _status_unknown,
    Case.TIMED_OUT: _timed_out,
}


def _json_object(answer: bytes | str) -> Mapping[str, Any] | None:
    try:
        value = read_json(answer) if isinstance(answer, bytes) else read_json_text(answer)
        if isinstance(value, str):
            value = read_json_text(value)  # encoded twice (HOOK-193)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _warning(outcome: ProcessOutcome) -> DefaultHookOutput | None:
    text = _trimmed(outcome.stderr)
    return convert_plain_text_to_hook_output(text, EXIT_CODE_NON_BLOCKING_ERROR) if text else None


def _trimmed(answer: bytes | str) -> str:
    text = decode_text(answer) if isinstance(answer, bytes) else answer
    return text.strip(NODE_WHITESPACE)
