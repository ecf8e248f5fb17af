"""The built wheel works for a stranger: in an empty environment, with nothing of the repository in reach."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import __version__
from tests.docs.pages import ROOT, sections
from tests.docs.screens import check_screen, typed

if TYPE_CHECKING:
    from tests.support.fixtures import Once

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the home of its user."""

    folder: Path
    home: Path

    @property
    def variables(self) -> dict[str, str]:
        return {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8"}

    def run(self, *command: str) -> str:
        """Run a command, first looked up in the environment, and return its output."""
        done = subprocess.run(
            ["/usr/bin/env", *command], cwd=self.home, env=self.variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def dist(once: Once) -> Path:
    """What ``make dist`` builds."""
    command = [sys.executable, "-m", "build", "--outdir"]
    return once("dist", lambda folder: subprocess.run([*command, folder, ROOT], check=True, capture_output=True))


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    [wheel] = dist.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, once: Once) -> Environment:
    def make(folder: Path) -> None:
        venv.create(folder / "venv", with_pip=True)
        pip: list[str | Path] = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
        subprocess.run(pip, check=True, capture_output=True)
        (folder / "home").mkdir()

    folder = once("empty", make)
    return Environment(folder / "venv", folder / "home")


def metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode()


def test_both_packages_have_the_version_of_the_code(dist: Path) -> None:
    names = {f"llxprt_hooks-{__version__}-py3-none-any.whl", f"llxprt_hooks-{__version__}.tar.gz"}
    assert {file.name for file in dist.iterdir()} - {".gitignore"} == names


def test_the_wheel_has_all_files_of_the_package_and_no_others(wheel: Path) -> None:
    source = ROOT / "src"
    tracked = {
        str(file.relative_to(source))
        for file in source.glob("llxprt_hooks/**/*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == tracked


def test_a_package_index_shows_working_links(wheel: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", metadata(wheel).partition("\n\n")[2])
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    ours = [link for link in links if "/llxprt-hooks/" in link and f"/v{__version__}/" in link]
    files = [link.partition(f"/v{__version__}/")[2].partition("#")[0] for link in ours]
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_extras_that_readme_names_exist(wheel: Path) -> None:
    [install] = [section for section in sections(ROOT / "README.md") if section.title == "Install"]
    named = set(re.findall(r"llxprt-hooks\[([\w-]+)\]", "".join(block.text for block in install.blocks)))
    assert named
    assert named <= set(re.findall(r"^Provides-Extra: (.+)$", metadata(wheel), re.MULTILINE))


def test_the_command_line(installed: Environment) -> None:
    assert __version__ in installed.run("llxprt-hooks", "--version")
    assert "write_file" in installed.run("llxprt-hooks", "demo")
    assert "no hooks are configured" in installed.run("python", "-m", "llxprt_hooks", "list")


def test_the_quick_start_of_readme(installed: Environment, tmp_path: Path) -> None:
    """The section whose files the reader writes; the reader makes scripts executable as it says."""
    steps = [section.blocks for section in sections(ROOT / "README.md")]
    [quick_start] = [blocks for blocks in steps if any("file" in block.words for block in blocks)]
    assert "output" in quick_start[-1].words
    printed = ""
    for block in quick_start:
        if file := block.words.get("file"):
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(block.text, encoding="utf-8")
            (tmp_path / file).chmod(0o644)
        elif "output" in block.words:
            check_screen(block.text, printed, folder=tmp_path, home=installed.home)
        else:
            replies = [block.words["answer"]]
            printed = typed(block.text, replies, folder=tmp_path, environment=installed.variables)


def test_a_missing_extra_is_reported_with_a_command_that_works(
    installed: Environment,
) -> None:
    program = "from llxprt_hooks.model import resolve_translator; resolve_translator()"
    failed = subprocess.run([installed.folder / "bin" / "python", "-c", program], capture_output=True, text=True)
    advice = re.search(r"run `pip install '(llxprt-hooks\[agent\])'`$", failed.stderr.strip())
    assert advice, failed.stderr
    pip = [installed.folder / "bin" / "python", "-m", "pip", "install", "--dry-run", advice[1]]
    would = subprocess.run(pip, capture_output=True, text=True)
    assert would.returncode == 0, would.stderr
    assert "google-genai" in would.stdout
