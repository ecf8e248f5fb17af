"""A problem in settings, with its location."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from llxprt_hooks._support.text import escape_for_terminal

MAX_PROBLEMS: Final = 100
"""Limit per file and kind of problem, because a hostile file could contain a million."""


class SettingsError(Exception):
    """Settings that cannot be used, in a place where the caller must not go on without them. One line per problem."""

    def __init__(self, problems: Iterable[object]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def refusal(self) -> str:
        """The message of a program that does not start without these settings."""
        return f"These settings cannot be read, so their hooks would not run:\n{self}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A message about one place in settings. Line and column are 1-based; 1:1 for the file as a whole."""

    file: Path | None
    """None for hooks passed in by a program, which have no line and column either."""
    line: int
    column: int
    message: str
    where: str = ""
    """The path of a hook definition, for example ``hooks.BeforeTool[0].hooks[1]``."""
    origin: str = ""
    """The file or extension that a hook definition belongs to."""
    fix: str = field(default="", compare=False)
    """What to do about a file that is not valid."""

    def __str__(self) -> str:
        place = self.origin if self.file is None else f"{self.file}:{self.line}:{self.column}"
        return escape_for_terminal(": ".join(part for part in (place, self.where, self.message) if part))


def first_problems(problems: list[Problem]) -> list[Problem]:
    """Return the first problems of a file, and one that says how many more there are."""
    more = len(problems) - MAX_PROBLEMS
    if more <= 0:
        return problems
    first = problems[:MAX_PROBLEMS]
    return [*first, replace(first[-1], line=1, column=1, message=f"and {more} more problems", where="")]
