"""Approval: what runs without asking, and what becomes of the rest where nobody is there to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from tests.agent.e2e.conftest import Played
    from tests.agent.e2e.e2e_scenes import Scene
    from tests.support.agent import AgentProject, AgentRun

ASKED = [
    call("read_file", file_path="a.txt"),
    call("write_file", file_path="made.txt", content="x"),
    call("replace", file_path="a.txt", old_string="alpha", new_string="beta"),
    call("run_shell_command", command="touch ran.txt"),
]


def asking(*arguments: str) -> Scene:
    def play(project: AgentProject) -> AgentRun:
        (project.root / "a.txt").write_text("alpha")
        project.configure(
            BeforeTool=project.hook("before"),
            AfterTool=project.hook("after"),
            Notification=project.hook("notification"),
        )
        return project.play("-o", "json", *arguments, answers=[answer(ASKED), answer("Done.")])

    return play


MODES = {
    "default": ([], ["success", "error", "error", "error"]),
    "explicitly default": (["--approval-mode", "default"], ["success", "error", "error", "error"]),
    "auto_edit": (["--approval-mode", "auto_edit"], ["success", "success", "success", "error"]),
    "yolo": (["--approval-mode", "yolo"], ["success"] * 4),
    "-y": (["-y"], ["success"] * 4),
    "-y and yolo": (["-y", "--approval-mode", "yolo"], ["success"] * 4),
}
SCENES = {mode: asking(*arguments) for mode, (arguments, _) in MODES.items()}

each_mode = pytest.mark.parametrize("mode", MODES)


@each_mode
def test_a_mode_allows_what_it_says(played: Played, mode: str) -> None:
    run = played(SCENES[mode])
    statuses = MODES[mode][1]
    assert run.statuses == statuses
    assert (run.project.root / "made.txt").exists() == (statuses[1] == "success")
    assert (run.project.root / "a.txt").read_text() == ("beta" if statuses[2] == "success" else "alpha")
    assert (run.project.root / "ran.txt").exists() == (statuses[3] == "success")
    assert run.status == 0


@each_mode
def test_a_refused_call_says_how_to_allow_it(played: Played, mode: str) -> None:
    for each in played(SCENES[mode]).calls:
        if each["status"] == "error":
            needed = "yolo" if each["name"] == "run_shell_command" else "auto_edit"
            assert f"--approval-mode {needed}" in each["result"]


@each_mode
def test_hooks_decide_before_approval_is_asked_for_and_see_the_results_only_if_a_tool_ran(
    played: Played, mode: str
) -> None:
    run = played(SCENES[mode])
    ran = sorted(each["name"] for each in run.calls if each["status"] == "success")
    assert sorted(payload["tool_name"] for payload in run.payloads("before")) == sorted(
        each["name"] for each in run.calls
    )
    assert sorted(payload["tool_name"] for payload in run.payloads("after")) == ran


@each_mode
@pytest.mark.requirement("HOOK-203")
def test_asking_for_approval_fires_a_notification(played: Played, mode: str) -> None:
    run = played(SCENES[mode])
    refused = [each for each in run.calls if each["status"] == "error"]
    payloads = {payload["details"]["tool_name"]: payload for payload in run.payloads("notification")}
    assert len(run.payloads("notification")) == len(refused)
    for each in refused:
        payload = payloads[each["name"]]
        assert payload["hook_event_name"] == "Notification"
        assert payload["notification_type"] == "ToolPermission"
        assert payload["details"]["tool_input"] == each["args"]
        assert each["name"] in payload["message"]
