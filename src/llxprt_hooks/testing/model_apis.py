"""What a scripted model needs of each API: the tools that it is offered, what they returned, and how it calls them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from llxprt_hooks.model import resolve_translator

Json = dict[str, Any]


class Call(NamedTuple):
    """A tool call in an answer of the model."""

    id: str
    name: str
    arguments: Json


class Result(NamedTuple):
    """What a tool returned to the model."""

    id: str
    """The id of the call. Where the API has none, its number in the conversation."""
    text: str


class Api(NamedTuple):
    """An API of models over HTTP, as JSON."""

    endings: Sequence[str]
    """How the paths of its requests end."""
    tools: Callable[[Json], Iterable[tuple[str, Any]]]
    """The tools of a request, each with the JSON Schema of its arguments."""
    results: Callable[[Json], Iterable[Result]]
    answer: Callable[[str, Sequence[Call]], Json]
    """An answer with a text and calls; without calls, it ends the turn."""
    translator: str | None = None


def _list(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """All text in a result, whatever its shape."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# OpenAI Chat Completions.


def _chat_tools(request: Json) -> Iterator[tuple[str, Any]]:
    for tool in _list(request.get("tools")):
        if isinstance(function := tool.get("function"), dict):
            yield function.get("name", ""), function.get("parameters")


def _chat_results(request: Json) -> Iterator[Result]:
    for message in _list(request.get("messages")):
        if message.get("role") == "tool":
            yield Result(str(message.get("tool_call_id")), text_of(message.get("content")))


def _chat_answer(text: str, calls: Sequence[Call]) -> Json:
    made = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in calls
    ]
    message = {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
    return {"id": "chatcmpl-1", "choices": [choice]}


# OpenAI Responses.


def _responses_tools(request: Json) -> Iterator[tuple[str, Any]]:
    for tool in _list(request.get("tools")):
        if tool.get("type") == "function":
            yield tool.get("name", ""), tool.get("parameters")


def _responses_results(request: Json) -> Iterator[Result]:
    for item in _list(request.get("input")):
        if item.get("type") == "function_call_output":
            yield Result(str(item.get("call_id")), text_of(item.get("output")))


def _responses_answer(text: str, calls: Sequence[Call]) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    made = [
        {
            "id": f"fc_{call.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": json.dumps(call.arguments),
        }
        for call in calls
    ]
    return {"id": "resp_1", "output": [*([message] if text else []), *made], "status": "completed"}


# Anthropic Messages.


def _messages_tools(request: Json) -> Iterator[tuple[str, Any]]:
    for tool in _list(request.get("tools")):
        if "input_schema" in tool and not tool.get("defer_loading"):  # the model does not see it yet
            yield tool.get("name", ""), tool["input_schema"]


def _blocks(request: Json, kind: str) -> Iterator[Json]:
    for message in _list(request.get("messages")):
        yield from (block for block in _list(message.get("content")) if block.get("type") == kind)


def _messages_results(request: Json) -> Iterator[Result]:
    for block in _blocks(request, "tool_result"):
        yield Result(str(block.get("tool_use_id")), text_of(block.get("content")))


def _messages_answer(text: str, calls: Sequence[Call]) -> Json:
    content: list[Json] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls]
    reason = "tool_use" if calls else "end_turn"
    return {"id": "msg_1", "content": content, "stop_reason": reason, "stop_sequence": None}


# Gemini.


def _gemini_tools(request: Json) -> Iterator[tuple[str, Any]]:
    for tool in _list(request.get("tools")):
        for function in _list(tool.get("functionDeclarations") or tool.get("function_declarations")):
            schemas = (function.get(name) for name in ("parameters_json_schema", "parametersJsonSchema", "parameters"))
            yield function.get("name", ""), next(filter(None, schemas), None)


def _parts(request: Json, *names: str) -> Iterator[Json]:
    for content in _list(request.get("contents")):
        for part in _list(content.get("parts")):
            yield from (part[name] for name in names if isinstance(part.get(name), dict))


def _gemini_results(request: Json) -> Iterator[Result]:
    """Ids are optional in this API, so the calls of the history tell which result belongs to which of them."""
    ids = [call.get("id") for call in _parts(request, "functionCall", "function_call")]
    for number, response in enumerate(_parts(request, "functionResponse", "function_response")):
        known = response.get("id") or (ids[number] if number < len(ids) else None)
        yield Result(str(known or f"number {number}"), text_of(response.get("response")))


def _gemini_answer(text: str, calls: Sequence[Call]) -> Json:
    parts: list[Json] = [{"text": text}] if text else []
    parts += [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in calls]
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage}


_STREAMING: Final = ":streamGenerateContent"

APIS: Final = (
    Api(("/chat/completions",), _chat_tools, _chat_results, _chat_answer, "openai-chat"),
    Api(("/responses",), _responses_tools, _responses_results, _responses_answer, "openai-responses"),
    Api(("/messages",), _messages_tools, _messages_results, _messages_answer, "anthropic-messages"),
    Api((":generateContent", _STREAMING), _gemini_tools, _gemini_results, _gemini_answer),
)


def api_of(path: str) -> Api | None:
    """The API of a request; None if it is not one for an answer of a model."""
    return next((api for api in APIS if path.endswith(tuple(api.endings))), None)


def turns(request: Json) -> int:
    """How many answers with calls a request's history has. Calls in a row, with nothing between them, are one."""
    history = next((request[name] for name in ("messages", "input", "contents") if name in request), ())
    return sum(has_calls for has_calls, _ in groupby(map(_has_calls, _list(history))))


def _has_calls(entry: Json) -> bool:
    """Whether an entry of a history, in any of these APIs, has a call or is one."""
    fields, types = ("tool_calls", "functionCall", "function_call"), ("function_call", "tool_use")
    parts = (entry, *_list(entry.get("content")), *_list(entry.get("parts")))
    return any(part.get("type") in types or any(map(part.get, fields)) for part in parts)


def continued(request: Json) -> str:
    """The id of the answer after which a request goes on, if the API keeps the conversation."""
    thread = request.get("thread")
    known = thread.get("previous_message_id") if isinstance(thread, dict) else request.get("previous_response_id")
    return str(known)


def is_streamed(path: str, request: Json) -> bool:
    """Whether the agent wants the answer as a stream."""
    return path.endswith(_STREAMING) or bool(request.get("stream"))


def written(api: Api, path: str, request: Json, response: Json) -> tuple[str, bytes]:
    """An answer as the API sends it: its content type, and its body."""
    if api.translator is None:
        body = json.dumps(response).encode()
        streamed = path.endswith(_STREAMING)
        return ("text/event-stream", b"data: " + body + b"\r\n\r\n") if streamed else ("application/json", body)
    translator = resolve_translator(api.translator)
    whole = {**(translator.blank_response(request) or {}), **response}
    if request.get("stream") and translator.wire is not None:
        return "text/event-stream", b"".join(translator.wire.write(whole, request))
    return "application/json", json.dumps(whole).encode()


def arguments(schema: Any) -> Json:
    """Arguments for a tool with this JSON Schema."""
    value = sample(schema)
    return value if isinstance(value, dict) else {}


def sample(schema: Any) -> Any:
    """A value that fits a JSON Schema, with required fields only.

    >>> sample({"properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}, "required": ["path"]})
    {'path': 'canary'}
    """
    if not isinstance(schema, Mapping):
        return {}
    if (known := next((schema[name] for name in ("enum", "anyOf", "oneOf") if schema.get(name)), None)) is not None:
        return known[0] if "enum" in schema else sample(known[0])
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        fields = schema.get("properties") or {}
        return {name: sample(fields.get(name, {"type": "string"})) for name in schema.get("required") or ()}
    return {"string": "canary", "integer": 1, "number": 1, "boolean": False, "array": []}.get(kind)
