"""The lines about running hooks: ours against the floor, the peer against ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contenders import COMPILED
from figures import TIMES, Line, middle, undisturbed

if TYPE_CHECKING:
    from contenders import Contender, Field
    from scene import Scene

Times = dict[str, list[float]]

KINDS = ("plain", "shell")
AT_A_TIME = 4
"""Hooks that a contender runs in a row: few, so that what else happens on the machine falls on all of them."""


def spawning_lines(field: Field, scene: Scene, *, rounds: int, hooks: int, wide: int) -> list[Line]:
    """``hooks`` in sequence and ``wide`` at once, of either kind, in every round."""
    payload = scene.payload()
    taken: dict[tuple[str, int], list[Times]] = {(kind, width): [] for kind in KINDS for width in (1, wide)}
    smallest: list[Times] = []
    foreign: list[Times] = []
    for turn in range(rounds + 1):
        for (kind, width), times in taken.items():
            everyone = {each.name: (each, kind) for each in field.all}
            times.append(_round(everyone, width, hooks if width == 1 else 1, payload, turn))
        if field.has_compiler:
            both = {"floor": (field.floor, COMPILED), "ours": (field.ours, COMPILED)}
            smallest.append(_round(both, 1, hooks, payload, turn))
        dialects = {"Claude's": (field.ours, "claude:neutral"), "our own": (field.ours, "neutral")}
        foreign.append(_round(dialects, 1, hooks, payload, turn))
    for times in (*taken.values(), smallest, foreign):
        del times[:1]  # the round that warms everything up
    compiled = Line("a hook that is the smallest compiled program, over its floor", TIMES, 1.35)
    if field.has_compiler:
        _ratio(compiled, smallest, "ours", "floor")
    else:
        compiled.skipped = "no C compiler here"
    return [
        compiled,
        _against_floor("a hook that is an `sh` script with an argument, over the floor", 1.25, taken["plain", 1]),
        _against_floor("a hook that needs the shell, over the floor of `bash -c`", 1.20, taken["shell", 1]),
        _against_peer("the plain hook through the Node peer, over ours", 2.0, taken["plain", 1], field),
        _against_peer(f"the same, {wide} at once", 2.0, taken["plain", wide], field),
        _against_peer("the shell hook through the Node peer, over ours", 1.2, taken["shell", 1], field),
        _against_peer(f"the same, {wide} at once", 1.2, taken["shell", wide], field),
        _ratio(Line("the plain hook in Claude's dialect, over our own", TIMES, 1.1), foreign, "Claude's", "our own"),
    ]


def _round(contenders: dict[str, tuple[Contender, str]], width: int, hooks: int, payload: Path, turn: int) -> Times:
    """Seconds per hook of every contender. They take turns within the round, and another one begins each time."""
    taken: Times = {name: [] for name in contenders}
    for begun in range(0, hooks, AT_A_TIME):
        count = min(AT_A_TIME, hooks - begun)
        for name in _rotated(list(contenders), turn + begun // AT_A_TIME):
            contender, kind = contenders[name]
            times = contender.times(kind, count=count, width=width, payload=payload)
            taken[name] += [seconds / width for seconds in times]
    return taken


def _rotated(names: list[str], turn: int) -> list[str]:
    first = turn % len(names)
    return names[first:] + names[:first]


def _against_floor(what: str, budget: float, taken: list[Times]) -> Line:
    return _ratio(Line(what, TIMES, budget), taken, "ours", "floor")


def _against_peer(what: str, budget: float, taken: list[Times], field: Field) -> Line:
    line = Line(what, TIMES, budget, at_least=True)
    if field.peer is None:
        line.skipped = field.peer_note
        return line
    return _ratio(line, taken, "peer", "ours")


def _ratio(line: Line, taken: list[Times], of: str, to: str) -> Line:
    line.rounds = [undisturbed(times[of]) / undisturbed(times[to]) for times in taken]
    line.beside = f"{of} {_written(taken, of)}, {to} {_written(taken, to)} a hook"
    return line


def _written(taken: list[Times], name: str) -> str:
    return middle([undisturbed(times[name]) for times in taken])
