"""The source line of a diagnostic, for display on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from llxprt_hooks._support.text import escape_for_terminal

if TYPE_CHECKING:
    from llxprt_hooks.commands.validate.diagnostic import Diagnostic


def excerpt(diagnostic: Diagnostic, width: int) -> tuple[str, str, str]:
    """Return the text before, at and after a diagnostic on its first line, shortened to a width."""
    text = diagnostic.source.line(diagnostic.line) if diagnostic.source else ""
    start = diagnostic.column - 1
    end = diagnostic.end_column - 1 if diagnostic.end_line == diagnostic.line else len(text)
    fits = len(text) <= width and cell_len(_shown(text)) <= width
    before = _shown(text[max(0, start - width) : start])
    if not fits and cell_len(before) > width // 2:
        before = "…" + _first_cells(before[::-1], width // 2 - 1)[::-1]
    marked = _cut(_shown(text[start : min(end, start + width)]), width - cell_len(before))
    after = _cut(_shown(text[end : end + width]), width - cell_len(before + marked))
    return before, marked, after


def _shown(text: str) -> str:
    return escape_for_terminal(text.replace("\t", "    "))


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else _first_cells(text, width - 1) + "…" * (width > 0)


def _first_cells(text: str, width: int) -> str:
    """Return the start of a text that fits in a width; some characters take two cells."""
    taken = 0
    for index, char in enumerate(text):
        taken += cell_len(char)
        if taken > width:
            return text[:index]
    return text
