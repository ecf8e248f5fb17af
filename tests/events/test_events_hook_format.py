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

if TYPE_CHECKING:
    from tests.events.events_project import EventsProject, Ready, Texts

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
RESPONSE: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "gpt-5",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "A cat."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3},
}
SHOWN_RESPONSE: dict[str, Any] = {
    "text": "A cat.",
    "candidates": [{"content": {"role": "model", "parts": ["A cat."]}, "index": 0, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3},
}
CHANGED = [{"role": "user", "content": "What is this?"}, {"role": "model", "content": "Looking."}]


def says(**specific: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": specific}


@pytest.mark.parametrize("per_call", [False, True])
async def test_a_request_with_messages_goes_through_the_translator_of_its_sdk(
    project: EventsProject, per_call: bool
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


@pytest.mark.parametrize("per_call", [False, True])
async def test_a_response_of_that_sdk_keeps_its_id_when_a_hook_changes_its_text(
    project: EventsProject, per_call: bool
) -> None:
    command = project.hook(says=says(llm_response={**SHOWN_RESPONSE, "text": "A ***."}))
    config = project.config({"AfterModel": command}, translator=None if per_call else "openai-chat")

    result = await fire_after_model_hook(config, REQUEST, RESPONSE, translator="openai-chat" if per_call else None)

    assert project.payload()["llm_response"] == SHOWN_RESPONSE
    assert (result.response["id"], result.response["usage"]) == ("chatcmpl-1", {"prompt_tokens": 3})
    message = {"role": "assistant", "content": "A ***.", "refusal": None}
    assert result.response["choices"][0]["message"] == message


async def test_a_stop_is_answered_in_the_types_of_that_sdk(project: EventsProject) -> None:
    config = project.config({"AfterModel": project.hook(says={"continue": False, "stopReason": "enough"})})

    result = await fire_after_model_hook(config, REQUEST, RESPONSE, translator="openai-chat")

    assert result.should_stop
    assert (result.response["id"], result.response["choices"][0]["message"]["content"]) == ("chatcmpl-1", "enough")


async def test_a_tool_choice_of_that_sdk_is_restricted(project: EventsProject) -> None:
    command = project.hook(says=says(toolConfig={"mode": "ANY", "allowedFunctionNames": ["glob"]}))
    config = project.config({"BeforeToolSelection": command}, translator="openai-chat")

    result = await fire_before_tool_selection_hook(config, REQUEST)

    assert result.tool_config == {"type": "function", "function": {"name": "glob"}}
    assert result.tools is REQUEST["tools"]


async def test_the_json_of_a_request_can_be_changed_too(project: EventsProject) -> None:
    config = project.config({"BeforeModel": project.hook(says=says(llm_request={"model": "small"}))})

    request: Any = {"model": "large", "contents": "Hello"}
    result = await fire_before_model_hook(config, request)

    assert result.modified_request is not None
    assert (result.modified_request.model, result.modified_request.contents) == ("small", "Hello")


async def asked_by_message(project: EventsProject, llm_request: Any, **options: Any) -> Any:
    bus = InProcessMessageBus()
    config = project.config({"BeforeModel": project.hook()}, message_bus=bus, **options)
    assert config.get_hook_system()
    await bus.publish(
        {"type": "hook-execution-request", "eventName": "BeforeModel", "input": {"llm_request": llm_request}}
    )
    return project.payload()["llm_request"]


@pytest.mark.parametrize("translator", [None, "google-genai", "openai-chat"])
async def test_a_recorded_request_is_not_translated_again(project: EventsProject, translator: str | None) -> None:
    assert await asked_by_message(project, SHOWN, translator=translator) == SHOWN


async def test_a_message_with_a_request_of_the_sdk_is_translated(project: EventsProject) -> None:
    assert await asked_by_message(project, REQUEST, translator="openai-chat") == SHOWN


@pytest.mark.parametrize("translator", [None, "google-genai", "openai-chat"])
async def test_data_that_is_marked_as_hook_format_is_not_translated(
    project: EventsProject, translator: str | None
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
    project: EventsProject, warnings_of_engine: Texts, event: str, translator: str | None
) -> None:
    config = project.config({event: project.hook(says={"decision": "deny", "continue": False})}, translator=translator)

    result = await FIRED[event](config)

    assert (project.runs(), result.should_stop) == (0, False)
    assert any("If it is in hook format, mark it: HookFormat(data)." in warning for warning in warnings_of_engine())


async def test_a_call_with_hook_format_that_is_not_marked_is_blocked_if_a_hook_must_not_fail(
    project: EventsProject,
) -> None:
    hook = {"type": "command", "command": project.hook(), "failClosed": True}
    config = project.config({"BeforeModel": {"hooks": [hook]}})

    result = await fire_before_model_hook(config, SHOWN)

    assert (project.runs(), result.blocked) == (0, True)
    assert result.reason is not None
    assert "mark it: HookFormat(data)" in result.reason


async def test_a_recorded_payload_is_fired_without_a_mark(project: EventsProject, ready: Ready) -> None:
    handler = await ready(project.config({"AfterModel": project.hook()}))

    result = await handler.fire_event("AfterModel", {"llm_request": SHOWN, "llm_response": SHOWN_RESPONSE})

    assert result.success
    assert (project.payload()["llm_request"], project.payload()["llm_response"]) == (SHOWN, SHOWN_RESPONSE)


async def test_what_a_hook_says_besides_counts_where_its_changes_have_no_sdk_request_to_go_into(
    project: EventsProject,
) -> None:
    said = {"systemMessage": "note", **says(llm_request={"model": "small"})}
    config = project.config({"BeforeModel": project.hook(says=said)})

    result: BeforeModelHookResult[Any] = await fire_before_model_hook(config, HookFormat({"messages": []}))

    assert (result.system_message, result.modified_request, result.blocked) == ("note", None, False)


async def test_a_mark_on_anything_else_is_a_failure_that_says_so(project: EventsProject, ready: Ready) -> None:
    handler = await ready(project.config({"BeforeModel": project.hook()}))

    result = await handler.fire_before_model_event(HookFormat({"contents": "Hello"}))

    found = "llm_request is marked as hook format, but is an object with the fields contents; expected an object with"
    assert found in str(result.errors[0])
    assert project.runs() == 0


async def test_an_unknown_translator_fails_open_with_its_name(
    project: EventsProject, warnings_of_engine: Texts
) -> None:
    config = project.config({"BeforeModel": project.hook(exit_code=2)}, translator="no-such-sdk")

    assert not (await fire_before_model_hook(config, REQUEST)).blocked
    assert any("Unknown translator 'no-such-sdk'" in warning for warning in warnings_of_engine())
