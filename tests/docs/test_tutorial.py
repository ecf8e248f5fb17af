"""The tutorials are gone through as their reader does: block by block, in one empty folder, at a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, WALKTHROUGHS, Block, sections
from tests.docs.screens import QUESTION, check_screen, typed
from tests.support.nats_server import free_port
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.support.project import Project

FOR_THE_EYE = {"yaml", "console"}
"""Languages of blocks that are not a step."""

PASTED = [ROOT / "docs" / "day.md", ROOT / "docs" / "fleet.md"]
"""Pages whose blocks are pasted into one terminal."""

MARK = "=== the next block ==="
PORT = re.compile(r"(?<=127\.0\.0\.1[: ])\d{5}|(?<=-p )\d{5}")


@pytest.mark.parametrize("page", [page for page in WALKTHROUGHS if page not in PASTED], ids=lambda page: page.name)
def test_the_tutorial_from_an_empty_folder(page: Path, tmp_path: Path, sandbox: Project) -> None:
    folder = tmp_path.resolve() / WALKTHROUGHS[page]
    folder.mkdir()
    for step, screen in steps(page):
        try:
            take(step, screen, folder=folder, project=sandbox)
        except Exception as error:
            error.add_note(f"in {page.name}, line {step.line}: ```{step.info}")
            raise


@pytest.mark.parametrize("page", PASTED, ids=lambda page: page.name)
def test_the_page_pasted_into_one_terminal(page: Path, tmp_path: Path, sandbox: Project) -> None:
    folder = tmp_path.resolve() / "fleet"
    folder.mkdir()
    taken = list(steps(page))
    script = "".join(f"{step.text}\necho '{MARK}'\n" for step, _ in taken if step.language == "sh")
    ports = {port: str(free_port()) for port in PORT.findall(script)}
    (tmp_path / "pasted.sh").write_text(PORT.sub(lambda port: ports[port[0]], script), encoding="utf-8")
    with subprocess.Popen(
        ["bash", str(tmp_path / "pasted.sh")],
        cwd=folder,
        env={**sandbox.environment(), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as terminal:
        try:
            printed, _ = terminal.communicate(timeout=DEADLINE)
        finally:
            with suppress(ProcessLookupError):  # what the reader would still see running
                os.killpg(terminal.pid, signal.SIGKILL)
    screens = printed.split(f"{MARK}\n")
    for (_, screen), shown in zip((each for each in taken if each[0].language == "sh"), screens, strict=False):
        check_screen(screen.text if screen else "", shown, folder=folder, home=sandbox.home)


@pytest.mark.parametrize("page", WALKTHROUGHS, ids=lambda page: page.name)
def test_every_block_of_a_tutorial_is_a_step_or_the_screen_of_one(page: Path) -> None:
    taken = [step.line for step, _ in steps(page)] + [screen.line for _, screen in steps(page) if screen]
    assert sorted(taken) == [block.line for block in blocks_of(page)]


def blocks_of(page: Path) -> list[Block]:
    return [block for section in sections(page) for block in section.blocks if block.language not in FOR_THE_EYE]


def steps(page: Path) -> Iterator[tuple[Block, Block | None]]:
    """What the reader does, one thing after the other, each with the screen that follows it on the page."""
    blocks = blocks_of(page)
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if "output" not in block.words:
            yield block, following if following and "output" in following.words else None


def take(step: Block, screen: Block | None, *, folder: Path, project: Project) -> None:
    if "file" in step.words:
        file = folder / step.words["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(step.text, encoding="utf-8")
        assert screen is None, "a file prints nothing"
        return
    assert step.info == "sh", "the reader can only type commands and write files"
    expected = screen.text if screen else ""
    printed = typed(step.text, answers(expected), folder=folder, environment=project.environment())
    check_screen(expected, printed, folder=folder, home=project.home)


def answers(screen: str) -> list[str]:
    return [line.partition(QUESTION)[2] for line in screen.splitlines() if QUESTION in line]
