"""The lines about programs that are started ahead: against the same hook cold, its floor, and the peer.

Each is measured twice: with events one right after the other, so that the next process has no more time to start than
an event takes, and with a pause before each event, as in an agent whose model thinks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from contenders import COMPILED
from figures import TIMES, Line, middle, undisturbed

if TYPE_CHECKING:
    from pathlib import Path

    from contenders import Contender, Field
    from scene import Scene


class Kind(NamedTuple):
    """A program that may be started ahead."""

    name: str
    budget: float
    """Of a cold start."""


KINDS = {
    COMPILED: Kind("the smallest compiled program", 0.5),
    "node": Kind("a Node script", 0.35),
    "bash": Kind("a bash script that reads its input first", 0.6),
}
PACES = {0.0: "", 0.2: ", with a pause before each event"}
"""Seconds before each event."""
PACED = 3
"""Events of a round with a pause before each."""

FLOOR, PEER = "floor", "peer"
Taken = dict[tuple[str, float], list[float]]


def ahead_lines(field: Field, scene: Scene, *, rounds: int, hooks: int) -> list[Line]:
    """In every round each of them in turn: the order is another one each time."""
    cases: dict[str, tuple[Contender, str]] = {}
    for kind in (kind for kind in KINDS if kind in field.kinds):
        cases |= {f"warm:{kind}": (field.ours, f"warm:{kind}"), f"cold:{kind}": (field.ours, kind)}
    if COMPILED in field.kinds and field.has_compiler:
        cases[FLOOR] = field.floor, COMPILED
    if field.peer is not None and "node" in field.kinds:
        cases[PEER] = field.peer, "node"
    taken: Taken = {(name, pause): [] for pause in PACES for name in cases}
    for turn in range(rounds + 1):
        for name, pause in [*taken][turn % len(taken) :] + [*taken][: turn % len(taken)]:
            times = _times(*cases[name], pause, hooks, scene.payload())
            taken[name, pause].append(undisturbed(times))
    for rounds_taken in taken.values():
        del rounds_taken[0]  # the round in which everything is read for the first time
    return [line for pause, when in PACES.items() for line in _lines(taken, pause, when)]


def _times(contender: Contender, kind: str, pause: float, hooks: int, payload: Path) -> list[float]:
    if not pause:
        return contender.times(kind, count=hooks, payload=payload)
    times: list[float] = []
    for _ in range(PACED):
        time.sleep(pause)
        times += contender.times(kind, count=1, payload=payload)
    return times


def _lines(taken: Taken, pause: float, when: str) -> list[Line]:
    over_cold = [
        _ratio(
            Line(f"{each.name} started ahead, over the same hook cold{when}", TIMES, each.budget),
            taken,
            f"warm:{kind}",
            f"cold:{kind}",
            pause,
        )
        for kind, each in KINDS.items()
    ]
    over_floor = Line(f"{KINDS[COMPILED].name} started ahead, over its floor{when}", TIMES, 1.0)
    through_peer = Line(f"the Node script through the Node peer, over ours started ahead{when}", TIMES)
    return [
        *over_cold,
        _ratio(over_floor, taken, f"warm:{COMPILED}", FLOOR, pause),
        _ratio(through_peer, taken, PEER, "warm:node", pause),
    ]


def _ratio(line: Line, taken: Taken, of: str, to: str, pause: float) -> Line:
    if missing := [name for name in (of, to) if (name, pause) not in taken]:
        line.skipped = f"nothing here for {missing[0].rpartition(':')[2]}"
        return line
    line.rounds = [one / another for one, another in zip(taken[of, pause], taken[to, pause], strict=True)]
    said = (f"{name.partition(':')[0]} {middle(taken[name, pause])}" for name in (of, to))
    line.beside = f"{', '.join(said)} a hook"
    return line
