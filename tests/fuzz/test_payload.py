"""Recorded payloads of any content: ``fire --input`` fires them again or says what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from llxprt_hooks import HookEventName
from tests.fuzz.documents import documents
from tests.fuzz.guard import corpus, fuzz, unhanged
from tests.support.cli import call

if TYPE_CHECKING:
    from tests.fuzz.project import FuzzedProject

BASE = {"session_id": "s", "cwd": "/", "timestamp": "2026-01-02T03:04:05.678Z", "transcript_path": ""}
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "config": {"temperature": 0.5}}
PAYLOADS = [
    {**BASE, "hook_event_name": "BeforeTool", "tool_name": "glob", "tool_input": {"pattern": "*"}},
    {"tool_name": "glob", "tool_input": {}, "tool_response": {"llmContent": "x"}},
    {"llm_request": REQUEST, "llm_response": {"text": "t", "candidates": [{"content": {"parts": ["t"]}}]}},
    {"prompt": "do it", "prompt_response": "done", "stop_hook_active": False},
    {"source": "startup", "reason": "exit", "trigger": "auto"},
    {"notification_type": "ToolPermission", "message": "May I?", "details": {}},
]
PLUGIN = [{"matcher": "glob|a+", "hooks": [{"type": "plugin", "name": "p"}]}]
SETTINGS = {"enableHooks": True, "hooks": {event.value: PLUGIN for event in HookEventName}}


def hold(world: FuzzedProject, event: str, data: bytes, *, as_json: bool) -> None:
    """From a file and from standard input; an unreadable file is refused, all else is read as leniently as a hook's."""
    world.put("user", SETTINGS)
    file = world.put("payload", data)
    options = ["--json"] if as_json else []
    for given in (f"@{file}", "-"):
        ended = call("fire", event, "--input", given, *options, stdin=data)
        assert ended.status in (0, 1, 2, 64)
        if ended.status == 2:  # what hooks cannot be shown does not happen (D-31)
            assert "to hooks" in ended.stdout or "hooks cannot be shown" in ended.stdout
        if ended.status == 64:
            assert ended.stderr.splitlines()[-1].startswith("Error: ")
            assert ended.stdout == ""
        elif as_json:
            assert ended.json["event"] == event
        assert ended.stderr.replace("\n", "").isprintable()


@fuzz(
    100,
    event=st.sampled_from([event.value for event in HookEventName]),
    data=documents(PAYLOADS),
    as_json=st.booleans(),
)
def test_a_payload_of_any_content_is_fired_or_refused(
    world: FuzzedProject, event: str, data: bytes, as_json: bool
) -> None:
    hold(world, event, data, as_json=as_json)


@pytest.mark.parametrize("event", ["BeforeTool", "AfterModel", "BeforeAgent"])
@corpus("payload")
@unhanged
def test_what_was_found_is_fired_or_refused(world: FuzzedProject, case: str, data: bytes, event: str) -> None:
    for as_json in (False, True):
        hold(world, event, data, as_json=as_json)
