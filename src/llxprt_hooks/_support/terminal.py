"""Print for people: color on a terminal only, and text from files and programs escaped."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from llxprt_hooks._support.text import PROSE, escape_for_terminal, escape_in_json

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from rich.console import Console
    from rich.text import Text

Part = str | tuple[str, str]
"""Text, or text and its style."""

SHORT_ID = 8
"""Characters of a record's id. They are enough to look it up, as `fire --from-log` does."""

_UNLIMITED_WIDTH = 10_000
"""Columns of output that is not a terminal: lines are not wrapped, so that ``grep`` works."""

_MIN_WIDTH = 10
"""Minimum columns for prose."""


def stdout_console() -> Console:
    """Return a console for results. Color only on a terminal, and never with NO_COLOR."""
    return _console(stderr=False)


def stderr_console() -> Console:
    """Return a console for progress, warnings and diagnostics."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class PipeAwareConsole(Console):
        """A console whose reader may leave, as in ``| head``: rich would exit, also in the middle of a task."""

        def on_broken_pipe(self) -> NoReturn:
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    has_width = "COLUMNS" in os.environ or (stream is not None and stream.isatty())
    return PipeAwareConsole(
        stderr=stderr,
        highlight=False,
        emoji=False,
        width=None if has_width else _UNLIMITED_WIDTH,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


def line(*parts: Part) -> Text:
    """Build one line for the terminal. Markup is not interpreted, and line endings are escaped."""
    return _text(parts, line_end="\\n")


def print_line(console: Console, *parts: Part) -> None:
    """Print a line without inserting line breaks, so that it can be copied."""
    console.print(line(*parts), soft_wrap=True)


def print_wrapped(console: Console, *parts: Part) -> None:
    """Print prose, wrapped between words and with a hanging indent."""
    text = _text(parts, line_end="\n")
    indent = " " * (len(text.plain) - len(text.plain.lstrip(" ")))
    further = f"{indent}  "
    width = max(_MIN_WIDTH, console.width - len(further))
    for number, each in enumerate(text[len(indent) :].wrap(console, width)):
        each.rstrip()
        console.print(line(further if number else indent).append_text(each), soft_wrap=True)


def _text(parts: Iterable[Part], *, line_end: str) -> Text:
    from rich.text import Text

    styled = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(
        *((escape_for_terminal(words, keep=PROSE).replace("\n", line_end), style) for words, style in styled)
    )


def aligned(rows: Iterable[tuple[Part, ...]], *, indent: str = "", right: Container[int] = ()) -> list[Text]:
    """Format rows as lines with aligned columns. Columns with an index in ``right`` are right-aligned."""
    cells = [[line(cell) for cell in row] for row in rows]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        joined = line(indent)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
            blank = " " * (width - cell.cell_len)
            before, after = (blank, "") if index in right else ("", blank)
            joined.append(before).append_text(cell).append(f"{after}  ")
        joined.rstrip()
        lines.append(joined)
    return lines


def fits(console: Console, lines: Iterable[Text]) -> bool:
    """Whether no line is wider than the terminal."""
    return all(each.cell_len <= console.width for each in lines)


def print_json(value: object) -> None:
    """Print a value as one line of JSON, in which everything that a terminal would act on or hide is escaped.

    Written as bytes: JSON is UTF-8, whatever the terminal's encoding is.
    """
    import click

    from llxprt_hooks._support.json_codec import decode_text, write_json

    click.echo(escape_in_json(decode_text(write_json(value))).encode())
