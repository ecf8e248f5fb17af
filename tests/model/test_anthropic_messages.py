"""What is particular to Anthropic Messages; what it shares with every SDK is in test_translator_contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llxprt_hooks import TranslationError
from llxprt_hooks.model import Restriction
from llxprt_hooks.model.anthropic_messages import AnthropicMessagesTranslator
from tests.model.wire_samples import anthropic_response

TRANSLATOR = AnthropicMessagesTranslator()
USER = {"role": "user", "content": "Hi"}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "signed"}
TOOLS: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}, {"name": "c", "cache_control": {"type": "ephemeral"}}]


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 100, "messages": list(messages), **fields}


def text(content: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": content, **fields}


def with_texts(given: dict[str, Any], *texts: str) -> Any:
    """The messages after a hook gave these texts to them; an empty one removes its message."""
    shown = TRANSLATOR.to_hook_llm_request(given)["messages"]
    wanted = [{**message, "content": text} for message, text in zip(shown, texts, strict=True) if text]
    return TRANSLATOR.from_hook_llm_request({"messages": wanted}, given)["messages"]


def restricted(given: dict[str, Any], **wanted: Any) -> dict[str, Any]:
    result = TRANSLATOR.from_hook_llm_request({"toolConfig": wanted}, given)
    assert isinstance(result, dict)
    return result


def test_a_hooks_system_message_is_a_message_of_the_user() -> None:
    result = TRANSLATOR.with_system_message(request(USER, system="Be careful."), "Be brief.")

    assert result["messages"] == [USER, {"role": "user", "content": "[System] Be brief."}]
    assert result["system"] == "Be careful."


def test_nothing_comes_between_a_call_and_its_result() -> None:
    call = {"role": "assistant", "content": [THINKING, text("Look."), {"type": "tool_use", "id": "c1", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}, text("Go on.")]}
    given = request(USER, call, result)
    shown = TRANSLATOR.to_hook_llm_request(given)["messages"]

    for place in range(len(shown) + 1):
        for role in ("user", "model", "system"):
            wanted = [*shown[:place], {"role": role, "content": "New."}, *shown[place:]]
            messages = TRANSLATOR.from_hook_llm_request({"messages": wanted}, given)["messages"]
            assert messages[messages.index(call) + 1] is result


def test_a_call_that_the_api_ran_is_not_an_open_call() -> None:
    blocks = [{"type": "server_tool_use", "id": "s1"}, {"type": "web_search_tool_result", "tool_use_id": "s1"}]
    turn = TRANSLATOR.turns(request({"role": "assistant", "content": blocks}))[0]

    assert (turn.calls, turn.results) == ((), ())


def test_a_message_of_thinking_alone_is_removed() -> None:
    """The API rejects a message that ends with thinking."""
    given = request(USER, {"role": "assistant", "content": [THINKING, text("Secret.")]}, USER)

    assert with_texts(given, "Hi", "", "Hi") == [USER, USER]


def test_thinking_before_a_call_stays() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "a", "input": {}}
    answer = {"role": "assistant", "content": [THINKING, text("Secret."), call]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}

    left = with_texts(request(USER, answer, result), "Hi", "")

    assert left == [USER, {"role": "assistant", "content": [THINKING, call]}, result]
    assert left[1]["content"][0] is THINKING


def test_an_edit_leaves_the_blocks_alone_that_it_does_not_touch() -> None:
    first, second, third = text("One. ", citations=["x"]), text("Two. "), text("Three.", cache_control={"type": "e"})
    given = request({"role": "user", "content": [first, second, third]})

    assert with_texts(given, "One. 2. Three.")[0]["content"] == [first, text("2. "), third]
    assert with_texts(given, "One. Two. 3.")[0]["content"] == [first, second, {**third, "text": "3."}]
    assert with_texts(given, "One. Three.")[0]["content"] == [first, third]


def test_a_cache_mark_survives_when_blocks_become_one() -> None:
    mark = {"type": "ephemeral"}
    given = request({"role": "user", "content": [text("One. ", x=1), text("Two.", cache_control=mark)]})

    assert with_texts(given, "***")[0]["content"] == [text("***", x=1, cache_control=mark)]


@pytest.mark.parametrize("setting", ["temperature", "topP", "topK"])
def test_sampling_is_changed_only_if_the_request_has_it(setting: str, caplog: pytest.LogCaptureFixture) -> None:
    """Newer models answer 400 to these."""
    change = {"config": {setting: 0.25, "maxOutputTokens": 7}}

    without = TRANSLATOR.from_hook_llm_request(change, request(USER))
    sampled = TRANSLATOR.from_hook_llm_request(change, request(USER, top_p=0.5))

    assert without == request(USER, max_tokens=7)
    assert f"config.{setting}` is ignored" in caplog.text
    assert TRANSLATOR.to_hook_llm_request(sampled)["config"] == {"topP": 0.5, **change["config"]}


@pytest.mark.parametrize(
    ("wanted", "choice", "left"),
    [
        ({"mode": "NONE"}, {"type": "none"}, "abc"),
        ({"allowedFunctionNames": []}, {"type": "none"}, "abc"),
        ({"mode": "ANY"}, {"type": "any", "disable_parallel_tool_use": True}, "abc"),
        (
            {"mode": "ANY", "allowedFunctionNames": ["b"]},
            {"type": "tool", "name": "b", "disable_parallel_tool_use": True},
            "abc",
        ),
        (
            {"mode": "ANY", "allowedFunctionNames": ["b", "c", "x"]},
            {"type": "any", "disable_parallel_tool_use": True},
            "bc",
        ),
        ({"allowedFunctionNames": ["a", "x"]}, {"type": "auto", "disable_parallel_tool_use": True}, "a"),
        ({"allowedFunctionNames": ["x"]}, {"type": "none"}, "abc"),
    ],
)
def test_tool_choices(wanted: dict[str, Any], choice: dict[str, Any], left: str) -> None:
    given = request(USER, tools=TOOLS, tool_choice={"type": "auto", "disable_parallel_tool_use": True})

    result = restricted(given, **wanted)

    assert json.loads(json.dumps(result["tool_choice"])) == choice
    assert result["tools"] == [tool for tool in TOOLS if tool["name"] in left]


def test_names_that_the_api_cannot_have_are_still_known() -> None:
    """So a call of a tool that is only in the history is refused."""
    result = restricted(request(USER, tools=TOOLS), allowedFunctionNames=["a", "b"])

    shown = TRANSLATOR.to_hook_llm_request(result)["toolConfig"]
    assert shown == {"mode": "AUTO", "allowedFunctionNames": ["a", "b"]}
    assert not Restriction.of(shown).allows("c")
    assert restricted(result, **shown) is result


def test_with_thinking_no_call_is_required(caplog: pytest.LogCaptureFixture) -> None:
    given = request(USER, tools=TOOLS, thinking={"type": "enabled", "budget_tokens": 1024})

    assert restricted(given, mode="ANY")["tool_choice"] == {"type": "auto"}
    one = restricted(given, mode="ANY", allowedFunctionNames=["b"])
    assert (one["tool_choice"], [tool["name"] for tool in one["tools"]]) == ({"type": "auto"}, ["b"])
    assert "the API rejects that while thinking is on" in caplog.text
    assert restricted({**given, "thinking": {"type": "disabled"}}, mode="ANY")["tool_choice"] == {"type": "any"}


def test_a_request_without_tools_gets_no_tool_choice() -> None:
    given = request(USER)

    assert TRANSLATOR.from_hook_llm_request({"toolConfig": {"mode": "NONE"}}, given) is given


def test_an_unknown_choice_is_not_shown_and_can_be_replaced() -> None:
    given = request(USER, tools=TOOLS, tool_choice={"type": "later"})

    assert "toolConfig" not in TRANSLATOR.to_hook_llm_request(given)
    assert restricted(given, mode="NONE")["tool_choice"] == {"type": "none"}
    assert TRANSLATOR.with_tool_config(restricted(given, mode="NONE"), {"type": "later"}) == given


@pytest.mark.parametrize(
    ("stop_reason", "shown", "again"),
    [
        ("end_turn", "STOP", "end_turn"),
        ("stop_sequence", "STOP", "end_turn"),
        ("tool_use", "STOP", "end_turn"),
        ("max_tokens", "MAX_TOKENS", "max_tokens"),
        ("model_context_window_exceeded", "MAX_TOKENS", "max_tokens"),
        ("refusal", "SAFETY", "refusal"),
        ("pause_turn", "PAUSE_TURN", "end_turn"),
    ],
)
def test_finish_reasons(stop_reason: str, shown: str, again: str) -> None:
    response = {**anthropic_response(), "stop_reason": stop_reason, "stop_details": {"type": stop_reason}}

    hook_response = TRANSLATOR.to_hook_llm_response(response)
    result = TRANSLATOR.from_hook_llm_response(hook_response, response)

    assert hook_response["candidates"][0]["finishReason"] == shown
    assert (result["stop_reason"], result["stop_details"], result["id"]) == (again, None, "msg_1")


def test_other_data_is_declined() -> None:
    with pytest.raises(TranslationError, match=r"expected the arguments of messages\.create"):
        TRANSLATOR.read_request({"model": "m", "input": "Hi"})
    with pytest.raises(TranslationError, match="expected a Message with content"):
        TRANSLATOR.read_response({"type": "message_batch"})


def test_a_streamed_answer_has_the_token_counts_of_a_complete_one() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 5, "output_tokens": 4}
    response = {**anthropic_response(), "usage": usage}

    streamed = TRANSLATOR.wire.assemble(TRANSLATOR.wire.events(response))

    assert streamed is not None
    assert TRANSLATOR.to_hook_llm_response(streamed) == TRANSLATOR.to_hook_llm_response(response)
    counts = {"promptTokenCount": 28, "candidatesTokenCount": 4, "totalTokenCount": 32}
    assert TRANSLATOR.to_hook_llm_response(streamed)["usageMetadata"] == counts


def test_in_the_full_view_a_hook_can_remove_the_system_prompt() -> None:
    given = request(USER, system="Be careful.")
    prompt, user = TRANSLATOR.to_full_llm_request(given)["messages"]

    assert TRANSLATOR.from_full_llm_request({"messages": [{**prompt, "content": ""}, user]}, given) == request(USER)
