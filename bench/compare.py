"""Two checkouts against each other, in turns within one run: did a change cost anything?

    python bench/compare.py /path/to/other/checkout      the other one needs its own .venv (make demo)

Prints, for each kind of call, the time of this checkout divided by the time of the other: median and middle half.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from contenders import HERE, Contender
from figures import TIMES, Line, middle, undisturbed
from scene import Scene
from table import table

ROUNDS = 25
KINDS = (("plain", 1, 20), ("shell", 1, 20), ("plain", 100, 1), ("shell", 100, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure this checkout against another one.")
    parser.add_argument("other", type=Path, help="the other checkout, with its virtual environment")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    other_python = arguments.other / ".venv" / "bin" / "python"
    if not other_python.exists():
        sys.exit(f"{other_python} does not exist: run `make demo` in {arguments.other} first")
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-bench-") as folder:
        scene = Scene.make(Path(folder))
        ours = [str(HERE / "ours.py"), "plain", scene.plain, "shell", scene.shell]
        pair = [
            Contender("here", [sys.executable, *ours], scene),
            Contender("other", [str(other_python), *ours], scene),
        ]
        lines = [_line(kind, width, count, pair, scene, arguments.rounds) for kind, width, count in KINDS]
        for each in pair:
            each.close()
    print(table(("what", "here / other", "middle half", "", "", ""), [line.cells() for line in lines]))


def _line(kind: str, width: int, count: int, pair: list[Contender], scene: Scene, rounds: int) -> Line:
    taken: dict[str, list[float]] = {each.name: [] for each in pair}
    payload = scene.payload()
    for turn in range(rounds + 1):
        for each in pair if turn % 2 else pair[::-1]:
            taken[each.name].append(undisturbed(each.times(kind, count=count, width=width, payload=payload)) / width)
    here, other = taken["here"][1:], taken["other"][1:]
    line = Line(f"{kind} hook, {width} at once", TIMES)
    line.rounds = [one / another for one, another in zip(here, other, strict=True)]
    line.beside = f"here {middle(here)}, other {middle(other)} a hook"
    return line


if __name__ == "__main__":
    main()
