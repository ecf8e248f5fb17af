"""The lines about what it costs to look on, and to be waited for: function hooks, in processor time.

A tool event with no observer, with the log and with telemetry, in turns; and a prompt whose hook acts, beside a tool.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine import TOOL_INPUT, without_collector
from figures import MICROSECONDS, TIMES, Line, undisturbed

from llxprt_hooks import Config, HookLog, Hooks, allow, fire_before_tool_hook
from llxprt_hooks.fleet.telemetry import HookTelemetry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llxprt_hooks import HookObserver

BATCHES = 20


def observing_lines(*, rounds: int, calls: int) -> list[Line]:
    """What an observer adds to an event with one hook, and what an awaited event takes over a tool's."""
    added = {name: Line(f"{name}: added to an event with one hook", MICROSECONDS) for name in ("the log", "telemetry")}
    awaited = Line("a prompt whose hook acts, over a tool call", TIMES)
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-bench-") as folder, asyncio.Runner() as runner:
        observers: dict[str, HookObserver | None] = {
            "none": None,
            "the log": HookLog(Path(folder)),
            "telemetry": _telemetry(),
        }
        events = {name: _tool_event(observer) for name, observer in observers.items()}
        events["prompt"] = _prompt()
        with without_collector():
            for _ in range(rounds + 1):
                taken = runner.run(_in_turn(events, calls))
                for name, line in added.items():
                    line.rounds.append(taken[name] - taken["none"])
                    line.beside = f"an event without it {MICROSECONDS.write(taken['none'])}"
                awaited.rounds.append(taken["prompt"] / taken["none"])
                awaited.beside = f"{MICROSECONDS.write(taken['prompt'])}, a tool {MICROSECONDS.write(taken['none'])}"
    lines = [*added.values(), awaited]
    for line in lines:
        del line.rounds[0]
    return lines


def _tool_event(observer: HookObserver | None) -> Callable[[], Awaitable[object]]:
    hooks = Hooks(Config(enable_hooks=True, observer=observer))
    hooks.on("BeforeTool", lambda payload: allow())
    return lambda: fire_before_tool_hook(hooks.config, "read_file", TOOL_INPUT)


def _prompt() -> Callable[[], Awaitable[object]]:
    hooks = Hooks(Config(enable_hooks=True, profile="full"))
    hooks.on("BeforeAgent", lambda payload: allow())
    return lambda: hooks.before_turn("hello")


def _telemetry() -> HookTelemetry:
    """With the SDK of OpenTelemetry and an exporter that drops what it gets: what is exported costs extra."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    logging.getLogger("opentelemetry").setLevel(logging.ERROR)
    return HookTelemetry(TracerProvider(), MeterProvider([InMemoryMetricReader()]))


async def _in_turn(events: dict[str, Callable[[], Awaitable[object]]], calls: int) -> dict[str, float]:
    """Processor seconds per event, in small batches in turns."""
    batch = max(1, calls // BATCHES)
    taken: dict[str, list[float]] = {name: [] for name in events}
    for _ in range(BATCHES):
        for name, fire in events.items():
            started = time.process_time()
            for _ in range(batch):
                await fire()
            taken[name].append((time.process_time() - started) / batch)
    return {name: undisturbed(times) for name, times in taken.items()}
