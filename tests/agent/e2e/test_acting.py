"""The agent under the profile ``full``: prompts, turns, results, and questions that nobody can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.agent import HTTP, AgentProject
from tests.support.gemini import answer, call
from tests.support.project import hooks_of

if TYPE_CHECKING:
    from pathlib import Path

NO = {"decision": "deny", "reason": "not like this"}


@pytest.fixture
def project(tmp_path: Path) -> AgentProject:
    return AgentProject(tmp_path, HTTP)


def configure(project: AgentProject, profile: str = "full", **events: Any) -> None:
    settings = {"enableHooks": True, "hooksConfig": {"profile": profile}, "hooks": hooks_of(events)}
    project.put("project", settings)


def test_a_refused_prompt_never_reaches_the_model(project: AgentProject) -> None:
    configure(project, BeforeAgent=project.hook("guard", NO))
    run = project.play("-o", "json", answers=[answer("Hello.")])
    assert (run.status, run.requests, run.unused) == (2, [], 1)
    assert (run.json["refused"], run.json["response"]) == ("not like this", "")
    assert "the prompt was refused by " in run.stderr
    assert ": not like this" in run.stderr


def test_under_the_standard_profile_the_prompt_is_sent(project: AgentProject) -> None:
    configure(project, "standard", BeforeAgent=project.hook("guard", NO), AfterAgent=project.hook("end", NO))
    run = project.play("-o", "json", answers=[answer("Hello.")])
    assert (run.status, run.json["response"], len(run.requests)) == (0, "Hello.", 1)


def test_context_of_the_start_and_of_the_prompt_reaches_the_model(project: AgentProject) -> None:
    configure(
        project,
        SessionStart=project.hook("start", {"hookSpecificOutput": {"additionalContext": "Use British English."}}),
        BeforeAgent=project.hook("prompt", {"hookSpecificOutput": {"additionalContext": "It is Monday."}}),
    )
    run = project.play(answers=[answer("Right-o.")])
    assert run.requests[0].texts == [("user", "Do it.\n\nUse British English.\n\nIt is Monday.")]


def test_an_agent_works_on_until_the_hook_is_content(project: AgentProject) -> None:
    configure(project, AfterAgent=project.hook("tests", [{"decision": "block", "reason": "Run the tests."}, None]))
    run = project.play("-o", "json", answers=[answer("Done."), answer("Tested.")])
    assert (run.status, run.json["response"], run.json["continuations"]) == (0, "Tested.", 1)
    assert [text for role, text in run.requests[1].texts if role == "user"] == ["Do it.", "Run the tests."]
    assert [payload["stop_hook_active"] for payload in run.payloads("tests")] == [False, True]
    assert "lets the agent continue: Run the tests." in run.stderr


def test_a_stop_before_the_prompt_ends_the_run(project: AgentProject) -> None:
    configure(project, BeforeAgent=project.hook("halt", {"continue": False, "stopReason": "closed today"}))
    run = project.play("-o", "json", answers=[answer("Hello.")])
    assert (run.status, run.json["stop_reason"], run.requests) == (3, "closed today", [])


def test_a_cleared_conversation_starts_again(project: AgentProject) -> None:
    again = {"decision": "block", "reason": "Summarize.", "hookSpecificOutput": {"clearContext": True}}
    configure(project, AfterAgent=project.hook("end", [again, None]))
    run = project.play(answers=[answer("Done."), answer("Fresh.")])
    assert run.requests[1].texts == [("user", "Summarize.")]


def test_a_result_can_be_replaced_or_refused(project: AgentProject) -> None:
    project.write("key.txt", "sk-123")
    redacted = {"hookSpecificOutput": {"tool_response": "[a key]"}}
    configure(
        project,
        AfterTool=[
            {"matcher": "read_file", "hooks": [{"type": "command", "command": project.hook("redact", redacted)}]},
            {"matcher": "glob", "hooks": [{"type": "command", "command": project.hook("refuse", NO)}]},
        ],
    )
    asked = answer(call("read_file", file_path="key.txt"), call("glob", pattern="*"))
    run = project.play("-o", "json", answers=[asked, answer("I see.")])
    assert [(each["status"], each["result"], each.get("replaced")) for each in run.calls] == [
        ("success", "[a key]", True),
        ("blocked", "not like this", True),
    ]
    assert "sk-123" not in str(run.requests[1].body)
    [payload] = run.payloads("redact")
    assert payload["tool_response"]["llmContent"].endswith("sk-123")
    assert payload["duration_ms"] >= 0


def test_where_nobody_can_be_asked_the_call_is_denied(project: AgentProject) -> None:
    configure(project, BeforeTool=project.hook("ask", {"decision": "ask", "reason": "deploys need a yes"}))
    run = project.play("-o", "json", "-y", answers=[answer(call("glob", pattern="*")), answer("Well.")])
    [only] = run.calls
    assert only["status"] == "blocked"
    assert only["result"] == "deploys need a yes (nobody could be asked: the program has no approver)"
    assert only["asked"] == "nobody could be asked"


def test_an_allow_answers_the_agent_s_own_question_but_not_for_protected_files(project: AgentProject) -> None:
    configure(project, BeforeTool=project.hook("yes", {"hookSpecificOutput": {"permissionDecision": "allow"}}))
    asked = answer(
        call("write_file", file_path="a.txt", content="x"),
        call("write_file", file_path=".llxprt/settings.json", content="{}"),
    )
    run = project.play("-o", "json", answers=[asked, answer("Done.")])
    assert run.statuses == ["success", "error"]
    assert "is protected" in run.calls[1]["result"]


def test_after_a_call_that_did_not_run_no_hook_is_fired(project: AgentProject) -> None:
    configure(project, AfterTool=project.hook("after"))
    run = project.play(
        "-o", "json", answers=[answer(call("write_file", file_path="a.txt", content="x")), answer("Hm.")]
    )
    assert (run.statuses, run.payloads("after")) == (["error"], [])
