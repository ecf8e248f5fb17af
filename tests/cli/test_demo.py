"""``llxprt-hooks demo``: seven effects, each with its hook, in seconds, and nothing of the user's touched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import COMMAND, CliProject, ended
from tests.support.processes import DEADLINE
from tests.support.project import files_in

EFFECTS = {
    "block": ("no-secrets", "BeforeTool", "blocks it: access keys do not belong in files"),
    "rewrite": ("dry-run", "BeforeTool", "rewrites the arguments: "),
    "inject": ("house-rules", "AfterTool", "adds for the model: Rule: "),
    "redact": ("redact", "AfterModel", "replaces the response"),
    "restrict": ("look-only", "BeforeToolSelection", "allows only: read_file, glob"),
    "answer": ("answer-book", "BeforeModel", "blocks it: the answer is known; answers instead"),
    "stop": ("budget", "AfterTool", "stops the agent: the budget is used up"),
}

SEEN = (
    "  ✗ the tool did not run",
    "  ✓ stdout: would remove build",
    "  Write to [redacted] before the release.",
    "  ✗ write_file may not be called now.",
    "  Paris, says the answer book.",
    "effect    hook         what the model saw",
    "block     no-secrets   access keys do not belong in files",
    "rewrite   dry-run      stdout: would remove build",
    "inject    house-rules  Ada approves releases. Rule: keep contact data private.",
    "redact    redact       Write to [redacted]",
    "restrict  look-only    write_file may not be called now.",
    "answer    answer-book  nothing: it was not called",
    "stop      budget       nothing more: the agent stopped",
    "Next: llxprt-hooks init",
)
"""What became of it, in the order in which it happens."""


NOT_IN_THE_BASE_PACKAGE = ("google", "pydantic", "prompt_toolkit", "openai", "anthropic", "httpx")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, CliProject, Path]:
    """The demo's screen, in a world where every hook of the user's would leave a trace."""
    world = CliProject(tmp_path_factory.mktemp("demo"))
    for level in ("user", "system", "project"):
        world.configure(level=level, BeforeTool=f"touch {world.folder}/ran-{level}; exit 2")
    temporary = world.folder / "temporary"
    packages = world.folder / "packages"
    packages.mkdir()
    for package in NOT_IN_THE_BASE_PACKAGE:
        (packages / f"{package}.py").write_text("raise ImportError('the demo needs the base package only')\n")
    temporary.mkdir()
    before = files_in(world.folder)
    done = subprocess.run(
        [COMMAND, "demo"],
        cwd=world.root,
        env=world.environment(
            TMPDIR=str(temporary), PYTHONPATH=str(packages), PYTHONDONTWRITEBYTECODE="1", LLXPRT_TRUST_PROJECT_HOOKS="1"
        ),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert files_in(world.folder) == before
    return done.stdout, world, temporary


@pytest.mark.parametrize(("hook", "event", "effect"), EFFECTS.values(), ids=EFFECTS)
def test_demo_shows_each_effect_with_the_hook_that_caused_it(
    shown: tuple[str, CliProject, Path], hook: str, event: str, effect: str
) -> None:
    assert f"  ⚓ {hook} ({event}) {effect}" in shown[0]


def test_demo_shows_the_result(shown: tuple[str, CliProject, Path]) -> None:
    screen, places = shown[0], [shown[0].find(f"\n{each}") for each in SEEN]

    assert -1 not in places, screen
    assert places == sorted(places)
    assert "ask ada@example.com" not in screen


def test_demo_leaves_nothing_behind(shown: tuple[str, CliProject, Path]) -> None:
    _, world, temporary = shown

    assert list(temporary.iterdir()) == []
    assert sorted(each.name for each in world.folder.iterdir()) == ["etc", "home", "packages", "project", "temporary"]


def test_demo_waits_for_enter_after_each_scene(world: CliProject) -> None:
    child = world.terminal("llxprt-hooks demo --step", columns=80)
    for number in range(1, 8):
        child.expect_exact("Press Enter to continue")
        assert child.before is not None
        assert f"{number}/7 " in child.before
        assert f"{number + 1}/7 " not in child.before
        child.sendline("")
    rest, status = ended(child)

    assert status == 0
    assert "what the model saw" in rest


def test_demo_does_not_wait_where_nobody_can_press_enter(world: CliProject) -> None:
    run = world.run("demo", "--step", stdin="\n\n")

    assert run.status == 0
    assert "what the model saw" in run.stdout
