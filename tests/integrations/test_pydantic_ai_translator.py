"""The translator of pydantic-ai's messages keeps the common contract."""

from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from llxprt_hooks.integrations.pydantic_ai import PydanticAIRequest, PydanticAITranslator
from llxprt_hooks.testing import Sample, check_translator


def request(*messages: ModelMessage, **settings: Any) -> PydanticAIRequest:
    tools = [ToolDefinition(name=name) for name in ("read_file", "write_file")]
    return PydanticAIRequest(
        TestModel(model_name="first"),
        list(messages),
        ModelSettings(**settings),  # type: ignore[typeddict-item]
        ModelRequestParameters(function_tools=tools),
    )


HISTORY: list[ModelMessage] = [
    ModelRequest(
        parts=[
            SystemPromptPart("Be brief."),
            UserPromptPart([TextContent("Look at "), BinaryContent(b"png", media_type="image/png"), "this picture"]),
        ],
        instructions="Answer in French.",
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="signed"),
            TextPart("I read it."),
            ToolCallPart("read_file", {"path": "a"}, tool_call_id="c1"),
        ],
    ),
    ModelRequest(
        parts=[ToolReturnPart("read_file", {"lines": 3}, tool_call_id="c1")], instructions="Answer in French."
    ),
    ModelResponse(parts=[TextPart("Three lines.")]),
    ModelRequest(parts=[UserPromptPart("Thanks")], instructions="Answer in French."),
]
ANSWER = ModelResponse(
    parts=[TextPart("Here "), ToolCallPart("write_file", {"path": "b"}, tool_call_id="c2"), TextPart("it is")],
    usage=RequestUsage(input_tokens=7, output_tokens=5),
    finish_reason="length",
    provider_response_id="resp-2",
)


def test_the_contract_of_translators() -> None:
    translator = PydanticAITranslator(lambda name: TestModel(model_name=name))
    hello = ModelRequest(parts=[UserPromptPart("Hello")])
    samples = [
        Sample(request(*HISTORY, temperature=0.5), ANSWER, hidden=["Be brief."], attached=["signed", "hm", 0, "text"]),
        Sample(
            request(hello, tool_choice="required", top_k=3),
            attached=[0, "text"],
        ),
        Sample(request(hello, tool_choice=["read_file"]), attached=[0, "text"]),
    ]
    check_translator(translator, samples)


def test_hooks_see_text_and_counts() -> None:
    shown = PydanticAITranslator().to_hook_llm_response(ANSWER)
    assert shown["text"] == "Here it is"
    assert shown["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert shown["usageMetadata"] == {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}


def test_a_changed_answer_has_no_id_by_which_the_provider_finds_the_original() -> None:
    translator = PydanticAITranslator()
    changed = translator.from_hook_llm_response({"text": "redacted"}, ANSWER)
    assert changed.provider_response_id is None
    assert [part.content for part in changed.parts if isinstance(part, TextPart)] == ["redacted"]
    stored = ModelResponse(parts=HISTORY[1].parts, provider_response_id="resp-1")  # type: ignore[arg-type]
    messages = [{"role": "user", "content": "Look at this picture"}, {"role": "model", "content": "[hidden]"}]
    sent = translator.from_hook_llm_request({"messages": messages}, request(HISTORY[0], stored))
    answer = sent.messages[1]
    assert isinstance(answer, ModelResponse)
    assert answer.provider_response_id is None


def test_instructions_stay_in_force_after_a_message_of_a_hook() -> None:
    sent = PydanticAITranslator().with_system_message(request(*HISTORY), "the budget is low")
    last = sent.messages[-1]
    assert isinstance(last, ModelRequest)
    assert (last.instructions, [part.content for part in last.parts if isinstance(part, SystemPromptPart)]) == (
        "Answer in French.",
        ["the budget is low"],
    )


def test_the_full_view_shows_and_redacts_what_the_text_view_lacks() -> None:
    translator, given = PydanticAITranslator(), request(*HISTORY)
    shown: Any = translator.to_full_llm_request(given)["messages"]
    prompts = [message["content"] for message in shown if message["role"] == "system"]
    assert prompts == ["Be brief.", "Answer in French."]
    assert [message["content"] for message in shown if message["role"] == "tool"] == ['{"lines":3}']
    assert [message["toolCalls"][0]["args"] for message in shown if "toolCalls" in message] == [{"path": "a"}]
    wanted = [{**message, "content": message["content"].replace("3", "4")} for message in shown[1:]]

    sent = translator.from_full_llm_request({"messages": wanted}, given)

    first, *_, result, _, last = sent.messages
    assert not any(isinstance(part, SystemPromptPart) for part in first.parts)
    assert (result.parts[0].content, last.instructions) == ({"lines": 4}, "Answer in French.")  # type: ignore[union-attr]
