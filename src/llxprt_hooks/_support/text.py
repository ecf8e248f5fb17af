"""Text for people: escape it for a terminal, shorten it, hide passwords, suggest the closest name, advise on extras."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

SPACES: Final = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Space characters other than the ASCII space: common in prose (French, Japanese), misleading in a command."""

PROSE: Final = "\n\t\u200d" + SPACES
"""Characters to keep in prose: ends of lines, tabs, spaces, and the joiner inside an emoji."""

_JOINER: Final = "\u200d"
_EMOJI_PARTS: Final = "\u200d\ufe0e\ufe0f"
"""Invisible characters that belong to an emoji: the joiner, and the choice between text and picture."""

_EMOJI_PART: Final = re.compile(
    "(?<=[EMOJI\ufe0f])\u200d(?=[EMOJI])|(?<=[EMOJI])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)".replace(
        "EMOJI",
        "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
        "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff",
    )
)
"""These characters, where they are part of an emoji."""

_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters without a glyph that ``str.isprintable`` accepts."""

_MAX_MARKS: Final = 4
"""Combining characters on one letter. More are stacked over the lines around it."""

_CREDENTIALS: Final = re.compile(r'("?(?:(?:https?|nats|tls)://)?).*(?:@|\\u0040)', re.DOTALL)
"""All up to the last ``@``, also of an address as it is written in JSON."""

_MAX_NAME_LENGTH: Final = 100
"""Longer names get no suggestion: comparing is quadratic, and the name may come from a hostile file."""


def escape_for_terminal(text: str, *, keep: str = "") -> str:
    r"""Escape every character that a terminal would act on, or that would hide or reorder other text.

    These are control characters, line and paragraph separators, bidirectional and other invisible formatting, tag
    characters, variation selectors outside emoji, spaces other than U+0020, lone surrogates, unassigned code points,
    and combining characters after the fourth in a row. Characters in ``keep`` are left as they are; a joiner (U+200D)
    only between two emoji.

    >>> print(escape_for_terminal("true\r\x1b[2Krm -rf ~\u202e"))
    true\r\x1b[2Krm -rf ~\u202e
    """

    def shown(found: re.Match[str]) -> str:
        return found[0] if _is_harmless(found, keep) else found[0].encode("unicode_escape").decode()

    return _NOT_PLAIN.sub(shown, text)


def escape_in_json(text: str) -> str:
    r"""Escape the same characters in JSON that has no line breaks. The result means the same.

    >>> print(escape_in_json('{"a":"\x7f\u202e\U000e0041\u00fc"}'))
    {"a":"\u007f\u202e\udb40\udc41ü"}
    """
    return _NOT_PLAIN.sub(lambda found: found[0] if _is_harmless(found) else _json_escape(found[0]), text)


def _is_harmless(found: re.Match[str], keep: str = "") -> bool:
    char, at, text = found[0], found.start(), found.string
    if char in _EMOJI_PARTS:
        return (char != _JOINER or char in keep) and _EMOJI_PART.match(text, at) is not None
    if char in keep:
        return True
    if not char.isprintable() or _INVISIBLE.match(char):
        return False
    return at < _MAX_MARKS or not all(map(_is_mark, text[at - _MAX_MARKS : at + 1]))


def _is_mark(char: str) -> bool:
    return unicodedata.category(char).startswith("M")


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def shorten(text: str, length: int) -> str:
    """Cut a text to at most ``length`` characters; the last one of a text that was cut is an ellipsis.

    >>> shorten("a long story", 7)
    'a long…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def one_line(value: object) -> str:
    """Write a value on one line: each run of white space becomes a space.

    >>> one_line("a\\n  b")
    'a b'
    """
    return " ".join(str(value).split())


def plural(number: int, noun: str, irregular: str = "") -> str:
    """Return the form of a noun that follows a number.

    >>> plural(1, "hook"), plural(0, "hook"), plural(2, "match", "matches")
    ('hook', 'hooks', 'matches')
    """
    return noun if number == 1 else irregular or f"{noun}s"


def indented_json(value: object) -> str:
    """Write a value as JSON for people: indented, and no character escaped that need not be."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def without_credentials(address: str) -> str:
    """Hide what may be a user, password or token in an address, valid or not: all before its last ``@`` but a scheme.

    >>> without_credentials("nats://me:s3cret@example.com"), without_credentials("https:/me:s3cret@example.com")
    ('nats://…@example.com', '…@example.com')
    """
    found = _CREDENTIALS.match(address)
    return address if found is None else f"{found[1]}…@{address[found.end() :]}"


def closest(name: str, candidates: Iterable[str], *, similarity: float = 0.75) -> str | None:
    """Find the candidate that a name is probably a typo of. Case and separators do not count.

    ``similarity`` is the required similarity, from 0 to 1.

    >>> closest("time_out", ["type", "timeout"])
    'timeout'
    """
    from difflib import get_close_matches

    if len(name) > _MAX_NAME_LENGTH:
        return None
    by_letters = {letters(each): each for each in candidates}
    found = get_close_matches(letters(name), by_letters, n=1, cutoff=similarity)
    return by_letters[found[0]] if found else None


def letters(name: str) -> str:
    """Reduce a name to its letters and digits in lower case, so that spellings can be compared."""
    return "".join(char for char in name.casefold() if char.isalnum())


def missing_extra(subject: str, extra: str, error: ImportError) -> str:
    """Explain that packages of an optional extra are missing, and how to install them.

    The command works although no package index has llxprt-hooks: pip and uv keep the installed version and add the
    packages of the extra.

    >>> print(missing_extra("the agent", "agent", ImportError("No module named 'google'")))
    the agent needs packages that are not installed (No module named 'google'); run `pip install 'llxprt-hooks[agent]'`
    """
    return f"{subject} needs packages that are not installed ({error}); run `pip install 'llxprt-hooks[{extra}]'`"


@contextmanager
def from_extra(extra: str, subject: str = "this integration") -> Iterator[None]:
    """Import packages of an extra in this block: if a module is missing, the error says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = missing_extra(subject, extra, error)
        raise ModuleNotFoundError(message, name=error.name, path=error.path) from error
