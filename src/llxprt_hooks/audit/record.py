"""The record of one execution: which hook, its decision, its output, its duration.

Payloads contain the data the agent works on. They, and answers that may repeat them, are recorded only on request.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.engine.observer import new_id
from llxprt_hooks.engine.reporting import LOGGED_TEXT
from llxprt_hooks.engine.results import is_blocked
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.protocol.clock import timestamp
from llxprt_hooks.protocol.json_codec import write_json

if TYPE_CHECKING:
    from llxprt_hooks.engine.results import HookExecutionResult

Record = dict[str, Any]

LARGEST_PAYLOAD: Final = 256 * 1024
"""For a larger payload only the size in bytes is recorded: if it were cut, it could not be fired again."""

_REPEATS_PAYLOAD: Final = "hookSpecificOutput"
"""In stdout, the field that may repeat the payload: rewritten arguments, a changed request or answer."""

_MOST_EFFECTS: Final = 20
_LONGEST_EFFECT: Final = 100


def execution_record(result: HookExecutionResult, *, project: str, session_id: str = "", payloads: bool) -> Record:
    """Return the record of an execution."""
    execution = result.to_dict(LOGGED_TEXT)
    del execution["output"]  # may repeat the payload; its effects are recorded below
    if not payloads and _REPEATS_PAYLOAD in result.stdout:
        execution["stdout"] = ""
    record = {
        "id": execution.pop("execution_id") or new_id(),
        "event_id": execution.pop("event_id"),
        "timestamp": timestamp(),
        "session_id": session_id or result.hook_input.get("session_id", ""),
        "project": project,
        "command": execution.pop("command"),
        "failed": result.error is not None,
        **_decision(result),
        **execution,
    }
    bounded = {name: value[:LOGGED_TEXT] if isinstance(value, str) else value for name, value in record.items()}
    return {**bounded, **_payload(result)} if payloads else bounded


def _payload(result: HookExecutionResult) -> Record:
    size = len(write_json(result.hook_input))
    return {"payload": result.hook_input} if size <= LARGEST_PAYLOAD else {"payload_bytes": size}


def _decision(result: HookExecutionResult) -> Record:
    """Return the decision of a hook; of the fields it changes, only the names."""
    if result.output is None:
        return {"blocked": False, "stopped": False, "reason": None, "effects": []}
    output = create_specific_hook_output(result.event_name, result.output.to_dict())
    blocked = is_blocked(result.event_name, output)
    counts = blocked or result.error is None  # a failed hook has no other effect
    reason = output.get_effective_reason() if blocked else output.get_stop_reason()
    changed = sorted(output.hook_specific_output or {}) if counts else []
    return {
        "blocked": blocked,
        "stopped": counts and output.should_stop_execution(),
        "reason": reason if counts else None,
        "effects": [name[:_LONGEST_EFFECT] for name in islice(changed, _MOST_EFFECTS)],
    }
