"""What a run prints: for people, and for programs."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.gemini import answer, call
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.agent.e2e.conftest import Played, Scene
    from tests.support.agent import AgentProject, AgentRun

REFUSED_COMMAND = {"command": "touch ran.txt", "description": "make a file"}


def every_status(project: AgentProject, *arguments: str) -> AgentRun:
    """A conversation in which a call ends in each way but by interruption, with hooks for every event."""
    (project.root / "a.txt").write_text("alpha\nbeta\n")
    names = ["glob", "read_file", "run_shell_command"]
    project.configure(
        BeforeToolSelection=project.hook(
            "select", [{"hookSpecificOutput": {"toolConfig": {"allowedFunctionNames": names}}}]
        ),
        BeforeModel=project.hook("before_model"),
        AfterModel=project.hook("after_model"),
        BeforeTool=[
            {
                "matcher": "glob",
                "hooks": [{"type": "command", "command": project.hook("guard", stderr="no", exit_code=2)}],
            },
            project.hook("before_tool"),
        ],
        AfterTool=[project.hook("after_tool"), project.hook("broken", stderr="oh dear", exit_code=1)],
        SessionStart=project.hook("session_start"),
        BeforeAgent=project.hook("before_agent"),
        AfterAgent=project.hook("after_agent"),
        SessionEnd=project.hook("session_end"),
        Notification=project.hook("notification"),
    )
    asked = [
        call("read_file", file_path="a.txt"),
        call("read_file", file_path="missing.txt"),
        call("glob", pattern="*"),
        call("write_file", file_path="made.txt", content="x"),
        call("run_shell_command", **REFUSED_COMMAND),
    ]
    return project.run(*arguments, answers=[answer("On it.", asked), answer("All ", "done.")])


def as_json(project: AgentProject) -> AgentRun:
    return every_status(project, "-o", "json")


def as_stream(project: AgentProject) -> AgentRun:
    return every_status(project, "-o", "stream-json")


def as_text(project: AgentProject) -> AgentRun:
    return every_status(project)


SUMMARY = ["session_id", "response", "stop_reason", "tool_calls", "usage", "hooks"]
STATUSES = ["success", "error", "blocked", "restricted", "error"]


def figures(fired: int, hooks_run: int, *, blocked: int = 0, failed: int = 0) -> dict[str, int]:
    return {"fired": fired, "hooks_run": hooks_run, "blocked": blocked, "failed": failed}


FIGURES = {
    "SessionStart": figures(1, 1),
    "BeforeAgent": figures(1, 1),
    "BeforeToolSelection": figures(2, 2),
    "BeforeModel": figures(2, 2),
    "AfterModel": figures(2, 2),
    "BeforeTool": figures(4, 5, blocked=1),
    "AfterTool": figures(2, 4, failed=2),
    "Notification": figures(1, 1),
    "AfterAgent": figures(1, 1),
    "SessionEnd": figures(1, 1),
}


def check_summary(summary: dict[str, Any]) -> None:
    assert str(uuid.UUID(summary["session_id"])) == summary["session_id"]
    assert summary["response"] == "All done."
    assert summary["stop_reason"] is None
    assert [list(each) for each in summary["tool_calls"]] == [["name", "args", "status", "result"]] * 5
    assert [each["status"] for each in summary["tool_calls"]] == STATUSES
    assert summary["usage"] == {"promptTokenCount": 14, "candidatesTokenCount": 6, "totalTokenCount": 20}


def test_json_is_one_object_with_the_documented_keys(played: Played) -> None:
    run = played(as_json)
    assert run.status == 0
    assert list(run.json) == SUMMARY
    check_summary(run.json)
    succeeded, failed, blocked, restricted, refused = run.calls
    assert (succeeded["args"], succeeded["result"]) == ({"file_path": "a.txt"}, "alpha\nbeta\n")
    assert (failed["args"], "missing.txt" in failed["result"]) == ({"file_path": "missing.txt"}, True)
    assert (blocked["args"], blocked["result"]) == ({"pattern": "*"}, "no")
    assert (restricted["args"], "write_file" in restricted["result"]) == (
        {"file_path": "made.txt", "content": "x"},
        True,
    )
    assert refused["args"] == REFUSED_COMMAND


def test_hooks_are_counted_by_event_and_a_block_is_not_a_failure(played: Played) -> None:
    hooks = played(as_json).json["hooks"]
    assert {event: each | {"total_ms": 0} for event, each in hooks.items()} == {
        event: each | {"total_ms": 0} for event, each in FIGURES.items()
    }
    assert all(list(each) == ["fired", "hooks_run", "blocked", "failed", "total_ms"] for each in hooks.values())
    assert all(each["total_ms"] > 0 for each in hooks.values())


def test_a_stream_is_one_json_object_per_line_and_ends_with_the_summary(played: Played) -> None:
    run = played(as_stream)
    *notes, last = run.json_lines
    assert run.status == 0
    assert all(isinstance(note["type"], str) and note["type"] != "result" for note in notes)
    assert last["type"] == "result"
    assert list(last) == ["type", *SUMMARY]
    check_summary(last)


def test_a_stream_reports_answers_and_states_of_calls_as_they_happen(played: Played) -> None:
    notes = played(as_stream).json_lines
    assert "".join(note["text"] for note in notes if note["type"] == "text") == "On it.All done."
    states: dict[str, list[str]] = {}
    for note in notes:
        if note["type"] == "tool_call":
            states.setdefault(json.dumps(note["args"]), []).append(note["state"])
    assert list(states.values()) == [
        ["executing", "idle"],
        ["executing", "idle"],
        ["executing", "idle"],
        ["idle"],
        ["executing", "awaiting_approval", "idle"],
    ]
    finished = [note["status"] for note in notes if note["type"] == "tool_call" and note["state"] == "idle"]
    assert sorted(finished) == sorted(STATUSES)


@pytest.mark.requirement("HOOK-129", "HOOK-017")
def test_text_has_the_answers_on_stdout_and_all_else_on_stderr(played: Played) -> None:
    run = played(as_text)
    assert run.status == 0
    assert run.stdout == "On it.\nAll done.\n"
    assert {word for word in ("blocked", "restricted", "error") if word in run.stderr} == {
        "blocked",
        "restricted",
        "error",
    }
    assert "alpha" not in run.stderr
    [line] = [line for line in run.stderr.splitlines() if "glob" in line and "blocked" in line]
    assert line.endswith(": no")


@pytest.mark.parametrize("how", [as_json, as_stream, as_text], ids=lambda each: each.__name__)
def test_a_hook_that_merely_failed_is_reported_and_allows(played: Played, how: Scene) -> None:
    run = played(how)
    assert run.status == 0
    assert "oh dear" in run.stderr
    assert "Traceback" not in run.stderr


# Odd characters.

ODD = "é ☃ \u2028 \x85 \x0b 𝄞"


def test_json_is_utf_8_whatever_the_terminal_takes(project: AgentProject) -> None:
    lines = json.dumps({"method": "generateContentStream", "response": answer(ODD)}, ensure_ascii=False)
    recording = project.file("odd.jsonl", "\ufeff" + lines + "\n\n")
    process = project.start("run", "-p", ODD, "-o", "json", "--replay", str(recording), PYTHONIOENCODING="ascii")
    stdout, stderr = process.communicate(timeout=DEADLINE)
    assert (process.returncode, json.loads(stdout)["response"], stderr) == (0, ODD, b"")


def test_a_character_that_cannot_be_printed_does_not_end_the_run(project: AgentProject) -> None:
    project.configure(AfterModel=project.hook("after"))
    run = project.run(answers=[answer("half \ud83d a face")])
    assert (run.status, run.stderr) == (0, "")
    assert run.stdout.startswith("half ")
    assert run.stdout.endswith(" a face\n")
    assert len(run.payloads("after")) == 1


@pytest.mark.parametrize("options", [(), ("--log-payloads",)])
def test_what_hooks_were_sent_is_recorded_when_asked_for(project: AgentProject, options: tuple[str, ...]) -> None:
    project.configure(BeforeTool=project.hook("guard"))

    project.run(*options, "-y", answers=[answer(call("read_file", file_path="x")), answer("Done.")])

    lines = (project.home / ".llxprt/logs/hooks.jsonl").read_text().splitlines()
    [record] = [record for line in lines if "hook" in (record := json.loads(line))]
    assert [record["payload"]] == project.payloads("guard") if options else "payload" not in record
