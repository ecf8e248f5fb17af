"""Cost curves: hooks configured and run at once, size of the payload, events at once, sessions; time and memory."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from chart import line_chart
from engine import config_with, first_seen, overhead, without_collector, wrapper
from table import table

if TYPE_CHECKING:
    from contenders import Field
    from scene import Scene

CONFIGURED = (10, 100, 1_000, 10_000)
AT_ONCE = (1, 2, 5, 10, 20, 50, 100, 200)
PAYLOAD = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
GROWTH = {
    "hooks": ("Hooks of one event: time and memory", "hooks", (1, 10, 100, 1_000)),
    "payload": ("Size of the payload: time and memory", "bytes", PAYLOAD),
    "events": ("Events at once: time and memory", "events at once", (1, 10, 100, 1_000)),
    "sessions": ("Sessions that nobody ends: time and memory", "sessions", (1, 10, 100, 1_000, 10_000)),
}
GROWTH_ROUNDS = 3
PAGE = 4096
"""Bytes: less than that is not seen, and has no place on a logarithmic scale."""


@dataclass(frozen=True)
class Curve:
    """Series over a common scale, in milliseconds."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Mapping[str, list[tuple[int, float]]]

    def picture(self) -> str:
        return line_chart(self.title, self.x_label, self.y_label, self.series)

    def text(self) -> str:
        """A column a series, and how each grows over the last step: 1 is linear, 0 constant."""
        xs = [x for x, _ in next(iter(self.series.values()))]
        rows = [[f"{x:,}", *(f"{points[i][1]:.3g}" for points in self.series.values())] for i, x in enumerate(xs)]
        growth = ["grows with the power", *(f"{_power(points):.2f}" for points in self.series.values())]
        return f"{self.title} ({self.y_label})\n{table([self.x_label, *self.series], [*rows, growth])}"

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "x": self.x_label, "y": self.y_label, "series": dict(self.series)}


def _power(points: list[tuple[int, float]]) -> float:
    (x1, y1), (x2, y2) = points[-2:]
    return math.log(y2 / y1) / math.log(x2 / x1)


def curves(field: Field, scene: Scene, *, rounds: int) -> list[Curve]:
    compared = [_at_once(field, scene, rounds), _configured(rounds), _payload(field, scene, rounds)]
    return [*compared, *(_growth(kind, scene, min(rounds, GROWTH_ROUNDS)) for kind in GROWTH)]


def _at_once(field: Field, scene: Scene, rounds: int) -> Curve:
    times: dict[str, dict[int, list[float]]] = {each.name: {width: [] for width in AT_ONCE} for each in field.all}
    for _ in range(rounds):
        for width in AT_ONCE:
            for each in field.all:
                taken = each.per_hook("plain", count=1 + 20 // width, width=width, payload=scene.payload())
                times[each.name][width].append(taken * 1e3)
    return Curve(
        "parallel",
        "Hooks at once: time per hook",
        "hooks at once",
        "milliseconds per hook",
        {name: _medians(of_width) for name, of_width in times.items()},
    )


def _configured(rounds: int) -> Curve:
    ready: dict[int, list[float]] = {size: [] for size in CONFIGURED}
    unmatched: dict[int, list[float]] = {size: [] for size in CONFIGURED}
    first: dict[int, list[float]] = {size: [] for size in CONFIGURED}
    with asyncio.Runner() as runner, without_collector():
        for _ in range(rounds):
            for size in CONFIGURED:
                config = config_with(size)
                started = time.perf_counter()
                runner.run(overhead(wrapper(config), 1))
                ready[size].append((time.perf_counter() - started) * 1e3)
                first[size].append(runner.run(first_seen(config)) * 1e3)
                unmatched[size].append(runner.run(overhead(wrapper(config), 2_000)) * 1e3)
    series = {"first event": ready, "first seen tool": first, "unmatched call": unmatched}
    return Curve(
        "configured",
        "Hooks configured that do not match: time of a tool call",
        "hooks configured",
        "milliseconds",
        {name: _medians(of_size) for name, of_size in series.items()},
    )


def _payload(field: Field, scene: Scene, rounds: int) -> Curve:
    times: dict[str, dict[int, list[float]]] = {each.name: {size: [] for size in PAYLOAD} for each in field.all}
    for _ in range(rounds):
        for size in PAYLOAD:
            for each in field.all:
                taken = each.per_hook("plain", count=3, payload=scene.payload(size))
                times[each.name][size].append(taken * 1e3)
    return Curve(
        "payload",
        "Size of the payload: time of a hook that reads it",
        "bytes",
        "milliseconds",
        {name: _medians(of_size) for name, of_size in times.items()},
    )


def _growth(kind: str, scene: Scene, rounds: int) -> Curve:
    """Each point in a process of its own, whose memory nothing else has filled."""
    title, x_label, sizes = GROWTH[kind]
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    grown: dict[int, list[float]] = {size: [] for size in sizes}
    program = str(Path(__file__).with_name("growth.py"))
    for _ in range(rounds):
        for size in sizes:
            command = [sys.executable, program, kind, str(size), str(scene.program)]
            told = subprocess.check_output(command, env=scene.environment(), text=True)
            took, bytes_grown = map(float, told.split())
            seconds[size].append(took * 1e3)
            grown[size].append(max(bytes_grown, PAGE) / 1024**2)
    series = {"time (ms)": _medians(seconds), "memory (MiB)": _medians(grown)}
    return Curve(f"growth-{kind}", title, x_label, "milliseconds, MiB", series)


def _medians(taken: Mapping[int, list[float]]) -> list[tuple[int, float]]:
    return [(x, median(values)) for x, values in taken.items()]
