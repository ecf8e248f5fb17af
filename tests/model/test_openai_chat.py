"""What is particular to OpenAI Chat Completions; what it shares with every SDK is in test_translator_contract."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from llxprt_hooks import TranslationError
from llxprt_hooks.model.openai_chat import OpenAIChatTranslator

TRANSLATOR = OpenAIChatTranslator()
TOOLS = [{"type": "function", "function": {"name": "glob"}}]
CUSTOM = {"type": "custom", "custom": {"name": "grammar"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
USER = {"role": "user", "content": "Hi"}


class SDKObject(BaseModel):
    """As the SDK's models are: fields of tomorrow are kept."""

    model_config = ConfigDict(extra="allow")


class Message(SDKObject):
    role: str
    content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class Choice(SDKObject):
    index: int
    message: Message
    finish_reason: str


class ChatCompletion(SDKObject):
    id: str
    choices: list[Choice]


UNKNOWN: dict[str, Any] = {"annotations": [{"a": 1}]}
"""Fields that these models do not declare."""


def request(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "messages": list(messages), **fields}


def changed(given: dict[str, Any], *texts: str) -> dict[str, Any]:
    shown = TRANSLATOR.to_hook_llm_request(given)["messages"]
    wanted = [{**message, "content": text} for message, text in zip(shown, texts, strict=True)]
    return TRANSLATOR.from_hook_llm_request({"messages": wanted}, given)


def test_a_message_of_the_sdk_is_read_and_rewritten_as_one() -> None:
    answer = Message(role="assistant", content="Looking.", tool_calls=[{"id": "c1"}], **UNKNOWN)
    given = request({"role": "user", "content": "Hi"}, answer, {"role": "tool", "tool_call_id": "c1", "content": "x"})

    result = changed(given, "Hi", "***")["messages"][1]

    assert type(result) is Message
    assert (result.content, result.tool_calls, result.model_extra) == ("***", [{"id": "c1"}], UNKNOWN)
    assert answer.content == "Looking."


def test_a_response_of_the_sdk_is_replaced_by_one() -> None:
    choice = Choice(index=0, message=Message(role="assistant", content="secret", tool_calls=[]), finish_reason="stop")
    response = ChatCompletion(id="chatcmpl-1", choices=[choice], **UNKNOWN)

    result = TRANSLATOR.from_hook_llm_response({"text": "***"}, response)

    assert TRANSLATOR.to_hook_llm_response(response)["text"] == "secret"
    assert type(result) is ChatCompletion
    assert (result.id, result.model_extra, result.choices[0].message.content) == ("chatcmpl-1", UNKNOWN, "***")


def test_a_message_whose_text_is_removed_goes_unless_it_holds_more() -> None:
    calling = {"role": "assistant", "content": "Looking.", "tool_calls": [{"id": "c1"}]}
    given = request({"role": "user", "content": "Hi"}, calling, {"role": "tool", "tool_call_id": "c1", "content": "x"})

    result = TRANSLATOR.from_hook_llm_request({"messages": []}, given)

    assert result["messages"] == [{**calling, "content": None}, given["messages"][2]]


def test_a_hooks_system_message_is_a_real_one() -> None:
    given = request({"role": "user", "content": "Hi"})

    result = TRANSLATOR.with_system_message(given, "Be brief.")

    assert result["messages"][-1] == {"role": "system", "content": "Be brief."}


def test_the_older_name_of_the_token_limit_is_kept() -> None:
    given = request({"role": "user", "content": "Hi"}, max_tokens=5)

    result = TRANSLATOR.from_hook_llm_request({"config": {"maxOutputTokens": 7}}, given)

    assert TRANSLATOR.to_hook_llm_request(given)["config"] == {"maxOutputTokens": 5}
    assert (result["max_tokens"], "max_completion_tokens" in result) == (7, False)


def test_a_setting_that_the_api_lacks_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    given = request({"role": "user", "content": "Hi"})

    assert TRANSLATOR.from_hook_llm_request({"config": {"topK": 40}}, given) is given
    assert "topK" in caplog.text


@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        (None, {}),
        ("none", {"mode": "NONE"}),
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("later", {}),
        ({"type": "function", "function": {"name": "a"}}, {"mode": "ANY", "allowedFunctionNames": ["a"]}),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": TOOLS}},
            {"mode": "AUTO", "allowedFunctionNames": ["glob"]},
        ),
        ({"type": "custom", "custom": {"name": "a"}}, {"mode": "ANY", "allowedFunctionNames": ["a"]}),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [CUSTOM]}},
            {"mode": "ANY", "allowedFunctionNames": ["grammar"]},
        ),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "new"}]}}, {"mode": "AUTO"}),
    ],
)
def test_tool_choices_as_hooks_see_them(choice: str | dict[str, Any] | None, shown: dict[str, Any]) -> None:
    assert TRANSLATOR.to_hook_tool_config(choice) == shown


def test_several_names_are_allowed_tools() -> None:
    choice = TRANSLATOR.from_hook_tool_config({"mode": "ANY", "allowedFunctionNames": ["a", "b"]}, "auto")

    assert isinstance(choice, dict)
    assert choice["allowed_tools"]["mode"] == "required"
    assert [tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]] == ["a", "b"]


def test_a_request_without_tools_gets_no_tool_choice() -> None:
    given = request({"role": "user", "content": "Hi"})

    assert TRANSLATOR.from_hook_llm_request({"toolConfig": {"mode": "NONE"}}, given) is given


@pytest.mark.parametrize(
    ("finish_reason", "shown", "again"),
    [
        ("stop", "STOP", "stop"),
        ("length", "MAX_TOKENS", "length"),
        ("content_filter", "SAFETY", "content_filter"),
        ("tool_calls", "STOP", "stop"),
        ("of_tomorrow", "OF_TOMORROW", "stop"),
    ],
)
def test_finish_reasons(finish_reason: str, shown: str, again: str) -> None:
    message = {"role": "assistant", "content": "Hi"}
    response = {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}

    hook_response = TRANSLATOR.to_hook_llm_response(response)

    assert hook_response["candidates"][0]["finishReason"] == shown
    assert TRANSLATOR.from_hook_llm_response(hook_response)["choices"][0]["finish_reason"] == again


def test_counts_that_a_hook_sets_are_in_the_usage() -> None:
    response = {"choices": [], "usage": {"prompt_tokens": 3, "total_tokens": 3, "details": {}}}
    answer = {"text": "Hi", "usageMetadata": {"totalTokenCount": 5}}

    result = TRANSLATOR.from_hook_llm_response(answer, response)

    assert result["usage"] == {"prompt_tokens": 3, "total_tokens": 5, "details": {}}


def test_a_pydantic_usage_in_a_dict_is_kept_as_one() -> None:
    usage = SDKObject.model_validate({"prompt_tokens": 3, "total_tokens": 3})
    answer = {"text": "Hi", "usageMetadata": {"totalTokenCount": 5}}

    result = TRANSLATOR.from_hook_llm_response(answer, {"choices": [], "usage": usage})

    assert type(result["usage"]) is SDKObject
    assert result["usage"].model_dump() == {"prompt_tokens": 3, "total_tokens": 5}


def test_a_response_in_any_mapping_is_replaced() -> None:
    response = MappingProxyType({"id": "chatcmpl-1", "choices": ({"message": {"content": "secret"}},)})

    result = TRANSLATOR.from_hook_llm_response({"text": "***"}, TRANSLATOR.read_response(response))

    assert TRANSLATOR.to_hook_llm_response(response)["text"] == "secret"
    assert (result["id"], result["choices"][0]["message"]["content"]) == ("chatcmpl-1", "***")


def test_messages_and_content_may_be_tuples() -> None:
    text = {"type": "text", "text": "Look."}
    message = {"role": "user", "content": (text, IMAGE)}
    given = TRANSLATOR.read_request({"model": "gpt-5", "messages": (message,)})

    edited = changed(given, "***")["messages"]
    removed = TRANSLATOR.from_hook_llm_request({"messages": []}, given)["messages"]

    assert edited == [{"role": "user", "content": [{**text, "text": "***"}, IMAGE]}]
    assert removed == [{"role": "user", "content": [IMAGE]}]


def test_a_removed_message_leaves_no_blank_text() -> None:
    blank = {"type": "text", "text": ""}
    given = request({"role": "user", "content": [{"type": "text", "text": "Hi"}, blank]})

    assert TRANSLATOR.from_hook_llm_request({"messages": []}, given)["messages"] == []


@pytest.mark.parametrize(
    "response",
    [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]},
        {"object": "chat.completion.chunk", "choices": [], "usage": {"total_tokens": 3}},
        {"choices": [{"index": 0, "delta": {"content": "Hi"}}]},
        {"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]},
        {"choices": [{"message": {"content": "Hi"}}, {"text": "Hi"}]},
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="Hi"))]),
    ],
)
def test_other_responses_are_declined(response: Any) -> None:
    with pytest.raises(TranslationError, match="expected a ChatCompletion"):
        TRANSLATOR.read_response(response)


@pytest.mark.parametrize(
    "message",
    [
        SimpleNamespace(role="user", content="Hi"),
        {"role": "user", "content": [SimpleNamespace(type="text", text="Hi")]},
        "Hi",
    ],
)
def test_messages_that_cannot_be_rewritten_are_declined(message: Any) -> None:
    with pytest.raises(TranslationError, match=r"expected the arguments of chat\.completions\.create"):
        TRANSLATOR.read_request(request(message))


@pytest.mark.parametrize("unset", [None, object()])
def test_the_token_limit_that_is_set_is_shown_and_changed(unset: object) -> None:
    given = request(USER, max_tokens=unset, max_completion_tokens=100)

    result = TRANSLATOR.from_hook_llm_request({"config": {"maxOutputTokens": 7}}, given)

    assert TRANSLATOR.to_hook_llm_request(given)["config"] == {"maxOutputTokens": 100}
    assert (result["max_tokens"], result["max_completion_tokens"]) == (unset, 7)


def test_markers_of_unset_fields_are_not_shown() -> None:
    not_given = object()
    given = request(USER, temperature=not_given, stop=not_given, tools=not_given, tool_choice=not_given)

    assert TRANSLATOR.to_hook_llm_request(given) == {"model": "gpt-5", "messages": [USER], "config": {}}
    assert TRANSLATOR.from_hook_llm_request({"toolConfig": {"mode": "NONE"}}, given) is given


@pytest.mark.parametrize(
    ("wanted", "choice"),
    [
        ({"mode": "ANY", "allowedFunctionNames": ["grammar"]}, CUSTOM),
        ({"mode": "ANY", "allowedFunctionNames": ["glob", "unknown"]}, TOOLS[0]),
        ({"mode": "ANY", "allowedFunctionNames": ["unknown"]}, "none"),
        (
            {"mode": "AUTO", "allowedFunctionNames": ["glob", "unknown", "grammar"]},
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [*TOOLS, CUSTOM]}},
        ),
    ],
)
def test_a_tool_choice_names_declared_tools_with_their_type(wanted: dict[str, Any], choice: Any) -> None:
    given = request(USER, tools=[*TOOLS, CUSTOM])

    assert TRANSLATOR.from_hook_llm_request({"toolConfig": wanted}, given)["tool_choice"] == choice


def test_the_older_form_of_tools_survives_and_stays_together() -> None:
    call = {"role": "assistant", "content": "Looking.", "function_call": {"name": "glob", "arguments": "{}"}}
    result = {"role": "function", "name": "glob", "content": "secret"}
    given = request(USER, call, result, functions=[{"name": "glob"}], function_call="auto")
    shown = TRANSLATOR.to_hook_llm_request(given)["messages"]

    added = TRANSLATOR.from_hook_llm_request({"messages": [*shown, {"content": "New."}]}, given)
    removed = TRANSLATOR.from_hook_llm_request({"messages": []}, given)

    assert [message["content"] for message in shown] == ["Hi", "Looking."]
    assert added["messages"] == [USER, call, result, {"role": "user", "content": "New."}]
    assert removed["messages"] == [{**call, "content": None}, result]
    assert (removed["functions"], removed["function_call"]) == ([{"name": "glob"}], "auto")


@pytest.mark.parametrize("response_format", [None, {"type": "text"}, {"type": "json_object"}])
def test_the_reason_of_a_block_is_a_refusal_where_json_is_expected(response_format: Any) -> None:
    request = {"model": "m", "messages": [], "response_format": response_format}
    (choice,) = TRANSLATOR.reason_response(request, "no secrets")["choices"]
    message = choice["message"]
    expected = (None, "no secrets") if response_format == {"type": "json_object"} else ("no secrets", None)
    assert (message["content"], message["refusal"]) == expected


def answered(message: dict[str, Any], content: dict[str, Any], **fields: Any) -> Any:
    """The choice with a message after a hook with the full view gave it this content."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls", **fields}
    response = {"object": "chat.completion", "choices": [choice]}
    changed: Any = TRANSLATOR.from_full_llm_response({"candidates": [{"content": content}]}, response)
    return changed["choices"][0]


def test_a_call_in_the_older_form_is_changed_and_removed_in_the_full_view() -> None:
    message = {"content": None, "function_call": {"name": "glob", "arguments": '{"pattern": "*"}'}}
    call = {"id": "glob", "name": "glob", "args": {"pattern": "*.py"}}

    changed = answered(message, {"toolCalls": [call]}, finish_reason="function_call")
    removed = answered(message, {"toolCalls": []}, finish_reason="function_call")

    assert changed["message"]["function_call"] == {"name": "glob", "arguments": '{"pattern":"*.py"}'}
    assert changed["finish_reason"] == "function_call"
    assert (removed["message"]["function_call"], removed["message"]["content"]) == (None, "")
    assert removed["finish_reason"] == "stop"


def test_a_text_that_a_hook_changed_is_not_left_in_its_tokens() -> None:
    message = {"content": "secret", "tool_calls": [{"id": "c1", "function": {"name": "glob", "arguments": "{}"}}]}
    tokens = {"content": [{"token": "secret"}]}
    call = {"id": "c1", "name": "glob", "args": {}}

    text = answered(message, {"parts": ["***"], "toolCalls": [call]}, logprobs=tokens)
    arguments = answered(message, {"toolCalls": [{**call, "args": {"pattern": "*"}}]}, logprobs=tokens)

    assert "secret" not in str(text)
    assert text["message"]["tool_calls"] == message["tool_calls"]
    assert arguments["logprobs"] == tokens


def test_a_text_may_be_added_to_an_answer_of_calls_alone() -> None:
    message = {"content": None, "tool_calls": [{"id": "c1", "function": {"name": "glob", "arguments": "{}"}}]}

    choice = answered(message, {"parts": ["Looking."], "toolCalls": [{"id": "c1", "name": "glob", "args": {}}]})

    assert choice["message"] == {"role": "assistant", **message, "content": "Looking."}


def test_arguments_that_are_not_json_are_shown_as_text_and_may_be_changed() -> None:
    message = {"content": None, "tool_calls": [{"id": "c1", "function": {"name": "glob", "arguments": '{"pat'}}]}
    given = request(USER, {"role": "assistant", **message}, {"role": "tool", "tool_call_id": "c1", "content": "x"})

    [call] = TRANSLATOR.to_full_llm_request(given)["messages"][1]["toolCalls"]
    choice = answered(message, {"toolCalls": [{**call, "args": {}}]})

    assert call == {"id": "c1", "name": "glob", "args": '{"pat'}
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == "{}"
