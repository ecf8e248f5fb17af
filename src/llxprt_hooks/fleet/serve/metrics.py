"""Counters of a worker, in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.histogram import SECONDS, Histogram
from llxprt_hooks.core.engine.observer import HookObserver
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import AggregatedHookResult, HookExecutionResult

_UNKNOWN: Final = "unknown"
_EVENTS: Final = {each.value: each for each in HookEventName}


class Metrics(HookObserver):
    """What a worker has done since it was started: the figures that ``telemetry`` reports, and its own state."""

    def __init__(self) -> None:
        self.canary: str | None = None
        """Why the latest hook that had to block did not."""
        self.in_progress = 0
        """Events whose hooks run."""
        self.waiting = 0
        self.reloads: Counter[str] = Counter({"success": 0, "failure": 0})
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, Histogram] = defaultdict(_histogram_of_seconds)
        self._executions: Counter[tuple[str, str, str]] = Counter()
        self._hook_seconds: defaultdict[tuple[str, str], Histogram] = defaultdict(_histogram_of_seconds)

    def hook_ended(self, result: HookExecutionResult) -> None:
        event, hook = result.event_name.value, result.hook_config.identity
        self._executions[event, hook, result.outcome] += 1
        self._hook_seconds[event, hook].add(result.duration / 1000)

    def count(self, event_name: object, result: AggregatedHookResult, seconds: float) -> None:
        """Count one event. Names that are not events count together, because anybody can invent some."""
        known = _EVENTS.get(event_name) if isinstance(event_name, str) else None
        event = known or _UNKNOWN
        self._outcomes[event, result.outcome(known) if known else "refused"] += 1
        self._seconds[event].add(seconds)

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _head("events_total", "counter", "Events by result.")
        for (event, word), number in sorted(self._outcomes.items()):
            yield f'llxprt_hooks_events_total{{event="{event}",outcome="{word}"}} {number}'
        yield from _head("event_seconds", "histogram", "How long events took, with the time that they waited.")
        for event, seconds in sorted(self._seconds.items()):
            yield from _histogram("event_seconds", f'event="{event}"', seconds)
        yield from _head("executions_total", "counter", "Runs of hooks by result.")
        for (event, hook, word), number in sorted(self._executions.items()):
            yield f'llxprt_hooks_executions_total{{event="{event}",hook="{_escaped(hook)}",outcome="{word}"}} {number}'
        yield from _head("hook_seconds", "histogram", "How long hooks took.")
        for (event, hook), seconds in sorted(self._hook_seconds.items()):
            yield from _histogram("hook_seconds", f'event="{event}",hook="{_escaped(hook)}"', seconds)
        yield from _head("canary_ok", "gauge", "1 if a hook that must block did so when last tried, else 0.")
        yield f"llxprt_hooks_canary_ok {int(self.canary is None)}"
        yield from _head("events_in_progress", "gauge", "Events whose hooks run.")
        yield f"llxprt_hooks_events_in_progress {self.in_progress}"
        yield from _head("events_waiting", "gauge", "Events that wait for others to end.")
        yield f"llxprt_hooks_events_waiting {self.waiting}"
        yield from _head("reloads_total", "counter", "Attempts to read the settings again.")
        for word, number in sorted(self.reloads.items()):
            yield f'llxprt_hooks_reloads_total{{result="{word}"}} {number}'


def _histogram_of_seconds() -> Histogram:
    return Histogram(SECONDS)


def _histogram(name: str, labels: str, seconds: Histogram) -> Iterator[str]:
    for bound, number in seconds.cumulative():
        le = "+Inf" if bound == inf else f"{bound:g}"
        yield f'llxprt_hooks_{name}_bucket{{{labels},le="{le}"}} {number}'
    yield f"llxprt_hooks_{name}_sum{{{labels}}} {seconds.sum:.6f}"
    yield f"llxprt_hooks_{name}_count{{{labels}}} {sum(seconds.counts)}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP llxprt_hooks_{name} {words}"
    yield f"# TYPE llxprt_hooks_{name} {kind}"
