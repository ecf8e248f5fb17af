"""What the commands say about warm hooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import HookEventName, HookLog
from llxprt_hooks.core.engine.results import HookExecutionResult
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.settings.definitions import HookConfig

if TYPE_CHECKING:
    from tests.support.cli import CliProject


@pytest.fixture
def warm(world: CliProject) -> CliProject:
    world.write("hook.py", "print('{}')")
    world.configure(BeforeTool={"name": "check", "command": f"{sys.executable} hook.py", "warm": True})
    return world


def test_fire_waits_for_the_interpreter_and_says_that_the_run_was_warm(warm: CliProject) -> None:
    run = warm.run("fire", "BeforeTool", "--json")

    assert [result["warm"] for result in run.json["results"]] == [True]
    assert " ms, warm\n" in warm.run("fire", "BeforeTool").stdout


def test_fire_says_that_a_hook_that_could_be_warm_was_cold(warm: CliProject) -> None:
    warm.write("hook.py", "import os; os.getppid()")

    run = warm.run("fire", "BeforeTool")

    assert "ms, cold\n" in run.stdout


def test_fire_starts_another_program_ahead_and_says_so(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "check", "command": "cat > /dev/null; echo '{}'", "warm": True})

    assert " ms, started ahead\n" in world.run("fire", "BeforeTool").stdout
    [result] = world.run("fire", "BeforeTool", "--json").json["results"]
    assert (result["warm"], result["ahead"]) == (True, True)


def test_fire_says_that_a_program_that_acts_before_it_reads_was_cold(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "check", "command": "echo '{}'", "warm": True})

    assert "ms, cold\n" in world.run("fire", "BeforeTool").stdout


def test_log_marks_runs_that_were_started_ahead(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> None:
    world.enter(monkeypatch)
    config = HookConfig("command", CommandSpec("true"), name="check")
    result = HookExecutionResult(config, HookEventName.BEFORE_TOOL, success=True, warm=True, ahead=True)
    HookLog(world.root).hook_ended(result)

    assert world.run("log").stdout.count("check (ahead)") == 1
    assert world.run("log", "--json").json_lines[0]["ahead"] is True


def test_list_shows_warm_hooks(warm: CliProject) -> None:
    assert (
        "      warm: runs in a pre-started process, a Python script in a pre-started interpreter\n"
        in warm.run("list").stdout
    )
    assert [hook["warm"] for hook in warm.run("list", "--json").json["hooks"]] == [True]


@pytest.mark.parametrize("columns", ["60", "120"])
def test_log_marks_warm_runs(world: CliProject, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    world.enter(monkeypatch)
    config = HookConfig("command", CommandSpec("true"), name="check")
    log = HookLog(world.root)
    for warm in (True, False):
        log.hook_ended(HookExecutionResult(config, HookEventName.BEFORE_TOOL, success=True, warm=warm))

    run = world.run("log", COLUMNS=columns)

    assert run.stdout.count("check (warm)") == 1
    assert [record["warm"] for record in world.run("log", "--json").json_lines] == [True, False]


def test_the_approval_shows_warm_and_covers_it(warm: CliProject) -> None:
    shown = warm.run("trust", "--yes", approved=False)
    assert "warm" in shown.stdout + shown.stderr

    warm.configure(BeforeTool={"name": "check", "command": f"{sys.executable} hook.py"})

    assert "changed" in warm.run("list", approved=False).stdout
