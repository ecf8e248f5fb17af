"""Hooks around the agent's tools: each effect, from the model's call to what the model gets back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agent.e2e.e2e_scenes import both_ways
from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from tests.agent.e2e.conftest import Played

# A turn with all five hooks, none of which has anything to say.


def a_turn_with_all_hooks(project: AgentProject) -> AgentRun:
    look = f'[ -e made.txt ] && echo there >> "{project.note("looked")}" || echo absent >> "{project.note("looked")}"'
    project.configure(
        BeforeTool=project.hook("before_tool", first=look),
        AfterTool=project.hook("after_tool", first=look),
        BeforeModel=project.hook("before_model"),
        AfterModel=project.hook("after_model"),
        BeforeToolSelection=project.hook("selection"),
    )
    return project.play(
        "-o", "json", "-y", answers=[answer(call("write_file", file_path="made.txt", content="x")), answer("Made.")]
    )


@pytest.mark.requirement("HOOK-014", "HOOK-025")
def test_a_tool_runs_after_its_before_hook_and_before_its_after_hook(played: Played) -> None:
    assert played(a_turn_with_all_hooks).project.notes("looked") == ["absent", "there"]


@pytest.mark.requirement("HOOK-014", "HOOK-025", "HOOK-033", "HOOK-043", "HOOK-053")
def test_the_hooks_of_a_turn_run_in_the_order_of_their_moments(played: Played) -> None:
    before_answer = ["selection", "before_model", "after_model"]
    assert played(a_turn_with_all_hooks).project.order() == [
        *before_answer,
        "before_tool",
        "after_tool",
        *before_answer,
    ]


@pytest.mark.requirement("HOOK-014", "HOOK-025", "HOOK-134")
def test_tool_hooks_see_the_call_and_its_result(played: Played) -> None:
    run = played(a_turn_with_all_hooks)
    [before], [after] = run.payloads("before_tool"), run.payloads("after_tool")
    tool_input = {"file_path": "made.txt", "content": "x"}
    assert (before["hook_event_name"], before["tool_name"], before["tool_input"]) == (
        "BeforeTool",
        "write_file",
        tool_input,
    )
    assert (after["hook_event_name"], after["tool_name"], after["tool_input"]) == (
        "AfterTool",
        "write_file",
        tool_input,
    )
    assert after["tool_response"]["llmContent"] == run.calls[0]["result"]
    assert before["session_id"] == after["session_id"] == run.json["session_id"]
    assert before["cwd"] == after["cwd"] == str(run.project.root)


# BeforeTool.

GUARD = """
path = payload["tool_input"]["file_path"]
if path == "forbidden.txt":
    said = {"decision": "deny", "reason": "forbidden.txt is off limits", "systemMessage": "Ask first."}
elif path == "original.txt":
    said = {"hookSpecificOutput": {"tool_input": {"file_path": "moved.txt"}}}
elif path == "allowed.txt":
    said = {"decision": "allow", "reason": "fine"}
"""


def guarded_calls(project: AgentProject) -> AgentRun:
    (project.root / "notes.txt").write_text("the notes\n")
    project.configure(
        BeforeTool=[
            {"matcher": "write_file", "hooks": [{"type": "command", "command": project.python_hook("guard", GUARD)}]},
            {
                "matcher": "run_shell_command",
                "hooks": [{"type": "command", "command": project.hook("shell", stderr="no shell\n", exit_code=2)}],
            },
        ],
        AfterTool=project.hook("after"),
    )
    asked = [
        call("write_file", file_path="forbidden.txt", content="1"),
        call("write_file", file_path="original.txt", content="2"),
        call("run_shell_command", command="touch ran.txt"),
        call("write_file", file_path="allowed.txt", content="3"),
        call("read_file", file_path="notes.txt"),
    ]
    return project.play("-o", "json", "-y", answers=[answer("On it.", asked), answer("Done.")])


@both_ways
@pytest.mark.requirement("HOOK-017", "HOOK-156", "HOOK-177", "HOOK-183")
def test_a_blocked_tool_does_not_run_and_its_result_is_the_reason(played: Played, over: str) -> None:
    run = played(guarded_calls, over)
    by_json, by_exit_code = run.calls[0], run.calls[2]
    assert by_json["status"] == by_exit_code["status"] == "blocked"
    assert by_json["result"].startswith("forbidden.txt is off limits")
    assert by_exit_code["result"] == "no shell"
    assert not (run.project.root / "forbidden.txt").exists()
    assert not (run.project.root / "ran.txt").exists()
    assert {payload["tool_input"].get("file_path") for payload in run.payloads("after")} == {
        "moved.txt",
        "allowed.txt",
        "notes.txt",
    }


@both_ways
@pytest.mark.requirement("HOOK-177", "HOOK-156")
def test_a_tool_runs_with_the_arguments_that_a_hook_rewrote(played: Played, over: str) -> None:
    run = played(guarded_calls, over)
    assert run.calls[1]["args"] == {"file_path": "moved.txt", "content": "2"}
    assert run.calls[1]["status"] == "success"
    assert (run.project.root / "moved.txt").read_text() == "2"
    assert not (run.project.root / "original.txt").exists()


@both_ways
def test_calls_that_no_hook_objects_to_run(played: Played, over: str) -> None:
    run = played(guarded_calls, over)
    assert run.statuses == ["blocked", "success", "blocked", "success", "success"]
    assert (run.project.root / "allowed.txt").read_text() == "3"
    assert run.calls[4]["result"] == "the notes\n"
    assert run.status == 0
    assert run.json["response"] == "Done."


@pytest.mark.requirement("HOOK-017", "HOOK-129", "HOOK-183")
def test_the_model_is_sent_the_reason_of_a_block_as_the_result_of_its_call(played: Played) -> None:
    run = played(guarded_calls, HTTP)
    results = run.requests[1].results
    assert [result["name"] for result in results] == [each["name"] for each in run.calls]
    assert [result["response"] for result in results] == [
        {"error": "forbidden.txt is off limits\n\n[System] Ask first."},
        {"output": run.calls[1]["result"]},
        {"error": "no shell"},
        {"output": run.calls[3]["result"]},
        {"output": "the notes\n"},
    ]


@both_ways
@pytest.mark.requirement("HOOK-130")
def test_a_blocked_call_is_not_tried_again(played: Played, over: str) -> None:
    run = played(guarded_calls, over)
    asked = [payload["tool_input"]["file_path"] for payload in run.payloads("guard")]
    assert sorted(asked) == ["allowed.txt", "forbidden.txt", "original.txt"]
    assert len(run.payloads("shell")) == 1
    assert len(run.calls) == 5
    assert run.unused == 0
    assert len(run.requests) == (2 if over == HTTP else 0)


def stopped_before_a_tool(project: AgentProject) -> AgentRun:
    stop = {"continue": False, "stopReason": "the budget is spent"}
    project.configure(BeforeTool=project.hook("stop", stop), AfterTool=project.hook("after"))
    asked = call("write_file", file_path="made.txt", content="x")
    return project.play("-o", "json", "-y", answers=[answer("On it.", asked), answer("Not reached.")])


@both_ways
@pytest.mark.requirement("HOOK-020", "HOOK-156", "HOOK-177")
def test_a_stop_before_a_tool_ends_the_run_and_shows_the_user_why(played: Played, over: str) -> None:
    run = played(stopped_before_a_tool, over)
    assert run.status == 3
    assert run.json["stop_reason"] == "the budget is spent"
    assert "the budget is spent" in run.stderr
    assert run.json["response"] == "On it."
    assert not (run.project.root / "made.txt").exists()
    assert run.payloads("after") == []
    assert len(run.requests) == run.unused == (1 if over == HTTP else 0)


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


def annotated(project: AgentProject, *arguments: str) -> AgentRun:
    (project.root / "noted.txt").write_text("noted\n")
    (project.root / "plain.txt").write_text("plain\n")
    project.configure(AfterTool=project.python_hook("annotate", ANNOTATE))
    asked = [call("read_file", file_path="noted.txt"), call("read_file", file_path="plain.txt")]
    return project.play(*arguments, answers=[answer(asked), answer("Read.")])


def annotated_results(project: AgentProject) -> AgentRun:
    return annotated(project, "-o", "json")


def annotated_results_as_text(project: AgentProject) -> AgentRun:
    return annotated(project)


ANNOTATED = "noted\n\n\nIt is generated.\n\n[System] Mind the licence."


@both_ways
@pytest.mark.requirement("HOOK-027", "HOOK-030", "HOOK-131", "HOOK-156", "HOOK-178", "HOOK-217")
def test_context_and_system_message_are_appended_to_the_result(played: Played, over: str) -> None:
    run = played(annotated_results, over)
    assert [each["result"] for each in run.calls] == [ANNOTATED, "plain\n"]


@pytest.mark.requirement("HOOK-027", "HOOK-029", "HOOK-030", "HOOK-131", "HOOK-149", "HOOK-159", "HOOK-178")
def test_the_model_is_sent_context_and_system_message_and_the_result_that_the_user_is_not_shown(played: Played) -> None:
    results = played(annotated_results, HTTP).requests[1].results
    assert [result["response"] for result in results] == [{"output": ANNOTATED}, {"output": "plain\n"}]


@both_ways
@pytest.mark.requirement("HOOK-178")
def test_an_after_tool_hook_can_neither_block_nor_change_the_output(played: Played, over: str) -> None:
    run = played(annotated_results, over)
    assert run.statuses == ["success", "success"]
    assert run.json["hooks"]["AfterTool"]["blocked"] == 0
    assert "other" not in run.calls[0]["result"]
    assert run.status == 0


@pytest.mark.requirement("HOOK-029", "HOOK-132", "HOOK-149", "HOOK-156", "HOOK-178", "HOOK-217")
def test_a_suppressed_result_is_not_shown_and_any_other_is(played: Played) -> None:
    run = played(annotated_results_as_text)
    display = {
        payload["tool_input"]["file_path"]: payload["tool_response"]["returnDisplay"]
        for payload in run.payloads("annotate")
    }
    assert display["plain.txt"] in run.stderr
    assert display["noted.txt"] not in run.stderr
    assert run.stdout == "Read.\n"


@pytest.mark.requirement("HOOK-159")
def test_a_system_message_is_not_shown_to_the_user(played: Played) -> None:
    run = played(annotated_results_as_text)
    assert "Mind the licence." not in run.stdout + run.stderr


def stopped_after_a_tool(project: AgentProject) -> AgentRun:
    stop = {"continue": False, "stopReason": "one is enough"}
    project.configure(AfterTool=project.hook("stop", stop))
    asked = call("write_file", file_path="made.txt", content="x")
    return project.play("-o", "json", "-y", answers=[answer("On it.", asked), answer("Not reached.")])


@both_ways
@pytest.mark.requirement("HOOK-028", "HOOK-156", "HOOK-178", "HOOK-217")
def test_a_stop_after_a_tool_ends_the_run_and_shows_the_user_why(played: Played, over: str) -> None:
    run = played(stopped_after_a_tool, over)
    assert run.status == 3
    assert run.json["stop_reason"] == "one is enough"
    assert "one is enough" in run.stderr
    assert run.statuses == ["success"]
    assert (run.project.root / "made.txt").read_text() == "x"
    assert len(run.requests) == run.unused == (1 if over == HTTP else 0)


# Several calls.


def calls_that_wait_for_each_other(project: AgentProject) -> AgentRun:
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
    return project.play("-o", "json", "-y", answers=[answer(asked), answer("Done.")])


def test_the_calls_of_one_answer_and_their_hooks_run_at_the_same_time(played: Played) -> None:
    run = played(calls_that_wait_for_each_other)
    assert [line.strip() for line in run.project.notes("met")] == ["3", "3", "3"]
    assert run.statuses == ["success"] * 3
    assert all((run.project.root / name).exists() for name in ("first", "second", "third"))


def test_results_come_in_the_order_of_the_calls(played: Played) -> None:
    results = [each["result"] for each in played(calls_that_wait_for_each_other).calls]
    words = ("alpha", "beta", "gamma")
    assert [[word for word in words if word in result] for result in results] == [[word] for word in words]
