"""What is wrong with a settings file, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks.text import escape_for_terminal

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence about one place of one file; line and column are 1-based, 1:1 for a file as a whole."""

    file: Path
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{escape_for_terminal(str(self.file))}:{self.line}:{self.column}: {self.message}"
