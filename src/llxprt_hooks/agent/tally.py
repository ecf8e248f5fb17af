"""Count what hooks did in a session, per event."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from llxprt_hooks.engine.observer import HookObserver

if TYPE_CHECKING:
    from llxprt_hooks.engine.observer import EventEnded


@dataclass(slots=True)
class EventFigures:
    """The counts of one event. A block does not count as a failure."""

    fired: int = 0
    hooks_run: int = 0
    blocked: int = 0
    failed: int = 0
    total_ms: float = 0.0


class HookTally(HookObserver):
    """An observer that counts events, hooks, blocks and failures."""

    def __init__(self) -> None:
        self._figures: dict[str, EventFigures] = {}

    def event_ended(self, event: EventEnded) -> None:
        figures = self._figures.setdefault(event.event_name.value, EventFigures())
        aggregated = event.processed.aggregated
        figures.fired += 1
        figures.hooks_run += len(aggregated.results)
        figures.blocked += event.blocked
        figures.failed += sum(result.error is not None for result in aggregated.results)
        figures.total_ms += aggregated.total_duration

    def to_dict(self) -> dict[str, Any]:
        return {event: asdict(figures) for event, figures in self._figures.items()}
