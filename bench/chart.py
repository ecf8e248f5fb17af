"""Line charts as SVG, both axes logarithmic: a power law is a straight line, and twice as much is as far everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 130, 50, 55
COLOURS = ("#0072b2", "#d55e00", "#777777", "#009e73")
"""Told apart with any eyes (Okabe and Ito)."""

_STYLE = "font-family: system-ui, sans-serif; font-size: 13px; fill: #333"


@dataclass(frozen=True)
class _Axis:
    """Maps values to positions."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times the powers of ten; only the powers where that would be too many."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 4 else (1,)
        ticks = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]


def line_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """One line per series, named at its end."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    across = _Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = _Axis(min(ys) / 1.3, max(ys) * 1.3, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<g style="{_STYLE}">',
        _text(LEFT, 24, title, size=15, weight="bold"),
        *_grid(across, up),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label, anchor="middle"),
        _text(18, (TOP + HEIGHT - BOTTOM) / 2, y_label, anchor="middle", turned=True),
    ]
    label_heights = _apart({name: up.at(points[-1][1]) for name, points in series.items()})
    for (name, points), colour in zip(series.items(), COLOURS, strict=False):
        path = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{across.at(x):.1f}" cy="{up.at(y):.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        parts.append(_text(WIDTH - RIGHT + 10, label_heights[name] + 4, name, colour=colour))
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _grid(across: _Axis, up: _Axis) -> list[str]:
    parts = []
    for tick in up.ticks():
        y = up.at(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>')
        parts.append(_text(LEFT - 8, y + 4, _number(tick), anchor="end"))
    for tick in across.ticks():
        x = across.at(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#f0f0f0"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 18, _number(tick), anchor="middle"))
    return parts


def _apart(heights: Mapping[str, float], least: float = 16) -> dict[str, float]:
    """Labels from top to bottom, none on another."""
    placed: dict[str, float] = {}
    above = -math.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        above = placed[name] = max(height, above + least)
    return placed


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:g}"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 13,
    weight: str = "normal",
    colour: str = "#333",
    turned: bool = False,
) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    look = f"font-size: {size}px; font-weight: {weight}; fill: {colour}"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="{look}"{turn}>{escape(text)}</text>'
