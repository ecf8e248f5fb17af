"""``llxprt-hooks demo``: seven effects, each with its hook, in seconds, and nothing of the user's touched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import COMMAND, CliProject
from tests.support.processes import DEADLINE
from tests.support.project import files_in

EFFECTS = {
    "block": ("no-secrets", "BeforeTool", "blocks it: the content contains an access key"),
    "rewritten argument": ("dry-run", "BeforeTool", "rewrites the arguments: "),
    "injected context": ("house-rules", "AfterTool", "adds for the model: House rule"),
    "restricted tool": ("look-only", "BeforeToolSelection", "allows only: read_file, list_directory"),
    "redacted answer": ("redact", "AfterModel", "replaces the answer"),
    "synthetic answer": ("answer-book", "BeforeModel", "answers in the model's place"),
    "stop": ("budget", "AfterTool", "stops the agent: the budget for this session is used up"),
}

SEEN = (
    "    blocked the content contains an access key",
    "    this would remove the folder build",
    "    House rule: contact data never leaves this machine.",
    "  Everything is ready. Please ask [redacted] before the release.",
    "    restricted write_file may not be called now.",
    "  Paris. (From the answer book; the model was not asked.)",
    "  the agent stopped",
)
"""What became of it, in the order in which it happens."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, CliProject, Path]:
    """The demo's screen, in a world where every hook of the user's would leave a trace."""
    world = CliProject(tmp_path_factory.mktemp("demo"))
    for level in ("user", "system", "project"):
        world.configure(level=level, BeforeTool=f"touch {world.folder}/ran-{level}; exit 2")
    temporary = world.folder / "temporary"
    temporary.mkdir()
    before = files_in(world.folder)
    ended = subprocess.run(
        [COMMAND, "demo"],
        cwd=world.root,
        env=world.environment(TMPDIR=str(temporary), LLXPRT_TRUST_PROJECT_HOOKS="1"),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert files_in(world.folder) == before
    return ended.stdout, world, temporary


@pytest.mark.parametrize(("hook", "event", "effect"), EFFECTS.values(), ids=EFFECTS)
def test_demo_shows_each_effect_with_the_hook_that_caused_it(
    shown: tuple[str, CliProject, Path], hook: str, event: str, effect: str
) -> None:
    assert f"  ⚓ {hook} ({event}) {effect}" in shown[0]


def test_demo_shows_what_became_of_it(shown: tuple[str, CliProject, Path]) -> None:
    screen, places = shown[0], [shown[0].find(f"\n{each}") for each in SEEN]

    assert -1 not in places, screen
    assert places == sorted(places)
    assert "ask ada@example.com" not in screen


def test_demo_leaves_nothing_behind(shown: tuple[str, CliProject, Path]) -> None:
    _, world, temporary = shown

    assert list(temporary.iterdir()) == []
    assert sorted(each.name for each in world.folder.iterdir()) == ["etc", "home", "project", "temporary"]
