"""Search with an ECMAScript regular expression, in a time that no expression and no text can make long.

The engine that knows ECMAScript tries one way to match after the other, and ``^(a+)+$`` has a billion of them in 30
letters. Most expressions have few, and that engine searches for them. The others are searched here: whether there is
any match takes only one visit to each part of the expression at each position of the text. Single characters are still
compared by the engine, so that only the structure of an expression is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from regress import Regex, RegressError

from llxprt_hooks._support.logger import debug_logger

log = debug_logger("settings")

_FEW: Final = 1_000_000
"""Ways to match that the engine may try: where to start, how often to repeat, which alternative to take."""
_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]")

_MAX_STEPS: Final = 200_000
_MAX_SIZE: Final = 5_000
"""Limits of a search: the visits, and the parts of an expression when ``{n}`` has been written out. Beyond either the
answer is yes, because a hook that runs once too often does no harm, and a guard that does not run does."""

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


def searching(pattern: str) -> Callable[[str], bool] | None:
    """A test whether the expression matches anywhere in a text; None if it is not a valid expression.

    >>> searching("^(a+)+$")("a" * 30 + "!")
    False
    """
    try:
        find = Regex(pattern).find
    except RegressError:
        return None
    bars, repeated = pattern.count("|"), sum(map(pattern.count, "*+?{"))
    alternatives = (1 + bars) ** (1 + min(bars, pattern.count("(")))
    if _REPEATED_GROUP.search(pattern):
        alternatives = _FEW + 1

    def matches(text: str) -> bool:
        ways = alternatives * (len(text) + 1) ** (repeated + 1)
        return find(text) is not None if ways <= _FEW else _search(pattern, text)

    return matches


def _search(pattern: str, text: str) -> bool:
    try:
        return _Search(_program(pattern), text).anywhere()
    except (_TooComplexError, RecursionError):
        log.warning("the matcher `%s` cannot be compared in time, and counts as one that matches", pattern)
        return True


class _TooComplexError(Exception):
    """An answer would take too long."""


@lru_cache(maxsize=256)
def _program(pattern: str) -> _Program:
    program = _Program()
    program.start = _Reader(pattern).read().compile(program, program.add(_Step(_END)), 1)
    return program


# A program is a graph of steps; a number is the place of a step in it.

_END, _CHARACTER, _ASSERTION, _FORK, _LOOK = range(5)


class _Step(NamedTuple):
    kind: int
    next: int = 0
    other: int = 0
    """A fork's other way, or the start of what is looked for."""
    forward: int = 1
    """1, or -1 in what must come before a position."""
    negated: bool = False
    test: Callable[..., bool] = bool


class _Program:
    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.start = 0

    def add(self, step: _Step) -> int:
        if len(self.steps) >= _MAX_SIZE:
            raise _TooComplexError
        self.steps.append(step)
        return len(self.steps) - 1


class _Search:
    def __init__(self, program: _Program, text: str) -> None:
        self._program = program
        self._text = text
        self._left = _MAX_STEPS
        self._looked: dict[tuple[int, int], bool] = {}

    def anywhere(self) -> bool:
        return self._reaches_end([(self._program.start, at) for at in range(len(self._text) + 1)])

    def _reaches_end(self, places: list[tuple[int, int]]) -> bool:
        text, steps, seen = self._text, self._program.steps, set(places)
        while places:
            self._left -= 1
            if self._left < 0:
                raise _TooComplexError
            number, at = places.pop()
            step = steps[number]
            if step.kind == _END:
                return True
            found: tuple[tuple[int, int], ...] = ()
            if step.kind == _CHARACTER:
                index = at if step.forward > 0 else at - 1
                if 0 <= index < len(text) and step.test(text[index]):
                    found = ((step.next, at + step.forward),)
            elif step.kind == _FORK:
                found = ((step.next, at), (step.other, at))
            elif step.test(text, at) if step.kind == _ASSERTION else self._looks(step.other, at) != step.negated:
                found = ((step.next, at),)
            for place in found:
                if place not in seen:
                    seen.add(place)
                    places.append(place)
        return False

    def _looks(self, start: int, at: int) -> bool:
        if (start, at) not in self._looked:
            self._looked[start, at] = self._reaches_end([(start, at)])
        return self._looked[start, at]


class _Node:
    """A part of an expression. This one is a single character or an assertion."""

    def __init__(self, kind: int = _CHARACTER, test: Callable[..., bool] = bool) -> None:
        self._kind = kind
        self._test = test

    def compile(self, program: _Program, following: int, forward: int) -> int:
        return program.add(_Step(self._kind, following, forward=forward, test=self._test))


class _Sequence(_Node):
    def __init__(self, parts: list[_Node]) -> None:
        self._parts = parts

    def compile(self, program: _Program, following: int, forward: int) -> int:
        for part in self._parts[::-forward]:
            following = part.compile(program, following, forward)
        return following


class _Choice(_Sequence):
    def compile(self, program: _Program, following: int, forward: int) -> int:
        first, *others = (part.compile(program, following, forward) for part in self._parts)
        for other in others:
            first = program.add(_Step(_FORK, first, other))
        return first


class _Repetition(_Sequence):
    def __init__(self, part: _Node, least: int, most: int | None) -> None:
        super().__init__([part])
        self._least, self._most = least, most

    def compile(self, program: _Program, following: int, forward: int) -> int:
        part = self._parts[0]
        if self._most is None:
            loop = program.add(_Step(_FORK, following, following))
            program.steps[loop] = _Step(_FORK, part.compile(program, loop, forward), following)
            following = loop
        else:
            after = following
            for _ in range(self._most - self._least):
                following = program.add(_Step(_FORK, part.compile(program, following, forward), after))
        for _ in range(self._least):
            following = part.compile(program, following, forward)
        return following


class _Look(_Sequence):
    def __init__(self, part: _Node, *, negated: bool, behind: bool) -> None:
        super().__init__([part])
        self._negated, self._forward = negated, -1 if behind else 1

    def compile(self, program: _Program, following: int, forward: int) -> int:
        start = super().compile(program, program.add(_Step(_END)), self._forward)
        return program.add(_Step(_LOOK, following, start, negated=self._negated))


class _BackReference(_Node):
    """Has no bound: how it matches depends on how something else did."""

    def compile(self, program: _Program, following: int, forward: int) -> int:
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

    def read(self) -> _Node:
        alternatives: list[list[_Node]] = [[]]
        while self._at < len(self._pattern) and self._pattern[self._at] != ")":
            if self._pattern[self._at] == "|":
                self._at += 1
                alternatives.append([])
            else:
                alternatives[-1].append(self._quantified(self._part()))
        return _Choice([_Sequence(parts) for parts in alternatives])

    def _quantified(self, part: _Node) -> _Node:
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            return part
        self._at = found.end()
        sign, least, comma, most = found.groups()
        if sign:
            return _Repetition(part, int(sign == "+"), 1 if sign == "?" else None)
        return _Repetition(part, int(least), None if comma and not most else int(most or least))

    def _part(self) -> _Node:
        pattern, at = self._pattern, self._at
        if group := _GROUP.match(pattern, at):
            return self._group(group)
        if pattern[at] in "^$":
            self._at += 1
            return _Node(_ASSERTION, _AT_EDGE[pattern[at], "m" in self._flags])
        if pattern.startswith(("\\b", "\\B"), at):
            self._at += 2
            return _Node(_ASSERTION, _at_word_edge if pattern[at + 1] == "b" else _not_at_word_edge)
        reference = _BACK_REFERENCE.match(pattern, at)
        if reference and (int(reference[1]) <= self._groups if reference[1] else self._has_names):
            self._at = reference.end()
            return _BackReference()
        atom = _ATOM.match(pattern, at)
        assert atom is not None
        self._at = atom.end()
        return _Node(_CHARACTER, _character(atom[0], self._flags))

    def _group(self, group: re.Match[str]) -> _Node:
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
