"""Hooks around the agent's tools: each effect, from the model's call to what the model gets back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.e2e.conftest import Played


@pytest.fixture
def project(tmp_path: Path) -> AgentProject:
    return AgentProject(tmp_path, HTTP)


@pytest.mark.requirement("HOOK-014", "HOOK-025", "HOOK-033", "HOOK-043", "HOOK-053", "HOOK-134")
def test_the_hooks_of_a_turn_run_in_the_order_of_their_moments(project: AgentProject) -> None:
    look = f'[ -e made.txt ] && echo there >> "{project.note("looked")}" || echo absent >> "{project.note("looked")}"'
    project.configure(
        BeforeTool=project.hook("before_tool", first=look),
        AfterTool=project.hook("after_tool", first=look),
        BeforeModel=project.hook("before_model"),
        AfterModel=project.hook("after_model"),
        BeforeToolSelection=project.hook("selection"),
    )
    tool_input = {"file_path": "made.txt", "content": "x"}
    run = project.play("-o", "json", "-y", answers=[answer(call("write_file", **tool_input)), answer("Made.")])
    model_call = ["selection", "before_model", "after_model"]
    assert project.order() == [*model_call, "before_tool", "after_tool", *model_call]
    assert project.notes("looked") == ["absent", "there"]
    [before], [after] = run.payloads("before_tool"), run.payloads("after_tool")
    for payload in (before, after):
        assert (payload["tool_name"], payload["tool_input"]) == ("write_file", tool_input)
        assert (payload["session_id"], payload["cwd"]) == (run.json["session_id"], str(project.root))
    assert after["tool_response"]["llmContent"] == run.calls[0]["result"]


# BeforeTool.

GUARD = """
path = payload["tool_input"]["file_path"]
if path == "forbidden.txt":
    said = {"decision": "deny", "reason": "forbidden.txt is off limits", "systemMessage": "Ask first."}
elif path == "original.txt":
    said = {"hookSpecificOutput": {"tool_input": {"file_path": "moved.txt"}}}
"""


def guarded_calls(project: AgentProject) -> AgentRun:
    (project.root / "notes.txt").write_text("the notes\n")
    shell = {"type": "command", "command": project.hook("shell", stderr="no shell\n", exit_code=2)}
    project.configure(
        BeforeTool=[
            {"matcher": "write_file", "hooks": [{"type": "command", "command": project.python_hook("guard", GUARD)}]},
            {"matcher": "run_shell_command", "hooks": [shell]},
        ],
        AfterTool=project.hook("after"),
    )
    asked = [
        call("write_file", file_path="forbidden.txt", content="1"),
        call("write_file", file_path="original.txt", content="2"),
        call("run_shell_command", command="touch ran.txt"),
        call("read_file", file_path="notes.txt"),
    ]
    return project.play("-o", "json", "-y", answers=[answer("On it.", asked), answer("Done.")])


@pytest.mark.requirement("HOOK-017", "HOOK-130", "HOOK-156", "HOOK-177", "HOOK-183")
def test_a_blocked_tool_does_not_run_and_one_with_rewritten_arguments_does(played: Played) -> None:
    run = played(guarded_calls, HTTP)
    assert run.statuses == ["blocked", "success", "blocked", "success"]
    assert run.calls[1]["args"] == {"file_path": "moved.txt", "content": "2"}
    assert sorted(file.name for file in run.project.root.glob("*.txt")) == ["moved.txt", "notes.txt"]
    assert (len(run.payloads("guard")), len(run.payloads("shell")), len(run.payloads("after"))) == (2, 1, 2)
    assert (run.status, run.json["response"]) == (0, "Done.")


@pytest.mark.requirement("HOOK-017", "HOOK-129", "HOOK-183")
def test_the_model_gets_the_reason_of_a_block_as_the_result_of_its_call(played: Played) -> None:
    run = played(guarded_calls, HTTP)
    results = run.requests[1].results
    assert [result["name"] for result in results] == [each["name"] for each in run.calls]
    assert [result["response"] for result in results] == [
        {"error": "forbidden.txt is off limits\n\n[System] Ask first."},
        {"output": run.calls[1]["result"]},
        {"error": "no shell"},
        {"output": "the notes\n"},
    ]


@pytest.mark.requirement("HOOK-020", "HOOK-028", "HOOK-156", "HOOK-177", "HOOK-178", "HOOK-217")
@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool"])
def test_a_stop_at_a_tool_ends_the_run_and_shows_the_user_why(project: AgentProject, event: str) -> None:
    stop = project.hook("stop", {"continue": False, "stopReason": "the budget is spent"})
    project.configure(**{"AfterTool": project.hook("after"), event: stop})
    asked = call("write_file", file_path="made.txt", content="x")
    run = project.play("-o", "json", "-y", answers=[answer("On it.", asked), answer("Not reached.")])
    assert (run.status, run.json["stop_reason"], run.json["response"]) == (3, "the budget is spent", "On it.")
    assert "the budget is spent" in run.stderr
    assert (project.root / "made.txt").exists() == (event == "AfterTool")
    assert (run.payloads("after"), len(run.requests)) == ([], 1)


# AfterTool.

ANNOTATE = """
if payload["tool_input"]["file_path"] == "noted.txt":
    said = {
        "decision": "block",
        "reason": "too late for that",
        "systemMessage": "Mind the licence.",
        "suppressOutput": True,
        "hookSpecificOutput": {"additionalContext": "It is generated.", "tool_response": {"llmContent": "other"}},
    }
"""
ANNOTATED = "noted\n\n\nIt is generated.\n\n[System] Mind the licence."


def annotated(project: AgentProject, *arguments: str) -> AgentRun:
    (project.root / "noted.txt").write_text("noted\n")
    (project.root / "plain.txt").write_text("plain\n")
    project.configure(AfterTool=project.python_hook("annotate", ANNOTATE))
    asked = [call("read_file", file_path="noted.txt"), call("read_file", file_path="plain.txt")]
    return project.play(*arguments, answers=[answer(asked), answer("Read.")])


@pytest.mark.requirement("HOOK-027", "HOOK-029", "HOOK-030", "HOOK-131", "HOOK-149", "HOOK-156", "HOOK-159", "HOOK-178")
def test_the_model_gets_context_messages_and_suppressed_results(project: AgentProject) -> None:
    run = annotated(project, "-o", "json")
    results = run.requests[1].results
    assert [result["response"] for result in results] == [{"output": ANNOTATED}, {"output": "plain\n"}]
    assert [each["result"] for each in run.calls] == [ANNOTATED, "plain\n"]
    assert (run.status, run.statuses, run.json["hooks"]["AfterTool"]["blocked"]) == (0, ["success", "success"], 0)


@pytest.mark.requirement("HOOK-029", "HOOK-132", "HOOK-149", "HOOK-156", "HOOK-159", "HOOK-178", "HOOK-217")
def test_a_suppressed_result_and_a_system_message_are_not_shown(project: AgentProject) -> None:
    run = annotated(project)
    display = {
        payload["tool_input"]["file_path"]: payload["tool_response"]["returnDisplay"]
        for payload in run.payloads("annotate")
    }
    assert display["plain.txt"] in run.stderr
    assert display["noted.txt"] not in run.stderr
    assert "Mind the licence." not in run.stderr
    assert run.stdout == "Read.\n"


# Several calls.


def test_the_calls_of_one_answer_run_in_parallel_and_keep_their_order(project: AgentProject) -> None:
    """Each command waits, for a bounded time, for what another one does; the second ends last, the third first."""
    waits = "for i in $(seq 600); do [ -e {0} ] && break; sleep 0.05; done; [ -e {0} ] && touch {1} && echo {2}"
    commands = [
        waits.format("third", "first", "alpha"),
        waits.format("first", "second", "beta"),
        "touch third; echo gamma",
    ]
    asked = [call("run_shell_command", command=command) for command in commands]
    meet = 'touch "met.$$"; for i in $(seq 600); do [ $(ls met.* | wc -l) = 3 ] && break; sleep 0.05; done'
    count = f'{meet}; ls met.* | wc -l >> "{project.note("met")}"'
    project.configure(BeforeTool=project.hook("meet", first=count))
    run = project.play("-o", "json", "-y", answers=[answer(asked), answer("Done.")])
    assert [line.strip() for line in project.notes("met")] == ["3", "3", "3"]
    assert run.statuses == ["success"] * 3
    words = ("alpha", "beta", "gamma")
    assert [[word for word in words if word in each["result"]] for each in run.calls] == [[word] for word in words]
