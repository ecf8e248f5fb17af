"""Text for people: escape it for a terminal, shorten it, suggest the closest name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

SPACES: Final = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Space characters other than the ASCII space: common in prose (French, Japanese), misleading in a command."""

PROSE: Final = "\n\t" + SPACES
"""Characters to keep in prose."""

_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
"""Characters without a glyph that ``str.isprintable`` accepts.

U+FE0E and U+FE0F are left alone: they choose between the text and the emoji form of the character before them.
"""

_LONGEST_NAME: Final = 100
"""Longer names get no suggestion: comparing is quadratic, and the name may come from a hostile file."""


def escape_for_terminal(text: str, *, keep: str = "") -> str:
    r"""Escape every character that a terminal would act on, or that would hide or reorder other text.

    These are control characters, line and paragraph separators, bidirectional and other invisible formatting (joiners
    of emoji too), tag characters, spaces other than U+0020, lone surrogates and unassigned code points. Characters in
    ``keep`` are left as they are.

    >>> print(escape_for_terminal("true\r\x1b[2Krm -rf ~\u202e"))
    true\r\x1b[2Krm -rf ~\u202e
    """
    return _NOT_PLAIN.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(char: str) -> str:
    if char.isprintable() and not _INVISIBLE.match(char):
        return char
    return char.encode("unicode_escape").decode()


def shorten(text: str, length: int) -> str:
    """Cut a text to at most ``length`` characters; the last one of a text that was cut is an ellipsis.

    >>> shorten("a long story", 7)
    'a long…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def closest(name: str, candidates: Iterable[str], *, similarity: float = 0.75) -> str | None:
    """Find the candidate that a name is probably a typo of. Case and separators do not count.

    ``similarity`` is the required similarity, from 0 to 1.

    >>> closest("time_out", ["type", "timeout"])
    'timeout'
    """
    from difflib import get_close_matches

    if len(name) > _LONGEST_NAME:
        return None
    by_letters = {letters(each): each for each in candidates}
    found = get_close_matches(letters(name), by_letters, n=1, cutoff=similarity)
    return by_letters[found[0]] if found else None


def letters(name: str) -> str:
    """Reduce a name to its letters and digits in lower case, so that spellings can be compared."""
    return "".join(char for char in name.casefold() if char.isalnum())
