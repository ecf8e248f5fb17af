"""Hooks around a model call: callers give and get google-genai's own types, scripts see the hook format."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    AfterModelHookResult,
    BeforeModelHookResult,
    BeforeToolSelectionHookResult,
    GenerateContentParameters,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)

if TYPE_CHECKING:
    from types import ModuleType

    from google.genai.types import GenerateContentResponse

    from tests.support.engine_project import EngineProject

FireBeforeModel = Callable[..., Awaitable[BeforeModelHookResult[Any]]]
FireAfterModel = Callable[..., Awaitable[AfterModelHookResult[Any]]]
Echoing = Callable[[str], Awaitable[tuple[Any, AfterModelHookResult[Any]]]]
FireSelection = Callable[..., Awaitable[BeforeToolSelectionHookResult]]


@pytest.fixture
def before_model(project: EngineProject, llm_request: GenerateContentParameters) -> FireBeforeModel:
    """Return the result of a BeforeModel hook with this output."""

    async def before_model(says: Any = None, request: Any = llm_request, **options: Any) -> BeforeModelHookResult[Any]:
        return await fire_before_model_hook(
            project.config({"BeforeModel": project.hook("b", says, **options)}), request
        )

    return before_model


@pytest.fixture
def after_model(
    project: EngineProject, llm_request: GenerateContentParameters, llm_response: GenerateContentResponse
) -> FireAfterModel:
    """Return the result of an AfterModel hook with this output."""

    async def after_model(says: Any = None, **options: Any) -> AfterModelHookResult[Any]:
        config = project.config({"AfterModel": project.hook("a", says, **options)})
        return await fire_after_model_hook(config, llm_request, llm_response)

    return after_model


@pytest.fixture
def selection(project: EngineProject, llm_request: GenerateContentParameters) -> FireSelection:
    """Return the result of a BeforeToolSelection hook with this output."""

    async def selection(says: Any = None, request: Any = llm_request, **options: Any) -> BeforeToolSelectionHookResult:
        config = project.config({"BeforeToolSelection": project.hook("s", says, **options)})
        return await fire_before_tool_selection_hook(config, request)

    return selection


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


STOPS = [
    ({"stopReason": "s"}, "s"),
    ({"reason": "r"}, "r"),
    ({"stopReason": "s", "reason": "r"}, "s"),
    ({"stopReason": "s", "reason": "r", "decision": "deny"}, "s"),
    ({}, "No reason provided"),
]


# BeforeModel.


@pytest.mark.requirement("HOOK-135", "HOOK-152")
async def test_an_empty_output_keeps_the_model_call(before_model: FireBeforeModel) -> None:
    assert await before_model() == BeforeModelHookResult()


@pytest.mark.requirement("HOOK-036", "HOOK-135", "HOOK-141", "HOOK-179", "HOOK-156")
@pytest.mark.parametrize("decision", ["block", "deny"])
@pytest.mark.parametrize(
    "llm_response",
    [
        {"text": "from the cache"},
        {"candidates": [{"content": {"role": "model", "parts": ["from ", "the cache"]}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": [{"text": "from the cache"}]}}]},
    ],
)
async def test_a_block_with_a_response_answers_in_the_place_of_the_model(
    before_model: FireBeforeModel, genai: ModuleType, decision: str, llm_response: dict[str, Any]
) -> None:
    result = await before_model({"decision": decision, "reason": "cached", **specific(llm_response=llm_response)})
    assert (result.blocked, result.reason, result.should_stop) == (True, "cached", False)
    assert isinstance(result.synthetic_response, genai.GenerateContentResponse)
    assert result.synthetic_response.text == "from the cache"
    assert result.modified_request is None


@pytest.mark.requirement("HOOK-037", "HOOK-135", "HOOK-179")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"says": {"decision": "block", "reason": "not today"}}, "not today"),
        ({"says": {"decision": "deny", "stopReason": "second best"}}, "second best"),
        ({"says": {"decision": "deny"}}, "No reason provided"),
        ({"exit_code": 2, "stderr": "not today"}, "not today"),
        ({"exit_code": 2}, "Blocked by hook"),
    ],
)
async def test_a_block_without_a_response_leaves_the_answer_to_the_caller(
    before_model: FireBeforeModel, options: dict[str, Any], reason: str
) -> None:
    result = await before_model(**options)
    assert (result.blocked, result.reason, result.synthetic_response) == (True, reason, None)
    assert result.should_stop is False


@pytest.mark.requirement("HOOK-036", "HOOK-111")
@pytest.mark.parametrize(
    "llm_response", [{"candidates": "nonsense"}, {"nothing": "known"}, {"candidates": [7]}, {"text": 7}, "text", [], 7]
)
async def test_a_response_that_cannot_be_translated_still_blocks(
    before_model: FireBeforeModel, llm_response: Any
) -> None:
    result = await before_model({"decision": "block", "reason": "no", **specific(llm_response=llm_response)})
    assert (result.blocked, result.reason, result.synthetic_response) == (True, "no", None)


@pytest.mark.requirement("HOOK-036")
async def test_a_response_without_a_block_replaces_nothing(before_model: FireBeforeModel) -> None:
    assert await before_model(specific(llm_response={"text": "unasked"})) == BeforeModelHookResult()


@pytest.mark.requirement("HOOK-040", "HOOK-184", "HOOK-179", "DELTA-HAPP-002")
@pytest.mark.parametrize(("fields", "stop_reason"), STOPS)
async def test_a_stop_before_the_model_counts_as_blocked_and_reaches_the_caller(
    before_model: FireBeforeModel, fields: dict[str, Any], stop_reason: str
) -> None:
    result = await before_model({"continue": False, **fields})
    assert result.blocked is True
    assert (result.should_stop, result.stop_reason) == (True, stop_reason)
    assert result.reason == ("r" if "decision" in fields else stop_reason)
    assert result.synthetic_response is None
    assert result.modified_request is None


@pytest.mark.requirement("HOOK-184")
async def test_a_stop_with_a_response_keeps_the_response(before_model: FireBeforeModel) -> None:
    result = await before_model({"continue": False, "stopReason": "s", **specific(llm_response={"text": "bye"})})
    assert result.synthetic_response is not None
    assert (result.blocked, result.should_stop, result.synthetic_response.text) == (True, True, "bye")


@pytest.mark.requirement("HOOK-038", "HOOK-135", "HOOK-141", "HOOK-179", "HOOK-156")
async def test_a_changed_request_is_given_back_in_sdk_types_with_all_that_hooks_cannot_see(
    before_model: FireBeforeModel, llm_request: GenerateContentParameters, genai: ModuleType
) -> None:
    before = dataclasses.replace(llm_request)
    messages = [
        {"role": "user", "content": "What is in the picture?"},
        {"role": "model", "content": "A cat."},
        {"role": "user", "content": "And now, briefly?"},
    ]
    changes = {"model": "gemini-3-pro", "messages": messages, "config": {"temperature": 0}}
    result = await before_model(specific(llm_request=changes))
    assert (result.blocked, result.synthetic_response) == (False, None)
    modified = result.modified_request
    assert isinstance(modified, GenerateContentParameters)
    assert modified.model == "gemini-3-pro"
    assert all(isinstance(content, genai.Content) for content in modified.contents)
    assert [content.parts[0].text for content in modified.contents] == [
        "What is in the picture?",
        None,
        "A cat.",
        "And now, briefly?",
    ]
    assert modified.contents[1].parts[0].inline_data.data == b"\x89PNG"
    assert isinstance(modified.config, genai.GenerateContentConfig)
    assert (modified.config.temperature, modified.config.max_output_tokens) == (0, 100)
    assert modified.config.tools is llm_request.config.tools
    assert modified.config.system_instruction == "Be brief."
    assert llm_request == before


@pytest.mark.requirement("HOOK-038")
@pytest.mark.parametrize(
    "llm_request_said",
    [{}, {"model": "gemini-3-flash"}, {"config": {"temperature": 0.5}}, {"model": 7, "messages": "x"}, 7, None],
)
async def test_a_request_that_is_not_changed_is_not_given_back(
    before_model: FireBeforeModel, llm_request_said: dict[str, Any] | int | None
) -> None:
    assert await before_model(specific(llm_request=llm_request_said)) == BeforeModelHookResult()


async def test_message_and_suppression_before_the_model_reach_the_caller(before_model: FireBeforeModel) -> None:
    result = await before_model({"systemMessage": "note", "suppressOutput": True})
    assert (result.blocked, result.system_message, result.suppress_output) == (False, "note", True)
    assert (await before_model("plain text")).system_message == "plain text"


# AfterModel.


@pytest.mark.requirement("HOOK-136", "HOOK-153")
async def test_an_empty_output_returns_the_same_response(
    after_model: FireAfterModel, llm_response: GenerateContentResponse
) -> None:
    result = await after_model()
    assert result.response is llm_response
    assert (result.should_stop, result.stop_reason, result.system_message, result.suppress_output) == (
        False,
        None,
        None,
        False,
    )


@pytest.mark.requirement("HOOK-046", "HOOK-136", "HOOK-141", "HOOK-180", "HOOK-156")
async def test_a_changed_response_is_used_instead(
    project: EngineProject,
    genai: ModuleType,
    llm_request: GenerateContentParameters,
    llm_response: GenerateContentResponse,
) -> None:
    hook = project.python_hook(
        "redacting",
        "response = payload['llm_response']\n"
        "parts = response['candidates'][0]['content']['parts']\n"
        "response['candidates'][0]['content']['parts'] = [part.replace('dog', '***') for part in parts]\n"
        "del response['text']\n"
        "said = {'hookSpecificOutput': {'llm_response': response}}",
    )
    result = await fire_after_model_hook(project.config({"AfterModel": hook}), llm_request, llm_response)
    assert isinstance(result.response, genai.GenerateContentResponse)
    assert [part.text for part in result.response.candidates[0].content.parts] == ["A ***, ", "asleep."]
    assert result.response.candidates[0].finish_reason == genai.FinishReason.STOP
    assert result.response.usage_metadata.total_token_count == 15
    assert llm_response.text == "A dog, asleep."


@pytest.fixture
def echoing(project: EngineProject, llm_request: GenerateContentParameters, genai: ModuleType) -> Echoing:
    """Return the result of an AfterModel hook that returns the response it was shown, after changing it."""

    async def echoing(change: str) -> tuple[Any, AfterModelHookResult[Any]]:
        hook = project.python_hook(
            "echoing",
            "response = payload['llm_response']\n"
            f"{change}\n"
            "said = {'hookSpecificOutput': {'llm_response': response}}",
        )
        call = genai.FunctionCall(name="glob", args={"pattern": "*"})
        parts = [genai.Part(text="The key is hunter2."), genai.Part(function_call=call)]
        candidate = genai.Candidate(content=genai.Content(role="model", parts=parts), finish_reason="STOP", index=0)
        response = genai.GenerateContentResponse(candidates=[candidate])
        config = project.config({"AfterModel": hook})
        return response, await fire_after_model_hook(config, llm_request, response)

    return echoing


@pytest.mark.requirement("HOOK-046", "HOOK-180")
async def test_a_redacted_text_wins_over_the_candidates_that_the_hook_only_repeats(
    echoing: Echoing,
) -> None:
    response, result = await echoing("response['text'] = 'The key is ***.'")
    assert result.response.text == "The key is ***."
    assert "hunter2" not in result.response.model_dump_json()
    assert "hunter2" in response.text


@pytest.mark.requirement("HOOK-079", "HOOK-180")
@pytest.mark.parametrize(
    "change",
    [
        "pass",
        "del response['candidates']",
        "del response['text']",
        "response = {'text': response['text']}",
        "response['candidates'][0]['content']['parts'] = [{'text': response['text']}]",
        "response = {'candidates': [{'content': response['candidates'][0]['content']}]}",
    ],
)
async def test_a_response_that_the_hook_only_repeats_keeps_the_calls_of_the_model(
    echoing: Echoing, change: str
) -> None:
    response, result = await echoing(change)
    assert result.response is response
    assert result.response.function_calls[0].name == "glob"


@pytest.mark.requirement("HOOK-046", "HOOK-180")
async def test_redacted_candidates_win_over_the_text_that_the_hook_only_repeats(
    echoing: Echoing,
) -> None:
    _, result = await echoing("response['candidates'][0]['content']['parts'] = ['The key is ***.']")
    assert result.response.text == "The key is ***."
    assert "hunter2" not in result.response.model_dump_json()


@pytest.mark.requirement("HOOK-048", "HOOK-180", "DELTA-HAPP-002")
@pytest.mark.parametrize(("fields", "stop_reason"), STOPS)
async def test_a_stop_after_the_model_is_answered_with_its_reason_and_reaches_the_caller(
    after_model: FireAfterModel, genai: ModuleType, fields: dict[str, Any], stop_reason: str
) -> None:
    result = await after_model({"continue": False, **fields})
    assert (result.should_stop, result.stop_reason) == (True, stop_reason)
    assert isinstance(result.response, genai.GenerateContentResponse)
    assert result.response.text == stop_reason


@pytest.mark.requirement("HOOK-048")
async def test_a_stop_with_a_response_of_its_own_uses_that(after_model: FireAfterModel) -> None:
    result = await after_model({"continue": False, "stopReason": "s", **specific(llm_response={"text": "bye"})})
    assert (result.response.text, result.should_stop, result.stop_reason) == ("bye", True, "s")


@pytest.mark.requirement("HOOK-180")
async def test_suppression_and_message_after_the_model_reach_the_caller(
    after_model: FireAfterModel, llm_response: GenerateContentResponse
) -> None:
    result = await after_model({"suppressOutput": True, "systemMessage": "note"})
    assert (result.suppress_output, result.system_message) == (True, "note")
    assert result.response is llm_response


@pytest.mark.requirement("HOOK-180")
@pytest.mark.parametrize(
    "options",
    [
        {"says": {"decision": "block", "reason": "too late"}},
        {"says": {"decision": "deny", "reason": "too late"}},
        {"exit_code": 2, "stderr": "too late"},
    ],
)
async def test_an_after_model_hook_cannot_block(
    after_model: FireAfterModel, llm_response: GenerateContentResponse, options: dict[str, Any]
) -> None:
    result = await after_model(**options)
    assert result == AfterModelHookResult(response=llm_response)
    assert result.response is llm_response


@pytest.mark.requirement("HOOK-111", "HOOK-180")
@pytest.mark.parametrize("llm_response_said", [{"candidates": "nonsense"}, {"nothing": "known"}, {"text": 7}, 7])
async def test_an_unusable_response_keeps_the_models_response_and_the_messages(
    after_model: FireAfterModel, llm_response: GenerateContentResponse, llm_response_said: dict[str, Any] | int
) -> None:
    result = await after_model({"suppressOutput": True, **specific(llm_response=llm_response_said)})
    assert result.response is llm_response
    assert result.suppress_output is True


# BeforeToolSelection.


@pytest.mark.requirement("HOOK-137", "HOOK-154")
async def test_an_empty_output_keeps_the_tools(selection: FireSelection) -> None:
    assert await selection() == BeforeToolSelectionHookResult()


@pytest.mark.requirement("HOOK-055", "HOOK-137", "HOOK-141", "HOOK-181", "HOOK-156")
async def test_allowed_names_go_into_the_tool_config_and_the_tools_stay_complete(
    selection: FireSelection, genai: ModuleType, llm_request: GenerateContentParameters
) -> None:
    result = await selection(specific(toolConfig={"allowedFunctionNames": ["read_file", "glob"]}))
    assert isinstance(result.tool_config, genai.ToolConfig)
    assert set(result.tool_config.function_calling_config.allowed_function_names) == {"read_file", "glob"}
    assert result.tools is llm_request.config.tools
    assert len(result.tools[0].function_declarations) == 3
    assert llm_request.config.tool_config.function_calling_config.allowed_function_names is None


@pytest.mark.requirement("HOOK-057", "HOOK-181")
@pytest.mark.parametrize(
    "tool_config", [{"mode": "NONE"}, {"mode": "NONE", "allowedFunctionNames": ["glob"]}, {"allowedFunctionNames": []}]
)
async def test_no_tool_at_all_is_mode_none_with_no_names(
    selection: FireSelection, genai: ModuleType, tool_config: dict[str, Any]
) -> None:
    result = await selection(specific(toolConfig=tool_config))
    assert result.tool_config is not None
    assert result.tool_config.function_calling_config.mode == genai.FunctionCallingConfigMode.NONE
    assert result.tool_config.function_calling_config.allowed_function_names == []


@pytest.mark.requirement("HOOK-058", "HOOK-181", "DELTA-HAPP-002")
@pytest.mark.parametrize(("fields", "stop_reason"), STOPS)
async def test_a_stop_at_tool_selection_reaches_the_caller(
    selection: FireSelection, fields: dict[str, Any], stop_reason: str
) -> None:
    result = await selection({"continue": False, **fields})
    assert (result.should_stop, result.stop_reason) == (True, stop_reason)


@pytest.mark.requirement("HOOK-181")
@pytest.mark.parametrize(
    "options",
    [
        {"says": {"decision": "block", "reason": "no"}},
        {"says": {"decision": "deny", "reason": "no"}},
        {"exit_code": 2, "stderr": "no"},
        {"says": specific(llm_request={"model": "other", "messages": []})},
        {"says": specific(llm_response={"text": "forged"})},
        {"says": specific(tool_input={"a": 1})},
    ],
)
async def test_a_tool_selection_hook_can_neither_block_nor_rewrite(
    selection: FireSelection, options: dict[str, Any]
) -> None:
    assert await selection(**options) == BeforeToolSelectionHookResult()


@pytest.mark.requirement("HOOK-111")
@pytest.mark.parametrize("tool_config", [7, {"mode": "SOMETIMES"}, {"allowedFunctionNames": "glob"}, {"x": 1}])
async def test_a_tool_config_that_cannot_be_used_changes_nothing_and_the_rest_applies(
    selection: FireSelection, tool_config: int | dict[str, Any]
) -> None:
    result = await selection({"systemMessage": "m", **specific(toolConfig=tool_config)})
    assert result == BeforeToolSelectionHookResult(system_message="m")


# Who fires what.


@pytest.mark.requirement("HOOK-207")
async def test_nothing_but_its_own_trigger_fires_after_model(
    project: EngineProject, llm_request: GenerateContentParameters, llm_response: GenerateContentResponse
) -> None:
    events = ("BeforeTool", "AfterTool", "BeforeModel", "BeforeToolSelection", "AfterModel")
    config = project.config({event: project.hook(event, {"systemMessage": "m"}) for event in events})
    await fire_before_model_hook(config, llm_request)
    await fire_before_tool_selection_hook(config, llm_request)
    await execute_tool_with_hooks(config, "glob", {}, lambda _: "done")
    assert [project.runs(event) for event in events] == [1, 1, 1, 1, 0]
    await fire_after_model_hook(config, llm_request, llm_response)
    assert project.runs("AfterModel") == 1
