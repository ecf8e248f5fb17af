"""The pages and the examples of the frameworks: everything on them runs."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docs.pages import ROOT, sections

PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples" / "integrations").glob("*.py"))


def run(arguments: list[str], folder: Path) -> str:
    ended = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


INSTALL = re.compile(
    r"pip install 'llxprt-hooks\[(?P<extra>[\w-]+)\] @ git\+https://github\.com/vybestack/llxprt-hooks'"
    r"(?P<more>( [\w-]+)*)\n"
)


# What MCP servers need depends on the server: a table says it.
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "mcp"], ids=lambda page: page.stem)
def test_a_page_begins_with_the_command_that_installs_what_its_first_program_imports(page: Path) -> None:
    blocks = [block for section in sections(page) for block in section.blocks]
    found = INSTALL.fullmatch(blocks[0].text)
    assert found, blocks[0].text
    above = "\n".join(page.read_text().splitlines()[2 : blocks[0].line - 2])
    assert "\n\n" not in above, "above it, a page has only its title and one paragraph that says what the page is for"
    installed = required("llxprt-hooks", found["extra"]).union(*map(required, found["more"].split()))
    program = next(block.text for block in blocks if block.info == "python")
    imported = set(re.findall(r"(?m)^(?:from|import) (\w+)", program)) - sys.stdlib_module_names - {"llxprt_hooks"}
    if page.stem != "model-proxy":  # its program is an agent, which can use any client
        for module in imported:
            assert set(map(canonicalize_name, packages_distributions()[module])) & installed, module


def required(name: str, extra: str = "") -> set[str]:
    """Return a distribution and all that it requires, as installed here."""
    found: set[tuple[str, str]] = set()
    waiting = {(str(canonicalize_name(name)), extra)}
    while waiting:
        each = waiting.pop()
        found.add(each)
        for requirement in map(Requirement, requires(each[0]) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": each[1]}):
                needed = canonicalize_name(requirement.name)
                waiting |= {(needed, more) for more in ("", *requirement.extras)} - found
    return {name for name, _ in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_on_a_page_run(page: Path, tmp_path: Path) -> None:
    programs = [block.text for section in sections(page) for block in section.blocks if block.info == "python"]
    assert programs
    for program in programs:
        run(["-c", program], tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_what_its_page_shows(example: Path, tmp_path: Path) -> None:
    page = next(page for page in PAGES if example.name in page.read_text())
    shown = [block.text for section in sections(page) for block in section.blocks if block.info == "text output"]
    assert run([str(example)], tmp_path) in shown


def test_every_page_has_an_example_and_a_row_in_the_overview() -> None:
    overview = (ROOT / "docs" / "integrations.md").read_text()
    for page in PAGES:
        assert any(example.name in page.read_text() for example in EXAMPLES), page.name
        assert f"(integrations/{page.name})" in overview, page.name
