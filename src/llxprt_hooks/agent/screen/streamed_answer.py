"""Render a Markdown answer while it grows: finished lines once, unfinished lines repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from rich.markdown import ListElement, Markdown
from rich.segment import Segment

from llxprt_hooks._support.text import PROSE, escape_for_terminal

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderResult

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
"""Without HTML, so that ``Vec<T>`` is shown completely, and with images as links."""


class _NumberedList(ListElement):
    """Uses a fixed indent, so that later items do not change the layout of printed ones."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, item in enumerate(self.items, start=self.list_start or 0):
            yield from item.render_number(console, options, number, last_number=99)


class _Markdown(Markdown):
    """Parsed Markdown. The address of a link is shown after its text."""

    elements = {**Markdown.elements, "ordered_list_open": _NumberedList}  # noqa: RUF012  # a ClassVar in the base

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = tokens


class StreamedAnswer:
    """Takes text and returns rendered lines, each one once, when further text can no longer change it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._references: dict[str, Any] = {}
        self._out = 0  # lines of the first block that were returned
        self._width = 0  # the width they were rendered at
        self._space_before = False

    def add(self, text: str) -> None:
        self._text += text.replace("\r", "")

    def rendered(self, *, room: int, final: bool) -> tuple[list[list[Segment]], list[list[Segment]]]:
        """Return the newly finished lines, and as many unfinished lines as there is room for."""
        tokens = _parsed(self._text, self._references)
        line, index = (0, len(tokens)) if final else _last_block(tokens, self._text)
        finished = self._lines(tokens[:index])[self._out :]
        if final:
            self._begin()
            return finished, []
        if index:
            self._out = 0
            self._text = "\n".join(self._text.split("\n")[line:])
            self._space_before = True
        growing = self._lines(tokens[index:])
        if len(growing) - self._out > room:
            settled = max(self._out, self._settled(tokens[index:], growing, room))
            finished += growing[self._out : settled]
            self._out = settled
        return finished, growing[self._out :][-room:]

    def _lines(self, tokens: list[Token]) -> list[list[Segment]]:
        if not tokens:
            return []
        if not self._out:
            self._width = self._console.width
        options = self._console.options.update(width=self._width)
        lines = [_trimmed(line) for line in self._console.render_lines(_Markdown(tokens), options, pad=False)]
        while lines and not lines[0]:
            del lines[0]
        while lines and not lines[-1]:
            del lines[-1]
        return [[], *lines] if self._space_before else lines

    def _settled(self, tokens: list[Token], lines: list[list[Segment]], room: int) -> int:
        """Count the lines of a block too tall for the room that can no longer change."""
        if tokens[0].type == "fence":
            complete = "\n".join(tokens[0].content.split("\n")[:-2])
            return min(len(lines) - room, len(self._lines([tokens[0].copy(content=complete)])) - 1) if complete else 0
        if tokens[0].type in ("bullet_list_open", "ordered_list_open"):
            end = next(index for index, token in enumerate(tokens) if token.level == 0 and token.nesting < 0)
            items = [index for index in range(end) if tokens[index].level == 1 and tokens[index].nesting > 0]
            return len(self._lines([*tokens[: items[-2]], tokens[end]])) if len(items) > 2 else 0
        return 0


def _trimmed(line: list[Segment]) -> list[Segment]:
    """Remove trailing spaces from a line, except those with a background color."""
    while line and not (line[-1].style and line[-1].style.bgcolor):
        last = line.pop()
        if last.text.rstrip():
            return [*line, Segment(last.text.rstrip(), last.style)]
    return line


def _parsed(text: str, references: dict[str, Any]) -> list[Token]:
    tokens = _PARSER.parse(text, references)
    for token in tokens:
        for part in (token, *(token.children or ())):
            # After parsing, because control characters in links may be percent-encoded.
            part.content = escape_for_terminal(part.content, keep=PROSE)
    return tokens


def _last_block(tokens: Sequence[Token], text: str) -> tuple[int, int]:
    """Return the line and the token where the last block starts. Further text may change this block.

    A block that starts in an incomplete line is ignored: it may turn out to be part of the previous block.
    """
    complete = text.count("\n")
    starts = [
        (token.map[0], index)
        for index, token in enumerate(tokens)
        if token.level == 0 and token.nesting >= 0 and token.map and token.map[0] < complete
    ]
    return starts[-1] if starts else (0, 0)
