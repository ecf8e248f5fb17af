"""What was most likely meant by a name that is not known."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from llxprt_hooks.diagnosis.foreign_names import CLAUDE_EVENTS
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST: Final = 100
"""No slip of a name is longer; a hostile file could have one of any length."""

_OTHER_WORDS: Final = (
    (re.compile(r"^on"), ""),
    (re.compile(r"^(?:pre|before)(?=compact|compress)"), "pre"),
    (re.compile(r"^pre(?!comp)"), "before"),
    (re.compile(r"^post"), "after"),
    (re.compile(r"compact(?:ion)?|compression"), "compress"),
    (re.compile(r"llm"), "model"),
    (re.compile(r"(?<=session)(?:begin|open|init)"), "start"),
    (re.compile(r"(?<=session)(?:stop|close|exit|finish)"), "end"),
    (re.compile(r"(?:use|call|execution|request|response|hook|event|(?<!s)s)$"), ""),
)
"""Words that others use in names of events, and ours for them."""


def closest(name: str, known: Iterable[str], *, alike: float = 0.75) -> str | None:
    """The known name that a name is a slip of: another case, other separators, a letter too few or too many.

    ``alike`` says from 0 to 1 how much they must have in common.

    >>> closest("time_out", ["type", "timeout"])
    'timeout'
    """
    if len(name) > _LONGEST:
        return None
    by_letters = {_letters(each): each for each in known}
    found = get_close_matches(_letters(name), by_letters, n=1, cutoff=alike)
    return by_letters[found[0]] if found else None


def same_letters(name: str, other: str) -> bool:
    """Whether two names differ only in case and separators."""
    return _letters(name) == _letters(other)


def meant_event(name: str) -> HookEventName | None:
    """The event that was meant by a name that is none: Claude Code's name for it, or a slip."""
    if len(name) > _LONGEST:
        return None
    foreign = claude_event(name)
    if foreign is not None:
        return CLAUDE_EVENTS[foreign]
    letters = _letters(name)
    for word, ours in _OTHER_WORDS:
        letters = word.sub(ours, letters)
    close = next((event for event in HookEventName if _letters(event) == letters), None) or closest(name, HookEventName)
    return HookEventName(close) if close else None


def claude_event(name: str) -> str | None:
    """The event of Claude Code that a name stands for, whatever its case."""
    return next((event for event in CLAUDE_EVENTS if same_letters(event, name)), None)


def _letters(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())
