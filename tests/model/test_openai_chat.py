"""What is particular to OpenAI Chat Completions; what it shares with every SDK is in test_translator_contract."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from llxprt_hooks.model.openai_chat import OpenAIChatTranslator

TRANSLATOR = OpenAIChatTranslator()
TOOLS = [{"type": "function", "function": {"name": "glob"}}]


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
        ({"type": "custom", "custom": {"name": "a"}}, {}),
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
