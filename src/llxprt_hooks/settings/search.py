"""Search with an ECMAScript regular expression, in a time that no expression and no text can make long.

The engine that knows ECMAScript tries one way to match after the other, and ``^(a+)+$`` has a billion of them in 30
letters. Most expressions have few, and that engine searches for them. The others are searched here: whether there is
any match takes only one visit to each part of the expression at each position of the text. Single characters are still
compared by the engine, so that only the structure of an expression is read here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from regress import Regex, RegressError

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import shorten

log = debug_logger("settings")

_FEW: Final = 1_000_000
"""Ways to match that the engine may try: where to start, how often to repeat, which alternative to take."""
_FEW_ALTERNATIVES: Final = 100
"""That the engine may try at each place of a long text, if nothing is repeated."""
_MAX_ALTERNATIVES: Final = 4000
"""The engine reads so many in some hundredths of a second, and takes four times as long for twice as many."""
_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]")

_MAX_VISITS: Final = 500_000
"""The limit of a search. Beyond it the answer is yes, because a hook that runs once too often does no harm, and a guard
that does not run does."""

_ATOM: Final = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|u\{[\da-fA-F]+\}|x[\da-fA-F]{2}"
    r"|c[A-Za-z]|[0-3][0-7]{1,2}|[4-7][0-7]|[^c])|\[(?:\\.|[^\]\\])*\]|.",
    re.DOTALL,
)
_QUANTIFIER: Final = re.compile(r"(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??")
_GROUP: Final = re.compile(r"\((?:\?(?:<?[=!]|<[^>]*>|([a-z]*)(?:-([a-z]*))?:))?")
_NAMED: Final = re.compile(r"\(\?<[^=!]")
_BACK_REFERENCE: Final = re.compile(r"\\([1-9]\d*)|\\k<[^>]*>")
_LINE_ENDS: Final = "\n\r\u2028\u2029"
_WORD: Final = re.compile(r"[A-Za-z0-9_]")


@lru_cache(maxsize=256)
def _warn(pattern: str) -> None:
    log.warning("the matcher `%s` cannot be compared in time, and counts as one that matches", shorten(pattern, 200))


def searching(pattern: str, too_complex: Callable[[str], object] = _warn) -> Callable[[str], bool] | None:
    """A test whether the expression matches anywhere in a text; None if it is not a valid expression.

    ``too_complex`` is called if that would take too long, so that the answer is yes.

    >>> searching("^(a+)+$")("a" * 30 + "!")
    False
    """
    pattern = _scalar_values(pattern)
    if pattern.count("|") > _MAX_ALTERNATIVES:
        return partial(_never_known, pattern, too_complex)
    try:
        find = Regex(pattern).find
    except RegressError:
        return None
    bars, repeated = pattern.count("|"), sum(map(pattern.count, "*+?{"))
    alternatives = (1 + bars) ** (1 + min(bars, pattern.count("(")))
    if _REPEATED_GROUP.search(pattern):
        alternatives = _FEW + 1

    def matches(text: str) -> bool:
        text = _scalar_values(text)
        ways = alternatives * (len(text) + 1) ** (repeated + 1)
        if ways <= _FEW or (alternatives <= _FEW_ALTERNATIVES and not repeated):
            return find(text) is not None
        try:
            return _is_found(pattern, text)
        except (_TooComplexError, RecursionError, ValueError):  # of numbers with thousands of digits
            too_complex(pattern)
            return True

    return matches


def _never_known(pattern: str, too_complex: Callable[[str], object], _: str) -> bool:
    too_complex(pattern)
    return True


def _scalar_values(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which the regular expression engine cannot take."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_found(pattern: str, text: str) -> bool:
    return bool(_Search(text).ends(_read(pattern), set(range(len(text) + 1)), 1))


@lru_cache(maxsize=256)
def _read(pattern: str) -> _Part:
    return _Reader(pattern).read()


class _TooComplexError(Exception):
    """An answer would take too long."""


class _Search:
    """A search in one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.looked: dict[tuple[_Part, int], bool] = {}
        self._left = _MAX_VISITS

    def ends(self, part: _Part, starts: set[int], forward: int) -> set[int]:
        """Return where matches of a part end that start at these positions. Backward, -1, where they start."""
        self._left -= 1 + len(starts)
        if self._left < 0:
            raise _TooComplexError
        return part.ends(self, starts, forward) if starts else starts


class _Part:
    """A part of an expression. This one is a single character."""

    def __init__(self, test: Callable[..., bool]) -> None:
        self._test = test

    def ends(self, search: _Search, starts: set[int], forward: int) -> set[int]:
        text, before = search.text, min(forward, 0)
        there = (at for at in starts if 0 <= at + before < len(text))
        return {at + forward for at in there if self._test(text[at + before])}


class _Assertion(_Part):
    def ends(self, search: _Search, starts: set[int], forward: int) -> set[int]:
        return {at for at in starts if self._test(search.text, at)}


class _Sequence(_Part):
    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts

    def ends(self, search: _Search, starts: set[int], forward: int) -> set[int]:
        for part in self._parts[::forward]:
            starts = search.ends(part, starts, forward)
        return starts


class _Choice(_Sequence):
    def ends(self, search: _Search, starts: set[int], forward: int) -> set[int]:
        return set().union(*(search.ends(part, starts, forward) for part in self._parts))


class _Repetition(_Part):
    def __init__(self, part: _Part, least: int, most: float) -> None:
        self._part, self._least, self._most = part, least, most

    def ends(self, search: _Search, starts: set[int], forward: int) -> set[int]:
        before: set[int] | None = None
        for _ in range(self._least):
            if starts == before:  # so that all further ones are the same
                break
            before, starts = starts, search.ends(self._part, starts, forward)
        found, more = set(starts), self._most - self._least
        while starts and more > 0:
            starts = search.ends(self._part, starts, forward) - found
            found |= starts
            more -= 1
        return found


class _Look(_Part):
    def __init__(self, part: _Part, *, negated: bool, behind: bool) -> None:
        self._part, self._negated, self._forward = part, negated, -1 if behind else 1

    def ends(self, search: _Search, starts: set[int], forward: int) -> set[int]:
        for at in starts:
            if (self, at) not in search.looked:
                search.looked[self, at] = bool(search.ends(self._part, {at}, self._forward))
        return {at for at in starts if search.looked[self, at] != self._negated}


class _BackReference(_Part):
    """Has no bound: how it matches depends on how something else did."""

    def __init__(self) -> None: ...

    def ends(self, search: _Search, starts: set[int], forward: int) -> set[int]:
        raise _TooComplexError


class _Reader:
    """Reads the structure of an expression, which the engine has found to be valid."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags = ""
        without = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "", pattern, flags=re.DOTALL)
        self._groups = len(re.findall(r"\((?!\?)|\(\?<[^=!]", without))
        self._has_names = _NAMED.search(without) is not None

    def read(self) -> _Part:
        alternatives: list[list[_Part]] = [[]]
        while self._at < len(self._pattern) and self._pattern[self._at] != ")":
            if self._pattern[self._at] == "|":
                self._at += 1
                alternatives.append([])
            else:
                alternatives[-1].append(self._quantified(self._part()))
        return _Choice([_Sequence(parts) for parts in alternatives])

    def _quantified(self, part: _Part) -> _Part:
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            return part
        self._at = found.end()
        sign, least, comma, most = found.groups()
        if sign:
            return _Repetition(part, int(sign == "+"), 1 if sign == "?" else math.inf)
        return _Repetition(part, int(least), math.inf if comma and not most else int(most or least))

    def _part(self) -> _Part:
        pattern, at = self._pattern, self._at
        if group := _GROUP.match(pattern, at):
            return self._group(group)
        if pattern[at] in "^$":
            self._at += 1
            return _Assertion(_AT_EDGE[pattern[at], "m" in self._flags])
        if pattern.startswith(("\\b", "\\B"), at):
            self._at += 2
            return _Assertion(_at_word_edge if pattern[at + 1] == "b" else _not_at_word_edge)
        reference = _BACK_REFERENCE.match(pattern, at)
        if reference and (int(reference[1]) <= self._groups if reference[1] else self._has_names):
            self._at = reference.end()
            return _BackReference()
        atom = _ATOM.match(pattern, at)
        assert atom is not None
        self._at = atom.end()
        return _Part(_character(atom[0], self._flags))

    def _group(self, group: re.Match[str]) -> _Part:
        outside, opening = self._flags, group[0]
        self._flags = "".join(sorted({*outside, *(group[1] or "")} - {*(group[2] or "")}))
        self._at = group.end()
        node = self.read()
        self._at += 1
        self._flags = outside
        if opening.endswith(("=", "!")):
            return _Look(node, negated=opening.endswith("!"), behind="<" in opening)
        return node


@lru_cache(maxsize=1024)
def _character(atom: str, flags: str) -> Callable[[str], bool]:
    """A test whether a character is one that an atom is for."""
    if not flags and (atom.isalnum() or atom in "_-"):
        return atom.__eq__
    if atom == "\\":
        return atom.__eq__
    find = Regex(f"^(?{flags}:{atom})$").find
    return lru_cache(maxsize=256)(lambda character: find(character) is not None)


def _at_word_edge(text: str, at: int) -> bool:
    before, after = text[at - 1 : at] if at else "", text[at : at + 1]
    return bool(_WORD.match(before)) != bool(_WORD.match(after))


def _not_at_word_edge(text: str, at: int) -> bool:
    return not _at_word_edge(text, at)


_AT_EDGE: Final[dict[tuple[str, bool], Callable[[str, int], bool]]] = {
    ("^", False): lambda text, at: at == 0,
    ("$", False): lambda text, at: at == len(text),
    ("^", True): lambda text, at: at == 0 or text[at - 1] in _LINE_ENDS,
    ("$", True): lambda text, at: at == len(text) or text[at] in _LINE_ENDS,
}
