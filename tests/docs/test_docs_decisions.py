"""What comments and pages cite can be looked up: decisions by number, requirements by id, no other document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.docs_pages import ROOT, sections

DECISIONS = ROOT / "docs" / "decisions.md"
REQUIREMENTS = ROOT / "docs" / "requirements.md"
WRITTEN = DECISIONS.read_text(encoding="utf-8").split("\n## ")[1:]
SEARCHED = ("src", "tests", "docs", "bench", "examples", "README.md", "CHANGELOG.md")

_DECISION = re.compile(r"\bD-\d+\b")
_REQUIREMENT = re.compile(r"\b(?:HOOK|DELTA-H[A-Z]+)-\d{3}[ab]?\b")
_OUTSIDE = re.compile(r"\b(?:[Rr]uling|[Ii]ssue) \d+\b|\bDESIGN\b")
_NUMBERED = re.compile(r"(D-\d\d) \S.*")


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


def test_the_numbers_ascend_and_none_is_used_twice() -> None:
    assert decided() == sorted(set(decided()))


def test_every_requirement_that_a_decision_names_exists() -> None:
    known = set(_REQUIREMENT.findall(REQUIREMENTS.read_text(encoding="utf-8")))

    assert set(_REQUIREMENT.findall(DECISIONS.read_text(encoding="utf-8"))) <= known


@pytest.mark.parametrize("decision", WRITTEN, ids=lambda text: text[:4])
def test_a_decision_has_a_reason_and_its_modules_exist(decision: str) -> None:
    reason, concerns = decision.find("**Why:**"), decision.find("**Concerns:**")
    modules = re.findall(r"`([\w/]+)`", decision.partition("**See:**")[2])

    assert 0 < reason < concerns
    assert _REQUIREMENT.search(decision[concerns:])
    assert modules
    package = ROOT / "src" / "llxprt_hooks"
    assert [name for name in modules if not ((package / name).is_dir() or (package / f"{name}.py").is_file())] == []
