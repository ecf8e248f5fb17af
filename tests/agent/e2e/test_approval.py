"""Approval: what runs without asking, and what becomes of the rest where nobody is there to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from tests.support.agent import AgentProject

ASKED = [
    call("read_file", file_path="a.txt"),
    call("write_file", file_path="made.txt", content="x"),
    call("replace", file_path="a.txt", old_string="alpha", new_string="beta"),
    call("run_shell_command", command="touch ran.txt"),
]


MODES: dict[str, tuple[list[str], list[str]]] = {
    "default": ([], ["success", "error", "error", "error"]),
    "explicitly default": (["--approval-mode", "default"], ["success", "error", "error", "error"]),
    "auto_edit": (["--approval-mode", "auto_edit"], ["success", "success", "success", "error"]),
    "yolo": (["--approval-mode", "yolo"], ["success"] * 4),
    "-y": (["-y"], ["success"] * 4),
    "-y and yolo": (["-y", "--approval-mode", "yolo"], ["success"] * 4),
}


@pytest.mark.requirement("HOOK-203")
@pytest.mark.parametrize(("arguments", "statuses"), MODES.values(), ids=MODES)
def test_a_mode_allows_what_it_says(project: AgentProject, arguments: list[str], statuses: list[str]) -> None:
    """BeforeTool hooks run before approval, AfterTool hooks after tools that ran. Each question is a notification."""
    (project.root / "a.txt").write_text("alpha")
    names = {"before": "BeforeTool", "after": "AfterTool", "asked": "Notification"}
    project.configure(**{event: project.hook(name) for name, event in names.items()})
    run = project.play("-o", "json", *arguments, answers=[answer(ASKED), answer("Done.")])

    assert (run.status, run.statuses) == (0, statuses)
    assert (project.root / "made.txt").exists() == (statuses[1] == "success")
    assert (project.root / "a.txt").read_text() == ("beta" if statuses[2] == "success" else "alpha")
    assert (project.root / "ran.txt").exists() == (statuses[3] == "success")
    tools = {status: sorted(each["name"] for each in run.calls if each["status"] == status) for status in statuses}
    assert len(run.payloads("before")) == 4
    assert sorted(payload["tool_name"] for payload in run.payloads("after")) == tools["success"]
    asked = {payload["details"]["tool_name"]: payload for payload in run.payloads("asked")}
    assert sorted(asked) == tools.get("error", [])
    assert len(run.payloads("asked")) == len(asked)
    for each in run.calls:
        if each["status"] == "error":
            needed = "yolo" if each["name"] == "run_shell_command" else "auto_edit"
            assert f"--approval-mode {needed}" in each["result"]
            payload = asked[each["name"]]
            assert payload["notification_type"] == "ToolPermission"
            assert payload["details"]["tool_input"] == each["args"]
            assert each["name"] in payload["message"]
