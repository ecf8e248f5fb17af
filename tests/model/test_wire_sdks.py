"""What is written as a response or a stream is read by the official SDKs, and what they read is assembled again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel

from llxprt_hooks.model.anthropic_messages import AnthropicMessagesTranslator
from llxprt_hooks.model.openai_chat import OpenAIChatTranslator
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from tests.model.wire_samples import anthropic_response, chat_response, responses_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llxprt_hooks.model.json_api import JSONTranslator

CHAT, RESPONSES, MESSAGES = OpenAIChatTranslator(), OpenAIResponsesTranslator(), AnthropicMessagesTranslator()
USER: Any = [{"role": "user", "content": "Hello"}]
# Small pieces, so that events and characters are cut.
PIECE = 7


class Answer(BaseModel):
    text: str


def transport(answer: Callable[[dict[str, Any]], Iterable[bytes] | dict[str, Any]]) -> httpx2.MockTransport:
    """A server that answers each request with JSON, or with a stream in small pieces."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        content = answer(json.loads(request.content))
        if isinstance(content, dict):
            return httpx2.Response(200, json=content)
        stream = b"".join(content)
        pieces = (stream[start : start + PIECE] for start in range(0, len(stream), PIECE))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=pieces)

    return httpx2.MockTransport(handle)


def openai_client(answer: Callable[[dict[str, Any]], Iterable[bytes] | dict[str, Any]]) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=transport(answer)), max_retries=0)


def anthropic_client(answer: Callable[[dict[str, Any]], Iterable[bytes] | dict[str, Any]]) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", http_client=httpx2.Client(transport=transport(answer)), max_retries=0)


def streamed(translator: JSONTranslator, response: dict[str, Any]) -> Callable[[dict[str, Any]], Iterable[bytes]]:
    return lambda request: translator.wire.write(response, request)


def as_dict(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_unset=True, warnings=False)


def replaced(translator: JSONTranslator, text: str, request: dict[str, Any]) -> dict[str, Any]:
    """An answer of a hook instead of the model's."""
    answer: dict[str, Any] = translator.from_hook_llm_response({"text": text}, translator.blank_response(request))
    return answer


def test_chat_streams_are_read_by_the_sdk() -> None:
    client = openai_client(streamed(CHAT, chat_response()))

    stream = client.chat.completions.create(
        model="gpt-5", messages=USER, stream=True, stream_options={"include_usage": True}
    )

    assert CHAT.wire.assemble(stream) == chat_response()


def test_a_chat_stream_has_usage_only_if_it_is_wanted() -> None:
    client = openai_client(streamed(CHAT, chat_response()))

    chunks = list(client.chat.completions.create(model="gpt-5", messages=USER, stream=True))

    assert not any("usage" in as_dict(chunk) for chunk in chunks)
    assert [chunk.choices[0].index for chunk in chunks] == [0, 0, 0, 0, 1, 1]


def test_the_chat_sdk_assembles_what_is_written() -> None:
    client = openai_client(streamed(CHAT, chat_response()))

    with client.chat.completions.stream(model="gpt-5", messages=USER) as stream:
        final = stream.get_final_completion()

    message = final.choices[0].message
    assert (message.content, final.choices[0].finish_reason) == ("Here it is.", "tool_calls")
    assert message.tool_calls is not None
    assert [call.id for call in message.tool_calls] == ["call-1", "call-2"]
    assert message.tool_calls[0].function.arguments == '{"file_path": "a"}'
    assert final.choices[1].message.refusal == "Not that."


@pytest.mark.slow
def test_responses_streams_are_read_by_the_sdk() -> None:
    client = openai_client(streamed(RESPONSES, responses_response()))

    events = list(client.responses.create(model="gpt-5", input="Hello", stream=True))

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert RESPONSES.wire.assemble(events) == responses_response()


def test_the_responses_sdk_assembles_what_is_written() -> None:
    client = openai_client(streamed(RESPONSES, responses_response()))

    with client.responses.stream(model="gpt-5", input="Hello") as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()

    assert final.output_text == "Here it is."
    assert [item.type for item in final.output] == [item["type"] for item in responses_response()["output"]]
    assert {
        "response.output_text.delta",
        "response.refusal.done",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.done",
        "response.output_text.annotation.added",
        "response.completed",
    } <= kinds


def test_anthropic_streams_are_read_by_the_sdk() -> None:
    client = anthropic_client(streamed(MESSAGES, anthropic_response()))

    stream = client.messages.create(model="claude", max_tokens=9, messages=USER, stream=True)

    assert MESSAGES.wire.assemble(stream) == anthropic_response()


def test_the_anthropic_sdk_assembles_what_is_written() -> None:
    client = anthropic_client(streamed(MESSAGES, anthropic_response()))

    with client.messages.stream(model="claude", max_tokens=9, messages=USER) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()

    assert text == "Here it is. Look."
    assert as_dict(final)["content"] == anthropic_response()["content"]
    assert (final.stop_reason, final.usage.input_tokens, final.usage.output_tokens) == ("tool_use", 3, 4)


def test_a_hooks_answer_is_a_chat_completion() -> None:
    client = openai_client(lambda request: replaced(CHAT, '{"text": "No."}', request))

    created = client.chat.completions.create(model="gpt-5", messages=USER)
    parsed = client.chat.completions.parse(model="gpt-5", messages=USER, response_format=Answer)

    assert (created.model, created.object, created.choices[0].finish_reason) == ("gpt-5", "chat.completion", "stop")
    assert created.usage is not None
    assert (created.created > 0, created.usage.total_tokens) == (True, 0)
    assert parsed.choices[0].message.parsed == Answer(text="No.")
    assert created.id != parsed.id


def test_a_hooks_answer_is_a_response() -> None:
    client = openai_client(lambda request: replaced(RESPONSES, '{"text": "No."}', request))

    created = client.responses.create(model="gpt-5", input="Hello", instructions="Be brief.")
    parsed = client.responses.parse(model="gpt-5", input="Hello", text_format=Answer)

    assert (created.model, created.object, created.status) == ("gpt-5", "response", "completed")
    assert (created.instructions, created.output[0].type) == ("Be brief.", "message")
    assert created.usage is not None
    assert created.usage.total_tokens == 0
    assert parsed.output_parsed == Answer(text="No.")


def test_a_hooks_answer_is_an_anthropic_message() -> None:
    client = anthropic_client(lambda request: replaced(MESSAGES, '{"text": "No."}', request))

    created = client.messages.create(model="claude", max_tokens=9, messages=USER)
    parsed = client.messages.parse(model="claude", max_tokens=9, messages=USER, output_format=Answer)

    assert (created.model, created.type, created.stop_reason) == ("claude", "message", "end_turn")
    assert (created.usage.input_tokens, created.usage.output_tokens) == (0, 0)
    assert parsed.parsed_output == Answer(text="No.")


@pytest.mark.parametrize("finish_reason", ["STOP", "MAX_TOKENS", "SAFETY"])
def test_a_hooks_answer_is_a_stream_of_each_api(finish_reason: str) -> None:
    def answered(translator: JSONTranslator) -> Callable[[dict[str, Any]], Iterable[bytes]]:
        content = {"role": "model", "parts": ["No."]}
        answer = {"candidates": [{"content": content, "finishReason": finish_reason}]}
        return lambda request: translator.wire.write(
            translator.from_hook_llm_response(answer, translator.blank_response(request)), request
        )

    chat = openai_client(answered(CHAT)).chat.completions.create(model="m", messages=USER, stream=True)
    responses = openai_client(answered(RESPONSES)).responses.create(model="m", input="Hello", stream=True)
    messages = anthropic_client(answered(MESSAGES)).messages.create(model="m", max_tokens=9, messages=USER, stream=True)

    for translator, stream in ((CHAT, chat), (RESPONSES, responses), (MESSAGES, messages)):
        response = translator.wire.assemble(stream)
        shown = translator.to_hook_llm_response(translator.read_response(response))
        assert (shown["text"], shown["candidates"][0]["finishReason"]) == ("No.", finish_reason)


def test_what_hooks_changed_is_what_the_sdks_send() -> None:
    sent: list[dict[str, Any]] = []

    def record(request: dict[str, Any]) -> dict[str, Any]:
        sent.append(request)
        return anthropic_response() if "max_tokens" in request else responses_response() if "input" in request else chat

    chat, openai_sdk, anthropic_sdk = chat_response(), openai_client(record), anthropic_client(record)
    function = {"name": "read_file", "parameters": {"type": "object"}}
    chat_tools = [{"type": "function", "function": {**function, "name": name}} for name in ("a", "b", "c")]
    tools = [{"type": "function", **function, "name": name} for name in ("a", "b", "c")]
    named = [{"name": name, "input_schema": {"type": "object"}} for name in ("a", "b", "c")]
    requests: list[tuple[JSONTranslator, Any, dict[str, Any]]] = [
        (CHAT, openai_sdk.chat.completions.create, {"messages": USER, "tools": chat_tools}),
        (RESPONSES, openai_sdk.responses.create, {"input": "Hello", "tools": tools}),
        (MESSAGES, anthropic_sdk.messages.create, {"messages": USER, "tools": named, "max_tokens": 9}),
    ]
    for translator, create, request in requests:
        hook = {
            "model": "small",
            "messages": [{"role": "user", "content": "***"}, {"role": "system", "content": "Be brief."}],
            "toolConfig": {"allowedFunctionNames": ["a", "b"]},
        }
        changed = translator.from_hook_llm_request(hook, {"model": "large", **request})
        create(**changed)
        assert sent[-1] == json.loads(json.dumps(changed))

    assert [request["model"] for request in sent] == ["small"] * 3
    assert sent[1]["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "b"}],
    }
    assert (sent[2]["tool_choice"], [tool["name"] for tool in sent[2]["tools"]]) == ({"type": "auto"}, ["a", "b"])


def test_objects_of_the_sdks_are_read_and_replaced() -> None:
    """The program may pass the SDK's own response, and gets one back with the hook's text, the id and the usage."""
    openai_objects = openai_client(lambda request: responses_response() if "input" in request else chat_response())
    messages = anthropic_client(lambda request: anthropic_response())
    given: list[tuple[JSONTranslator, Any]] = [
        (CHAT, openai_objects.chat.completions.create(model="m", messages=USER)),
        (CHAT, openai_objects.chat.completions.parse(model="m", messages=USER)),
        (RESPONSES, openai_objects.responses.create(model="m", input="Hello")),
        (RESPONSES, openai_objects.responses.parse(model="m", input="Hello")),
        (MESSAGES, messages.messages.create(model="m", max_tokens=9, messages=USER)),
        (MESSAGES, messages.beta.messages.create(model="m", max_tokens=9, messages=USER)),
    ]
    for translator, response in given:
        shown = translator.to_hook_llm_response(translator.read_response(response))
        result = translator.from_hook_llm_response({"text": "***"}, response)

        assert shown["text"].startswith("Here it is.")
        assert type(result) is type(response)
        assert (result.id, result.usage) == (response.id, response.usage)
        assert translator.to_hook_llm_response(result)["text"] == "***"
        assert "Here it is." not in result.model_dump_json(warnings=False)
        assert "call-9" not in result.model_dump_json(warnings=False)


def test_objects_of_the_sdks_in_a_conversation_are_read_and_kept() -> None:
    """Programs append the output of one request to the input of the next."""
    response = openai_client(lambda request: responses_response()).responses.create(model="m", input="Hello")
    message = anthropic_client(lambda request: anthropic_response()).messages.create(
        model="m", max_tokens=9, messages=USER
    )
    turns = [*USER, {"role": "assistant", "content": message.content}, {"role": "user", "content": "Next."}]
    requests: list[tuple[JSONTranslator, dict[str, Any], str]] = [
        (RESPONSES, {"model": "m", "input": [*USER, *response.output]}, "input"),
        (MESSAGES, {"model": "m", "max_tokens": 9, "messages": turns}, "messages"),
    ]
    for translator, request, name in requests:
        shown = translator.to_hook_llm_request(translator.read_request(request))["messages"]
        wanted = [{**entry, "content": entry["content"].replace("Here", "There")} for entry in shown]

        result = translator.from_hook_llm_request({"messages": wanted}, request)

        before = [as_dict(item) if isinstance(item, BaseModel) else item for item in request[name]]
        after = [as_dict(item) if isinstance(item, BaseModel) else item for item in result[name]]
        text = json.dumps(before, default=as_dict).replace("Here", "There")
        assert json.dumps(after, default=as_dict) == text
