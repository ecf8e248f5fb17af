"""Statistics of hooks and events, for ``stats``, ``inspect``, the summary of ``run`` and the metrics of ``serve``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.histogram import Histogram
from llxprt_hooks.commands.log import caller_field, observed_decision, recorded_duration
from llxprt_hooks.core.engine.observer import EventEnded, HookObserver

if TYPE_CHECKING:
    from llxprt_hooks.commands.inspect.timeline import TimelineEvent
    from llxprt_hooks.fleet.audit.record import Record

MINUTE = 60

_WIDTHS = tuple(minutes * MINUTE for minutes in (1, 5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60))
_MAX_BINS = 48

LATENCIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
"""Upper bounds of the histogram bins in milliseconds; one more bin counts everything slower."""


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return a percentile of values in ascending order.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50)
    2.0
    """
    if not ordered:
        return 0.0
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


# Hooks, from the records of their executions.


@dataclass(slots=True)
class HookFigures:
    """The statistics of one hook at one event; times in milliseconds."""

    event: str
    hook: str
    caller: str | None = None
    """Of which caller, if figures are kept for each."""
    count: int = 0
    failed: int = 0
    blocked: int = 0
    asked: int = 0
    """Executions that left the decision to a person."""
    would_block: int = 0
    """Executions in observe mode that would have blocked."""
    durations: dict[int, list[float]] = field(default_factory=dict)
    """By the minute in which the execution ended."""

    def add(self, record: Record, minute: int = 0) -> None:
        self.count += 1
        self.failed += bool(record.get("failed"))
        self.blocked += bool(record.get("blocked"))
        self.asked += bool(record.get("asked"))
        self.would_block += bool(observed_decision(record).get("blocked"))
        if (duration := recorded_duration(record)) is not None:
            self.durations.setdefault(minute, []).append(duration)

    @property
    def times(self) -> list[float]:
        """All durations in ascending order."""
        return sorted(duration for durations in self.durations.values() for duration in durations)

    @property
    def p50(self) -> float:
        return percentile(self.times, 50)

    @property
    def p95(self) -> float:
        return percentile(self.times, 95)

    @property
    def max(self) -> float:
        return percentile(self.times, 100)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as ``stats --json`` prints them."""
        return {name: getattr(self, name) for name in _SHOWN}


_SHOWN = ("event", "hook", "count", "failed", "blocked", "asked", "would_block", "p50", "p95", "max", "caller")


def summarize(records: Iterable[Record], by: str | None = None) -> list[HookFigures]:
    """Return the statistics of each hook, slowest first; ``by`` a field of the caller, for each of its values, those
    with most blocks first."""
    hooks: dict[tuple[str, str, str | None], HookFigures] = {}
    for record in records:
        caller = None if by is None else caller_field(record, by) or ""
        key = str(record.get("event_name")), str(record.get("hook")), caller
        hooks.setdefault(key, HookFigures(*key)).add(record)
    if by is None:
        return _slowest_first(hooks.values())
    figures = sorted(hooks.values(), key=lambda each: (each.hook, each.event, each.caller))
    return sorted(figures, key=lambda each: (-each.blocked, -each.would_block, -each.count))


def _slowest_first(hooks: Iterable[HookFigures]) -> list[HookFigures]:
    return sorted(hooks, key=lambda each: -each.p95)


# Events over time, as the inspector draws them.


class Figures:
    """Counts events and executions as they are added. An event that is added again is counted as it is now."""

    def __init__(self) -> None:
        self._decisions: dict[int, Counter[str]] = {}
        self._hooks: dict[tuple[str, str], HookFigures] = {}
        self._counted: dict[str, tuple[int, str, int]] = {}
        """By event: its minute, its decision, and how many of its executions."""

    def add(self, event: TimelineEvent) -> None:
        minute, decision = int(event.seconds) // MINUTE, event.decision.value
        before = self._counted.get(event.id)
        if before is not None:
            self._decisions[before[0]][before[1]] -= 1
        self._decisions.setdefault(minute, Counter())[decision] += 1
        for execution in event.executions[before[2] if before else 0 :]:
            key = event.event_name, str(execution.get("hook"))
            self._hooks.setdefault(key, HookFigures(*key)).add(execution, minute)
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
            "hooks": [_over_time(hook, start, width, bins) for hook in _slowest_first(self._hooks.values())],
        }


def _over_time(hook: HookFigures, start: int, width: int, bins: int) -> dict[str, Any]:
    binned: list[list[float]] = [[] for _ in range(bins)]
    for minute, durations in hook.durations.items():
        if minute > 0:
            binned[(minute * MINUTE - start) // width] += durations
    return {
        **hook.to_dict(),
        "histogram": Histogram(LATENCIES, hook.times).counts,
        "trend": [(percentile(times, 50), percentile(times, 95)) if times else None for times in map(sorted, binned)],
    }


def _width(first: int, last: int) -> int:
    """Return how many seconds a bin spans, so that there are not too many."""
    seconds = (last - first) * MINUTE
    fitting = (width for width in _WIDTHS if seconds / width < _MAX_BINS)
    return next(fitting, seconds // _MAX_BINS + 1)


# Events, as they end in this process.


@dataclass(slots=True)
class EventFigures:
    """The counts of one event. A block does not count as a failure."""

    fired: int = 0
    hooks_run: int = 0
    blocked: int = 0
    failed: int = 0
    total_ms: float = 0.0


class EventTally(HookObserver):
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
