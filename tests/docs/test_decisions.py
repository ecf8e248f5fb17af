"""What comments and pages cite can be looked up: decisions by number, requirements by id, no other document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, sections

DECISIONS = ROOT / "docs" / "decisions.md"
SEARCHED = ("src", "tests", "docs", "bench", "examples", "README.md", "CHANGELOG.md")

_DECISION = re.compile(r"\bD-\d+\b")
_OUTSIDE = re.compile(r"\b(?:[Rr]uling|[Ii]ssue) \d+\b|\bDESIGN\b")
_NUMBERED = re.compile(r"(D-\d+) \S.*")


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file in the repository's own folders, except this one."""
    for root in (ROOT / name for name in SEARCHED):
        for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if file.is_file() and "__pycache__" not in file.parts and file != Path(__file__):
                yield file.relative_to(ROOT), file.read_text(encoding="utf-8", errors="replace")


def decided() -> list[str]:
    """The numbers that are headings of the page, in order."""
    return [heading[1] for section in sections(DECISIONS) if (heading := _NUMBERED.fullmatch(section.title))]


def test_no_file_cites_a_document_that_is_not_in_the_repository() -> None:
    assert [(str(file), found) for file, text in texts() for found in _OUTSIDE.findall(text)] == []


def test_every_decision_that_is_cited_is_on_the_page() -> None:
    known = set(decided())

    unknown = [(str(file), cited) for file, text in texts() for cited in _DECISION.findall(text) if cited not in known]

    assert known
    assert unknown == []
