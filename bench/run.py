"""The benchmark: every line of the budget table, measured in turn, and the cost curves.

    python bench/run.py            all of it, some minutes
    python bench/run.py --quick    less exact, a minute or two
    python bench/run.py --page     all of it, into docs/performance.md

Prints tables, writes JSON and pictures. A budget that is missed is shown, but does not fail: figures of a busy machine
prove nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ahead import ahead_lines
from clients import client_lines
from contenders import line_up
from engine import engine_lines
from figures import MICROSECONDS, Line
from fleet import fleet_lines
from fresh import fresh_lines
from loading import loading_lines
from machine import busy, machine
from mcp_proxy import mcp_proxy_lines
from model_request import model_request_lines
from observing import observing_lines
from scale import Curve, curves
from scene import Scene
from spawning import spawning_lines
from table import markdown_table, table
from warm import warm_lines

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- The figures: bench/run.py --page writes them. -->", "<!-- The end of the figures. -->"
FRAMEWORKS = ROOT / ".venv-integrations" / "bin" / "python"
HEADINGS = ("what", "figure", "middle half", "budget", "verdict", "")


@dataclass(frozen=True)
class Effort:
    """How often everything is measured."""

    rounds: int
    hooks: int
    calls: int
    curve_rounds: int


FULL = Effort(rounds=25, hooks=20, calls=20_000, curve_rounds=7)
QUICK = Effort(rounds=5, hooks=10, calls=5_000, curve_rounds=2)


def main() -> None:
    arguments = _arguments()
    effort = QUICK if arguments.quick else FULL
    warning, before = busy(), os.getloadavg()[0]
    _say(warning)
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-bench-") as folder:
        scene = Scene.make(Path(folder))
        lines, drawn, setting = _measured(scene, effort, with_peer=not arguments.no_peer)
    if warning:
        setting["warning"] = warning
    setting["load"] = f"{before:.1f} before and {os.getloadavg()[0]:.1f} after, over a minute"
    print("\n".join(f"{name}: {value}" for name, value in setting.items()))
    print(f"\n{table(HEADINGS, [line.cells() for line in lines])}")
    for curve in drawn:
        print(f"\n{curve.text()}")
    _write(arguments.json, arguments.pictures, lines, drawn, setting)
    if arguments.page:
        _fill_page(arguments.pictures, drawn)


def _measured(scene: Scene, effort: Effort, *, with_peer: bool) -> tuple[list[Line], list[Curve], dict[str, str]]:
    field = line_up(scene, with_peer=with_peer)
    setting = {**machine(), "floor": field.floor_kind, "peer": field.peer_note}
    try:
        _say("import, help, memory …")
        fresh = fresh_lines(scene, rounds=effort.rounds)
        _say("hooks that do not run …")
        engine = engine_lines(rounds=effort.rounds, calls=effort.calls)
        _say("clients of OpenAI and Anthropic …")
        clients = client_lines(rounds=effort.rounds, calls=effort.calls)
        _say("the log, telemetry, prompts …")
        observing = observing_lines(rounds=effort.rounds, calls=effort.calls // 10)
        _say("frameworks …")
        frameworks = _framework_lines()
        _say("hooks that run …")
        spawning = spawning_lines(field, scene, rounds=effort.rounds, hooks=effort.hooks, wide=100)
        _say("warm hooks …")
        warm = warm_lines(field, scene, rounds=effort.rounds, hooks=effort.hooks)
        ahead = ahead_lines(field, scene, rounds=effort.rounds, hooks=effort.hooks)
        _say("loading settings …")
        loading = loading_lines(rounds=effort.rounds)
        _say("a large model request …")
        models = model_request_lines(scene, rounds=effort.rounds, events=effort.hooks * 3)
        _say("the MCP proxy …")
        proxy = mcp_proxy_lines(scene, rounds=effort.rounds, calls=effort.hooks * 10)
        _say("HTTP, NATS, a policy worker …")
        fleet = fleet_lines(scene, rounds=effort.rounds, calls=effort.hooks * 5)
        _say("cost curves …")
        drawn = curves(field, scene, rounds=effort.curve_rounds)
    finally:
        field.close()
    *starting, memory = fresh
    in_process = [*starting, *loading, *engine, *observing, *clients, *frameworks]
    lines = [*in_process, *spawning, *warm, *ahead, *models, *proxy, *fleet, memory]
    return lines, drawn, setting


def _framework_lines() -> list[Line]:
    """What `integrations.py` measures where the frameworks are installed."""
    if not FRAMEWORKS.exists():
        missing = f"run `make {FRAMEWORKS.parent.parent.name}/.installed` first"
        return [Line("the integrations of frameworks: added to a call", MICROSECONDS, 5e-6, skipped=missing)]
    command = [FRAMEWORKS, ROOT / "bench" / "integrations.py", "--json"]
    told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return [Line(each["what"], MICROSECONDS, each["budget"], rounds=each["rounds"]) for each in told]


def _write(file: Path, pictures: Path, lines: list[Line], drawn: list[Curve], setting: dict[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pictures.mkdir(parents=True, exist_ok=True)
    report = {
        "machine": setting,
        "lines": [line.to_dict() for line in lines],
        "curves": {curve.name: curve.to_dict() for curve in drawn},
    }
    file.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for curve in drawn:
        (pictures / f"{curve.name}.svg").write_text(curve.picture(), encoding="utf-8")
    (pictures / "budgets.md").write_text(_page(lines, setting), encoding="utf-8")
    names = ", ".join(f"{curve.name}.svg" for curve in drawn)
    print(f"\nwritten: {file}; budgets.md, {names} in {pictures}")


def _page(lines: list[Line], setting: dict[str, str]) -> str:
    """The table for the documentation, with the machine that it comes from."""
    told = "; ".join(f"{name} {value}" for name, value in setting.items())
    return f"{markdown_table(HEADINGS, [line.cells() for line in lines])}\n\nMeasured on: {told}.\n"


def _fill_page(pictures: Path, drawn: list[Curve]) -> None:
    """Put the table and the pictures of this run into the documentation."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    figures = (pictures / "budgets.md").read_text(encoding="utf-8")
    PAGE.write_text(f"{before}{BEGIN}\n\n{figures}\n{END}{after}", encoding="utf-8")
    for curve in drawn:
        shutil.copy(pictures / f"{curve.name}.svg", PAGE.parent / "pictures")
    print(f"written: {PAGE}")


def _say(text: str) -> None:
    if text:
        print(text, file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure llxprt-hooks against its budgets, the system and the Node peer."
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: less exact, a few minutes")
    parser.add_argument(
        "--page", action="store_true", help="also write the table and the pictures of the documentation"
    )
    parser.add_argument("--no-peer", action="store_true", help="leave out the Node peer, which npm installs once")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "build" / "bench" / "results.json", help="file for the figures"
    )
    parser.add_argument(
        "--pictures",
        type=Path,
        default=ROOT / "build" / "bench",
        help="folder for the SVG pictures and the table as Markdown",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
