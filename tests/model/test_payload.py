"""Model data from a caller, in whichever form, as hooks get it (D-16); and when the SDK is imported."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks.model import (
    GenerateContentParameters,
    TranslationError,
    default_translator,
    registry,
    request_payload,
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
        HOOK_REQUEST,
    ],
    ids=["parameters", "dicts", "sdk", "arguments", "dumped", "api", "api-snake", "hook"],
)
def test_requests(value: Any) -> None:
    assert request_payload(value) == HOOK_REQUEST
    assert request_payload(value, default_translator()) == HOOK_REQUEST


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
def test_anything_else_is_no_request(value: Any, found: str) -> None:
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
    [RESPONSE, as_json(RESPONSE), RESPONSE.model_dump(), HOOK_RESPONSE],
    ids=["sdk", "api", "dumped", "hook"],
)
def test_responses(value: Any) -> None:
    assert response_payload(value) == HOOK_RESPONSE
    assert response_payload(value, default_translator()) == HOOK_RESPONSE


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        ({"text": "only"}, {"text": "only"}),
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
def test_anything_else_is_no_response(value: Any) -> None:
    with pytest.raises(TranslationError, match="llm_response is"):
        response_payload(value)


def test_one_translator_for_all() -> None:
    assert default_translator() is default_translator()


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.requirement("HOOK-071")
def test_importing_the_translator_imports_no_sdk() -> None:
    code = """
import sys
from llxprt_hooks.model import default_translator, request_payload
request_payload({"messages": []})
print("google.genai" in sys.modules, "pydantic" in sys.modules)
default_translator()
print("google.genai" in sys.modules)
"""
    assert run(code).split() == ["False", "False", "True"]


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.genai", None)
    monkeypatch.delitem(sys.modules, "llxprt_hooks.model.google_genai")
    registry._translator_named.cache_clear()

    with pytest.raises(TranslationError, match=r"needs google-genai, .* pip install 'llxprt-hooks\[agent\]'"):
        default_translator()
