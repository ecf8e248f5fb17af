"""BeforeToolSelection hooks: which tools the model may call, in the request and on the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agent.e2e.e2e_scenes import both_ways
from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import answer, call

if TYPE_CHECKING:
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
def test_allowed_names_are_sent_as_the_api_takes_them(played: Played) -> None:
    first, second = played(allowed_names, HTTP).requests
    assert first.calling == {"mode": "VALIDATED", "allowedFunctionNames": ["read_file"]}
    assert second.calling is None


@pytest.mark.requirement("HOOK-055", "HOOK-181")
def test_the_tools_are_never_filtered(played: Played) -> None:
    first, second = played(allowed_names, HTTP).requests
    assert first.tools == ALL_TOOLS
    assert first.body["tools"] == second.body["tools"]


@both_ways
@pytest.mark.requirement("HOOK-055", "HOOK-156", "HOOK-181")
def test_a_call_outside_the_allowed_names_is_restricted_and_fires_no_tool_event(played: Played, over: str) -> None:
    run = played(allowed_names, over)
    assert run.statuses == ["restricted", "success"]
    assert not (run.project.root / "made.txt").exists()
    assert [payload["tool_name"] for payload in run.payloads("before")] == ["read_file"]
    assert [payload["tool_name"] for payload in run.payloads("after")] == ["read_file"]
    assert run.payloads("notification") == []
    assert (run.status, run.json["response"]) == (0, "Done.")


def test_the_model_gets_an_error_for_a_restricted_call(played: Played) -> None:
    run = played(allowed_names, HTTP)
    restricted, allowed = run.requests[1].results
    assert restricted == {"name": "write_file", "response": {"error": run.calls[0]["result"]}}
    assert "write_file" in run.calls[0]["result"]
    assert "read_file" in run.calls[0]["result"]
    assert allowed == {"name": "read_file", "response": {"output": "a"}}


@both_ways
@pytest.mark.requirement("HOOK-053", "HOOK-205")
def test_a_selection_hook_sees_the_real_request_before_it_is_sent(played: Played, over: str) -> None:
    run = played(allowed_names, over)
    first, second = (payload["llm_request"] for payload in run.payloads("select"))
    assert first["model"] == "gemini-2.5-flash"
    assert first["messages"] == [{"role": "user", "content": "Do it."}]
    assert second["messages"] == first["messages"]
    assert run.project.order()[:2] == ["select", "model"]


@both_ways
@pytest.mark.requirement("HOOK-033", "HOOK-140")
def test_the_before_model_hook_sees_what_the_selection_hook_set(played: Played, over: str) -> None:
    first, second = (payload["llm_request"] for payload in played(allowed_names, over).payloads("model"))
    assert set(first["toolConfig"]["allowedFunctionNames"]) >= {"read_file"}
    assert "toolConfig" not in second


@both_ways
@pytest.mark.requirement("HOOK-181")
def test_a_selection_hook_cannot_block(played: Played, over: str) -> None:
    run = played(allowed_names, over)
    assert run.json["hooks"]["BeforeToolSelection"] | {"total_ms": 0} == {
        "fired": 2,
        "hooks_run": 2,
        "blocked": 0,
        "failed": 0,
        "total_ms": 0,
    }
    assert run.status == 0


def modes(project: AgentProject) -> AgentRun:
    said = [
        selection(mode="ANY", allowedFunctionNames=["glob", "read_file"]),
        selection(mode="ANY"),
        selection(mode="AUTO"),
        selection(mode="AUTO", allowedFunctionNames=[]),
        selection(allowedFunctionNames=["no_such_tool"]),
    ]
    project.configure(BeforeToolSelection=project.hook("select", said))
    return project.play("-o", "json", answers=[*[answer(call("glob", pattern="*"))] * 5, answer("Done.")])


@pytest.mark.requirement("HOOK-056", "HOOK-140", "HOOK-181")
def test_the_mode_that_a_hook_sets_is_sent(played: Played) -> None:
    run = played(modes, HTTP)
    assert [request.calling for request in run.requests] == [
        {"mode": "ANY", "allowedFunctionNames": ["glob", "read_file"]},
        {"mode": "ANY"},
        {"mode": "AUTO"},
        {"mode": "NONE"},
        {"mode": "NONE"},
        None,
    ]
    assert run.statuses == ["success", "success", "success", "restricted", "restricted"]


def no_tools(project: AgentProject) -> AgentRun:
    project.configure(
        BeforeToolSelection=project.hook("select", [selection(mode="NONE")]), BeforeTool=project.hook("before")
    )
    return project.play("-o", "json", answers=[answer(call("glob", pattern="*")), answer("Done.")])


@both_ways
@pytest.mark.requirement("HOOK-056", "HOOK-057", "HOOK-156", "HOOK-181")
def test_under_none_no_call_is_carried_out(played: Played, over: str) -> None:
    run = played(no_tools, over)
    assert run.statuses == ["restricted"]
    assert run.payloads("before") == []
    assert run.status == 0


@pytest.mark.requirement("HOOK-056", "HOOK-057", "HOOK-140")
def test_under_none_the_api_is_told_so_with_all_tools_declared(played: Played) -> None:
    first, second = played(no_tools, HTTP).requests
    assert first.calling == {"mode": "NONE"}
    assert first.tools == ALL_TOOLS
    assert list(second.results[0]["response"]) == ["error"]


def stopped_at_selection(project: AgentProject) -> AgentRun:
    project.configure(
        BeforeToolSelection=project.hook("stop", {"continue": False, "stopReason": "no tools today"}),
        BeforeModel=project.hook("model"),
    )
    return project.play("-o", "json", answers=[answer("Not reached.")])


@both_ways
@pytest.mark.requirement("HOOK-058", "HOOK-156", "HOOK-181")
def test_a_stop_at_tool_selection_ends_the_run(played: Played, over: str) -> None:
    run = played(stopped_at_selection, over)
    assert run.status == 3
    assert run.json["stop_reason"] == "no tools today"
    assert "no tools today" in run.stderr
    assert run.payloads("model") == []
    assert run.requests == []
    assert run.unused == (1 if over == HTTP else 0)
