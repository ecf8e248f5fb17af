"""The lines about warm Python hooks: against the same hook cold, the floor of a plain program, and the peer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import TIMES, Line, middle, undisturbed

if TYPE_CHECKING:
    from contenders import Field
    from scene import Scene

AT_ONCE = 50


def warm_lines(field: Field, scene: Scene, *, rounds: int, hooks: int) -> list[Line]:
    """In every round each of them in turn: the order is another one each time."""
    payload = scene.payload()
    cases = {
        "warm": (field.ours, "warm:python", 1),
        "cold": (field.ours, "python", 1),
        "floor": (field.floor, "plain", 1),
        f"{AT_ONCE} warm": (field.ours, "warm:python", AT_ONCE),
        f"{AT_ONCE} cold": (field.ours, "python", AT_ONCE),
    }
    if field.peer is not None:
        cases["peer"] = field.peer, "python", 1
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        names = [*cases][turn % len(cases) :] + [*cases][: turn % len(cases)]
        for name in names:
            contender, kind, width = cases[name]
            count = hooks if width == 1 else 1
            times = contender.times(kind, count=count, width=width, payload=payload)
            taken[name].append(undisturbed(times) / width)
    for times in taken.values():
        del times[0]  # the round in which the interpreter starts
    through_peer = Line("the Python hook through the Node peer, over ours warm", TIMES, 8.0, at_least=True)
    if field.peer is None:
        through_peer.skipped = field.peer_note
    else:
        _ratio(through_peer, taken, "peer", "warm")
    return [
        _ratio(Line("a warm Python hook, over the same hook cold", TIMES, 0.1), taken, "warm", "cold"),
        _ratio(Line("a warm Python hook, over the floor of a plain program", TIMES, 1.5), taken, "warm", "floor"),
        _ratio(
            Line(f"{AT_ONCE} warm Python hooks at once, over cold", TIMES, 0.2),
            taken,
            f"{AT_ONCE} warm",
            f"{AT_ONCE} cold",
        ),
        through_peer,
    ]


def _ratio(line: Line, taken: dict[str, list[float]], of: str, to: str) -> Line:
    line.rounds = [one / another for one, another in zip(taken[of], taken[to], strict=True)]
    line.beside = f"{of} {middle(taken[of])}, {to} {middle(taken[to])} a hook"
    return line
