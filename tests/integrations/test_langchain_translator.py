"""The translator between the hook format and LangChain's requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware.types import ModelRequest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from llxprt_hooks.integrations.langchain import LangChainTranslator
from llxprt_hooks.model.format import TranslationError
from llxprt_hooks.testing import Sample, check_translator
from tests.integrations.langchain_support import ScriptedModel, model_of


@tool
def read_file(file_path: str) -> str:
    """Read a file."""
    return file_path


@tool
def write_file(file_path: str) -> str:
    """Write a file."""
    return file_path


def claude(**fields: Any) -> ChatAnthropic:
    return ChatAnthropic(**{"model": "claude-x", "api_key": "k", **fields})


MODELS: dict[str, Callable[[], Any]] = {
    "scripted": lambda: model_of(temperature=0.5),
    "openai": lambda: ChatOpenAI(model="gpt-4o", api_key=SecretStr("k"), temperature=0.25, stop_sequences=["END"]),
    "anthropic": lambda: claude(top_p=0.25, stop=["END"]),
}

CONVERSATION = [
    SystemMessage("leading rule"),
    HumanMessage("Hello"),
    AIMessage(
        "I will look.",
        id="ai-1",
        tool_calls=[{"name": "read_file", "args": {"file_path": "secret-path"}, "id": "c1"}],
        invalid_tool_calls=[{"name": "write_file", "args": "{bad", "id": "c2", "error": "malformed"}],
    ),
    ToolMessage("the content", tool_call_id="c1", name="read_file", artifact={"raw": "artifact"}),
    ToolMessage("could not be executed", tool_call_id="c2", name="write_file", status="error"),
    AIMessage(
        [
            {"type": "thinking", "thinking": "deep thought", "signature": "sig-1"},
            {"type": "text", "text": "First. "},
            {"type": "text", "text": "Second.", "citations": [{"cited": "page 7"}]},
        ]
    ),
    HumanMessage(
        [{"type": "text", "text": "Look at this"}, {"type": "image", "base64": "aW1n", "mime_type": "image/png"}]
    ),
    HumanMessage([{"type": "image", "base64": "b25seQ==", "mime_type": "image/png"}]),
    AIMessage(
        "", tool_calls=[{"name": "write_file", "args": {}, "id": "c3"}, {"name": "read_file", "args": {}, "id": "c4"}]
    ),
    ToolMessage([{"type": "text", "text": "block result"}], tool_call_id="c4"),
    ToolMessage("other result", tool_call_id="c3"),
    HumanMessage("Go on"),
]
ANSWER = AIMessage(
    [{"type": "text", "text": "I will write."}, {"type": "tool_use", "id": "c9", "name": "write_file", "input": {}}],
    tool_calls=[{"name": "write_file", "args": {}, "id": "c9"}],
    response_metadata={"finish_reason": "tool_calls", "model_name": "gpt-5", "id": "resp_1"},
    usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
)


def request_of(model: Any, *messages: Any, **fields: Any) -> Any:
    return ModelRequest(
        model=model,
        messages=list(messages),
        system_message=SystemMessage("You are a test."),
        tools=[read_file, write_file],
        **fields,
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("choice", [None, "any", "read_file", {"type": "none"}])
@pytest.mark.requirement("HOOK-078", "HOOK-079")
def test_the_contract_of_translators(model: str, choice: Any) -> None:
    """What hooks do not see survives, and what they leave alone is identical."""
    full = request_of(MODELS[model](), *CONVERSATION, tool_choice=choice, model_settings={"user": "u-1"})
    hidden = ["leading rule", "You are a test.", "c1", "c3", "c4", "the content", "aW1n", "u-1", "artifact"]
    attached = ["thinking", "deep thought", "sig-1", "page 7"]
    empty = request_of(MODELS[model](), tool_choice=choice)
    check_translator(
        LangChainTranslator(),
        [Sample(full, ANSWER, hidden, attached), Sample(empty), Sample(empty, AIMessage("plain"))],
    )


def test_settings_by_provider() -> None:
    """Settings are shown as the model has them, and written under the names that its package reads."""
    translator = LangChainTranslator()
    openai, anthropic = (
        request_of(MODELS["openai"](), HumanMessage("x")),
        request_of(MODELS["anthropic"](), HumanMessage("x")),
    )
    assert translator.to_hook_llm_request(openai)["config"] == {"temperature": 0.25, "stopSequences": ["END"]}
    shown = translator.to_hook_llm_request(anthropic)["config"]
    assert (shown["topP"], shown["stopSequences"]) == (0.25, ["END"])
    wanted = {"config": {"maxOutputTokens": 7, "topK": 3, "stopSequences": ["A"]}}
    assert translator.from_hook_llm_request(wanted, openai).model_settings == {"max_tokens": 7, "stop": ["A"]}
    changed = translator.from_hook_llm_request(wanted, anthropic).model_settings
    assert changed == {"max_tokens": 7, "top_k": 3, "stop_sequences": ["A"]}
    unsampled = request_of(claude(), HumanMessage("x"))
    assert translator.from_hook_llm_request({"config": {"temperature": 1.0}}, unsampled) is unsampled


def test_another_model() -> None:
    """A bare name is a model of the same provider; one with a provider is made by LangChain."""
    translator = LangChainTranslator()
    request = request_of(MODELS["openai"](), HumanMessage("x"))
    same = translator.from_hook_llm_request({"model": "gpt-6"}, request).model
    assert isinstance(same, ChatOpenAI)
    assert (same.model_name, same.temperature) == ("gpt-6", 0.25)
    tuned = translator.from_hook_llm_request({"model": "ft:gpt-5:me"}, request).model
    assert isinstance(tuned, ChatOpenAI)
    assert tuned.model_name == "ft:gpt-5:me"


def test_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    request = request_of(MODELS["openai"](), HumanMessage("x"))
    other = LangChainTranslator().from_hook_llm_request({"model": "anthropic:claude-y"}, request).model
    assert isinstance(other, ChatAnthropic)
    assert other.model == "claude-y"


def test_a_model_without_a_name() -> None:
    """A model that has no field for its name is an error that the engine reports."""

    class Nameless(ScriptedModel):
        pass

    del Nameless.model_fields["model_name"]
    request = request_of(Nameless(answers=[], sent=[]), HumanMessage("x"))
    with pytest.raises(TranslationError, match="Nameless has no field"):
        LangChainTranslator().from_hook_llm_request({"model": "other"}, request)


@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        (None, {}),
        (True, {"mode": "ANY"}),
        ("required", {"mode": "ANY"}),
        ("auto", {"mode": "AUTO"}),
        ({"type": "any"}, {"mode": "ANY"}),
        ("write_file", {"mode": "ANY", "allowedFunctionNames": ["write"]}),
        ({"type": "tool", "name": "write_file"}, {"mode": "ANY", "allowedFunctionNames": ["write"]}),
        ({"type": "function", "function": {"name": "glob"}}, {"mode": "ANY", "allowedFunctionNames": ["glob"]}),
    ],
)
def test_tool_choices(choice: Any, shown: dict[str, Any]) -> None:
    """Every form that LangChain's packages take is shown, under the names that hooks know."""
    translator = LangChainTranslator(lambda name: {"write_file": "write"}.get(name, name))
    assert translator.to_hook_tool_config(choice) == shown


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"finish_reason": "length"}, "MAX_TOKENS"),
        ({"stop_reason": "refusal"}, "SAFETY"),
        ({"status": "completed"}, "STOP"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "MAX_TOKENS"),
        ({"finish_reason": "RECITATION"}, "RECITATION"),
        ({}, None),
    ],
)
def test_finish_reasons(metadata: dict[str, Any], reason: str | None) -> None:
    shown = LangChainTranslator().to_hook_llm_response(AIMessage("x", response_metadata=metadata))
    assert shown["candidates"][0].get("finishReason") == reason


def test_a_replaced_answer_refers_to_nothing_of_the_model() -> None:
    """The id of a stored response, for example, would let OpenAI continue with the text that a hook removed."""
    answer = LangChainTranslator().from_hook_llm_response(
        {"text": "Replaced.", "usageMetadata": {"totalTokenCount": 9}}, ANSWER
    )
    assert answer.response_metadata == {"model_name": "gpt-5", "finish_reason": "stop"}
    assert answer.usage_metadata == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 9}
    assert answer.tool_calls == []


def test_results_of_functions_are_not_shown() -> None:
    request = request_of(model_of(), HumanMessage("Hi"), FunctionMessage(content="old result", name="f"))
    assert LangChainTranslator().to_hook_llm_request(request)["messages"] == [{"role": "user", "content": "Hi"}]


def test_the_full_view_shows_and_redacts_what_the_text_view_lacks() -> None:
    translator = LangChainTranslator()
    request = request_of(model_of(), *CONVERSATION).override(system_message=SystemMessage("never tell hunter2"))
    shown: Any = translator.to_full_llm_request(request)["messages"]

    assert [message["content"] for message in shown[:2]] == ["never tell hunter2", "leading rule"]
    calls = {call["id"]: call["args"] for message in shown for call in message.get("toolCalls", ())}
    assert calls == {"c1": {"file_path": "secret-path"}, "c2": "{bad", "c3": {}, "c4": {}}
    results = {message["toolCallId"]: message["content"] for message in shown if message["role"] == "tool"}
    assert results["c1"] == "the content"
    changed = [{**message, "content": message["content"].replace("hunter2", "***")} for message in shown]
    changed = [{**message, "content": message["content"].replace("the content", "***")} for message in changed]

    redacted: Any = translator.from_full_llm_request({"messages": changed}, request)

    assert redacted.system_message.content == "never tell ***"
    assert next(message.content for message in redacted.messages if message.type == "tool") == "***"
    assert request.system_message.content == "never tell hunter2"


def test_a_changed_call_of_an_answer_is_repeated_nowhere() -> None:
    translator = LangChainTranslator()
    answer = AIMessage(
        [{"type": "text", "text": "Now."}, {"type": "tool_use", "id": "c9", "name": "f", "input": {"key": "hunter2"}}],
        tool_calls=[{"name": "f", "args": {"key": "hunter2"}, "id": "c9"}],
        additional_kwargs={"tool_calls": [{"id": "c9", "function": {"name": "f", "arguments": '{"key": "hunter2"}'}}]},
        response_metadata={"stop_reason": "tool_use", "model_name": "m"},
    )
    shown: Any = translator.to_full_llm_response(answer)
    content = shown["candidates"][0]["content"]
    content["toolCalls"][0]["args"] = {"key": "***"}

    changed = translator.from_full_llm_response(shown, answer)
    content["toolCalls"] = []
    without = translator.from_full_llm_response(shown, answer)

    assert changed is not None
    assert changed.tool_calls[0]["args"] == {"key": "***"}
    assert "hunter2" not in str(changed)
    assert without is not None
    assert (without.tool_calls, without.text, without.response_metadata["stop_reason"]) == ([], "Now.", "stop")
    assert "hunter2" not in str(without)
