"""Which model data is translated, and which is in hook format already: a mark decides, except for messages."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    BeforeModelHookResult,
    Config,
    HookFormat,
    InProcessMessageBus,
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from tests.support.replies import says

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject, Ready, Texts

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "glob", "arguments": "{}"}}]
REQUEST: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "Be careful."},
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]},
        {"role": "assistant", "content": "Looking.", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "c1", "content": "secret"},
    ],
    "temperature": 0.5,
    "tools": [{"type": "function", "function": {"name": "glob"}}],
}
SHOWN: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [{"role": "user", "content": "What is it?"}, {"role": "model", "content": "Looking."}],
    "config": {"temperature": 0.5},
}
SHOWN_RESPONSE: dict[str, Any] = {
    "text": "A cat.",
    "candidates": [{"content": {"role": "model", "parts": ["A cat."]}, "index": 0, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3},
}
CHANGED = [{"role": "user", "content": "What is this?"}, {"role": "model", "content": "Looking."}]


@pytest.mark.parametrize("per_call", [False, True])
async def test_a_request_with_messages_goes_through_the_translator_of_its_sdk(
    project: EngineProject, per_call: bool
) -> None:
    command = project.hook(says=says(llm_request={"messages": CHANGED}))
    config = project.config({"BeforeModel": command}, translator=None if per_call else "openai-chat")
    given = copy.deepcopy(REQUEST)

    result = await fire_before_model_hook(config, given, translator="openai-chat" if per_call else None)

    assert project.payload()["llm_request"] == SHOWN
    changed = [{"type": "text", "text": "What is this?"}, IMAGE]
    first, second, *others = REQUEST["messages"]
    assert result.modified_request == {**REQUEST, "messages": [first, {**second, "content": changed}, *others]}
    assert given == REQUEST


async def test_the_json_of_a_request_can_be_changed_too(project: EngineProject) -> None:
    config = project.config({"BeforeModel": project.hook(says=says(llm_request={"model": "small"}))})

    request: Any = {"model": "large", "contents": "Hello"}
    result = await fire_before_model_hook(config, request)

    assert result.modified_request is not None
    assert (result.modified_request.model, result.modified_request.contents) == ("small", "Hello")


async def asked_by_message(project: EngineProject, llm_request: Any, **options: Any) -> Any:
    bus = InProcessMessageBus()
    config = project.config({"BeforeModel": project.hook()}, message_bus=bus, **options)
    assert config.get_hook_system()
    await bus.publish(
        {"type": "hook-execution-request", "eventName": "BeforeModel", "input": {"llm_request": llm_request}}
    )
    return project.payload()["llm_request"]


@pytest.mark.parametrize("translator", [None, "google-genai", "openai-chat"])
async def test_a_recorded_request_is_not_translated_again(project: EngineProject, translator: str | None) -> None:
    assert await asked_by_message(project, SHOWN, translator=translator) == SHOWN


async def test_a_message_with_a_request_of_the_sdk_is_translated(project: EngineProject) -> None:
    assert await asked_by_message(project, REQUEST, translator="openai-chat") == SHOWN


@pytest.mark.parametrize("translator", [None, "google-genai", "openai-chat"])
async def test_data_that_is_marked_as_hook_format_is_not_translated(
    project: EngineProject, translator: str | None
) -> None:
    bare = {"messages": [{"role": "user", "content": "Hello"}]}
    config = project.config({"AfterModel": project.hook()}, translator=translator)

    await fire_after_model_hook(config, HookFormat(bare), HookFormat({"text": "Hi"}))

    assert project.payload()["llm_request"] == bare
    assert project.payload()["llm_response"] == {"text": "Hi"}


FIRED: dict[str, Callable[[Config], Awaitable[Any]]] = {
    "BeforeModel": lambda config: fire_before_model_hook(config, SHOWN),
    "AfterModel": lambda config: fire_after_model_hook(config, HookFormat(SHOWN), SHOWN_RESPONSE),
    "BeforeToolSelection": lambda config: fire_before_tool_selection_hook(config, SHOWN),
}


@pytest.mark.parametrize("translator", [None, "openai-chat"])
@pytest.mark.parametrize("event", FIRED)
async def test_a_call_with_hook_format_that_is_not_marked_fails_open(
    project: EngineProject, warnings_of_engine: Texts, event: str, translator: str | None
) -> None:
    config = project.config({event: project.hook(says={"decision": "deny", "continue": False})}, translator=translator)

    result = await FIRED[event](config)

    assert (project.runs(), result.should_stop) == (0, False)
    assert any("If it is in hook format, mark it: HookFormat(data)." in warning for warning in warnings_of_engine())


async def test_a_call_with_hook_format_that_is_not_marked_is_blocked_if_a_hook_must_not_fail(
    project: EngineProject,
) -> None:
    hook = {"type": "command", "command": project.hook(), "failClosed": True}
    config = project.config({"BeforeModel": {"hooks": [hook]}})

    result = await fire_before_model_hook(config, SHOWN)

    assert (project.runs(), result.blocked) == (0, True)
    assert result.reason is not None
    assert "mark it: HookFormat(data)" in result.reason


async def test_a_recorded_payload_is_fired_without_a_mark(project: EngineProject, ready: Ready) -> None:
    handler = await ready(project.config({"AfterModel": project.hook()}))

    result = await handler.fire_event("AfterModel", {"llm_request": SHOWN, "llm_response": SHOWN_RESPONSE})

    assert result.success
    assert (project.payload()["llm_request"], project.payload()["llm_response"]) == (SHOWN, SHOWN_RESPONSE)


async def test_hook_format_request_ignores_changes_but_keeps_messages(
    project: EngineProject,
) -> None:
    said = {"systemMessage": "note", **says(llm_request={"model": "small"})}
    config = project.config({"BeforeModel": project.hook(says=said)})

    result: BeforeModelHookResult[Any] = await fire_before_model_hook(config, HookFormat({"messages": []}))

    assert (result.system_message, result.modified_request, result.blocked) == ("note", None, False)


async def test_a_mark_on_anything_else_is_a_failure_that_says_so(project: EngineProject, ready: Ready) -> None:
    handler = await ready(project.config({"BeforeModel": project.hook()}))

    result = await handler.fire_before_model_event(HookFormat({"contents": "Hello"}))

    found = "llm_request is marked as hook format, but is an object with the fields contents; expected an object with"
    assert found in str(result.errors[0])
    assert project.runs() == 0


async def test_an_unknown_translator_fails_open_with_its_name(
    project: EngineProject, warnings_of_engine: Texts
) -> None:
    config = project.config({"BeforeModel": project.hook(exit_code=2)}, translator="no-such-sdk")

    assert not (await fire_before_model_hook(config, REQUEST)).blocked
    assert any("Unknown translator 'no-such-sdk'" in warning for warning in warnings_of_engine())
