"""What hooks see of a request: google-genai's types → the hook format."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from google.genai import types

from llxprt_hooks.model import GenerateContentParameters
from llxprt_hooks.model.answers import CONFIG
from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1

IMAGE = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
CALL = types.Part.from_function_call(name="read_file", args={"file_path": "a"})
RESPONSE = types.Part.from_function_response(name="read_file", response={"output": "x"})
THOUGHT = types.Part(text="Let me think.", thought=True)


def texts(translator: Any, contents: Any) -> list[tuple[str, str]]:
    request = translator.to_hook_llm_request(GenerateContentParameters("m", contents))
    return [(message["role"], message["content"]) for message in request["messages"]]


@pytest.mark.requirement("HOOK-071", "HOOK-072", "HOOK-074")
def test_request_has_model_messages_config_and_tool_config(translator: HookTranslatorGenAIv1) -> None:
    request = GenerateContentParameters(
        "gemini-3-flash",
        [types.UserContent("Hello"), types.ModelContent("Hi")],
        types.GenerateContentConfig(
            temperature=0.5,
            max_output_tokens=100,
            top_p=0.9,
            top_k=40,
            stop_sequences=["END"],
            candidate_count=1,
            presence_penalty=0.1,
            frequency_penalty=0.2,
            system_instruction="Be brief.",
            tool_config=types.ToolConfig(
                function_calling_config=types.FunctionCallingConfig(
                    mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["read_file"]
                )
            ),
        ),
    )

    assert translator.to_hook_llm_request(request) == {
        "model": "gemini-3-flash",
        "messages": [{"role": "user", "content": "Hello"}, {"role": "model", "content": "Hi"}],
        "config": {
            "temperature": 0.5,
            "maxOutputTokens": 100,
            "topP": 0.9,
            "topK": 40,
            "stopSequences": ["END"],
            "candidateCount": 1,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
        },
        "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]},
    }


@pytest.mark.requirement("HOOK-072")
@pytest.mark.parametrize("config", [None, {}, types.GenerateContentConfig(seed=1), {"tool_config": {}}])
def test_unset_fields_are_left_out_and_the_settings_are_always_an_object(
    translator: HookTranslatorGenAIv1, config: Any
) -> None:
    request = translator.to_hook_llm_request(GenerateContentParameters("m", "Hello", config))

    assert request == {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "config": {}}


def test_every_setting_of_the_hook_format_has_its_name_in_the_sdk() -> None:
    assert HookTranslatorGenAIv1.SETTINGS.keys() == CONFIG.keys()
    assert set(HookTranslatorGenAIv1.SETTINGS.values()) <= types.GenerateContentConfig.model_fields.keys()


@pytest.mark.requirement("HOOK-076")
def test_messages_without_text_are_dropped(translator: HookTranslatorGenAIv1) -> None:
    contents = [
        types.UserContent(IMAGE),
        types.UserContent("Hello"),
        types.ModelContent([THOUGHT, CALL]),
        types.UserContent(RESPONSE),
        types.ModelContent(types.Part(text="", thought_signature=b"s")),
        types.Content(role="model"),
        types.Content(role="user", parts=[]),
    ]

    assert texts(translator, contents) == [("user", "Hello")]


@pytest.mark.requirement("HOOK-075")
@pytest.mark.parametrize(
    ("contents", "messages"),
    [
        ("Hello", [("user", "Hello")]),
        (types.Part(text="Hello"), [("user", "Hello")]),
        ({"text": "Hello"}, [("user", "Hello")]),
        (types.Content(parts=[types.Part(text="no role")]), [("user", "no role")]),
        ({"parts": [{"text": "a"}, {"text": "b"}], "role": "model"}, [("model", "ab")]),
        ({"parts": {"text": "not a list"}}, [("user", "not a list")]),
        (["a", IMAGE, {"text": "b"}], [("user", "ab")]),
        (["a", CALL, RESPONSE, "b", CALL], [("user", "a"), ("user", "b")]),
        ([["a", "b"], "c"], [("user", "ab"), ("user", "c")]),
        (["a", {"role": "model", "parts": [{"text": "b"}]}, "c"], [("user", "a"), ("model", "b"), ("user", "c")]),
        ([{"role": "model", "parts": [{"functionCall": {"name": "x"}}, {"text": "t", "thought": True}]}], []),
        (types.File(uri="https://x/y", mime_type="image/png"), []),
        ([], []),
        (None, []),
    ],
)
def test_contents_in_every_form_that_the_sdk_takes(
    translator: HookTranslatorGenAIv1, contents: Any, messages: list[Any]
) -> None:
    assert texts(translator, contents) == messages


@pytest.mark.requirement("HOOK-075")
def test_the_request_is_not_changed(translator: HookTranslatorGenAIv1) -> None:
    contents = [types.UserContent(["Hello", IMAGE]), {"role": "model", "parts": [{"text": "Hi"}]}]
    config = {"stop_sequences": ["END"], "tool_config": {"function_calling_config": {"allowed_function_names": ["a"]}}}
    request = GenerateContentParameters("m", contents, config)
    before = copy.deepcopy(request)

    shown = translator.to_hook_llm_request(request)
    shown["config"]["stopSequences"].append("changed")
    shown["toolConfig"]["allowedFunctionNames"].append("changed")

    assert request == before
