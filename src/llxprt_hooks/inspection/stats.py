"""Statistics of the recorded executions of each hook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks.inspection.log import observed_decision, recorded_duration

if TYPE_CHECKING:
    from llxprt_hooks.audit.record import Record


@dataclass(frozen=True, slots=True)
class HookFigures:
    """The statistics of one hook at one event; times in milliseconds."""

    event: str
    hook: str
    count: int
    failed: int
    blocked: int
    would_block: int
    """Executions in observe mode that would have blocked."""
    p50: float
    p95: float
    max: float


def summarize(records: Iterable[Record]) -> list[HookFigures]:
    """Return the statistics of each hook, slowest first."""
    grouped: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        grouped.setdefault((str(record.get("event_name")), str(record.get("hook"))), []).append(record)
    figures = [_figures(event, hook, group) for (event, hook), group in grouped.items()]
    return sorted(figures, key=lambda each: -each.p95)


def _figures(event: str, hook: str, records: list[Record]) -> HookFigures:
    times = sorted(time for record in records if (time := recorded_duration(record)) is not None)
    return HookFigures(
        event=event,
        hook=hook,
        count=len(records),
        failed=sum(bool(record.get("failed")) for record in records),
        blocked=sum(bool(record.get("blocked")) for record in records),
        would_block=sum(bool(observed_decision(record).get("blocked")) for record in records),
        p50=percentile(times, 50),
        p95=percentile(times, 95),
        max=times[-1] if times else 0.0,
    )


def percentile(ordered: list[float], percent: int) -> float:
    """Return a percentile of values in ascending order.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    if not ordered:
        return 0.0
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
