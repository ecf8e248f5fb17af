"""Streams that are released sentence by sentence: when, in which order, and what waits for the end (D-151)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.model import resolve_translator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TEXTS = ["One. ", "Two. ", "Three"]
CALL = {"type": "tool_use", "id": "t1", "name": "save", "input": {"key": "sk-1"}}
ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "".join(TEXTS)},
        CALL,
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
REQUEST = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}
WIRE: Any = resolve_translator("anthropic-messages").wire


def events() -> list[dict[str, Any]]:
    """The answer as a stream, its text in three pieces."""
    found: list[dict[str, Any]] = []
    for event in WIRE.events(ANSWER):
        pieces = TEXTS if WIRE.text_in(event) is not None else [""]
        found += [WIRE.with_text(event, text, begins=False) if text else event for text in pieces]
    return found


async def passed(hooks: Hooks, sent: list[dict[str, Any]]) -> AsyncIterator[tuple[dict[str, Any], int]]:
    """Yield each event that is passed on, with the number of events that the model has sent until then."""
    count = 0

    async def call(request: Any) -> AsyncIterator[dict[str, Any]]:
        nonlocal count
        for event in sent:
            count += 1
            yield event

    async for event in hooks.stream_model(REQUEST, call, translator="anthropic-messages"):
        yield event, count


async def test_a_sentence_is_passed_on_before_the_next_one_arrives() -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None, stream="sentences")
    got = [pair async for pair in passed(hooks, events())]

    assert WIRE.assemble(event for event, _ in got) == ANSWER
    at = {text: count for event, count in got if (text := WIRE.text_in(event)) is not None}
    first = next(place for place, event in enumerate(events(), 1) if WIRE.text_in(event) is not None)
    assert at == {"One. ": first, "Two. ": first + 1, "Three": len(events())}


async def test_calls_wait_for_the_end_and_are_passed_on_as_hooks_leave_them() -> None:
    def hook(payload: dict[str, Any]) -> Any:
        content = payload["llm_response"]["candidates"][0]["content"]
        calls = [{**call, "args": {"key": "[KEY]"}} for call in content.get("toolCalls", ())]
        answer = {"role": "model", "parts": [content["parts"][0].replace("Two", "2")], "toolCalls": calls}
        return {"hookSpecificOutput": {"llm_response": {"candidates": [{"content": answer}]}}}

    hooks = Hooks(Config(profile="full"))
    hooks.on("AfterModel", hook, stream="sentences")
    got = [event async for event, _ in passed(hooks, events())]

    thinking, *_ = ANSWER["content"]
    expected = [thinking, {"type": "text", "text": "One. 2. Three"}, {**CALL, "input": {"key": "[KEY]"}}]
    assert (WIRE.assemble(got) or {})["content"] == expected
    assert [text for event in got if (text := WIRE.text_in(event)) is not None] == ["One. ", "2. ", "Three"]


async def test_text_that_a_hook_removes_in_the_end_stays_as_far_as_it_was_released() -> None:
    def hook(payload: dict[str, Any]) -> Any:
        if "finishReason" in payload["llm_response"]["candidates"][0]:
            return {"hookSpecificOutput": {"llm_response": {"text": ""}}}
        return None

    hooks = Hooks()
    hooks.on("AfterModel", hook, stream="sentences")
    got = [event async for event, _ in passed(hooks, events())]
    answer = WIRE.assemble(got) or {}
    assert [block.get("text") for block in answer["content"] if block["type"] == "text"] == ["One. Two. "]


def test_an_unknown_stream_raises() -> None:
    with pytest.raises(ValueError, match="stream must be 'whole' or 'sentences', found 'words'"):
        Hooks().on("AfterModel", lambda payload: None, stream="words")
