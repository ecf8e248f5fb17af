"""The protocol: how a hook ended, and what that means.

This is the canonical exit-code table (requirements, section 35) as a table. It knows bytes and exit codes, not how a
process is run; whatever the bytes are, reading them never raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
class Ending:
    """How a hook's process ended, and what it left on its streams."""

    exit_code: int | None = None
    signal: str | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_cut: bool = False
    timed_out_after: float | None = None
    """The time-out in milliseconds, if it was reached."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What an ending means."""

    success: bool
    exit_code: int | None
    output: DefaultHookOutput | None = None
    error: str | None = None
    hint: str | None = None


class Case(Enum):
    """The rows of the table."""

    TIMED_OUT = auto()
    SIGNAL = auto()
    STATUS_UNKNOWN = auto()
    EXIT_0 = auto()
    EXIT_0_TOO_LONG = auto()
    EXIT_2 = auto()
    EXIT_OTHER = auto()


def read_ending(ending: Ending) -> Reading:
    """What a hook's ending means.

    >>> read_ending(Ending(exit_code=2, stderr=b"no secrets")).output
    DefaultHookOutput({'decision': 'deny', 'reason': 'no secrets'})
    """
    return _TABLE[_case(ending)](ending)


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


def _case(ending: Ending) -> Case:
    if ending.timed_out_after is not None:
        return Case.TIMED_OUT
    if ending.signal is not None:
        return Case.SIGNAL
    if ending.exit_code is None:
        return Case.STATUS_UNKNOWN
    if ending.exit_code == EXIT_CODE_SUCCESS:
        return Case.EXIT_0_TOO_LONG if ending.stdout_cut else Case.EXIT_0
    return Case.EXIT_2 if ending.exit_code == EXIT_CODE_BLOCKING_ERROR else Case.EXIT_OTHER


def _timed_out(ending: Ending) -> Reading:
    return Reading(False, None, error=f"timed out after {ending.timed_out_after:.15g} ms")


def _signal(ending: Ending) -> Reading:
    # The exit code of a hook that a signal ended is 0 by HOOK-196; `success` and `signal` tell the truth.
    return Reading(False, EXIT_CODE_SUCCESS, _warning(ending), error=f"was ended by {ending.signal}")


def _status_unknown(ending: Ending) -> Reading:
    # It may have been any status, so nothing it said counts, but for an explicit block.
    fields = _json_object(ending.stdout)
    said = None if fields is None else DefaultHookOutput(fields)
    output = said if said is not None and said.is_blocking_decision() else _warning(ending)
    return Reading(
        False, None, output, error="ended, but something else collected its exit status (is SIGCHLD ignored?)"
    )


def _exit_0(ending: Ending) -> Reading:
    return Reading(True, EXIT_CODE_SUCCESS, _from_stdout(ending.stdout))


def _exit_0_too_long(ending: Ending) -> Reading:
    return Reading(
        False,
        EXIT_CODE_SUCCESS,
        error=f"wrote more to stdout than the limit of {len(ending.stdout)} bytes; none of it was used",
    )


def _exit_2(ending: Ending) -> Reading:
    reason = _trimmed(ending.stderr)
    hint = STDOUT_IGNORED_HINT if not reason and _trimmed(ending.stdout) else None
    output = convert_plain_text_to_hook_output(reason or DEFAULT_BLOCK_REASON, EXIT_CODE_BLOCKING_ERROR)
    return Reading(False, EXIT_CODE_BLOCKING_ERROR, output, hint=hint)


def _exit_other(ending: Ending) -> Reading:
    return Reading(False, ending.exit_code, _warning(ending), error=f"exited with code {ending.exit_code}")


_TABLE: Mapping[Case, Callable[[Ending], Reading]] = {
    Case.EXIT_0: _exit_0,
    Case.EXIT_0_TOO_LONG: _exit_0_too_long,
    Case.EXIT_2: _exit_2,
    Case.EXIT_OTHER: _exit_other,
    Case.SIGNAL: _signal,
    Case.STATUS_UNKNOWN: _status_unknown,
    Case.TIMED_OUT: _timed_out,
}


def _from_stdout(stdout: bytes) -> DefaultHookOutput | None:
    """JSON first, plain text otherwise (HOOK-212); silence is no output (HOOK-065)."""
    fields = _json_object(stdout) if stdout else None
    if fields is not None:
        return DefaultHookOutput(fields)
    text = _trimmed(stdout)
    return convert_plain_text_to_hook_output(text, EXIT_CODE_SUCCESS) if text else None


def _json_object(stdout: bytes) -> Mapping[str, Any] | None:
    try:
        value = read_json(stdout)
        if isinstance(value, str):
            value = read_json_text(value)  # encoded twice (HOOK-193)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _warning(ending: Ending) -> DefaultHookOutput | None:
    text = _trimmed(ending.stderr)
    return convert_plain_text_to_hook_output(text, EXIT_CODE_NON_BLOCKING_ERROR) if text else None


def _trimmed(stream: bytes) -> str:
    return decode_text(stream).strip(NODE_WHITESPACE)
