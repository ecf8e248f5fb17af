"""The events that nobody awaits, and the transcript that every event names."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.gemini import answer, call
from tests.support.processes import end, lives

if TYPE_CHECKING:
    from tests.agent.e2e.conftest import Played
    from tests.support.agent import AgentProject, AgentRun

EVENTS = ("SessionStart", "BeforeAgent", "Notification", "AfterAgent", "SessionEnd")

# Whatever these hooks say: nobody listens.
LOUD = {
    "decision": "block",
    "reason": "no",
    "continue": False,
    "stopReason": "stop it",
    "systemMessage": "whatever",
    "suppressOutput": True,
    "hookSpecificOutput": {"additionalContext": "more"},
}


def a_whole_session(project: AgentProject) -> AgentRun:
    project.configure(**{event: project.hook(event, LOUD) for event in EVENTS}, BeforeModel=project.hook("BeforeModel"))
    asked = call("write_file", file_path="made.txt", content="x")
    return project.run(answers=[answer("One moment.", asked), answer("I may not.")])


def own_fields(run: AgentRun, event: str) -> dict[str, Any]:
    """What an event told beside the base fields; it was fired once."""
    [payload] = run.payloads(event)
    base = {
        name: payload.pop(name) for name in ("session_id", "cwd", "timestamp", "hook_event_name", "transcript_path")
    }
    assert base["hook_event_name"] == event
    assert base["cwd"] == str(run.project.root)
    return payload


@pytest.mark.requirement("HOOK-081", "HOOK-203")
@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("SessionStart", {"source": "startup"}),
        ("BeforeAgent", {"prompt": "Do it."}),
        ("AfterAgent", {"prompt": "Do it.", "prompt_response": "I may not.", "stop_hook_active": False}),
        ("SessionEnd", {"reason": "exit"}),
    ],
)
def test_an_event_that_nobody_awaits_is_fired_with_real_data(
    played: Played, event: str, fields: dict[str, Any]
) -> None:
    assert own_fields(played(a_whole_session), event) == fields


@pytest.mark.requirement("HOOK-203")
def test_the_notification_names_the_call_that_needs_approval(played: Played) -> None:
    fields = own_fields(played(a_whole_session), "Notification")
    assert fields["notification_type"] == "ToolPermission"
    assert fields["details"] == {"tool_name": "write_file", "tool_input": {"file_path": "made.txt", "content": "x"}}


@pytest.mark.requirement("HOOK-203")
def test_these_hooks_have_no_effect(played: Played) -> None:
    run = played(a_whole_session)
    assert run.status == 0
    assert run.stdout == "One moment.\nI may not.\n"
    requests = json.dumps(run.payloads("BeforeModel"))
    for said in ("whatever", "more", "stop it"):
        assert said not in run.stdout + run.stderr + requests


# The transcript.


def test_the_transcript_is_private_and_has_one_json_object_per_line_for_each_message(played: Played) -> None:
    run = played(a_whole_session)
    payloads = [payload for event in (*EVENTS, "BeforeModel") for payload in run.payloads(event)]
    [(session, path)] = {(payload["session_id"], payload["transcript_path"]) for payload in payloads}
    transcript = Path(path)
    assert transcript.is_relative_to(run.project.home)
    assert stat.S_IMODE(transcript.stat().st_mode) == 0o600
    assert session in transcript.name
    entries = [json.loads(line) for line in transcript.read_text().splitlines()]
    assert all({"timestamp", "type"} <= entry.keys() for entry in entries)
    prompt, asked, refused, last = (entry["content"] for entry in entries)
    assert prompt == {"role": "user", "parts": [{"text": "Do it."}]}
    assert asked["parts"] == [{"text": "One moment."}, call("write_file", file_path="made.txt", content="x")]
    assert refused["parts"][0]["functionResponse"]["name"] == "write_file"
    assert last == {"role": "model", "parts": [{"text": "I may not."}]}


def test_a_transcript_that_cannot_be_kept_is_reported_and_the_run_continues(project: AgentProject) -> None:
    project.configure(BeforeModel=project.hook("BeforeModel"))
    run = project.run(answers=[answer("Done.")], HOME=str(project.file("no-folder", "")))
    assert (run.status, run.stdout) == (0, "Done.\n")
    lines = run.stderr.splitlines()
    assert all(line.startswith("llxprt-hooks: ") for line in lines)
    assert len([line for line in lines if "cannot write the transcript" in line]) == 1
    assert run.payloads("BeforeModel")[0]["transcript_path"] == ""


# Not awaited.


@pytest.mark.requirement("HOOK-203")
def test_a_slow_session_start_hook_delays_nothing_and_is_given_a_moment_at_exit(project: AgentProject) -> None:
    let_go, ended = project.note("let-go"), project.note("ended")
    wait = f'for i in $(seq 1200); do [ -e "{let_go}" ] && break; sleep 0.05; done; touch "{ended}"'
    project.configure(SessionStart=project.hook("slow", first=wait), BeforeModel=project.hook("model"))
    with project.running(answers=[answer("Done.")]) as running:
        assert running.process.stdout is not None
        assert running.process.stdout.readline() == b"Done.\n"
        assert not ended.exists()
        let_go.touch()
        assert running.ended().status == 0
    assert ended.exists()


def endless_session_end(project: AgentProject) -> AgentRun:
    project.configure(SessionEnd=project.endless_hook("endless"), SessionStart=project.hook("quick"))
    return project.run("-o", "json", answers=[answer("Done.")])


@pytest.fixture(scope="module")
def left_running(played: Played) -> Iterator[list[int]]:
    pids = played(endless_session_end).project.pids("endless")
    yield pids
    end(*pids)


@pytest.mark.requirement("HOOK-203")
def test_a_hook_that_outlasts_the_grace_period_keeps_running(played: Played, left_running: list[int]) -> None:
    run = played(endless_session_end)
    assert (run.status, run.json["response"], run.stderr) == (0, "Done.", "")
    assert run.json["hooks"]["SessionStart"]["fired"] == 1
    assert [lives(pid) for pid in left_running] == [True, True]
