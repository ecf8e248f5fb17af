"""The approval question: what a call will do, in as many rows as the terminal has.

All text may come from a hostile model. So every argument is on the screen with its beginning and its end, whatever the
others contain: rows are counted, each argument gets its share of them, and what is cut is cut in the middle, with the
amount. Names are the tool's own. A value stays in its column, and the column before it shows where a line goes on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.agent.tools.messages import counted
from llxprt_hooks.agent.tools.tool import ToolKind

if TYPE_CHECKING:
    from llxprt_hooks.agent.approval import Request

MIN_COLUMNS, MIN_ROWS = 40, 10
"""A smaller terminal cannot show a call."""

_OTHER_ROWS = 3
"""The empty row above, the row of the question, and one in case that it is wrapped."""

_MAX_ROWS: Mapping[str, int] = {"description": 2, "dir_path": 2}
"""Arguments that must not take rows from the command: what the model claims about it, and where it runs."""

_END = 20_000
"""Characters at the beginning and at the end of a value that are enough for any terminal."""

_NEW_LINE, _WRAPPED = "  ", "↪ "
_SPACES = re.compile(" {32,}")
_TAB_WIDTH = 4
_BLANKS = " \t\r"
"""What an empty line may contain. To a shell, other spaces are names of programs."""


@dataclass(frozen=True, slots=True)
class _Row:
    text: str
    lines: int = 1
    """How many lines begin in it."""
    characters: int = 0
    is_note: bool = False
    """Whether it stands for something that is not shown."""


class CallQuestion:
    """A call, formatted for a terminal of some size."""

    def __init__(self, request: Request, *, columns: int, rows: int) -> None:
        self._arguments = request.arguments
        self._keeps_order = request.tool.kind is ToolKind.EXECUTE
        self._names = max(map(len, self._arguments), default=0)
        self._width = columns - self._names - len(_WRAPPED) - 1
        self._warnings = [
            row.text for text in _warnings(request) for row in _cut(_pieces(text, columns - 1), 2, columns - 1)
        ]
        values = {name: self._rows_of_ends(value) for name, value in self._arguments.items()}
        shares = _shares(
            [min(len(value), _MAX_ROWS.get(name, rows)) for name, value in values.items()],
            rows - _OTHER_ROWS - len(self._warnings),
        )
        self._shown = {
            name: _cut(value, share, self._width) for (name, value), share in zip(values.items(), shares, strict=True)
        }
        self.is_cut = self._shown != values or any(len(value) > 2 * _END for value in self._arguments.values())

    @property
    def summary(self) -> Group:
        """The call, in no more rows than the terminal has."""
        warnings = (Text(warning, "bold yellow", no_wrap=True, overflow="ignore") for warning in self._warnings)
        return Group(*self._lines(self._shown), *warnings)

    @property
    def whole(self) -> Group:
        """The call with everything that was cut."""
        return Group(*self._lines({name: self._rows(value) for name, value in self._arguments.items()}))

    def _rows(self, value: str) -> list[_Row]:
        return _rows(value, self._width, keeps_order=self._keeps_order)

    def _rows_of_ends(self, value: str) -> list[_Row]:
        """Divide a value into rows. Of a very long one take only the ends, because dividing all of it takes long."""
        if len(value) <= 2 * _END:
            return self._rows(value)
        omitted = len(value) - 2 * _END
        note = _Row(f"(… {omitted:,} …)", value.count("\n", _END, -_END), omitted, is_note=True)
        first, *further = self._rows(value[-_END:])
        return [*self._rows(value[:_END]), note, replace(first, lines=0), *further]

    def _lines(self, values: Mapping[str, Sequence[_Row]]) -> Iterator[Text]:
        for name, rows in values.items():
            for number, row in enumerate(rows):
                label = "" if number else name
                line = Text(no_wrap=True, overflow="ignore")
                line.append(label.ljust(self._names), "cyan")
                line.append(_NEW_LINE if row.lines or row.is_note else _WRAPPED, "cyan")
                yield line.append(row.text, "dim italic" if row.is_note else "")


def _warnings(request: Request) -> Iterator[str]:
    target = request.target
    if request.reason:
        yield f"! {escape_for_terminal(request.reason)}"
    if target and target.link_target:
        yield f"! The path leads to {escape_for_terminal(target.link_target)}"
    if target and target.protected:
        yield f"! This file is protected: {target.protected}."


def _rows(value: str, width: int, *, keeps_order: bool) -> list[_Row]:
    """Divide a value into rows. Runs of empty lines are one row.

    With ``keeps_order``, letters that are written from right to left are escaped: terminals differ in how they order
    them and what is between them.
    """
    rows: list[_Row] = []
    blank = 0
    lines = value.removesuffix("\n").split("\n") if value else []
    for line in [*lines, None]:
        if line is not None and not line.strip(_BLANKS):
            blank += 1
            continue
        if blank == 1:
            rows.append(_Row(""))
        elif blank:
            rows.append(_Row(f"({blank:,} empty lines)", blank, is_note=True))
        blank = 0
        if line is not None:
            rows += _pieces(_visible(line, keeps_order=keeps_order), width)
    return rows or [_Row("(empty)", is_note=True)]


def _visible(line: str, *, keeps_order: bool) -> str:
    shown = escape_for_terminal(line.expandtabs(_TAB_WIDTH))
    if keeps_order:
        shown = "".join(
            char.encode("unicode_escape").decode() if unicodedata.bidirectional(char) in ("R", "AL") else char
            for char in shown
        )
    return _SPACES.sub(lambda found: f" ({len(found[0]):,} spaces) ", shown)


def _pieces(line: str, width: int) -> list[_Row]:
    return [_Row(text, int(not number), len(text)) for number, text in enumerate(_cells(line, width))]


def _cells(text: str, width: int) -> list[str]:
    """Divide a text into pieces that fit, whatever the terminal takes for the width of a character."""
    pieces, start, used = [], 0, 0
    for at, char in enumerate(text):
        cells = _cell_count(char)
        if used + cells > width:
            pieces.append(text[start:at])
            start, used = at, 0
        used += cells
    return [*pieces, text[start:]]


def _cell_count(char: str) -> int:
    return 1 if char.isascii() else 2


def _shares(needed: Sequence[int], rows: int) -> list[int]:
    """Distribute rows: short values get what they need, long ones equal parts of the rest."""
    shares = [0] * len(needed)
    left = len(needed)
    for index in sorted(range(len(needed)), key=lambda index: needed[index]):
        shares[index] = min(needed[index], rows // left)
        rows -= shares[index]
        left -= 1
    return shares


def _cut(rows: Sequence[_Row], most: int, width: int) -> list[_Row]:
    """Leave out rows in the middle, or characters in the middle if only one or two rows are left."""
    if len(rows) <= most:
        return list(rows)
    if most < 3:
        return _cut_text(rows, most, width)
    head = most // 2
    tail = len(rows) - (most - head - 1)
    lines = sum(row.lines for row in rows[head:tail])
    characters = f"{counted(sum(row.characters for row in rows[head:tail]), 'character')}"
    notes = (f"({lines:,} lines, {characters} not shown)", f"({lines:,} lines not shown)", f"(… {lines:,} lines …)")
    if not lines:
        notes = (f"({characters} not shown)", f"(… {characters} …)", "(…)")
    note = next((note for note in notes if len(note) <= width), notes[-1])
    return [*rows[:head], _Row(note, is_note=True), *rows[tail:]]


def _cut_text(rows: Sequence[_Row], most: int, width: int) -> list[_Row]:
    text = rows[0].text + "".join((" \\n " if row.lines else "") + row.text for row in rows[1:])
    note = f" …{len(text):,} characters… "
    used = sum(map(_cell_count, note))
    room = ((width - 1) * most - used) // 2  # a wide character can leave one column of a row empty
    head = _cells(text, room)[0]
    tail = _cells(text[::-1], room)[0][::-1]
    note = f" …{counted(len(text) - len(head) - len(tail), 'character')}… "
    return _pieces(f"{head}{note}{tail}", width)
