"""What is particular to OpenAI Responses; what it shares with every SDK is in test_translator_contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llxprt_hooks import TranslationError
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from tests.model.wire_samples import responses_response

TRANSLATOR = OpenAIResponsesTranslator()
USER = {"role": "user", "content": "Hi"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}
CALL = {"type": "function_call", "call_id": "c1", "name": "glob", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "x"}
FUNCTION = {"type": "function", "name": "glob"}
CUSTOM = {"type": "custom", "name": "grammar"}
SEARCH = {"type": "web_search"}
SERVER = {"type": "mcp", "server_label": "db"}


def request(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "input": list(items), **fields}


def with_texts(given: dict[str, Any], *texts: str) -> Any:
    """The input after a hook gave these texts to the messages; an empty one removes its message."""
    shown = TRANSLATOR.to_hook_llm_request(given)["messages"]
    wanted = [{**message, "content": text} for message, text in zip(shown, texts, strict=True) if text]
    return TRANSLATOR.from_hook_llm_request({"messages": wanted}, given)["input"]


def test_the_input_may_be_a_text() -> None:
    given = {"model": "gpt-5", "input": "Hello"}

    assert with_texts(given, "***") == [{"type": "message", "role": "user", "content": "***"}]
    assert with_texts(given, "") == []


def test_a_request_without_input_gets_one_with_a_system_message() -> None:
    result = TRANSLATOR.with_system_message({"model": "gpt-5", "previous_response_id": "resp_0"}, "Be brief.")

    assert result["input"] == [{"type": "message", "role": "system", "content": "Be brief."}]


def test_a_hooks_system_message_is_a_real_one() -> None:
    result = TRANSLATOR.with_system_message(request(USER), "Be brief.")

    assert result["input"] == [USER, {"type": "message", "role": "system", "content": "Be brief."}]


def test_reasoning_stays_before_the_message_that_it_led_to() -> None:
    given = request(USER, REASONING, MESSAGE, USER)
    shown = TRANSLATOR.to_hook_llm_request(given)["messages"]
    new = {"role": "user", "content": "New."}

    for place in range(len(shown) + 1):
        result = TRANSLATOR.from_hook_llm_request({"messages": [*shown[:place], new, *shown[place:]]}, given)["input"]
        assert result[result.index(REASONING) + 1] == MESSAGE


def test_a_message_before_reasoning_stays_there() -> None:
    given = request(USER, REASONING, MESSAGE)
    shown = TRANSLATOR.to_hook_llm_request(given)["messages"]

    result = TRANSLATOR.from_hook_llm_request({"messages": [shown[0], {"content": "New."}, shown[1]]}, given)["input"]

    assert result == [USER, {"type": "message", "role": "user", "content": "New."}, REASONING, MESSAGE]


def test_a_changed_message_keeps_its_id_and_its_reasoning() -> None:
    result = with_texts(request(USER, REASONING, MESSAGE), "Hi", "***")

    assert result[1] is REASONING
    assert (result[2]["id"], result[2]["content"][0]["text"]) == ("msg_1", "***")


@pytest.mark.parametrize(
    ("items", "texts", "left"),
    [
        # The API rejects reasoning without the item that it led to.
        ([USER, REASONING, MESSAGE], ["Hi", ""], [USER]),
        ([USER, REASONING, REASONING, MESSAGE, USER], ["Hi", "", "Hi"], [USER, USER]),
        # A call that it led to as well is left.
        ([USER, REASONING, MESSAGE, CALL, RESULT], ["Hi", ""], [USER, REASONING, CALL, RESULT]),
        ([USER, REASONING, MESSAGE, REASONING, CALL, RESULT], ["Hi", ""], [USER, REASONING, CALL, RESULT]),
        # Reasoning that was alone before is not touched.
        ([USER, REASONING], [""], [REASONING]),
        ([REASONING, USER, MESSAGE], ["", "Hello."], [REASONING, MESSAGE]),
    ],
    ids=["last", "two", "call", "other call", "alone", "before user"],
)
def test_reasoning_goes_with_the_message_that_it_led_to(items: list[Any], texts: list[str], left: list[Any]) -> None:
    assert with_texts(request(*items), *texts) == left


@pytest.mark.parametrize(
    "pair",
    [
        (CALL, RESULT),
        ({"type": "local_shell_call", "id": "x", "call_id": "c1"}, {"type": "local_shell_call_output", "id": "c1"}),
        ({"type": "mcp_approval_request", "id": "a1"}, {"type": "mcp_approval_response", "approval_request_id": "a1"}),
        ({"type": "custom_tool_call", "call_id": "c2"}, {"type": "custom_tool_call_output", "call_id": "c2"}),
    ],
    ids=lambda pair: pair[0]["type"],
)
def test_calls_and_their_results_are_found(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    call, result = TRANSLATOR.turns(request(*pair))

    assert set(call.calls[0]) & set(result.results[0])
    assert (call.results, result.calls, call.role, result.role) == ((), (), "model", "user")


def test_items_without_a_key_have_no_calls() -> None:
    turns = TRANSLATOR.turns(request({"type": "new_thing"}, {"type": "new_output"}))

    assert [(turn.calls, turn.results) for turn in turns] == [((), ()), ((), ())]


def test_a_refusal_is_not_text_and_survives() -> None:
    refusal = {"type": "refusal", "refusal": "No."}
    given = request(USER, {**MESSAGE, "content": [refusal, *MESSAGE["content"]]})

    assert with_texts(given, "Hi", "")[1]["content"] == [refusal]


@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        (None, {}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("later", {}),
        (FUNCTION, {"mode": "ANY", "allowedFunctionNames": ["glob"]}),
        (SEARCH, {"mode": "ANY", "allowedFunctionNames": ["web_search"]}),
        ({**SERVER, "name": "drop"}, {"mode": "ANY", "allowedFunctionNames": ["drop"]}),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION, SEARCH, SERVER]},
            {"mode": "AUTO", "allowedFunctionNames": ["glob", "web_search", "db"]},
        ),
    ],
)
def test_tool_choices_as_hooks_see_them(choice: Any, shown: dict[str, Any]) -> None:
    assert TRANSLATOR.to_hook_tool_config(choice) == shown


@pytest.mark.parametrize(
    ("wanted", "choice"),
    [
        ({"mode": "NONE"}, "none"),
        ({"mode": "ANY", "allowedFunctionNames": ["grammar"]}, CUSTOM),
        ({"mode": "ANY", "allowedFunctionNames": ["unknown"]}, "none"),
        (
            {"mode": "AUTO", "allowedFunctionNames": ["glob", "unknown", "web_search", "db"]},
            {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION, SEARCH, SERVER]},
        ),
    ],
)
def test_a_tool_choice_names_declared_tools_with_their_type(wanted: dict[str, Any], choice: Any) -> None:
    given = request(USER, tools=[{**FUNCTION, "parameters": {}}, CUSTOM, SEARCH, {**SERVER, "server_url": "http://x"}])

    result = TRANSLATOR.from_hook_llm_request({"toolConfig": wanted}, given)

    assert (result["tool_choice"], result["tools"]) == (choice, given["tools"])


@pytest.mark.parametrize(
    ("status", "details", "shown"),
    [
        ("completed", None, "STOP"),
        ("incomplete", {"reason": "max_output_tokens"}, "MAX_TOKENS"),
        ("incomplete", {"reason": "content_filter"}, "SAFETY"),
        ("failed", None, "FAILED"),
    ],
)
def test_finish_reasons(status: str, details: Any, shown: str) -> None:
    response = {**responses_response(), "status": status, "incomplete_details": details}

    hook_response = TRANSLATOR.to_hook_llm_response(response)
    again = TRANSLATOR.from_hook_llm_response({**hook_response, "text": "***", "candidates": []}, response)

    assert hook_response["candidates"][0]["finishReason"] == shown
    assert (again["status"], again["incomplete_details"]) == ("completed", None)


def test_a_replaced_answer_keeps_the_ids_and_loses_calls_and_reasoning() -> None:
    result = TRANSLATOR.from_hook_llm_response({"text": "***"}, responses_response())

    assert (result["id"], [item["id"] for item in result["output"]]) == ("resp_1", ["msg_9"])
    assert result["usage"] == responses_response()["usage"]


@pytest.mark.parametrize(
    "value",
    [
        {"model": "m", "messages": [USER]},
        {"model": "m", "messages": [USER], "input": "Hi"},
        {"model": "m", "input": 7},
        {"model": "m", "input": ["Hi"]},
        {"model": "m"},
    ],
)
def test_other_requests_are_declined(value: Any) -> None:
    with pytest.raises(TranslationError, match=r"expected the arguments of responses\.create"):
        TRANSLATOR.read_request(value)


def test_other_responses_are_declined() -> None:
    with pytest.raises(TranslationError, match="expected a Response with output"):
        TRANSLATOR.read_response({"object": "chat.completion", "choices": []})


@pytest.mark.parametrize("text", [None, {"format": {"type": "text"}}, {"format": {"type": "json_schema"}}])
def test_the_reason_of_a_block_is_a_refusal_where_json_is_expected(text: Any) -> None:
    response = TRANSLATOR.reason_response({"model": "m", "input": "hi", "text": text}, "no secrets")
    (part,) = response["output"][0]["content"]
    is_refusal = text == {"format": {"type": "json_schema"}}
    assert (part["type"], part["refusal" if is_refusal else "text"]) == (
        "refusal" if is_refusal else "output_text",
        "no secrets",
    )


def test_a_text_that_a_hook_changed_is_not_left_in_its_tokens() -> None:
    tokens = [{"token": "secret", "logprob": 0.0, "bytes": [], "top_logprobs": []}]
    part = {"type": "output_text", "text": "secret", "annotations": [], "logprobs": tokens}
    given = request({"type": "message", "role": "assistant", "content": [part]})

    [message] = with_texts(given, "***")

    assert message["content"] == [{**part, "text": "***", "logprobs": []}]
    assert with_texts(given, "secret")[0] is given["input"][0]


def test_nor_in_a_copy_of_the_answers_text_next_to_the_output() -> None:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "secret"}]}]
    response = {"object": "response", "output": output, "output_text": "secret"}

    replaced = TRANSLATOR.from_hook_llm_response({"text": "***"}, response)

    assert replaced["output_text"] == "***"
    assert "secret" not in str(replaced)


def test_a_text_may_be_added_to_an_answer_of_calls_alone() -> None:
    content = {"parts": ["Looking."], "toolCalls": [{"id": "c1", "name": "glob", "args": {}}]}
    response = {"object": "response", "output": [CALL]}

    changed: Any = TRANSLATOR.from_full_llm_response({"candidates": [{"content": content}]}, response)

    message, call = changed["output"]
    assert (message["type"], message["role"], message["status"]) == ("message", "assistant", "completed")
    assert message["id"].startswith("msg_")
    assert message["content"] == [{"type": "output_text", "text": "Looking.", "annotations": [], "logprobs": []}]
    assert call is CALL


def test_a_result_without_text_is_shown_as_json_and_may_be_replaced() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    given = request(USER, CALL, {**RESULT, "output": [image]})
    *others, result = TRANSLATOR.to_full_llm_request(given)["messages"]

    replaced = TRANSLATOR.from_full_llm_request({"messages": [*others, {**result, "content": "no images"}]}, given)

    assert json.loads(result["content"]) == [image]
    assert replaced["input"] == [USER, CALL, {**RESULT, "output": "no images"}]
