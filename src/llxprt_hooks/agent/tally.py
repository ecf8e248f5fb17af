"""What hooks did in a session, in figures per event."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llxprt_hooks.engine.definitions import HookConfig
    from llxprt_hooks.engine.results import HookExecutionResult, ProcessedHookResult
    from llxprt_hooks.events import HookEventName


@dataclass(slots=True)
class EventFigures:
    """The figures of one event. A block is no failure."""

    fired: int = 0
    hooks_run: int = 0
    blocked: int = 0
    failed: int = 0
    total_ms: float = 0.0


class HookTally:
    """An observer that counts."""

    def __init__(self) -> None:
        self._figures: dict[str, EventFigures] = {}

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> None:
        """Counted when it has ended."""

    def hook_ended(self, result: HookExecutionResult) -> None:
        """Counted with its event."""

    def event_ended(self, event_name: HookEventName, processed: ProcessedHookResult, wall_time: float) -> None:
        figures = self._figures.setdefault(event_name.value, EventFigures())
        aggregated = processed.aggregated
        output = aggregated.final_output
        figures.fired += 1
        figures.hooks_run += len(aggregated.results)
        figures.blocked += event_name.spec.can_block and output is not None and output.is_blocking_decision()
        figures.failed += sum(result.error is not None for result in aggregated.results)
        figures.total_ms += aggregated.total_duration

    def to_dict(self) -> dict[str, Any]:
        return {event: asdict(figures) for event, figures in self._figures.items()}
