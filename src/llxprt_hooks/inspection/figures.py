"""The figures of events: decisions over time, and how long each hook takes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llxprt_hooks.inspection.log import recorded_duration
from llxprt_hooks.inspection.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llxprt_hooks.inspection.timeline import TimelineEvent

MINUTE = 60

_WIDTHS = tuple(minutes * MINUTE for minutes in (1, 5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60))
_MOST_BINS = 48

LATENCIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
"""Milliseconds up to which executions are counted together in a histogram; the last bin has those above."""


@dataclass(slots=True)
class _HookFigures:
    count: int = 0
    failed: int = 0
    blocked: int = 0
    durations: dict[int, list[float]] = field(default_factory=dict)
    """Milliseconds, by the minute in which the execution ended."""


class Figures:
    """Counts events and executions as they are added. An event that is added again is counted as it is now."""

    def __init__(self) -> None:
        self._decisions: dict[int, Counter[str]] = {}
        self._hooks: dict[tuple[str, str], _HookFigures] = {}
        self._counted: dict[str, tuple[int, str, int]] = {}
        """By event: its minute, its decision, and how many of its executions."""

    def add(self, event: TimelineEvent) -> None:
        minute, decision = int(event.seconds) // MINUTE, event.decision.value
        before = self._counted.get(event.id)
        if before is not None:
            self._decisions[before[0]][before[1]] -= 1
        self._decisions.setdefault(minute, Counter())[decision] += 1
        for execution in event.executions[before[2] if before else 0 :]:
            hook = self._hooks.setdefault((event.event_name, str(execution.get("hook"))), _HookFigures())
            hook.count += 1
            hook.failed += bool(execution.get("failed"))
            hook.blocked += bool(execution.get("blocked"))
            if (duration := recorded_duration(execution)) is not None:
                hook.durations.setdefault(minute, []).append(duration)
        self._counted[event.id] = minute, decision, len(event.executions)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, with times in bins of a width that suits the time that they span."""
        minutes = [minute for minute in self._decisions if minute > 0]
        first, last = (min(minutes), max(minutes)) if minutes else (0, 0)
        width = _width(first, last)
        start = first * MINUTE // width * width
        bins = (last * MINUTE - start) // width + 1 if minutes else 0
        decisions = [Counter[str]() for _ in range(bins)]
        for minute, counter in self._decisions.items():
            if minute > 0:
                decisions[(minute * MINUTE - start) // width].update(counter)
        return {
            "decisions": dict(+sum(self._decisions.values(), Counter[str]())),
            "start": start,
            "width": width,
            "bins": [dict(+counter) for counter in decisions],
            "latencies": LATENCIES,
            "hooks": sorted(
                (_described(*key, hook, start, width, bins) for key, hook in self._hooks.items()),
                key=lambda each: -float(each["p95"]),
            ),
        }


def _described(event: str, name: str, hook: _HookFigures, start: int, width: int, bins: int) -> dict[str, Any]:
    over_time: list[list[float]] = [[] for _ in range(bins)]
    for minute, durations in hook.durations.items():
        if minute > 0:
            over_time[(minute * MINUTE - start) // width] += durations
    times = sorted(duration for durations in hook.durations.values() for duration in durations)
    return {
        "event": event,
        "hook": name,
        "count": hook.count,
        "failed": hook.failed,
        "blocked": hook.blocked,
        "p50": percentile(times, 50),
        "p95": percentile(times, 95),
        "max": times[-1] if times else 0.0,
        "histogram": _histogram(times),
        "trend": [_trend(sorted(durations)) for durations in over_time],
    }


def _trend(times: list[float]) -> tuple[float, float] | None:
    return (percentile(times, 50), percentile(times, 95)) if times else None


def _histogram(times: Iterable[float]) -> list[int]:
    counts = [0] * (len(LATENCIES) + 1)
    for each in times:
        counts[bisect_left(LATENCIES, each)] += 1
    return counts


def _width(first: int, last: int) -> int:
    """Return how many seconds a bin spans, so that there are not too many."""
    seconds = (last - first) * MINUTE
    fitting = (width for width in _WIDTHS if seconds / width < _MOST_BINS)
    return next(fitting, seconds // _MOST_BINS + 1)
