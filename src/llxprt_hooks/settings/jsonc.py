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
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from llxprt_hooks.text import escape_for_terminal, shorten, without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    def to_value(self) -> Any:
        """Return the plain Python value, a new one on every call."""
        result: list[Any] = [None]
        todo: list[tuple[Node, Any, Any]] = [(self, result, 0)]
        while todo:
            node, container, place = todo.pop()
            if node.kind is Kind.OBJECT:
                members: dict[str, Any] = {}
                container[place] = members
                # Reversed like the stack, so that the last of two duplicate keys is set last.
                todo.extend((member.value, members, member.key) for member in reversed(node.members))
            elif node.kind is Kind.ARRAY:
                items = [None] * len(node.items)
                container[place] = items
                todo.extend((item, items, index) for index, item in enumerate(node.items))
            else:
                container[place] = node.scalar
        return result[0]

    def _member(self, key: str) -> Node | None:
        return next((member.value for member in reversed(self.members) if member.key == key), None)

    def _item(self, index: int) -> Node | None:
        return self.items[index] if 0 <= index < len(self.items) else None


class JsoncError(ValueError):
    """The text is not valid JSON. Line and column are 1-based; the message states what was expected there."""

    def __init__(self, line: int, column: int, message: str, fix: str) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column
        self.message = message
        self.fix = fix


class LineIndex:
    """Converts offsets of one text to lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in LINE_END.finditer(text))]
        self._mark = text.startswith(BYTE_ORDER_MARK)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and column, both 1-based, not counting a byte order mark, which editors do not show."""
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        return line, column - 1 if self._mark and line == 1 and column > 1 else column


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and column of an offset.

    >>> line_and_column("{\\n  1", 4)
    (2, 3)
    """
    return LineIndex(text).line_and_column(offset)


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
    reader = _Tokenizer(text)
    open_containers: list[_Container] = []
    at = reader.skip(1 if text.startswith(BYTE_ORDER_MARK) else 0)
    values = 0
    while True:
        values += 1
        if values > MAX_VALUES:
            reader.fail(at, f"there are more than {MAX_VALUES:,} values in this file", "Remove some of them.")
        if text[at : at + 1] in _CLOSERS:
            if len(open_containers) == MAX_DEPTH:
                message = f"objects and arrays are nested more than {MAX_DEPTH} levels deep here"
                reader.fail(at, message, "Remove some levels.")
            container = _Container(text[at], at)
            at = reader.skip(at + 1)
            if not text.startswith(container.closer, at):
                open_containers.append(container)
                at = reader.key(container, at)
                continue
            at += 1
            node = container.closed(at)
        else:
            node = reader.scalar(at)
            at = node.end

        # A complete value: add it to its container, and close every container that ends right after it.
        while open_containers:
            container = open_containers[-1]
            container.add(node)
            at = reader.skip(at)
            comma = text.startswith(",", at)
            if comma:
                at = reader.skip(at + 1)
            if text.startswith(container.closer, at):
                at += 1
                node = open_containers.pop().closed(at)
            elif comma:
                at = reader.key(container, at)
                break
            else:
                reader.fail(
                    at,
                    f"expected ',' or '{container.closer}' after the value, found {reader.found(at)}",
                    "Check for a missing comma before this, or for a missing or extra bracket.",
                )
        else:
            at = reader.skip(at)
            if at < len(text):
                message = f"expected the end of the file after the value, found {reader.found(at)}"
                reader.fail(at, message, "Check for a missing or extra closing bracket.")
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
_LONGEST_SHOWN: Final = 40
_TYPOGRAPHIC: Final = ("\u201c", "\u201d", "\u201e", "\u2018", "\u2019", "\u00ab", "\u00bb")
_PLAIN_QUOTES: Final = 'This is a typographic quote: use plain double quotes, `"`.'


class _Container:
    """An object or array whose end has not been read yet."""

    def __init__(self, opener: str, start: int) -> None:
        self.opener = opener
        self.closer = _CLOSERS[opener]
        self.start = start
        self.key: tuple[str, int, int] | None = None
        self.members: list[Member] = []
        self.items: list[Node] = []

    def add(self, node: Node) -> None:
        if self.key is None:
            self.items.append(node)
        else:
            self.members.append(Member(*self.key, node))

    def closed(self, end: int) -> Node:
        kind = Kind.OBJECT if self.opener == "{" else Kind.ARRAY
        return Node(kind, self.start, end, members=tuple(self.members), items=tuple(self.items))


class _Tokenizer:
    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, offset: int, message: str, fix: str) -> NoReturn:
        raise JsoncError(*line_and_column(self.text, offset), message, fix)

    def skip(self, at: int) -> int:
        """Return the offset after white space and comments."""
        space = SPACE.match(self.text, at)
        end = space.end() if space else at
        if self.text.startswith("/*", end):
            self.fail(end, "the comment that starts here is not closed, expected '*/'", "Close the comment.")
        return end

    def key(self, container: _Container, at: int) -> int:
        """In an object, read the key and its colon. Return the offset of the value."""
        if container.opener == "[":
            return at
        if not self.text.startswith('"', at):
            message = f"expected a key in double quotes or '}}', found {self.found(at)}"
            fix = "Write the key in double quotes, without a comma before the first key."
            self.fail(at, message, _PLAIN_QUOTES if self.text.startswith(_TYPOGRAPHIC, at) else fix)
        key, end = self.string(at)
        container.key = (key, at, end)
        colon = self.skip(end)
        if not self.text.startswith(":", colon):
            self.fail(colon, f"expected ':' after the key, found {self.found(colon)}", 'Write `"key": value`.')
        return self.skip(colon + 1)

    def scalar(self, at: int) -> Node:
        if self.text.startswith('"', at):
            value, end = self.string(at)
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

    def string(self, at: int) -> tuple[str, int]:
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
    return escape_for_terminal(shorten(without_credentials(text), _LONGEST_SHOWN))


def _number(number: re.Match[str]) -> int | float:
    if number[1] is None and number[2] is None:
        try:
            return int(number[0])
        except ValueError:  # more digits than Python converts: infinity, as in JavaScript
            pass
    return float(number[0])
