"""The base for SDKs of messages with parts: what it does by itself for a translator with the fewest methods."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import TranslationError
from llxprt_hooks.model import resolve_translator
from llxprt_hooks.model.messages import Choice, MessageTranslator, expected
from llxprt_hooks.testing import Sample, check_translator
from tests.model.wire_samples import anthropic_response, chat_response, responses_response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llxprt_hooks.model.format import HookToolConfig


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
