"""The base for SDKs of messages with parts: what it does by itself for a translator with the fewest methods."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import HookTranslator, TranslationError, Turn
from llxprt_hooks.model import resolve_translator
from llxprt_hooks.model.full_view import Seen, ToolOutput
from llxprt_hooks.model.messages import Choice, MessageTranslator, expected
from llxprt_hooks.testing import Sample, check_translator
from tests.model.wire_samples import anthropic_response, chat_response, responses_response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llxprt_hooks.model.format import HookToolConfig, LLMResponse, LLMToolCall


class Notes(MessageTranslator[Any, Any, Any]):
    """A conversation of notes, each with an author and parts; no tools, no settings."""

    PARTS = "parts"

    def read_request(self, value: object) -> Any:
        if isinstance(value, dict) and "notes" in value:
            return value
        raise TranslationError("expected notes")

    def read_response(self, value: object) -> Any:
        if isinstance(value, dict) and "reply" in value:
            return value
        raise TranslationError("expected a reply")

    def field(self, request: Any, name: str) -> Any:
        return request.get(name)

    def with_fields(self, request: Any, fields: Mapping[str, Any]) -> Any:
        return {**request, **fields}

    def messages(self, request: Any) -> Sequence[Any]:
        return list(request["notes"])

    def with_messages(self, request: Any, messages: list[Any]) -> Any:
        return {**request, "notes": messages}

    def role_of(self, message: Any) -> str:
        return "model" if message["author"] == "bot" else "user"

    def new_message(self, role: str, text: str) -> Any:
        return {"author": "bot" if role == "model" else "me", "parts": [text]}

    def choices_of(self, response: Any) -> Sequence[Choice]:
        return [Choice(response["reply"])]

    def from_hook_llm_response(self, hook_response: Mapping[str, Any], base: Any = None) -> Any:
        if "text" not in hook_response:
            raise TranslationError("expected a text")
        return {"reply": [hook_response["text"]]}

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        return {}

    def build_tool_config(self, tool_config: HookToolConfig, base: Any) -> Any:
        raise AssertionError("there are no tools")


def test_a_translator_with_the_fewest_methods_keeps_the_contract() -> None:
    drawing = {"drawing": "x"}
    notes = [
        {"author": "me", "parts": ["Look: ", drawing, {"text": "here", "style": "bold"}]},
        {"author": "bot", "parts": ["A house."], "id": 7},
        {"author": "me", "parts": [drawing]},
    ]

    check_translator(Notes(), [Sample({"model": "m", "notes": notes}, {"reply": ["Hi."]}, ["x"]), {"notes": []}])


@pytest.mark.requirement("HOOK-079")
@pytest.mark.parametrize(
    ("name", "response", "dropped"),
    [
        ("openai-chat", chat_response(), "2 function"),
        (
            "openai-responses",
            responses_response(),
            "1 reasoning, 1 refusal, 1 function_call, 1 custom_tool_call, 1 web_search_call",
        ),
        (
            "anthropic-messages",
            anthropic_response(),
            "1 thinking, 1 redacted_thinking, 1 server_tool_use, 1 web_search_tool_result, 2 tool_use",
        ),
    ],
)
def test_what_hooks_do_not_see_of_a_response_is_logged(
    name: str, response: dict[str, Any], dropped: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "llxprt:core:hooks:translator"):
        resolve_translator(name).to_hook_llm_response(response)

    assert f"dropped: {dropped}" in caplog.text


def test_a_response_of_text_alone_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "llxprt:core:hooks:translator"):
        Notes().to_hook_llm_response({"reply": ["Hi."]})

    assert caplog.text == ""


def test_data_of_another_type_is_declined_by_its_name() -> None:
    assert expected("text", str, "llm_request", "a text") == "text"
    with pytest.raises(TranslationError, match=r"^llm_request is .+; expected a text\.$"):
        expected(7, str, "llm_request", "a text")


NOTE = {"author": "bot", "parts": ["Looking.", {"call": "find"}, {"result": "a house"}]}


class WithoutFullView(Notes):
    """As a translator that was written before there was a full view: what it does for one is the base's."""

    def seen_in(self, source: Any) -> Seen:
        return HookTranslator.seen_in(self, source)

    def with_results(self, source: Any, texts: Sequence[str]) -> Any:
        return HookTranslator.with_results(self, source, texts)

    def to_full_llm_response(self, response: Any) -> LLMResponse:
        return HookTranslator.to_full_llm_response(self, response)

    def from_full_llm_response(self, hook_response: Mapping[str, Any], base: Any) -> Any:
        return HookTranslator.from_full_llm_response(self, hook_response, base)


class OnlyShows(Notes):
    """Shows a prompt, calls and results, and cannot change them."""

    def prompt_turns(self, request: Any) -> Sequence[Turn]:
        return [Turn("system", request["rules"], "rules")]

    def call_in(self, part: Any) -> LLMToolCall | None:
        return {"id": part["call"], "name": part["call"], "args": {}} if "call" in part else None

    def result_in(self, part: Any) -> ToolOutput | None:
        return ToolOutput("find", part["result"]) if "result" in part else None

    def answers_in(self, response: Any) -> Sequence[Sequence[Any]]:
        return [[{"author": "bot", "parts": response["reply"]}]]


def test_without_a_full_view_hooks_see_and_change_the_texts() -> None:
    translator, given, response = WithoutFullView(), {"notes": [NOTE]}, {"reply": NOTE["parts"]}
    wanted = {"messages": [{"role": "model", "content": "***"}]}

    assert translator.to_full_llm_request(given) == translator.to_hook_llm_request(given)
    assert translator.from_full_llm_request(wanted, given) == translator.from_hook_llm_request(wanted, given)
    assert translator.to_full_llm_response(response) == translator.to_hook_llm_response(response)
    assert translator.from_full_llm_response({"candidates": [{"content": {"toolCalls": []}}]}, response) is None
    assert translator.with_results(NOTE, ["***"]) is NOTE


def test_what_a_translator_only_shows_stays_as_it_was() -> None:
    given = {"rules": "Be kind.", "notes": [NOTE]}
    shown = OnlyShows().to_full_llm_request(given)["messages"]

    result = OnlyShows().from_full_llm_request({"messages": [{**each, "content": "***"} for each in shown]}, given)

    assert [(each["role"], each["content"]) for each in shown] == [
        ("system", "Be kind."),
        ("tool", "a house"),
        ("model", "Looking."),
    ]
    assert result == {**given, "notes": [{**NOTE, "parts": ["***", *NOTE["parts"][1:]]}]}


@pytest.mark.parametrize("calls", [[], [{"id": "find", "name": "find", "args": {"what": "a tree"}}]])
def test_so_do_calls_in_an_answer(calls: list[Any]) -> None:
    response = {"reply": [{"call": "find"}]}

    assert OnlyShows().from_full_llm_response({"candidates": [{"content": {"toolCalls": calls}}]}, response) is response
