"""A diagnostic: where the mistake is, what it is, why it matters, and how to fix it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.text import shorten
from llxprt_hooks.settings.jsonc import BYTE_ORDER_MARK, LINE_END, LineIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from llxprt_hooks.commands.validate.rules import Rule, Severity

_MAX_TEXT: Final = 200
_MAX_MESSAGE: Final = 500
_ANY_CHARACTER: Final = re.compile(r"[^\r\n]")
_MAX_QUOTATION: Final = 80
_QUOTATION: Final = re.compile(r"`([^`]*)`")


class Source:
    """The text of a file, by offset and by line."""

    def __init__(self, file: Path, text: str, secrets: Callable[[], Iterable[tuple[int, int]]] = tuple) -> None:
        self.file = file
        self.text = text
        self._secrets = secrets

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both 1-based."""
        return self._index.line_and_column(offset)

    def line(self, number: int) -> str:
        return self._lines[number - 1] if number <= len(self._lines) else ""

    @cached_property
    def _index(self) -> LineIndex:
        return LineIndex(self.text)

    @cached_property
    def shown(self) -> str:
        """The text with a placeholder for each character of a secret."""
        parts: list[str] = []
        at = 0
        for start, end in sorted(self._secrets()):
            parts += self.text[at:start], _ANY_CHARACTER.sub("•", self.text[start:end])
            at = end
        return "".join(parts) + self.text[at:]

    @cached_property
    def _lines(self) -> list[str]:
        return LINE_END.split(self.shown.removeprefix(BYTE_ORDER_MARK))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. Lines and columns are 1-based, columns count characters; the end is exclusive."""

    rule: Rule
    file: Path
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    fix: str
    text: str
    """The source text of the finding, shortened; empty for a file as a whole."""
    source: Source | None = field(default=None, repr=False, compare=False)
    own_why: str = ""
    """Why it matters here, if the reason of the rule does not apply."""

    @property
    def why(self) -> str:
        return self.own_why or self.rule.why

    @property
    def code(self) -> str:
        return self.rule.code

    @property
    def severity(self) -> Severity:
        return self.rule.severity

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``validate --json``."""
        return {
            "file": str(self.file),
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line,
            "end_column": self.end_column,
            "severity": self.severity.value,
            "code": self.code,
            "message": self.message,
            "why": self.why,
            "fix": self.fix,
            "text": self.text,
        }


def diagnostic_at(source: Source, rule: Rule, start: int, end: int, message: str, fix: str) -> Diagnostic:
    """Return a diagnostic for the text between two offsets of a file."""
    return Diagnostic(
        rule,
        source.file,
        *source.position(start),
        *source.position(end),
        message=_shortened(message),
        fix=fix,
        text=shorten(source.shown[start:end], _MAX_TEXT),
        source=source,
    )


def diagnostic_of_file(file: Path, rule: Rule, message: str, fix: str) -> Diagnostic:
    return Diagnostic(rule, file, 1, 1, 1, 1, message=_shortened(message), fix=fix, text="")


def _shortened(message: str) -> str:
    """Shorten long names and commands in a message; an untrusted file may contain any length."""
    return shorten(_QUOTATION.sub(lambda found: f"`{shorten(found[1], _MAX_QUOTATION)}`", message), _MAX_MESSAGE)
