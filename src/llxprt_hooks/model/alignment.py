"""Where the messages that a hook returned belong among the turns of the conversation they came from (D-13).

A hook sees the texts of a conversation and returns a list of texts; the turns behind them also hold images, function
calls and function responses. Turns keep their order and are never repeated; what is decided here is which turn each
returned message is the text of, and where the messages stand that are new:

- A turn that is *glued* to the one before forms one unit with it; nothing is ever put inside a unit. Turns at the
  start that have nothing to be glued to form a unit with the first turn after them that could stand alone.
- A new message stands after the unit of the message it follows in the hook's list, after whatever the hook left of
  the turns in between, and before the next unit of which the hook kept a message. So the texts of the result are the
  hook's messages in the hook's order, but for a new message between two messages of one unit: it follows the unit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# How often anchors are looked for between anchors, and how many pairs of messages are compared where there are none:
# beyond that messages are paired one by one, so that no answer of a hook takes long.
ROUNDS = 8
COMPARED_PAIRS = 10_000
# A changed text is recognised by this many characters at its ends; the more are the same, the more alike.
GLANCES = (3, 12, 50, 200)


class Message(NamedTuple):
    """The role and text of a message; a turn without text has the text ``""``."""

    role: str
    text: str


class Step(NamedTuple):
    """One turn of the result: an original one, by its index, with the message it has now; or a new one (``None``)."""

    turn: int | None
    message: Message


def rearrange(turns: Sequence[Message], glued: Sequence[bool], wanted: Sequence[Message]) -> list[Step]:
    """The turns of a conversation, each with the text that it has in the ``wanted`` messages, and the new ones."""
    speaking = [index for index, turn in enumerate(turns) if turn.text]
    sources = align([turns[index] for index in speaking], wanted)
    kept = {speaking[source]: message for source, message in zip(sources, wanted, strict=True) if source is not None}
    units = _units(glued)
    kept_units = sorted({units[turn] for turn in kept})
    additions: defaultdict[int, list[Message]] = defaultdict(list)
    unit = -1
    for source, message in zip(sources, wanted, strict=True):
        if source is not None:
            unit = units[speaking[source]]
        else:
            following = bisect_right(kept_units, unit)
            place = bisect_left(units, kept_units[following]) if following < len(kept_units) else len(turns)
            additions[place].append(message)
    return list(_steps(turns, kept, additions))


def align(old: Sequence[Message], new: Sequence[Message], rounds: int = ROUNDS) -> list[int | None]:
    """For each new message the index of the old one that it is, changed or not; ``None`` where it is none of them.

    Messages that are the same at both ends belong together, and so do those that are unique on both sides, as far as
    their order is the same; what is left between them is compared.

    >>> align([Message("user", "a"), Message("model", "b")], [Message("user", "a!"), Message("model", "b")])
    [0, 1]
    """
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    inner_old, inner_new = old[start : len(old) - end], new[start : len(new) - end]
    anchors = _anchors(inner_old, inner_new) if rounds else []
    inner = _between(inner_old, inner_new, anchors, rounds) if anchors else _compare(inner_old, inner_new)
    return [*range(start), *_shifted(inner, start), *range(len(old) - end, len(old))]


def _steps(turns: Sequence[Message], kept: dict[int, Message], additions: dict[int, list[Message]]) -> Iterator[Step]:
    for index in range(len(turns) + 1):
        for message in additions.get(index, ()):
            yield Step(None, message)
        if index < len(turns):
            yield Step(index, kept.get(index, Message(turns[index].role, "")))


def _units(glued: Sequence[bool]) -> list[int]:
    """The number of the unit that each turn belongs to."""
    units: list[int] = []
    unit, opened = 0, False
    for is_glued in glued:
        if not is_glued:
            unit += opened
            opened = True
        units.append(unit)
    return units


def _shifted(sources: Sequence[int | None], by: int) -> list[int | None]:
    return [None if source is None else source + by for source in sources]


def _shared(old: Sequence[object], new: Sequence[object]) -> int:
    """How many items both begin with."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _anchors(old: Sequence[Message], new: Sequence[Message]) -> list[tuple[int, int]]:
    """The longest run of messages that both sides have once, in the same order on both, as pairs of indexes."""
    old_counts, new_counts = Counter(old), Counter(new)
    places = {message: place for place, message in enumerate(old) if old_counts[message] == new_counts[message] == 1}
    pairs = [(places[message], place) for place, message in enumerate(new) if message in places]
    # Patience sorting: ends[n] is the pair with the lowest old place that a run of n + 1 pairs can end in.
    ends: list[int] = []
    lowest: list[int] = []
    previous: list[int | None] = []
    for index, (old_place, _) in enumerate(pairs):
        length = bisect_left(lowest, old_place)
        previous.append(ends[length - 1] if length else None)
        ends[length : length + 1] = [index]
        lowest[length : length + 1] = [old_place]
    run: list[tuple[int, int]] = []
    last = ends[-1] if ends else None
    while last is not None:
        run.append(pairs[last])
        last = previous[last]
    return run[::-1]


def _between(
    old: Sequence[Message], new: Sequence[Message], anchors: Sequence[tuple[int, int]], rounds: int
) -> list[int | None]:
    """The alignment of what is before, between and after the anchors, with the anchors in their places."""
    sources: list[int | None] = []
    old_start = new_start = 0
    for old_end, new_end in [*anchors, (len(old), len(new))]:
        gap = align(old[old_start:old_end], new[new_start:new_end], rounds - 1)
        sources += [*_shifted(gap, old_start), old_end]
        old_start, new_start = old_end + 1, new_end + 1
    return sources[:-1]


def _compare(old: Sequence[Message], new: Sequence[Message]) -> list[int | None]:
    """Each with the most alike: as many the same as order allows, then as many of one role, then likeness."""
    if len(old) * len(new) > COMPARED_PAIRS:
        return _one_by_one(old, new)
    pairs = min(len(old), len(new))
    gains = [[_gain(one, other, pairs) for other in new] for one in old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            paired = gains[i][j] + best[i + 1][j + 1] if gains[i][j] else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    sources: list[int | None] = [None] * len(new)
    i = j = 0
    while i < len(old) and j < len(new):
        if gains[i][j] and best[i][j] == gains[i][j] + best[i + 1][j + 1]:
            sources[j] = i
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return sources


def _one_by_one(old: Sequence[Message], new: Sequence[Message]) -> list[int | None]:
    pairs = zip(old, new, strict=False)
    sources: list[int | None] = [index if one.role == other.role else None for index, (one, other) in enumerate(pairs)]
    return sources + [None] * (len(new) - len(sources))


def _gain(old: Message, new: Message, pairs: int) -> float:
    """What it is worth to pair two messages, so that likeness never outweighs a pair, nor pairs a message kept."""
    if old == new:
        return pairs + 2.0
    return 1.0 + _likeness(old.text, new.text) / (pairs + 1) if old.role == new.role else 0.0


def _likeness(old: str, new: str) -> float:
    """From 0 to 1: how much is the same at either end of two texts."""
    same = sum((old[:glance] == new[:glance]) + (old[-glance:] == new[-glance:]) for glance in GLANCES)
    return same / (2 * len(GLANCES))
