"""Every link within the documentation leads somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, RECIPES, ROOT, sections

EVERY_PAGE = [*PAGES, *(page for page in sorted(ROOT.glob("*.md")) if page not in PAGES), *RECIPES]


def targets(page: Path) -> list[str]:
    return [link for section in sections(page) for link in section.links if "://" not in link]


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists() or not file.is_relative_to(ROOT):
        return False
    return not anchor or anchor in {section.anchor for section in sections(file)}


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_the_links_of_a_page_resolve(page: Path) -> None:
    assert [target for target in targets(page) if not leads_somewhere(page, target)] == []


def test_every_page_can_be_reached_from_the_first() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        files = [(page.parent / target.partition("#")[0]).resolve() for target in targets(page)]
        waiting += [file for file in files if file.suffix == ".md" and file.exists()]
    assert set(EVERY_PAGE) <= seen


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_two_headings_of_a_page_are_the_same(page: Path) -> None:
    titles = [section.title for section in sections(page)]
    assert [title for title in titles if titles.count(title) > 1] == []
