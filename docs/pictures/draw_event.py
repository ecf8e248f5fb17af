"""Draws docs/pictures/event.svg: how an event flows through the modules."""

from __future__ import annotations

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 720, 600
PICTURE = Path(__file__).with_name("event.svg")

# x, y, width, height, and the lines: the name, then what it does
BOXES: list[tuple[int, int, int, int, tuple[str, ...]]] = [
    (10, 12, 124, 66, ("settings.json", "project, user, system,", "extensions")),
    (154, 12, 124, 66, ("settings", "read, merge, approve")),
    (298, 12, 124, 66, ("config", "which hooks,", "which session")),
    (442, 12, 124, 66, ("system", "owns the parts")),
    (586, 12, 124, 66, ("registry", "definitions,", "checked once")),
    (10, 130, 170, 50, ("agent",)),
    (10, 250, 170, 66, ("core.calls", "which hooks run?")),
    (286, 130, 150, 260, ("plan", "fire")),
    (556, 130, 154, 54, ("planner", "which, in what order")),
    (556, 199, 154, 54, ("model", "SDK types ⇄ hook format")),
    (556, 268, 154, 54, ("aggregator", "many outputs, one")),
    (556, 336, 154, 54, ("reporting, observer",)),
    (286, 446, 150, 54, ("runner", "in parallel, or a chain")),
    (556, 446, 154, 54, ("executors", "shell, process")),
    (556, 536, 154, 54, ("protocol", "exit code, output")),
]

# the corners of an arrow, what is written beside it, and where that is centred
ARROWS = [
    ("134,45 154,45", "", 0, 0),
    ("278,45 298,45", "", 0, 0),
    ("422,45 442,45", "", 0, 0),
    ("566,45 586,45", "", 0, 0),
    ("648,78 648,130", "", 0, 0),
    ("70,180 70,250", "", 0, 0),
    ("120,250 120,180", "none", 140, 219),
    ("180,268 286,268", "a plan", 233, 262),
    ("286,298 180,298", "decision", 233, 292),
    ("556,157 436,157", "makes", 496, 151),
    ("436,226 556,226", "1 translate", 496, 220),
    ("361,390 361,446", "2 run", 384, 422),
    ("436,295 556,295", "3 merge", 496, 289),
    ("436,363 556,363", "4 report", 496, 357),
    ("436,473 556,473", "", 0, 0),
    ("633,500 633,536", "bytes, exit code", 582, 522),
    ("556,563 361,563 361,500", "", 0, 0),
]

STYLE = """
    text { font: 11px system-ui, sans-serif; text-anchor: middle; fill: #1c2733; }
    .name { font-size: 12px; font-weight: 600; }
    .paper { fill: #ffffff; }
    .box { fill: #eef2f6; stroke: #5b6b7a; }
    .arrow { fill: none; stroke: #5b6b7a; stroke-width: 1.5; marker-end: url(#head); }
    .head { fill: #5b6b7a; }
"""

HEAD = """
<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<path class="head" d="M0 0 8 4 0 8z"/>
</marker>
""".strip()

LINE = 16


def box(x: int, y: int, width: int, height: int, lines: tuple[str, ...]) -> str:
    top = y + height / 2 - LINE * len(lines) / 2 + 12
    shown = [f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>']
    for number, line in enumerate(lines):
        name = ' class="name"' if number == 0 else ""
        shown.append(f'<text{name} x="{x + width / 2:g}" y="{top + LINE * number:g}">{escape(line)}</text>')
    return "\n".join(shown)


def arrow(corners: str, label: str, x: int, y: int) -> str:
    line = f'<polyline class="arrow" points="{corners}"/>'
    return f'{line}\n<text x="{x}" y="{y}">{escape(label)}</text>' if label else line


def main() -> None:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">',
        f"<style>{STYLE}</style>",
        HEAD,
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        *(box(*each) for each in BOXES),
        *(arrow(*each) for each in ARROWS),
        "</svg>",
    ]
    PICTURE.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
