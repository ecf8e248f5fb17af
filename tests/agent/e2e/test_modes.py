"""Four ways to use the agent, one behaviour of hooks."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from tests.support.agent import AgentProject, AgentRun
from tests.support.cli import COMMAND, ended
from tests.support.gemini import answer, call
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.agent.e2e.conftest import Played, Scene

EVENTS = (
    "SessionStart",
    "BeforeAgent",
    "BeforeToolSelection",
    "BeforeModel",
    "AfterModel",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "SessionEnd",
)

LOOK_FOR_TERMINAL = """
for fd in 0 1 2; do [ -t $fd ] && echo "terminal on $fd" >> "{note}"; done
(: < /dev/tty) 2> /dev/null && echo "controlling terminal" >> "{note}"
echo looked >> "{note}"
"""

SAYS: dict[str, Any] = {
    "BeforeTool": {"hookSpecificOutput": {"tool_input": {"file_path": "b.txt"}}},
    "AfterTool": {"hookSpecificOutput": {"additionalContext": "That is all."}, "systemMessage": "Go on."},
    "BeforeModel": {"hookSpecificOutput": {"llm_request": {"config": {"temperature": 0.5}}}},
    "AfterModel": {"systemMessage": "Once more."},
    "BeforeToolSelection": {"hookSpecificOutput": {"toolConfig": {"allowedFunctionNames": ["read_file"]}}},
}

ANSWERS = [
    answer([call("read_file", file_path="a.txt"), call("glob", pattern="*")]),
    answer("All ", "done."),
]


def prepared(project: AgentProject) -> list[str]:
    """A project with a hook for each event; the arguments that replay its conversation."""
    (project.root / "a.txt").write_text("alpha")
    (project.root / "b.txt").write_text("beta")
    look = LOOK_FOR_TERMINAL.format(note=project.note("terminals"))
    project.configure(**{event: project.hook(event, SAYS.get(event), first=look) for event in EVENTS})
    return [COMMAND, "run", "--replay", str(project.recording(*ANSWERS))]


def piped(*arguments: str, stdin: bytes | None = None) -> Scene:
    def play(project: AgentProject) -> AgentRun:
        command = [*prepared(project), *arguments]
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        done = subprocess.run(
            command,
            cwd=project.root,
            env=project.environment(),
            capture_output=True,
            timeout=DEADLINE,
            check=False,
            **source,
        )
        return AgentRun(done.returncode, done.stdout.decode(), done.stderr.decode(), project)

    return play


def in_terminal(*arguments: str, typed: bool = False) -> Scene:
    def play(project: AgentProject) -> AgentRun:
        program, *rest = [*prepared(project), *arguments]
        environment = project.environment(TERM="xterm")
        terminal = pexpect.spawn(
            program, rest, cwd=str(project.root), env=environment, timeout=DEADLINE, encoding="utf-8"
        )
        if typed:
            terminal.expect(">")
            terminal.send("Do it.\r")
            terminal.expect("All done")
            terminal.send("/quit\r")
        return AgentRun(ended(terminal)[1], "", "", project)

    return play


MODES = {
    "prompt option": piped("-p", "Do it."),
    "piped input": piped(stdin=b"Do it."),
    "headless": piped("--headless", "-p", "Do it."),
    "headless, piped input": piped("--headless", stdin=b"Do it."),
    "prompt option in a terminal": in_terminal("-p", "Do it."),
    "headless in a terminal": in_terminal("--headless", "-p", "Do it."),
    "interactive": in_terminal(typed=True),
}

each_mode = pytest.mark.parametrize("mode", MODES)

OF_ONE_SESSION = ("session_id", "timestamp", "transcript_path", "cwd")


def payloads(run: AgentRun) -> dict[str, list[dict[str, Any]]]:
    """What each hook was given, but for what differs from session to session."""
    return {
        event: [
            {name: value for name, value in payload.items() if name not in OF_ONE_SESSION}
            for payload in run.payloads(event)
        ]
        for event in EVENTS
    }


@each_mode
@pytest.mark.requirement("HOOK-125")
def test_hooks_are_given_the_same_in_every_mode(played: Played, mode: str) -> None:
    run = played(MODES[mode])
    assert run.status == 0
    assert payloads(run) == payloads(played(MODES["prompt option"]))


@each_mode
@pytest.mark.requirement("HOOK-125")
def test_hooks_have_the_same_effect_in_every_mode(played: Played, mode: str) -> None:
    run = played(MODES[mode])
    [before], [after] = run.payloads("BeforeTool"), run.payloads("AfterTool")
    assert before["tool_input"] == {"file_path": "a.txt"}
    assert (after["tool_input"], after["tool_response"]["llmContent"]) == ({"file_path": "b.txt"}, "beta")
    sent = [payload["llm_request"] for payload in run.payloads("AfterModel")]
    assert [request["config"]["temperature"] for request in sent] == [0.5, 0.5]
    assert [request["toolConfig"]["allowedFunctionNames"] for request in sent] == [["read_file"], ["read_file"]]
    assert sent[1]["messages"][-1]["content"] == "[System] Once more."


@each_mode
@pytest.mark.requirement("HOOK-125")
def test_hooks_see_no_terminal_in_any_mode(played: Played, mode: str) -> None:
    run = played(MODES[mode])
    assert run.project.notes("terminals") == ["looked"] * (len(EVENTS) + 3)


def test_a_prompt_may_have_any_bytes(project: AgentProject) -> None:
    project.configure(BeforeAgent=project.hook("agent"))
    run = project.run(
        prompt=None, answers=[answer("Done.")], stdin=b"caf\xe9 \xf0\x9f\x98\x80\n", PYTHONIOENCODING="utf-8:strict"
    )
    assert (run.status, run.stderr) == (0, "")
    [payload] = run.payloads("agent")
    assert payload["prompt"].startswith("caf")
    assert "\U0001f600" in payload["prompt"]


def test_interactive_sessions_print_text_only(project: AgentProject) -> None:
    reader, terminal = os.openpty()
    try:
        done = subprocess.run(
            [COMMAND, "run", "-o", "json"],
            env=project.environment(),
            stdin=terminal,
            capture_output=True,
            timeout=DEADLINE,
            check=False,
        )
    finally:
        os.close(reader)
        os.close(terminal)
    assert (done.returncode, done.stdout) == (64, b"")
    assert done.stderr.decode().splitlines()[-1].startswith("Error: ")
