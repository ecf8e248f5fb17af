"""Model data from a caller, in whichever form, as hooks get it (D-16); and when the SDK is imported."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks.model import (
    GenerateContentParameters,
    HookFormat,
    TranslationError,
    mark_request,
    mark_response,
    registry,
    request_payload,
    resolve_translator,
    response_payload,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

HOOK_REQUEST = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hello"}, {"role": "model", "content": "Reading."}],
    "config": {"temperature": 0.5, "topK": 40},
    "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]},
}
CONTENTS = [
    types.UserContent("Hello"),
    types.ModelContent([types.Part(text="Reading."), types.Part.from_function_call(name="f", args={})]),
]
TOOL_CONFIG = types.ToolConfig(
    function_calling_config=types.FunctionCallingConfig(
        mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["f"]
    )
)
CONFIG = types.GenerateContentConfig(
    temperature=0.5,
    top_k=40,
    system_instruction="Be brief.",
    tool_config=TOOL_CONFIG,
)


def as_json(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


API_CONTENTS = [as_json(content) for content in CONTENTS]


@pytest.mark.requirement("HOOK-071", "HOOK-072")
@pytest.mark.parametrize(
    "value",
    [
        GenerateContentParameters("m", CONTENTS, CONFIG),
        GenerateContentParameters("m", API_CONTENTS, as_json(CONFIG)),
        types._GenerateContentParameters(model="m", contents=CONTENTS, config=CONFIG),
        {"model": "m", "contents": CONTENTS, "config": CONFIG},
        {"model": "m", "contents": [content.model_dump() for content in CONTENTS], "config": CONFIG.model_dump()},
        {
            "model": "m",
            "contents": API_CONTENTS,
            "generationConfig": {"temperature": 0.5, "topK": 40},
            "toolConfig": as_json(TOOL_CONFIG),
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [],
            "fieldOfTomorrow": 1,
        },
        {
            "model": "m",
            "contents": [content.model_dump() for content in CONTENTS],
            "generation_config": {"temperature": 0.5, "top_k": 40},
            "tool_config": TOOL_CONFIG.model_dump(),
        },
        HookFormat(HOOK_REQUEST),
    ],
    ids=["parameters", "dicts", "sdk", "arguments", "dumped", "api", "api-snake", "hook"],
)
def test_requests(value: Any) -> None:
    assert request_payload(value) == HOOK_REQUEST
    assert request_payload(value, resolve_translator()) == HOOK_REQUEST


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "of type NoneType"),
        ("Hello", "of type str"),
        ([], "of type list"),
        ({}, "no fields|the fields \\(none\\)"),
        ({"model": "m", "prompt": "x"}, "the fields model, prompt"),
        ({"messages": "Hello"}, "the fields messages"),
    ],
)
def test_anything_else_is_not_a_request(value: Any, found: str) -> None:
    with pytest.raises(TranslationError, match=found):
        request_payload(value)


RESPONSE = types.GenerateContentResponse(
    candidates=[
        types.Candidate(
            content=CONTENTS[1],
            finish_reason=types.FinishReason.STOP,
            index=0,
            safety_ratings=[
                types.SafetyRating(
                    category=types.HarmCategory.HARM_CATEGORY_HARASSMENT,
                    probability=types.HarmProbability.LOW,
                    blocked=False,
                )
            ],
        )
    ],
    usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3),
)
HOOK_RESPONSE = {
    "text": "Reading.",
    "candidates": [
        {
            "content": {"role": "model", "parts": ["Reading."]},
            "finishReason": "STOP",
            "index": 0,
            "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
        }
    ],
    "usageMetadata": {"promptTokenCount": 3},
}


@pytest.mark.requirement("HOOK-071", "HOOK-073")
@pytest.mark.parametrize(
    "value",
    [RESPONSE, as_json(RESPONSE), RESPONSE.model_dump(), HookFormat(HOOK_RESPONSE)],
    ids=["sdk", "api", "dumped", "hook"],
)
def test_responses(value: Any) -> None:
    assert response_payload(value) == HOOK_RESPONSE
    assert response_payload(value, resolve_translator()) == HOOK_RESPONSE


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        (HookFormat({"text": "only"}), {"text": "only"}),
        ({"candidates": []}, {"text": "", "candidates": []}),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, {"text": "", "candidates": []}),
        (
            {"candidates": [{"finishReason": "REASON_OF_TOMORROW", "content": {"parts": [{"newPart": 1}, None]}}]},
            {
                "text": "",
                "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "REASON_OF_TOMORROW"}],
            },
        ),
    ],
)
def test_sparse_and_unknown_responses(value: dict[str, Any], payload: dict[str, Any]) -> None:
    assert response_payload(value) == payload


@pytest.mark.parametrize("value", [None, "Hello", [], {}, {"output": "x"}])
def test_anything_else_is_not_a_response(value: Any) -> None:
    with pytest.raises(TranslationError, match="llm_response is"):
        response_payload(value)


@pytest.mark.parametrize("translator", [None, "google-genai", "openai-chat"])
def test_data_that_only_has_the_shape_of_the_hook_format_must_be_marked(translator: str | None) -> None:
    with pytest.raises(TranslationError, match=r"llm_request is .* mark it: HookFormat\(data\)"):
        request_payload(HOOK_REQUEST, translator)
    with pytest.raises(TranslationError, match=r"llm_response is .* mark it: HookFormat\(data\)"):
        response_payload(HOOK_RESPONSE, translator)


@pytest.mark.parametrize("translator", [None, "google-genai", "openai-chat"])
def test_data_that_the_translator_declines_is_marked_if_it_has_the_shape(translator: str | None) -> None:
    assert mark_request(HOOK_REQUEST, translator) == HookFormat(HOOK_REQUEST)
    assert mark_response(HOOK_RESPONSE, translator) == HookFormat(HOOK_RESPONSE)


@pytest.mark.parametrize(
    ("value", "translator"),
    [
        ({"messages": [], "contents": "Hello"}, None),
        ({"messages": [{"role": "user", "content": "Hello"}]}, "openai-chat"),
        (HookFormat(HOOK_REQUEST), None),
        ({"prompt": "Hello"}, None),
    ],
    ids=["gemini", "openai", "marked", "unknown"],
)
def test_other_data_is_not_marked(value: object, translator: str | None) -> None:
    assert mark_request(value, translator) is value


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.requirement("HOOK-071")
def test_importing_the_translator_imports_no_sdk() -> None:
    code = """
import sys
from llxprt_hooks.model import resolve_translator, HookFormat, mark_request, request_payload
request_payload(HookFormat({"messages": []}))
request_payload(mark_request({"messages": []}))
print("google.genai" in sys.modules, "pydantic" in sys.modules)
resolve_translator()
print("google.genai" in sys.modules)
"""
    assert run(code).split() == ["False", "False", "True"]


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.genai", None)
    monkeypatch.delitem(sys.modules, "llxprt_hooks.model.google_genai")
    registry._translator_named.cache_clear()

    with pytest.raises(
        TranslationError, match=r"translator google-genai needs .* `pip install 'llxprt-hooks\[agent\]'`"
    ):
        resolve_translator()
