"""What is written as a response or a stream is read by the official SDKs, and what they read is assembled again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
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


def test_the_anthropic_sdk_assembles_what_is_written() -> None:
    client = anthropic_client(streamed(MESSAGES, anthropic_response()))

    with client.messages.stream(model="claude", max_tokens=9, messages=USER) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()

    assert text == "Here it is. Look."
    assert as_dict(final)["content"] == anthropic_response()["content"]
    assert (final.stop_reason, final.usage.input_tokens, final.usage.output_tokens) == ("tool_use", 3, 4)


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
