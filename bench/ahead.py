"""The lines about programs that are started ahead: against the same hook cold, its floor, and the peer.

Each is measured three times: with events one right after the other, so that the next process has no more time to start
than an event takes; with just enough time before each event for the next process to wait; and with a long pause before
each, as in an agent whose model thinks, after which everything that runs finds the processor's caches cold.
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
    start: float
    """Seconds after which the next process certainly waits."""


KINDS = {
    COMPILED: Kind("the smallest compiled program", 0.5, 0.005),
    "node": Kind("a Node script", 0.35, 0.15),
    "bash": Kind("a bash script that reads its input first", 0.6, 0.005),
}
AT_ONCE, ONCE_IT_WAITS, LATER = ", one event right after the other", "", ", 0.2 s after the one before"
PACED = 5
"""Events of a round with a pause before each. Their first one follows something else, and does not count."""

FLOOR, PEER = "floor", "peer"
Taken = dict[tuple[str, str], list[float]]


def ahead_lines(field: Field, scene: Scene, *, rounds: int, hooks: int) -> list[Line]:
    """In every round each of them in turn: the order is another one each time."""
    cases: dict[str, tuple[Contender, str]] = {}
    for kind in (kind for kind in KINDS if kind in field.kinds):
        cases |= {f"warm:{kind}": (field.ours, f"warm:{kind}"), f"cold:{kind}": (field.ours, kind)}
    if COMPILED in field.kinds and field.has_compiler:
        cases[FLOOR] = field.floor, COMPILED
    if field.peer is not None and "node" in field.kinds:
        cases[PEER] = field.peer, "node"
    taken: Taken = {(name, when): [] for when in (ONCE_IT_WAITS, LATER, AT_ONCE) for name in cases}
    for turn in range(rounds + 1):
        for name, when in [*taken][turn % len(taken) :] + [*taken][: turn % len(taken)]:
            contender, kind = cases[name]
            pause = {AT_ONCE: 0, ONCE_IT_WAITS: KINDS[kind.rpartition(":")[2]].start, LATER: 0.2}[when]
            times = _times(contender, kind, pause, hooks, scene.payload())
            taken[name, when].append(undisturbed(times))
    for rounds_taken in taken.values():
        del rounds_taken[0]  # the round in which everything is read for the first time
    return [line for when in (ONCE_IT_WAITS, LATER, AT_ONCE) for line in _lines(taken, when)]


def _times(contender: Contender, kind: str, pause: float, hooks: int, payload: Path) -> list[float]:
    if not pause:
        return contender.times(kind, count=hooks, payload=payload)
    times: list[float] = []
    for _ in range(PACED):
        time.sleep(pause)
        times += contender.times(kind, count=1, payload=payload)
    return times[1:]


def _lines(taken: Taken, when: str) -> list[Line]:
    over_cold = [
        _ratio(
            Line(f"{each.name} started ahead, over the same hook cold{when}", TIMES, each.budget),
            taken,
            f"warm:{kind}",
            f"cold:{kind}",
            when,
        )
        for kind, each in KINDS.items()
    ]
    over_floor = Line(f"{KINDS[COMPILED].name} started ahead, over its floor{when}", TIMES, 1.0)
    through_peer = Line(f"the Node script through the Node peer, over ours started ahead{when}", TIMES)
    return [
        *over_cold,
        _ratio(over_floor, taken, f"warm:{COMPILED}", FLOOR, when),
        _ratio(through_peer, taken, PEER, "warm:node", when),
    ]


def _ratio(line: Line, taken: Taken, of: str, to: str, when: str) -> Line:
    if missing := [name for name in (of, to) if (name, when) not in taken]:
        line.skipped = f"nothing here for {missing[0].rpartition(':')[2]}"
        return line
    line.rounds = [one / another for one, another in zip(taken[of, when], taken[to, when], strict=True)]
    said = (f"{name.partition(':')[0]} {middle(taken[name, when])}" for name in (of, to))
    line.beside = f"{', '.join(said)} a hook"
    return line
