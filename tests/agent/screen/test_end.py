"""How a session ends, and what is told to hooks then."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.gemini import answer, call
from tests.support.processes import lives, pids_in
from tests.support.terminal import CTRL_C, CTRL_D

if TYPE_CHECKING:
    from tests.agent.screen.project import InteractiveProject


@pytest.mark.requirement("HOOK-203")
@pytest.mark.parametrize(
    ("keys", "reason"), [(CTRL_D, "prompt_input_exit"), ("/quit\r", "exit")], ids=["ctrl-d", "quit"]
)
def test_the_user_leaves(project: InteractiveProject, keys: str, reason: str) -> None:
    project.noting_hook("SessionEnd")
    project.add_hook("SessionEnd", "late", "until [ -e ../go ]; do sleep 0.05; done; touch ../late")
    with project.session(answer("Hello.")) as terminal:
        terminal.see_prompt()
        terminal.ask("hi")
        terminal.type(keys)
        terminal.see("waiting for hook late (SessionEnd)")
        (project.folder / "go").touch()
        assert terminal.status() == 0
    assert project.noted("SessionEnd", "reason") == [reason]
    assert (project.folder / "late").exists()


def test_ctrl_c_while_leaving_waits_no_longer(project: InteractiveProject) -> None:
    project.add_hook("SessionEnd", "endless", "sleep 600 & echo $$ $! > ../pids; wait")
    with project.session() as terminal:
        terminal.see_prompt()
        terminal.enter("/quit")
        terminal.see("waiting for hook endless (SessionEnd)")
        pids = pids_in(project.folder / "pids", 2)
        terminal.type(CTRL_C)
        assert terminal.status() == 0
    assert not any(map(lives, pids))


def test_a_signal_ends_what_runs_and_the_session(project: InteractiveProject) -> None:
    project.noting_hook("SessionEnd")
    shell = call("run_shell_command", command="sleep 600 & echo $$ $! > ../pids; wait")
    with project.session(answer(shell), arguments=["-y"]) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        pids = pids_in(project.folder / "pids", 2)
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.status() == 130
    assert not any(map(lives, pids))
    assert project.noted("SessionEnd", "reason") == ["other"]


@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "at the prompt"])
def test_a_terminal_that_goes_away_ends_what_runs_and_the_session(project: InteractiveProject, at_work: bool) -> None:
    project.noting_hook("SessionEnd")
    shell = call("run_shell_command", command="sleep 600 & echo $$ $! > ../pids; wait")
    with project.session(answer(shell), arguments=["-y"]) as terminal:
        terminal.see_prompt()
        pids = []
        if at_work:
            terminal.enter("go")
            pids = pids_in(project.folder / "pids", 2)
        terminal.hang_up()
    assert not any(map(lives, pids))
    assert project.noted("SessionEnd", "reason") == ["other"]


def test_a_session_that_cannot_begin_says_why(project: InteractiveProject) -> None:
    (project.folder / "broken.jsonl").write_text("{\n")
    with project.session(arguments=["--replay", str(project.folder / "broken.jsonl")]) as terminal:
        assert terminal.status() == 1
        assert terminal.raw.startswith(f"Error: {project.folder / 'broken.jsonl'}")
        assert terminal.raw.count("\n") == 1
