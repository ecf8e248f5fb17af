"""Parses JSON with comments and trailing commas, and keeps the position of every value.

Standard JSON plus ``// …``, ``/* … */``, a comma before a closing bracket, and a byte order mark at the start. The
result is a tree of immutable nodes with offsets into the text, so that a diagnostic can point at any entry and an edit
can change one value and preserve every comment.

>>> node = parse('{"a": [1, 2,]} // done')
>>> node.to_value(), node.at("a", 1).start
({'a': [1, 2]}, 10)
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, NoReturn

from llxprt_hooks._support.text import escape_for_terminal, shorten, without_credentials

MAX_DEPTH: Final = 100
"""Maximum nesting of objects and arrays; well below Python's recursion limit."""

MAX_VALUES: Final = 100_000
"""Maximum number of values: enough for ten thousand hooks. A file of 4 MiB could have two million."""


class Kind(StrEnum):
    """The kind of a node; the value is the wording used in messages."""

    OBJECT = "an object"
    ARRAY = "an array"
    STRING = "a string"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    NULL = "null"
    OTHER = "something else"
    """No value of JSON; only a program can pass it."""


NOWHERE: Final = -1
"""The position of a value that a program passed."""


class Member(NamedTuple):
    """One ``"key": value`` of an object; ``key_start`` and ``key_end`` enclose the key with its quotes."""

    key: str
    key_start: int
    key_end: int
    value: Node


class Node(NamedTuple):
    """One value; ``text[start:end]`` is its source text.

    An object has ``members``, including those overridden by a later duplicate key; an array has ``items``; any other
    kind has ``scalar``.
    """

    kind: Kind
    start: int
    end: int
    scalar: str | int | float | bool | None = None
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()

    def at(self, *path: str | int) -> Node | None:
        """Return the node at a path of keys and indexes, or ``None``. Of duplicate keys, the last one wins."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            node = node._item(step) if isinstance(step, int) else node._member(step)
        return node

    @property
    def fields(self) -> dict[str, Member]:
        """The members of an object by key. Of duplicate keys, the last one wins."""
        return {member.key: member for member in self.members}

    def to_value(self) -> Any:
        """Return the plain Python value, a new one on every call."""
        if self.kind is Kind.OBJECT:
            return {member.key: member.value.to_value() for member in self.members}
        return [item.to_value() for item in self.items] if self.kind is Kind.ARRAY else self.scalar

    def _member(self, key: str) -> Node | None:
        member = self.fields.get(key)
        return member.value if member else None

    def _item(self, index: int) -> Node | None:
        return self.items[index] if 0 <= index < len(self.items) else None


class _Given(Node):
    """A mapping or sequence that a program passed, as ``scalar``. It may contain itself, so it is opened on demand."""

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(self.fields.values())

    @property
    def items(self) -> tuple[Node, ...]:
        given: Any = self.scalar
        return tuple(map(node_of, given)) if self.kind is Kind.ARRAY else ()

    @cached_property
    def fields(self) -> dict[str, Member]:
        given: Any = self.scalar if self.kind is Kind.OBJECT else {}
        named = ((key if isinstance(key, str) else type(key).__name__, value) for key, value in given.items())
        return {key: Member(key, NOWHERE, NOWHERE, node_of(value)) for key, value in named}

    def to_value(self) -> Any:
        return self.scalar


def node_of(value: Any) -> Node:
    """Return a value that a program passed as a node without a position; a node as it is.

    >>> node_of({"timeout": 5}).at("timeout").kind
    <Kind.NUMBER: 'a number'>
    """
    if isinstance(value, Node):
        return value
    kind = _KINDS.get(type(value)) or next(
        (kind for each, kind in _KINDS.items() if isinstance(value, each)), Kind.OTHER
    )
    made = _Given if kind is Kind.OBJECT or kind is Kind.ARRAY else Node
    return made(kind, NOWHERE, NOWHERE, value)


_KINDS: Final = {
    str: Kind.STRING,
    bool: Kind.BOOLEAN,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    type(None): Kind.NULL,
    list: Kind.ARRAY,
    tuple: Kind.ARRAY,
    dict: Kind.OBJECT,
    Mapping: Kind.OBJECT,
}


class JsoncError(ValueError):
    """The text is not valid JSON. Line and column are 1-based; the message states what was expected there."""

    def __init__(self, line: int, column: int, message: str, fix: str) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column
        self.message = message
        self.fix = fix


class LineIndex:
    """Converts offsets of one text to lines and columns.

    >>> LineIndex("{\\n  1").line_and_column(4)
    (2, 3)
    """

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in LINE_END.finditer(text))]
        self._mark = text.startswith(BYTE_ORDER_MARK)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and column, both 1-based, not counting a byte order mark, which editors do not show."""
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        return line, column - 1 if self._mark and line == 1 and column > 1 else column


def duplicate_members(root: Node) -> Iterator[Member]:
    """Yield the members whose key occurs earlier in the same object, in source order."""
    found: list[Member] = []
    todo = [root]
    while todo:
        node = todo.pop()
        seen: set[str] = set()
        for member in node.members:
            if member.key in seen:
                found.append(member)
            seen.add(member.key)
            todo.append(member.value)
        todo.extend(node.items)
    yield from sorted(found, key=lambda member: member.key_start)


def parse(text: str) -> Node:
    """Parse a text. Raises ``JsoncError``, and no other exception, if it is not valid."""
    parser = _Parser(text)
    node = parser.value(parser.skip(1 if text.startswith(BYTE_ORDER_MARK) else 0))
    end = parser.skip(node.end)
    if end < len(text):
        message = f"expected the end of the file after the value, found {parser.found(end)}"
        parser.fail(end, message, "Check for a missing or extra closing bracket.")
    return node


BYTE_ORDER_MARK: Final = "\ufeff"
_CLOSERS: Final = {"{": "}", "[": "]"}
_LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_INTENDED: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null", "yes": "true", "no": "false"}

LINE_END: Final = re.compile(r"\r\n?|\n")
SPACE: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/)*")
"""White space and comments."""
_STRING_START: Final = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_STRING: Final = re.compile(_STRING_START.pattern + '"')
_WORD: Final = re.compile(r"[\w$.+-]+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MAX_SHOWN: Final = 40
_TYPOGRAPHIC: Final = ("\u201c", "\u201d", "\u201e", "\u2018", "\u2019", "\u00ab", "\u00bb")
_PLAIN_QUOTES: Final = 'This is a typographic quote: use plain double quotes, `"`.'


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self._values = 0

    def value(self, at: int, depth: int = 0) -> Node:
        """Return the value that starts at an offset; ``depth`` is the number of objects and arrays around it."""
        self._values += 1
        if self._values > MAX_VALUES:
            self.fail(at, f"there are more than {MAX_VALUES:,} values in this file", "Remove some of them.")
        if self.text[at : at + 1] in _CLOSERS:
            if depth == MAX_DEPTH:
                message = f"objects and arrays are nested more than {MAX_DEPTH} levels deep here"
                self.fail(at, message, "Remove some levels.")
            return self._container(at, depth)
        return self._scalar(at)

    def _container(self, start: int, depth: int) -> Node:
        closer = _CLOSERS[self.text[start]]
        kind = Kind.OBJECT if closer == "}" else Kind.ARRAY
        members: list[Member] = []
        items: list[Node] = []
        at = self.skip(start + 1)
        while not self.text.startswith(closer, at):
            if kind is Kind.OBJECT:
                members.append(self._member(at, depth))
                at = self.skip(members[-1].value.end)
            else:
                items.append(self.value(at, depth + 1))
                at = self.skip(items[-1].end)
            if self.text.startswith(",", at):
                at = self.skip(at + 1)
            elif not self.text.startswith(closer, at):
                message = f"expected ',' or '{closer}' after the value, found {self.found(at)}"
                self.fail(at, message, "Check for a missing comma before this, or for a missing or extra bracket.")
        return Node(kind, start, at + 1, members=tuple(members), items=tuple(items))

    def fail(self, offset: int, message: str, fix: str) -> NoReturn:
        raise JsoncError(*LineIndex(self.text).line_and_column(offset), message, fix)

    def skip(self, at: int) -> int:
        """Return the offset after white space and comments."""
        space = SPACE.match(self.text, at)
        end = space.end() if space else at
        if self.text.startswith("/*", end):
            self.fail(end, "the comment that starts here is not closed, expected '*/'", "Close the comment.")
        return end

    def _member(self, at: int, depth: int) -> Member:
        if not self.text.startswith('"', at):
            message = f"expected a key in double quotes or '}}', found {self.found(at)}"
            fix = "Write the key in double quotes, without a comma before the first key."
            self.fail(at, message, _PLAIN_QUOTES if self.text.startswith(_TYPOGRAPHIC, at) else fix)
        key, end = self._string(at)
        colon = self.skip(end)
        if not self.text.startswith(":", colon):
            self.fail(colon, f"expected ':' after the key, found {self.found(colon)}", 'Write `"key": value`.')
        return Member(key, at, end, self.value(self.skip(colon + 1), depth + 1))

    def _scalar(self, at: int) -> Node:
        if self.text.startswith('"', at):
            value, end = self._string(at)
            return Node(Kind.STRING, at, end, value)
        found = _WORD.match(self.text, at)
        word = found[0] if found else ""
        end = at + len(word)
        if word in _LITERALS:
            literal = _LITERALS[word]
            return Node(Kind.NULL if literal is None else Kind.BOOLEAN, at, end, literal)
        if number := _NUMBER.fullmatch(word):
            return Node(Kind.NUMBER, at, end, _number(number))
        return self._fail_value(at, word)

    def _string(self, at: int) -> tuple[str, int]:
        """Return the string that starts at a quote, and the offset after it."""
        start = _STRING_START.match(self.text, at)
        end = start.end() if start else at
        if self.text.startswith('"', end):
            written = self.text[at : end + 1]
            value: str = json.loads(written) if "\\" in written else written[1:-1]
            return value, end + 1
        return self._fail_string(at, end)

    def found(self, at: int) -> str:
        """Describe the token at an offset for a message."""
        if at >= len(self.text):
            return "the end of the file"
        token = _WORD.match(self.text, at) or _STRING.match(self.text, at)
        return shown(token[0]) if token else f"'{shown(self.text[at])}'"

    def _fail_value(self, at: int, word: str) -> NoReturn:
        fix = "Write a value there: a string in double quotes, a number, true, false, an object or an array."
        if word.startswith(tuple("+-.0123456789")):
            self.fail(at, f"{shown(word)} is not a valid JSON number", fix)
        hint = ""
        if word in _INTENDED:
            hint, fix = f", did you mean {_INTENDED[word]}?", "Write it in lower case: true, false or null."
        elif self.text.startswith("'", at):
            hint, fix = ", strings are written in double quotes", "Write it in double quotes."
        elif self.text.startswith(_TYPOGRAPHIC, at):
            fix = _PLAIN_QUOTES
        elif at == len(self.text):
            fix = "Add the missing value; an empty settings file is `{}`."
        self.fail(at, f"expected a value, found {self.found(at)}{hint}", fix)

    def _fail_string(self, start: int, end: int) -> NoReturn:
        char = self.text[end : end + 1]
        if char == "\\" and end + 1 < len(self.text):
            message = f"unknown escape {shown(self.text[end : end + 2])} in a string, a backslash is written \\\\"
            self.fail(end, message, "Write a backslash as `\\\\`.")
        if char in {"", "\n", "\r", "\\"}:
            message = "the string that starts here is not closed, expected '\"' on the same line"
            self.fail(start, message, "Close the string; a line break inside one is written `\\n`.")
        written = "\\t" if char == "\t" else f"\\u{ord(char):04x}"
        message = f"a control character inside a string is written as an escape, here {written}"
        self.fail(end, message, "Write it as the escape.")


def shown(text: str) -> str:
    """Shorten and escape a piece of text for a message, without a password if it is an address."""
    return escape_for_terminal(shorten(without_credentials(text), _MAX_SHOWN))


def _number(number: re.Match[str]) -> int | float:
    if number[1] is None and number[2] is None:
        try:
            return int(number[0])
        except ValueError:  # more digits than Python converts: infinity, as in JavaScript
            pass
    return float(number[0])
