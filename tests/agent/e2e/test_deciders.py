"""``run`` names the hook that blocked a call or stopped the agent, in every output format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from tests.support.agent import AgentProject, AgentRun

FORMATS = ["text", "json", "stream-json"]


def guard(command: str, *, name: str = "guard", matcher: str = "") -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "name": name, "command": command}]}


def streamed(run: AgentRun, kind: str) -> list[dict[str, Any]]:
    return [line for line in run.json_lines if line["type"] == kind]


@pytest.mark.parametrize("output", FORMATS)
def test_a_blocked_tool_call_names_its_hook(project: AgentProject, output: str) -> None:
    both = [guard("echo no >&2; exit 2", matcher="glob"), guard("exit 2", name="other", matcher="list_directory")]
    project.configure(BeforeTool=[*both, guard("true", name="lint")])
    asked = answer(call("glob", pattern="*"), call("list_directory", dir_path="."), call("read_file", file_path="x"))

    run = project.play("-o", output, answers=[asked, answer("Done.")])

    if output == "stream-json":
        ends = {each["name"]: each["blocked_by"] for each in streamed(run, "tool_call") if each["state"] == "idle"}
        assert ends == {"glob": "guard", "list_directory": "other", "read_file": None}
    else:
        assert "  glob blocked by guard: no\n" in run.stderr
        assert "  list_directory blocked by other: Blocked by hook\n" in run.stderr
    if output == "json":
        assert all(list(each) == ["name", "args", "status", "result"] for each in run.json["tool_calls"])


@pytest.mark.parametrize("output", FORMATS)
def test_a_blocked_model_call_names_its_hook(project: AgentProject, output: str) -> None:
    project.configure(BeforeModel=guard("echo 'over budget' >&2; exit 2", name="budget"))

    run = project.play("-o", output, answers=[answer("Done.")])

    assert run.status == 2
    assert "llxprt-hooks: the model call was blocked by budget: over budget\n" in run.stderr
    if output == "stream-json":
        assert streamed(run, "blocked") == [{"type": "blocked", "reason": "over budget", "hook": "budget"}]


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection"])
def test_a_stop_names_its_hook(project: AgentProject, event: str, output: str) -> None:
    stop = guard("""echo '{"continue": false, "stopReason": "enough"}'""", name="halt")
    hooks: dict[str, Any] = {event: [stop, guard("true", name="lint")]}
    project.configure(**hooks)

    run = project.play("-o", output, answers=[answer(call("glob", pattern="*")), answer("Done.")])

    assert run.status == 3
    is_shown = event == "AfterModel" and output == "text"  # the reason is the answer, and not shown twice
    assert f"llxprt-hooks: stopped by halt{'' if is_shown else ': enough'}\n" in run.stderr
    if output == "stream-json":
        assert streamed(run, "stopped") == [{"type": "stopped", "reason": "enough", "hook": "halt"}]


def test_a_long_command_without_a_name_is_cut(project: AgentProject) -> None:
    project.configure(BeforeTool="exit 2 # " + "x" * 200)

    run = project.play(answers=[answer(call("glob", pattern="*")), answer("Done.")])

    assert "  glob blocked by exit 2 # xxx" in run.stderr
    assert "x…: Blocked by hook\n" in run.stderr
