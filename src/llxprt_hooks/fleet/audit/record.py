"""The records of executions, events and questions: which hook ran when, its decision, its output, its duration.

Payloads contain the data the agent works on. They, and answers that may repeat them, are recorded only on request.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.stamps import new_id
from llxprt_hooks.core.calls.approval import Answered
from llxprt_hooks.core.engine.reporting import LOGGED_TEXT
from llxprt_hooks.core.engine.results import HookExecutionResult, HookStageError, is_asked, is_blocked
from llxprt_hooks.core.protocol.caller import CALLER_FIELDS
from llxprt_hooks.events import Effect, EventSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llxprt_hooks.core.engine.observer import EventEnded, EventStarted, QuestionEnded
    from llxprt_hooks.core.protocol.outputs import DefaultHookOutput

Record = dict[str, Any]

MAX_PAYLOAD: Final = 256 * 1024
"""For a larger payload only the size in bytes is recorded: if it were cut, it could not be fired again."""

_REPEATS_PAYLOAD: Final = "hookSpecificOutput"
"""In stdout, the field that may repeat the payload: rewritten arguments, a changed request or answer."""

_MAX_EFFECTS: Final = 20
_MAX_EFFECT_LENGTH: Final = 100


def execution_record(
    result: HookExecutionResult, ended: str, project: str, *, session_id: str = "", payloads: bool
) -> Record:
    failed = result.error is not None
    execution = result.to_dict(LOGGED_TEXT)
    del execution["output"], execution["observed"]  # may repeat the payload; the effects are recorded below
    if not payloads and _REPEATS_PAYLOAD in result.stdout:
        execution["stdout"] = ""
    would = _hook_decision(result, result.observed) if result.hook_config.observe else None
    record = {
        "id": execution.pop("execution_id") or new_id(),
        "event_id": execution.pop("event_id"),
        "timestamp": ended,
        "session_id": session_id or result.hook_input.get("session_id", ""),
        "project": project,
        "tool_name": result.hook_input.get("tool_name"),
        "command": execution.pop("command"),
        "failed": failed,
        **_hook_decision(result, result.output),
        "observed": would,
        **execution,
    }
    payload = _complete("payload", result.hook_input) if payloads else {}
    return {**_bounded({**record, **_call(result.hook_input)}), **_caller(result.hook_input), **payload}


def start_record(event: EventStarted, started: str, project: str, *, session_id: str = "", payloads: bool) -> Record:
    """Return the record of an event whose hooks begin."""
    matched = event.event_name.spec.matched_field
    record = {
        "event_id": event.event_id,
        "timestamp": started,
        "session_id": session_id or event.payload.get("session_id", ""),
        "project": project,
        "event_name": event.event_name.value,
        "subject": event.payload.get(matched) if matched else None,
        "hooks": [config.identity[:LOGGED_TEXT] for config in event.plan.hook_configs],
        "started": True,
    }
    return {**_bounded(record), **_caller(event.payload)}


def event_record(event: EventEnded, ended: str, project: str, *, session_id: str = "", payloads: bool) -> Record:
    """Return the record of an event: its plan, and the merged decision."""
    aggregated, plan = event.processed.aggregated, event.plan
    output, results = aggregated.final_output, aggregated.results
    record = {
        "event_id": event.event_id,
        "timestamp": ended,
        "session_id": session_id or (results[0].hook_input.get("session_id", "") if results else ""),
        "project": project,
        "event_name": event.event_name.value,
        "subject": event.subject,
        "hooks": [config.identity[:LOGGED_TEXT] for config in plan.hook_configs] if plan else [],
        "sequential": plan is not None and plan.sequential,
        "wall_time": event.wall_time,
        **_decision(
            output,
            event.event_name.spec_if(plan is not None and plan.acts),
            blocked=event.blocked,
            asked=aggregated.is_asked(event.event_name),
        ),
        "errors": [str(error)[:LOGGED_TEXT] for error in aggregated.errors if isinstance(error, HookStageError)],
    }
    complete = _complete("output", output.to_dict()) if payloads and output is not None else {}
    return {**_bounded(record), **(_caller(results[0].hook_input) if results else {}), **complete}


def answer_record(question: QuestionEnded, ended: str, project: str, *, session_id: str = "", payloads: bool) -> Record:
    """Return the record of a question: which hook asked about which call, and what the answer was."""
    asked_by, request, verdict = question.asked_by, question.request, question.verdict
    refused = verdict.answered.is_refusal
    record = {
        "id": new_id(),
        "execution_id": asked_by.execution_id,
        "event_id": asked_by.event_id,
        "timestamp": ended,
        "session_id": session_id or request.session_id,
        "project": project,
        "event_name": asked_by.event_name.value,
        "tool_name": request.tool_name,
        "hook": request.hook,
        "dialect": asked_by.hook_config.dialect,
        "answer": verdict.answered.value,
        "reason": request.reason,
        "refusal": verdict.why if refused else None,
        "digest": request.digest,
        "blocked": refused,
        "failed": verdict.answered is Answered.FAILED,
        "duration_ms": question.duration,
    }
    arguments = _complete("tool_input", request.tool_input) if payloads else {}
    return {**_bounded(record), **_caller(asked_by.hook_input), **arguments}


def _bounded(record: Record) -> Record:
    return {name: value[:LOGGED_TEXT] if isinstance(value, str) else value for name, value in record.items()}


def _call(hook_input: Mapping[str, Any]) -> Record:
    """Return which call of a tool it was, and how long the tool took, where the hook got to know it."""
    known = {"tool_use_id": hook_input.get("tool_use_id"), "tool_duration_ms": hook_input.get("duration_ms")}
    return {name: value for name, value in known.items() if value is not None}


def _caller(hook_input: Mapping[str, Any]) -> Record:
    """Return who asked. On a worker, any agent may have sent it, so it is bounded like all that is recorded."""
    caller: Record = {}
    for name in CALLER_FIELDS:
        if name in hook_input:
            caller |= _complete(name, hook_input[name], LOGGED_TEXT)
    return caller


def _complete(name: str, value: Mapping[str, Any], limit: int = MAX_PAYLOAD) -> Record:
    size = len(write_json(value))
    return {name: value} if size <= limit else {f"{name}_bytes": size}


def _hook_decision(result: HookExecutionResult, output: DefaultHookOutput | None) -> Record:
    spec, failed = result.spec, result.error is not None
    return _decision(output, spec, blocked=is_blocked(spec, output), asked=is_asked(spec, output), failed=failed)


def _decision(
    output: DefaultHookOutput | None, spec: EventSpec, *, blocked: bool, asked: bool, failed: bool = False
) -> Record:
    """Return the decision of a hook or an event; of the fields it changes, only the names."""
    if output is None:
        return {"blocked": False, "stopped": False, "reason": None, "effects": []}
    counts = blocked or not failed  # a failed hook has no other effect
    reason = output.get_effective_reason() if blocked or asked else output.get_stop_reason()
    specific = output.hook_specific_output
    changed = sorted(specific.keys() - _without_effect(spec.effects)) if counts and specific else []
    return {
        "blocked": blocked,
        "stopped": counts and output.should_stop_execution(),
        "reason": reason[:LOGGED_TEXT] if counts and reason else None,
        "effects": [name[:_MAX_EFFECT_LENGTH] for name in islice(changed, _MAX_EFFECTS)],
        **({"asked": True} if counts and asked else {}),
    }


@cache
def _without_effect(effects: tuple[Effect, ...]) -> frozenset[str]:
    """Return the fields that have no effect if only these have one."""
    return frozenset({effect.field for effect in Effect} - {effect.field for effect in effects})
