"""Responses, both ways."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks.model import TranslationError

if TYPE_CHECKING:
    from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1

CALL = types.Part.from_function_call(name="read_file", args={})


@pytest.mark.requirement("HOOK-071", "HOOK-073", "HOOK-077")
def test_response_has_text_candidates_and_usage(translator: HookTranslatorGenAIv1) -> None:
    response = types.GenerateContentResponse(
        candidates=[
            types.Candidate(
                content=types.ModelContent(
                    [types.Part(text="Hm.", thought=True), types.Part(text="It "), CALL, types.Part(text="prints.")]
                ),
                finish_reason=types.FinishReason.STOP,
                index=0,
                safety_ratings=[
                    types.SafetyRating(
                        category=types.HarmCategory.HARM_CATEGORY_HARASSMENT,
                        probability=types.HarmProbability.LOW,
                        blocked=True,
                        severity_score=0.5,
                    )
                ],
            ),
            types.Candidate(
                content=types.ModelContent("Or not."), finish_reason=types.FinishReason.MAX_TOKENS, index=1
            ),
        ],
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=10, candidates_token_count=0, total_token_count=10, thoughts_token_count=3
        ),
        model_version="v",
    )

    assert translator.to_hook_llm_response(response) == {
        "text": "It prints.",
        "candidates": [
            {
                "content": {"role": "model", "parts": ["It ", "prints."]},
                "finishReason": "STOP",
                "index": 0,
                "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
            },
            {"content": {"role": "model", "parts": ["Or not."]}, "finishReason": "MAX_TOKENS", "index": 1},
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 0, "totalTokenCount": 10},
    }


@pytest.mark.requirement("HOOK-073", "HOOK-077")
@pytest.mark.parametrize(
    ("response", "shown"),
    [
        (types.GenerateContentResponse(), {"text": "", "candidates": []}),
        (
            types.GenerateContentResponse(candidates=[types.Candidate(content=types.ModelContent(CALL))]),
            {"text": "", "candidates": [{"content": {"role": "model", "parts": []}}]},
        ),
        (
            types.GenerateContentResponse(candidates=[types.Candidate(finish_reason=types.FinishReason.SAFETY)]),
            {"text": "", "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "SAFETY"}]},
        ),
    ],
)
def test_responses_without_text(translator: HookTranslatorGenAIv1, response: Any, shown: dict[str, Any]) -> None:
    assert translator.to_hook_llm_response(response) == shown


@pytest.mark.requirement("HOOK-079")
def test_dropped_fields_are_logged(translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="llxprt:core:hooks:translator")
    thought = types.Part(text="Hm.", thought=True)
    content = types.ModelContent([thought, "Reading.", CALL, CALL])

    translator.to_hook_llm_response(types.GenerateContentResponse(candidates=[types.Candidate(content=content)]))

    assert "1 thought, 2 function_call" in caplog.text


@pytest.mark.requirement("HOOK-079")
def test_a_hooks_response_becomes_an_sdk_response(translator: HookTranslatorGenAIv1) -> None:
    response = translator.from_hook_llm_response(
        {
            "text": "It prints.",
            "candidates": [
                {
                    "content": {"role": "model", "parts": ["It ", {"text": "prints."}]},
                    "finishReason": "STOP",
                    "index": 0,
                    "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
                }
            ],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12},
        }
    )

    assert response == types.GenerateContentResponse(
        candidates=[
            types.Candidate(
                content=types.Content(role="model", parts=[types.Part(text="It "), types.Part(text="prints.")]),
                finish_reason=types.FinishReason.STOP,
                index=0,
                safety_ratings=[
                    types.SafetyRating(
                        category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, probability=types.HarmProbability.LOW
                    )
                ],
            )
        ],
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=10, candidates_token_count=2, total_token_count=12
        ),
    )
    assert response.text == "It prints."


@pytest.mark.requirement("HOOK-079")
def test_text_alone_is_a_response(translator: HookTranslatorGenAIv1) -> None:
    response = translator.from_hook_llm_response({"text": "No.\ud800"})

    assert response.text == "No.\ud800"
    [candidate] = response.candidates or []
    assert candidate.content is not None
    assert candidate.content.role == "model"
    assert candidate.finish_reason is types.FinishReason.STOP


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        # The parts count; text fills in where the first candidate has none.
        ({"text": "old", "candidates": [{"content": {"parts": ["new"]}}]}, "new"),
        ({"text": "new", "candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}, "new"),
        ({"text": "new", "candidates": [{"finishReason": "STOP"}]}, "new"),
        ({"text": "new", "candidates": []}, "new"),
        ({"text": "new", "candidates": [7]}, "new"),
        ({"text": "new", "candidates": "x"}, "new"),
        ({"text": ""}, ""),
        ({"candidates": [{"content": {"parts": []}}]}, None),
        # Malformed pieces are ignored one by one.
        ({"text": 7, "candidates": [{"content": {"parts": ["a", 7, {"functionCall": {}}, {"text": "b"}]}}]}, "ab"),
        ({"candidates": [7, {"content": 7}, {"content": {"parts": ["b"]}}]}, "b"),
        ({"candidates": [{"content": {"parts": ["b"], "role": 7}, "index": "x", "safetyRatings": 7}]}, "b"),
        ({"candidates": [{"content": {"parts": ["b"]}, "safetyRatings": [7, {"category": 7}]}]}, "b"),
        ({"text": "a", "usageMetadata": {"promptTokenCount": "many"}, "other": 1}, "a"),
    ],
)
def test_partly_malformed_responses(
    translator: HookTranslatorGenAIv1, answer: dict[str, Any], text: str | None
) -> None:
    assert translator.from_hook_llm_response(answer).text == text


def test_unknown_names_are_ignored_with_a_warning_in_the_log_alone(
    translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture
) -> None:
    rating = {"category": "HARM_CATEGORY_BOREDOM", "probability": "low"}
    answer = {"candidates": [{"content": {"parts": ["a"]}, "finishReason": "DONE", "safetyRatings": [rating]}]}

    [candidate] = translator.from_hook_llm_response(answer).candidates or []

    assert candidate.finish_reason is None
    assert candidate.safety_ratings == [types.SafetyRating(probability=types.HarmProbability.LOW)]
    assert "FinishReason" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"text": None},
        {"text": 7},
        {"candidates": []},
        {"candidates": [{}]},
        {"candidates": [{"content": {}}]},
        {"candidates": [{"content": {"parts": [7]}}]},
        7,
    ],
)
def test_without_text_or_candidate_it_is_not_a_response(translator: HookTranslatorGenAIv1, answer: Any) -> None:
    with pytest.raises(TranslationError, match="neither a text nor a candidate"):
        translator.from_hook_llm_response(answer)


def test_a_call_that_the_answer_does_not_have_is_not_added(
    translator: HookTranslatorGenAIv1, caplog: pytest.LogCaptureFixture
) -> None:
    response = types.GenerateContentResponse(candidates=[types.Candidate(content=types.ModelContent([CALL]))])
    calls = [{"id": "read_file", "name": "read_file", "args": {}}, {"id": "rm", "name": "rm", "args": {}}]

    result = translator.from_full_llm_response({"candidates": [{"content": {"toolCalls": calls}}]}, response)

    assert result is response
    assert "the answer has no call with the id 'rm'" in caplog.text


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ({"toolCalls": []}, []),
        (
            {"parts": ["Look."], "toolCalls": [{"id": "read_file", "name": "read_file"}]},
            [types.Part(text="Look."), CALL],
        ),
    ],
    ids=["a call is removed", "a text is added"],
)
def test_in_the_full_view_the_parts_of_an_answer_stay_in_one_content(
    translator: HookTranslatorGenAIv1, content: dict[str, Any], parts: list[types.Part]
) -> None:
    response = types.GenerateContentResponse(candidates=[types.Candidate(content=types.ModelContent([CALL]))])

    result: Any = translator.from_full_llm_response({"candidates": [{"content": content}]}, response)

    assert result.candidates[0].content.parts == parts


def test_an_answer_without_calls_is_left_to_the_view_without_them(translator: HookTranslatorGenAIv1) -> None:
    response = types.GenerateContentResponse(candidates=[types.Candidate(content=types.ModelContent("Hello"))])

    assert translator.from_full_llm_response({"candidates": [{"content": {"parts": ["Bye"]}}]}, response) is None
