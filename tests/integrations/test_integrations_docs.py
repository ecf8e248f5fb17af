"""The pages and the examples of the frameworks: everything on them runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.docs_pages import ROOT, sections

PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples" / "integrations").glob("*.py"))


def run(arguments: list[str], folder: Path) -> str:
    ended = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_on_a_page_run(page: Path, tmp_path: Path) -> None:
    programs = [block.text for section in sections(page) for block in section.blocks if block.info == "python"]
    assert programs
    for program in programs:
        run(["-c", program], tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_what_its_page_shows(example: Path, tmp_path: Path) -> None:
    page = next(page for page in PAGES if example.name in page.read_text())
    shown = [block.text for section in sections(page) for block in section.blocks if block.info == "text"]
    assert run([str(example)], tmp_path) in shown


def test_every_page_has_an_example_and_a_row_in_the_overview() -> None:
    overview = (ROOT / "docs" / "integrations.md").read_text()
    for page in PAGES:
        assert any(example.name in page.read_text() for example in EXAMPLES), page.name
        assert f"(integrations/{page.name})" in overview, page.name
