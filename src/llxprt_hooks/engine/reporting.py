"""What is logged of an event: a record per hook, one for the batch, and one for each failure (DELTA-HTEL-001 to 003).

Each record's data is on the ``logging`` record too, as ``hook_execution``, ``hook_batch`` or ``hook_failure``, for
handlers that want more than the sentence.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from llxprt_hooks.events import CAN_BLOCK, HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.engine.results import AggregatedHookResult, HookExecutionResult, ProcessedHookResult

LOGGED_OUTPUT = 4096
"""Characters of a hook's stdout and stderr that go into a record."""

_CANNOT_BLOCK = frozenset({HookEventName.AFTER_TOOL, HookEventName.AFTER_MODEL, HookEventName.BEFORE_TOOL_SELECTION})


def report_event(
    log: logging.Logger, event_name: HookEventName, processed: ProcessedHookResult, wall_time: float
) -> None:
    """Log all there is to say about one event. Only failures and advice reach the warning level."""
    for result in processed.aggregated.results:
        if log.isEnabledFor(logging.DEBUG):
            record = execution_record(event_name, result)
            log.debug("%s: hook %s", event_name, record, extra={"hook_execution": record})
        _warn_of_failure(log, event_name, result)
        _advise(log, event_name, result)
    if log.isEnabledFor(logging.DEBUG):
        batch = batch_record(event_name, processed, wall_time)
        log.debug("%s: done %s", event_name, batch, extra={"hook_batch": batch})


def execution_record(event_name: HookEventName, result: HookExecutionResult) -> dict[str, Any]:
    """One hook's run, with what it printed cut to a limit."""
    return {
        "event_name": event_name.value,
        "hook": result.hook_config.identity,
        "type": str(result.hook_config.type),
        "duration": result.duration,
        "success": result.success,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "stdout": result.stdout[:LOGGED_OUTPUT],
        "stderr": result.stderr[:LOGGED_OUTPUT],
        "error": None if result.error is None else str(result.error),
        "output": None if result.output is None else result.output.to_dict(),
    }


def batch_record(event_name: HookEventName, processed: ProcessedHookResult, wall_time: float) -> dict[str, Any]:
    """All hooks of one event in figures."""
    aggregated = processed.aggregated
    return {
        "event_name": event_name.value,
        "hook_count": len(aggregated.results),
        "success_count": sum(result.success for result in aggregated.results),
        "failure_count": sum(result.error is not None for result in aggregated.results),
        "blocked": event_name in CAN_BLOCK and _blocks(aggregated),
        "success": aggregated.success,
        "total_duration": aggregated.total_duration,
        "wall_time": wall_time,
        "should_stop": processed.should_stop,
        "stop_reason": processed.stop_reason,
        "system_message": processed.system_message,
        "suppress_output": processed.suppress_output,
    }


def _blocks(aggregated: AggregatedHookResult) -> bool:
    return aggregated.final_output is not None and aggregated.final_output.is_blocking_decision()


def _warn_of_failure(log: logging.Logger, event_name: HookEventName, result: HookExecutionResult) -> None:
    if result.error is None:
        return
    log.warning(
        "%s: %s (%s, stderr: %s), which %s",
        event_name,
        result.error,
        result.signal or f"exit code {result.exit_code}",
        result.stderr[:LOGGED_OUTPUT].strip() or "empty",
        "blocks, as its settings ask for" if result.hook_config.fail_closed else "changes nothing",
        extra={"hook_failure": execution_record(event_name, result)},
    )


def _advise(log: logging.Logger, event_name: HookEventName, result: HookExecutionResult) -> None:
    if result.hint:
        log.warning("%s: hook `%s`: %s", event_name, result.hook_config.identity, result.hint)
    if event_name in _CANNOT_BLOCK and result.output is not None and result.output.is_blocking_decision():
        log.warning(
            "%s cannot be blocked: the decision of hook `%s` has no effect (%s)",
            event_name,
            result.hook_config.identity,
            result.output.get_effective_reason(),
        )
