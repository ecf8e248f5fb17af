"""Matches the messages that a hook returned with the turns of the conversation they came from (D-13).

A hook sees the texts of a conversation and returns a list of texts. The turns also hold images, function calls and
function responses. Turns keep their order and are never repeated. This module decides which turn each returned message
belongs to, and where new messages go:

- A turn that is *glued* to the previous one forms a unit with it; nothing is ever inserted into a unit. Glued turns at
  the start form a unit with the first turn that is not glued.
- A new message goes after the unit of the message it follows in the hook's list, after what the hook left of the turns
  in between, and before the next unit of which the hook kept a message. So the texts of the result are the hook's
  messages in the hook's order. The one exception is a new message between two messages of one unit: it goes after it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

# Limits for the recursion between anchors, and for the pairs of messages compared if there are no anchors. Beyond them
# messages are paired by position, so that no answer of a hook takes long.
ROUNDS = 8
COMPARED_PAIRS = 10_000
# A changed text is recognized by this many characters at its ends; the more of them are equal, the more similar it is.
COMPARED_LENGTHS = (3, 12, 50, 200)


class Message(NamedTuple):
    """The role and text of a message; a turn without text has the text ``""``."""

    role: str
    text: str
    key: tuple[str, ...] | None = None
    """The calls in the message; None if it has none, or if a hook that returned the message left them out."""

    def may_become(self, other: Message) -> bool:
        """Whether a hook may have changed this message to the other one."""
        return self.role == other.role and (other.key is None or other.key == self.key)


class Step(NamedTuple):
    """One turn of the result: the index of an original turn, or None for a new one, and the message it has now."""

    turn: int | None
    message: Message


def rearrange(turns: Sequence[Message], glued: Sequence[bool], wanted: Sequence[Message]) -> list[Step]:
    """Return the turns of a conversation, each with its text in the ``wanted`` messages, and the new messages."""
    with_text = [index for index, turn in enumerate(turns) if turn.text]
    sources = align([turns[index] for index in with_text], wanted)
    kept = {with_text[source]: message for source, message in zip(sources, wanted, strict=True) if source is not None}
    units = _units(glued)
    kept_units = sorted({units[turn] for turn in kept})
    additions: defaultdict[int, list[Message]] = defaultdict(list)
    unit = -1
    for source, message in zip(sources, wanted, strict=True):
        if source is not None:
            unit = units[with_text[source]]
        else:
            following = bisect_right(kept_units, unit)
            place = bisect_left(units, kept_units[following]) if following < len(kept_units) else len(turns)
            additions[place].append(message)
    return list(_steps(turns, kept, additions))


def align(old: Sequence[Message], new: Sequence[Message], rounds: int = ROUNDS) -> list[int | None]:
    """Return, for each new message, the index of the old message it corresponds to; None if it was added.

    Equal messages at both ends correspond, and so do messages that are unique on both sides, as far as their order is
    the same. The messages between them are compared.

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
    """Return the number of the unit that each turn belongs to."""
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
    """Return the length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _anchors(old: Sequence[Message], new: Sequence[Message]) -> list[tuple[int, int]]:
    """Return the longest sequence of messages that are unique and in the same order on both sides, as index pairs."""
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
    """Align the messages before, between and after the anchors; the anchors stay in place."""
    sources: list[int | None] = []
    old_start = new_start = 0
    for old_end, new_end in [*anchors, (len(old), len(new))]:
        gap = align(old[old_start:old_end], new[new_start:new_end], rounds - 1)
        sources += [*_shifted(gap, old_start), old_end]
        old_start, new_start = old_end + 1, new_end + 1
    return sources[:-1]


def _compare(old: Sequence[Message], new: Sequence[Message]) -> list[int | None]:
    """Pair the most similar messages: most equal ones first, then most of the same role, then highest similarity."""
    if len(old) * len(new) > COMPARED_PAIRS:
        return _by_position(old, new)
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


def _by_position(old: Sequence[Message], new: Sequence[Message]) -> list[int | None]:
    pairs = zip(old, new, strict=False)
    sources: list[int | None] = [index if one.may_become(other) else None for index, (one, other) in enumerate(pairs)]
    return sources + [None] * (len(new) - len(sources))


def _gain(old: Message, new: Message, pairs: int) -> float:
    """Score a pair: similarity never outweighs one more pair, and pairs never outweigh one more equal message."""
    if old == new:
        return pairs + 2.0
    return 1.0 + _similarity(old.text, new.text) / (pairs + 1) if old.may_become(new) else 0.0


def _similarity(old: str, new: str) -> float:
    """Return how much two texts have in common at their ends, from 0 to 1."""
    same = sum((old[:length] == new[:length]) + (old[-length:] == new[-length:]) for length in COMPARED_LENGTHS)
    return same / (2 * len(COMPARED_LENGTHS))
