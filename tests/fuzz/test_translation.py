"""Model data in hooks' answers, of any content: what is well formed counts, what hooks cannot see is never touched."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from google.genai import types

from llxprt_hooks import (
    AfterModelHookOutput,
    BeforeModelHookOutput,
    BeforeToolSelectionHookOutput,
    Config,
    GenerateContentParameters,
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks.core.protocol.model_outputs import make_output
from llxprt_hooks.events import MODEL_EVENTS, HookEventName
from llxprt_hooks.model import TranslationError, mark_request, mark_response, request_payload, response_payload
from tests.fuzz.documents import any_json, documents, mutated
from tests.fuzz.guard import corpus, fuzz, unhanged
from tests.fuzz.project import FuzzedProject, quiet

IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
CALL = {"functionCall": {"id": "1", "name": "glob", "args": {"pattern": "*"}}}
RESULT = {"functionResponse": {"id": "1", "name": "glob", "response": {"output": "x"}}}
CONTENTS = [
    {"role": "user", "parts": [{"text": "hi"}, IMAGE]},
    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "look"}, CALL]},
    {"role": "user", "parts": [RESULT]},
    {"role": "model", "parts": [{"text": "hello"}]},
    {"role": "user", "parts": [{"text": "again"}]},
]
CONFIG = {
    "temperature": 0.5,
    "topK": 40,
    "stopSequences": ["a"],
    "systemInstruction": "be careful",
    "tools": [{"functionDeclarations": [{"name": "glob", "description": "d"}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
}
ANSWER = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "hello"}, CALL]},
            "finishReason": "STOP",
            "index": 0,
            "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3},
}
TOOL_CONFIG = {"mode": "ANY", "allowedFunctionNames": ["glob", "read_file"]}
HOOK_REQUEST = {
    "model": "other",
    "messages": [
        {"role": "user", "content": "hi!"},
        {"role": "model", "content": "look"},
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": [{"text": "a"}, "b"]},
        {"role": "user", "content": "again"},
    ],
    "config": {
        "temperature": 0.1,
        "maxOutputTokens": 5,
        "topP": 0.9,
        "topK": 3,
        "stopSequences": ["x"],
        "candidateCount": 1,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
    },
    "toolConfig": TOOL_CONFIG,
}
HOOK_RESPONSE = {
    "text": "redacted",
    "candidates": [
        {
            "content": {"role": "model", "parts": ["red", {"text": "acted"}]},
            "finishReason": "STOP",
            "index": 0,
            "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3},
}
SPECIFIC = [
    {"llm_request": HOOK_REQUEST},
    {"llm_request": {"messages": HOOK_REQUEST["messages"]}},
    {"llm_request": {"messages": []}},
    {"llm_response": HOOK_RESPONSE},
    {"llm_response": {"text": "only text"}},
    {"toolConfig": TOOL_CONFIG},
    {"toolConfig": {"mode": "NONE"}},
    {"llm_request": {"toolConfig": {"allowedFunctionNames": []}}, "llm_response": {"text": ""}},
]
OUTPUTS = [{"hookSpecificOutput": each} for each in SPECIFIC] + [{"continue": False, "stopReason": "enough"}]

outputs = mutated(OUTPUTS, most=4)


def request() -> GenerateContentParameters:
    return GenerateContentParameters(
        "m",
        [types.Content.model_validate(each) for each in CONTENTS],
        types.GenerateContentConfig(**CONFIG),  # type: ignore[arg-type]
    )


def unseen(given: GenerateContentParameters) -> list[Any]:
    """What hooks cannot see of a request, in order: parts without text, thoughts, instructions and tools."""
    parts = [part for content in given.contents for part in content.parts or []]
    kept = [part for part in parts if part.text is None or part.thought]
    return [*kept, given.config.system_instruction, given.config.tools]


def hold(data: Any) -> None:
    """A hook's output, for each of the events that hold model data: translated, or refused with the one error."""
    given = request()
    before = copy.deepcopy(given)
    with quiet():
        for event in MODEL_EVENTS:
            output = make_output(event, data if isinstance(data, dict) else {})
            if isinstance(output, BeforeModelHookOutput):
                hold_request(output, given)
                hold_response(output.get_synthetic_response)
            if isinstance(output, AfterModelHookOutput):
                hold_response(output.get_modified_response)
            if isinstance(output, BeforeToolSelectionHookOutput):
                hold_tool_config(output, given)
    assert given == before


def hold_request(output: BeforeModelHookOutput, given: GenerateContentParameters) -> None:
    changed = output.apply_llm_request_modifications(given)
    assert unseen(changed) == unseen(given)
    assert isinstance(changed.model, str)
    shown: dict[str, Any] = dict(request_payload(changed))
    assert isinstance(read_json(write_json(shown)), dict)
    messages = ((output.hook_specific_output or {}).get("llm_request") or {}).get("messages")
    if isinstance(messages, list) and _well_formed(messages):
        texts = [each["content"] for each in messages if each["content"]]
        assert sorted(_untagged(each["content"]) for each in shown["messages"]) == sorted(map(_untagged, texts))


def _well_formed(messages: list[Any]) -> bool:
    return all(isinstance(each, dict) and isinstance(each.get("content"), str) for each in messages)


def _untagged(text: str) -> str:
    return text.removeprefix("[System] ")


def translated(translate: Callable[[], Any]) -> Any:
    """What a translation comes to; None where it is refused, which is said in one line."""
    try:
        return translate()
    except TranslationError as error:
        refusal = str(error)
    assert "\n" not in refusal
    return None


def hold_response(translate: Callable[[], Any]) -> None:
    response = translated(translate)
    assert response is None or isinstance(response, types.GenerateContentResponse)
    if response is not None:
        assert isinstance(response_payload(response)["text"], str)
        write_json(response)


def hold_tool_config(output: BeforeToolSelectionHookOutput, given: GenerateContentParameters) -> None:
    tool_config, tools = output.apply_tool_config_modifications(given.config.tool_config, given.config.tools)
    assert tools is given.config.tools
    said = (output.hook_specific_output or {}).get("toolConfig") or {}
    calling = tool_config.function_calling_config
    if said.get("mode") == "NONE":
        assert (calling.mode, calling.allowed_function_names) == (types.FunctionCallingConfigMode.NONE, [])
    elif "allowedFunctionNames" in said:
        assert calling.allowed_function_names == said["allowedFunctionNames"]


@fuzz(300, data=outputs | any_json | any_json.map(lambda value: {"hookSpecificOutput": {"llm_request": value}}))
def test_a_hooks_model_data_of_any_content_is_translated_or_refused(data: Any) -> None:
    hold(data)


@corpus("translation")
@unhanged
def test_what_was_found_is_translated_or_refused(case: str, data: bytes) -> None:
    hold(read_json(data))


# The other way: model data that comes over the bus as JSON.

API_REQUESTS = [{"model": "m", "contents": CONTENTS, "generationConfig": CONFIG}, {"contents": "hi", "config": CONFIG}]


@fuzz(200, value=mutated([*API_REQUESTS, HOOK_REQUEST], most=4) | any_json)
def test_a_request_as_json_of_any_content_is_shown_to_hooks_or_refused(value: Any) -> None:
    before = json.dumps(value)
    with quiet():
        shown = translated(lambda: request_payload(mark_request(value)))
    assert shown is None or isinstance(shown["messages"], list)
    assert shown is None or isinstance(read_json(write_json(shown)), dict)
    assert json.dumps(value) == before


@fuzz(200, value=mutated([ANSWER, HOOK_RESPONSE, {"text": "x"}], most=4) | any_json)
def test_a_response_as_json_of_any_content_is_shown_to_hooks_or_refused(value: Any) -> None:
    before = json.dumps(value)
    with quiet():
        shown = translated(lambda: response_payload(mark_response(value)))
    assert shown is None or isinstance(read_json(write_json(shown)), dict)
    assert json.dumps(value) == before


# All the way, through a process that prints it.


async def fired(world: FuzzedProject, stdout: bytes) -> None:
    printed = world.folder / "printed"
    printed.write_bytes(stdout)
    hook = {"type": "command", "command": f"cat '{printed}'"}
    events = ("BeforeModel", "AfterModel", "BeforeToolSelection")
    config = Config(working_dir=world.root, enable_hooks=True, hooks={each: [{"hooks": [hook]}] for each in events})
    given, response = request(), types.GenerateContentResponse.model_validate(ANSWER)
    with quiet():
        before = await fire_before_model_hook(config, given)
        after = await fire_after_model_hook(config, given, response)
        selection = await fire_before_tool_selection_hook(config, given)
    assert before.modified_request is None or unseen(before.modified_request) == unseen(given)
    assert isinstance(after.response, types.GenerateContentResponse)
    assert selection.tool_config is None or isinstance(selection.tool_config, types.ToolConfig)
    assert before.should_stop is after.should_stop is selection.should_stop
    try:
        said = json.loads(stdout, parse_constant=int)  # raises: Infinity and NaN are not JSON
    except (ValueError, RecursionError):
        return
    if isinstance(said, dict) and said.get("continue") is False:
        assert after.should_stop
        assert before.blocked


@fuzz(40, stdout=documents(OUTPUTS))
def test_whatever_a_hook_prints_the_model_triggers_return_sdk_types(world: FuzzedProject, stdout: bytes) -> None:
    asyncio.run(fired(world, stdout))


@pytest.mark.parametrize("output", OUTPUTS[:4])
def test_the_outputs_that_are_mutated_do_change_something(output: dict[str, Any]) -> None:
    """Else the tests above would only ever see data that is ignored."""
    given = request()
    made = make_output(HookEventName.BEFORE_MODEL, output)
    assert isinstance(made, BeforeModelHookOutput)
    assert made.apply_llm_request_modifications(given) != given or made.get_synthetic_response() is not None
