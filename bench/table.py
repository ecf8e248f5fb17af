"""Tables: for the terminal, its columns as wide as they need to be, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Headings, a rule, rows; the first column to the left, numbers wherever they fall."""
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    rule = ["─" * width for width in widths]
    lines = [headings, rule, *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same for a page."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
