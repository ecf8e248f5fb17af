"""What is logged about an event: its plan, a record per hook, one for the batch, and one for each failure.

Each record's data is on the ``logging`` record too, as ``hook_plan``, ``hook_execution``, ``hook_batch`` or
``hook_failure``, for handlers that need more than the sentence (DELTA-HTEL-001 to 003).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.json_codec import decode_text, write_json
from llxprt_hooks.core.engine.hints import LOGGED, Hint
from llxprt_hooks.core.engine.results import AggregatedHookResult, HookExecutionResult, is_blocked, is_refusal
from llxprt_hooks.core.executors.base import StartRefusedError
from llxprt_hooks.core.protocol.exit_codes import TRACEBACK

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.observer import EventEnded, EventStarted
    from llxprt_hooks.events import HookEventName

LOGGED_TEXT = 4096
"""Characters of a hook's input, stdout and stderr that go into a record."""


def report_start(log: logging.Logger, event: EventStarted) -> None:
    """Log which hooks are about to run."""
    if log.isEnabledFor(logging.DEBUG):
        plan = plan_record(event)
        log.debug("%s: plan %s", event.event_name, plan, extra={"hook_plan": plan})


def report_hooks(
    log: logging.Logger, event_name: HookEventName, aggregated: AggregatedHookResult, advised: set[tuple[str, Hint]]
) -> None:
    """Log what each hook of an event did. Only failures and advice reach the warning level.

    ``advised`` has the advice that was logged before, by hook and mistake: a hook makes its mistakes at every call.
    """
    debug = log.isEnabledFor(logging.DEBUG)
    for result in aggregated.results:
        if debug:
            record = {**result.to_dict(LOGGED_TEXT), "input": _shown_input(result)}
            log.debug("%s: hook %s", event_name, record, extra={"hook_execution": record})
        if result.error is not None:
            _warn_of_failure(log, event_name, result, goes_ahead=not is_refusal(aggregated.final_output))
        elif debug and not result.success:  # exit code 2, which is not a success either (HOOK-213)
            failure = {"hook_failure": result.to_dict(LOGGED_TEXT)}
            log.debug("%s: hook `%s` blocked with exit code 2", event_name, result.hook_config.identity, extra=failure)
        _advise(log, event_name, result, advised)


def report_end(log: logging.Logger, event: EventEnded) -> None:
    """Log the figures of all hooks of an event."""
    if log.isEnabledFor(logging.DEBUG):
        batch = batch_record(event)
        log.debug("%s: done %s", event.event_name, batch, extra={"hook_batch": batch})


def plan_record(event: EventStarted) -> dict[str, Any]:
    """The hooks of one event in the order of the plan."""
    return {
        "event_id": event.event_id,
        "event_name": event.event_name.value,
        "sequential": event.plan.sequential,
        "hooks": [config.identity for config in event.plan.hook_configs],
    }


def batch_record(event: EventEnded) -> dict[str, Any]:
    """All hooks of one event in figures."""
    processed, aggregated = event.processed, event.processed.aggregated
    return {
        "event_id": event.event_id,
        "event_name": event.event_name.value,
        "hook_count": len(aggregated.results),
        "success_count": sum(result.success for result in aggregated.results),
        "failure_count": sum(not result.success for result in aggregated.results),
        "blocked": event.blocked,
        "success": aggregated.success,
        "total_duration": aggregated.total_duration,
        "wall_time": event.wall_time,
        "should_stop": processed.should_stop,
        "stop_reason": processed.stop_reason,
        "system_message": processed.system_message,
        "suppress_output": processed.suppress_output,
    }


def _shown_input(result: HookExecutionResult) -> str:
    """The beginning of what a hook was sent; four bytes are the longest character."""
    return decode_text(write_json(result.hook_input)[: 4 * LOGGED_TEXT])[:LOGGED_TEXT]


def _warn_of_failure(
    log: logging.Logger, event_name: HookEventName, result: HookExecutionResult, *, goes_ahead: bool
) -> None:
    sentences = [_what_happened(event_name, result, goes_ahead=goes_ahead)]
    if result.hint:
        sentences.append(f"Hint: {result.hint}")
    if stderr := result.stderr[:LOGGED_TEXT].strip():
        sentences.append(f"Its stderr: {stderr}")
    log.warning("%s: %s", event_name, ". ".join(sentences), extra={"hook_failure": result.to_dict(LOGGED_TEXT)})


def _what_happened(event_name: HookEventName, result: HookExecutionResult, *, goes_ahead: bool) -> str:
    """Say what becomes of the call, because a guard that is off must not look harmless (D-88)."""
    config, error = result.hook_config, str(result.error).removesuffix(".")
    error_sentence = error if error.endswith("?") else f"{error}."
    if config.observe:
        return f"{error_sentence} Ignored: the hook is in observe mode"
    if is_blocked(result.spec, result.output):
        return f"{error_sentence} The call is blocked{_why_blocked(result)}"
    if not result.spec.can_block or not goes_ahead:
        return f"{error_sentence} It counts as not run"
    if config.foreign is not None:
        return f"{error_sentence} The call goes ahead"
    key = "fail_closed=True" if config.executor.fields is None else '"failClosed": true'
    if result.exit_code == 1 and TRACEBACK not in result.stderr:  # 2 was probably meant
        to_block = f"To block, exit with 2. To block whenever the hook fails, set {key}"
        return f"{error}, which is a failure: the call goes ahead. {to_block}"
    return f"{error_sentence} The call goes ahead; to block it instead, set {key}"


def _why_blocked(result: HookExecutionResult) -> str:
    """A hook that must not or cannot be started blocks, whether or not it has ``failClosed`` (D-28, D-60)."""
    cause = result.error.__cause__ if result.error else None
    if isinstance(cause, StartRefusedError):
        return ", because the agent itself may have changed the script"
    was_closed = result.output is not None and result.output.reason != str(result.error)
    return f", because {result.hook_config.fail_closed_key} is set" if was_closed else ""


def _advise(
    log: logging.Logger, event_name: HookEventName, result: HookExecutionResult, advised: set[tuple[str, Hint]]
) -> None:
    advice = [result.hint] if result.hint and result.error is None else []
    advice += result.answer.problems if result.answer is not None else ()
    for hint in LOGGED:
        if (sentence := hint(result)) and (key := (result.hook_config.identity, hint)) not in advised:
            advised.add(key)
            advice.append(sentence)
    for sentence in advice:
        log.warning("%s: hook `%s`: %s", event_name, result.hook_config.identity, sentence)
    ineffective = result.spec.awaited and not result.spec.can_block
    if ineffective and result.output is not None and result.output.is_blocking_decision():
        log.warning(
            "%s cannot be blocked: the decision of hook `%s` has no effect (%s)",
            event_name,
            result.hook_config.identity,
            result.output.get_effective_reason(),
        )
