"""The sessions of conversations, for frameworks and proxies that do not say when one begins."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from llxprt_hooks import Hooks
from llxprt_hooks.core.calls import sessions
from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine.session import current_session


class Conversations:
    """Sessions, and the session events that hooks saw."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.payloads: list[Any] = []
        for event in ("SessionStart", "SessionEnd"):
            self.hooks.on(event, self.payloads.append)
        self.sessions = Sessions(self.hooks.config)

    async def events(self) -> list[tuple[str, str]]:
        await self.hooks.settle()
        return [(payload["hook_event_name"], payload["session_id"]) for payload in self.payloads]


@pytest.fixture
def conversations() -> Conversations:
    return Conversations()


async def test_a_conversation_starts_once_and_ends_once(conversations: Conversations) -> None:
    known = conversations.sessions
    for session_id in ("a", "a", "b"):
        known.begin(session_id)
    known.end("a")
    known.end("a")
    known.end("unknown")
    known.end_all()
    assert await conversations.events() == [
        ("SessionStart", "a"),
        ("SessionStart", "b"),
        ("SessionEnd", "a"),
        ("SessionEnd", "b"),
    ]
    started, ended = conversations.payloads[1:3]
    assert (started["source"], ended["reason"]) == ("startup", "exit")


def test_runs_of_a_conversation_share_notes_and_not_a_stop(conversations: Conversations) -> None:
    first = conversations.sessions.begin("a")
    first.stop_reason, first.notes = "enough", ("a note",)
    second = conversations.sessions.begin("a")
    assert (second.stop_reason, second.notes) == (None, ("a note",))
    assert conversations.sessions.latest("a") is second


async def test_the_conversation_that_was_used_least_recently_is_forgotten(
    conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_REMEMBERED", 2)
    known = conversations.sessions
    in_progress = known.begin("a")
    known.begin("b")
    known.latest("a")
    known.begin("c")
    await conversations.hooks.settle()  # a hook that runs keeps its session
    gc.collect()
    assert known.latest("b") is None
    known.begin("d")
    assert known.latest("a") is in_progress, "one of its runs is in progress"
    assert ("SessionEnd", "b") not in await conversations.events()


def test_a_session_is_active_until_it_is_left(conversations: Conversations) -> None:
    config, known = conversations.hooks.config, conversations.sessions
    session = known.begin("a")
    with session.active():
        with session.active() as same:
            assert same is session
        assert current_session(config) is session
    assert current_session(config) is None
