"""BeforeToolSelection hooks: which tools the model may call, in the request and on the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.e2e.conftest import Played

ALL_TOOLS = {
    "glob",
    "list_directory",
    "read_file",
    "replace",
    "run_shell_command",
    "search_file_content",
    "write_file",
}


def selection(**tool_config: object) -> dict[str, object]:
    return {"hookSpecificOutput": {"toolConfig": tool_config}}


def allowed_names(project: AgentProject) -> AgentRun:
    (project.root / "a.txt").write_text("a")
    said = {**selection(allowedFunctionNames=["read_file", "no_such_tool"]), "decision": "block", "reason": "cannot be"}
    project.configure(
        BeforeToolSelection=project.hook("select", [said]),
        BeforeModel=project.hook("model"),
        BeforeTool=project.hook("before"),
        AfterTool=project.hook("after"),
        Notification=project.hook("notification"),
    )
    asked = [call("write_file", file_path="made.txt", content="x"), call("read_file", file_path="a.txt")]
    return project.play("-o", "json", answers=[answer(asked), answer("Done.")])


@pytest.mark.requirement("HOOK-055", "HOOK-140", "HOOK-156", "HOOK-181")
def test_allowed_names_are_sent_and_the_tools_are_never_filtered(played: Played) -> None:
    first, second = played(allowed_names, HTTP).requests
    assert first.calling == {"mode": "VALIDATED", "allowedFunctionNames": ["read_file"]}
    assert second.calling is None
    assert first.tools == second.tools == ALL_TOOLS


@pytest.mark.requirement("HOOK-055", "HOOK-156", "HOOK-181")
def test_a_call_outside_the_allowed_names_is_an_error_and_fires_no_tool_event(played: Played) -> None:
    run = played(allowed_names, HTTP)
    assert run.statuses == ["restricted", "success"]
    restricted, allowed = run.requests[1].results
    assert restricted == {"name": "write_file", "response": {"error": run.calls[0]["result"]}}
    assert "Allowed tools: no_such_tool, read_file." in run.calls[0]["result"]
    assert allowed == {"name": "read_file", "response": {"output": "a"}}
    assert not (run.project.root / "made.txt").exists()
    assert [payload["tool_name"] for payload in run.payloads("before")] == ["read_file"]
    assert [payload["tool_name"] for payload in run.payloads("after")] == ["read_file"]
    assert run.payloads("notification") == []
    figures = run.json["hooks"]["BeforeToolSelection"]
    assert (run.status, figures["fired"], figures["blocked"]) == (0, 2, 0)


@pytest.mark.requirement("HOOK-033", "HOOK-053", "HOOK-140", "HOOK-205")
def test_a_selection_hook_sees_the_request_and_the_before_model_hook_its_restriction(played: Played) -> None:
    run = played(allowed_names, HTTP)
    first, second = (payload["llm_request"] for payload in run.payloads("select"))
    assert first["model"] == "gemini-2.5-flash"
    assert first["messages"] == second["messages"] == [{"role": "user", "content": "Do it."}]
    assert run.project.order()[:2] == ["select", "model"]
    first, second = (payload["llm_request"] for payload in run.payloads("model"))
    assert set(first["toolConfig"]["allowedFunctionNames"]) >= {"read_file"}
    assert "toolConfig" not in second


@pytest.mark.requirement("HOOK-056", "HOOK-057", "HOOK-140", "HOOK-181")
def test_the_mode_that_a_hook_sets_is_sent(tmp_path: Path) -> None:
    project = AgentProject(tmp_path, HTTP)
    said = [
        selection(mode="ANY", allowedFunctionNames=["glob", "read_file"]),
        selection(mode="ANY"),
        selection(mode="AUTO"),
        selection(mode="AUTO", allowedFunctionNames=[]),
        selection(allowedFunctionNames=["no_such_tool"]),
        selection(mode="NONE"),
    ]
    project.configure(BeforeToolSelection=project.hook("select", said))
    run = project.play("-o", "json", answers=[*[answer(call("glob", pattern="*"))] * 6, answer("Done.")])
    assert [request.calling for request in run.requests] == [
        {"mode": "ANY", "allowedFunctionNames": ["glob", "read_file"]},
        {"mode": "ANY"},
        {"mode": "AUTO"},
        {"mode": "NONE"},
        {"mode": "NONE"},
        {"mode": "NONE"},
        None,
    ]
    assert run.statuses == ["success"] * 3 + ["restricted"] * 3
    assert {frozenset(request.tools) for request in run.requests} == {frozenset(ALL_TOOLS)}
