"""Interruption: whatever the agent is doing, it ends, and leaves no process behind."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import End, Reply, answer, call, unfinished
from tests.support.processes import DEADLINE, lives, until, watchdog_shell

if TYPE_CHECKING:
    from tests.agent.e2e.conftest import Played, Scene

SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM}


def interrupted_hook(number: signal.Signals) -> Scene:
    def play(project: AgentProject) -> AgentRun:
        project.configure(
            BeforeTool=project.endless_hook("endless"),
            AfterTool=project.hook("after"),
            AfterModel=project.hook("after_model"),
            SessionEnd=project.hook("session_end"),
        )
        asked = call("write_file", file_path="made.txt", content="x")
        with project.running("-o", "json", "-y", answers=[answer(asked), answer("Not reached.")]) as running:
            project.pids("endless")
            running.process.send_signal(number)
            return running.ended()

    return play


def interrupted_tool(number: signal.Signals) -> Scene:
    def play(project: AgentProject) -> AgentRun:
        project.configure(AfterTool=project.hook("after"))
        pids = shlex.quote(str(project.note("endless.pids")))
        (project.root / "a.txt").write_text("alpha")
        other = f"until [ -s {shlex.quote(str(project.note('after.payloads')))} ]; do sleep 0.05; done; sleep 0.5"
        asked = [
            call("read_file", file_path="a.txt"),
            call("run_shell_command", command=f"{other}; sleep 600 & echo $$ $! > {pids}; wait"),
        ]
        with project.running("-o", "json", "-y", answers=[answer("On it.", asked), answer("Not reached.")]) as running:
            project.pids("endless")
            running.process.send_signal(number)
            return running.ended()

    return play


def interrupted_model(number: signal.Signals) -> Scene:
    def play(project: AgentProject) -> AgentRun:
        project.configure(SessionEnd=project.hook("session_end"))
        with project.running(answers=[Reply(unfinished("Once upon ", "a time"), End.HELD)]) as running:
            read_until(running.process, b"Once upon a time")
            running.process.send_signal(number)
            return running.ended()

    return play


def interrupted_model_with_hook(number: signal.Signals) -> Scene:
    def play(project: AgentProject) -> AgentRun:
        project.configure(AfterModel=project.hook("after"))
        with project.running("-o", "json", answers=[Reply(unfinished("Once upon a time"), End.HELD)]) as running:
            until(lambda: bool(running.gemini and running.gemini.requests))
            running.process.send_signal(number)
            return running.ended()

    return play


def read_until(process: subprocess.Popen[bytes], words: bytes) -> None:
    """Wait until the process has printed something, while it runs."""
    assert process.stdout is not None
    seen = b""
    while words not in seen:
        readable, _, _ = select.select([process.stdout], [], [], DEADLINE)
        piece = os.read(process.stdout.fileno(), 4096) if readable else b""
        assert piece, seen
        seen += piece


HOOK = {name: interrupted_hook(number) for name, number in SIGNALS.items()}
TOOL = {name: interrupted_tool(number) for name, number in SIGNALS.items()}
MODEL = {name: interrupted_model(number) for name, number in SIGNALS.items()}
MODEL_WITH_HOOK = interrupted_model_with_hook(signal.SIGINT)

each_signal = pytest.mark.parametrize("name", SIGNALS)


@each_signal
def test_a_signal_during_a_hook_ends_the_hook_and_its_children(played: Played, name: str) -> None:
    run = played(HOOK[name])
    assert [lives(pid) for pid in run.project.pids("endless")] == [False, False]
    assert run.status == 130
    assert "Traceback" not in run.stderr


@each_signal
def test_a_signal_during_a_hook_does_not_let_the_tool_run(played: Played, name: str) -> None:
    run = played(HOOK[name])
    assert run.statuses == ["cancelled"]
    assert not (run.project.root / "made.txt").exists()
    assert run.payloads("after") == []
    assert len(run.payloads("after_model")) == 1


@each_signal
@pytest.mark.requirement("HOOK-203")
def test_an_interrupted_session_still_reports_its_end(played: Played, name: str) -> None:
    assert len(played(HOOK[name]).payloads("session_end")) == 1


@each_signal
def test_a_signal_during_a_tool_ends_the_command_and_its_children(played: Played, name: str) -> None:
    run = played(TOOL[name])
    assert [lives(pid) for pid in run.project.pids("endless")] == [False, False]
    assert run.status == 130
    assert "Traceback" not in run.stderr


@each_signal
def test_an_interrupted_call_is_cancelled_and_a_finished_one_keeps_its_result(played: Played, name: str) -> None:
    run = played(TOOL[name])
    finished, cancelled = run.calls
    assert (finished["status"], finished["result"]) == ("success", "alpha")
    assert cancelled["status"] == "cancelled"
    assert run.json["response"] == "On it."
    assert [payload["tool_name"] for payload in run.payloads("after")] == ["read_file"]


@each_signal
def test_an_answer_is_shown_as_it_streams_and_a_signal_ends_it(played: Played, name: str) -> None:
    run = played(MODEL[name], HTTP)
    assert run.status == 130
    assert run.stdout == "\n"  # all that came after what was streamed: the line is ended
    assert "Traceback" not in run.stderr
    assert len(run.requests) == 1
    assert len(run.payloads("session_end")) == 1


@pytest.mark.requirement("HOOK-207")
def test_an_answer_that_the_user_interrupted_fires_no_after_model_hook(played: Played) -> None:
    run = played(MODEL_WITH_HOOK, HTTP)
    assert (run.status, run.json["response"]) == (130, "")
    assert run.payloads("after") == []


def test_a_killed_agent_leaves_neither_hook_nor_command_running(project: AgentProject) -> None:
    project.configure(BeforeModel=project.hook("model"), AfterTool=project.endless_hook("endless"))
    pids = shlex.quote(str(project.note("command.pids")))
    (project.root / "a.txt").write_text("alpha")
    asked = [
        call("read_file", file_path="a.txt"),
        call("run_shell_command", command=f"sleep 600 & echo $$ $! > {pids}; wait"),
    ]
    with project.running("-y", answers=[answer(asked)]) as running:
        started = [*project.pids("endless"), *project.pids("command")]
        shell = watchdog_shell(running.process.pid)
        running.process.kill()
        running.ended()

    until(lambda: not any(map(lives, [*started, shell])))
