"""Answers of the JSON APIs without the tool calls that hooks refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import TranslationError
from llxprt_hooks.model import Restriction, http_apis, resolve_translator
from llxprt_hooks.model.registry import TRANSLATORS

if TYPE_CHECKING:
    from llxprt_hooks.model.wire.base import Refusal


def without_calls(api: str, answer: Mapping[str, Any], refusal: Refusal) -> Mapping[str, Any]:
    wire = resolve_translator(api).wire
    assert wire is not None
    return wire.without_calls(answer, refusal)


def test_the_registry_knows_which_translators_have_a_wire() -> None:
    assert http_apis() == [name for name in TRANSLATORS if resolve_translator(name).wire is not None]


CALLS: dict[str, tuple[Any, Any, Any]] = {
    # An answer with two calls, where its calls are, and the answer's end once no call is left.
    "anthropic-messages": (
        {
            "content": [{"type": "text", "text": "a"}, *({"type": "tool_use", "name": n} for n in ("one", "two"))],
            "stop_reason": "tool_use",
        },
        lambda answer: [block["name"] for block in answer["content"] if block["type"] == "tool_use"],
        lambda answer: answer["stop_reason"] == "end_turn",
    ),
    "openai-chat": (
        {
            "choices": [
                {
                    "message": {
                        "content": "a",
                        "tool_calls": [{"function": {"name": "one"}}, {"custom": {"name": "two"}}],
                    },
                    "finish_reason": "tool_calls",
                }
            ]
        },
        lambda answer: [
            (call.get("function") or call["custom"])["name"]
            for call in answer["choices"][0]["message"].get("tool_calls", ())
        ],
        lambda answer: answer["choices"][0]["finish_reason"] == "stop",
    ),
    "openai-responses": (
        {"output": [{"type": "function_call", "name": "one"}, {"type": "custom_tool_call", "name": "two"}]},
        lambda answer: [item["name"] for item in answer["output"] if "call" in item["type"]],
        lambda answer: answer["output"][-1]["type"] == "message",
    ),
}


@pytest.mark.parametrize("api", CALLS)
def test_calls_that_may_not_run_are_text(api: str) -> None:
    answer, calls, is_complete = CALLS[api]
    before = json.dumps(answer)
    assert without_calls(api, answer, Restriction().refusal) is answer
    one = without_calls(api, answer, Restriction(frozenset({"one"})).refusal)
    assert calls(one) == ["one"]
    assert "two may not be called now. Allowed tools: one." in json.dumps(one)
    none = without_calls(api, answer, lambda name: "enough")
    assert calls(none) == []
    assert is_complete(none)
    assert json.dumps(none).count("enough") == 1
    assert json.dumps(answer) == before


def test_an_older_function_call_is_text_too() -> None:
    choice = {"message": {"content": None, "function_call": {"name": "one"}}, "finish_reason": "function_call"}
    changed = without_calls("openai-chat", {"choices": [choice]}, lambda name: f"no {name}")["choices"][0]
    assert changed == {"message": {"content": "no one"}, "finish_reason": "stop"}


def test_a_request_to_approve_a_tool_of_a_refused_server_is_text() -> None:
    answer = {"output": [{"type": "mcp_approval_request", "id": "a", "server_label": "files", "name": "delete"}]}
    assert without_calls("openai-responses", answer, Restriction(frozenset({"files"})).refusal) is answer
    assert [item["type"] for item in without_calls("openai-responses", answer, lambda name: "no")["output"]] == [
        "message"
    ]


def test_calls_of_built_in_tools_go_by_their_type() -> None:
    computer = {"type": "computer_call", "call_id": "c"}
    shell = {"type": "shell_call", "call_id": "s"}
    searched = {"type": "web_search_call", "id": "w"}
    ran = [{"type": "shell_call", "call_id": "r"}, {"type": "shell_call_output", "call_id": "r"}]
    answer = {"output": [computer, shell, searched, *ran]}
    changed = without_calls("openai-responses", answer, Restriction(frozenset({"computer"})).refusal)
    assert changed["output"][:-1] == [computer, searched, *ran]
    assert "shell may not be called now" in changed["output"][-1]["content"][0]["text"]


def test_an_answer_that_is_fetched_later_cannot_be_checked() -> None:
    with pytest.raises(TranslationError, match="in the background"):
        without_calls("openai-responses", {"status": "queued", "output": []}, lambda name: None)
