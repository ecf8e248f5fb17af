"""Streams of Chat Completions: chunks with pieces of each choice's message, then ``[DONE]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llxprt_hooks.model.access import as_list, field
from llxprt_hooks.model.wire.base import (
    DONE,
    Assembler,
    Refusal,
    Wire,
    called,
    extended,
    fetches,
    reasons_text,
    sends,
)
from llxprt_hooks.model.wire.sse import encode_json


class ChatWire(Wire):
    path = "/chat/completions"
    bypasses = (
        sends("/batches", "a batch"),  # of any of OpenAI's APIs
        fetches("/chat/completions(/[^/]+)?", "a stored completion"),
        fetches("/chat/completions/[^/]+", "a stored completion", "POST"),
    )
    END = DONE

    def assembler(self, request: Mapping[str, Any] | None = None) -> Assembler:
        return _ChatAssembler((request or {}).get("n"))

    def events(self, response: Mapping[str, Any], request: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        options = (request or {}).get("stream_options")
        has_usage = isinstance(options, Mapping) and options.get("include_usage") is True
        head = {name: value for name, value in response.items() if name not in ("choices", "usage")}
        head = {**head, "object": "chat.completion.chunk", **({"usage": None} if has_usage else {})}
        for choice in response.get("choices", ()):
            index, finish_reason = choice.get("index", 0), choice.get("finish_reason")
            for number, delta in enumerate(_deltas(choice["message"])):
                # The log probabilities are those of the text, which is in the first piece.
                logprobs = choice.get("logprobs") if number == 0 else None
                piece = {"index": index, "delta": delta, "finish_reason": None, "logprobs": logprobs}
                yield {**head, "choices": [piece]}
            end = {"index": index, "delta": {}, "finish_reason": finish_reason or "stop", "logprobs": None}
            yield {**head, "choices": [end]}
        if has_usage:
            yield {**head, "choices": [], "usage": response.get("usage")}

    def encode(self, event: Mapping[str, Any]) -> bytes:
        return encode_json(event)

    def has_one_answer(self, request: Mapping[str, Any]) -> bool:
        return request.get("n") in (None, 1)

    def text_in(self, event: Mapping[str, Any]) -> str | None:
        choices = as_list(event.get("choices"))
        text = field(field(choices[0], "delta"), "content") if len(choices) == 1 else None
        return text if isinstance(text, str) and text else None

    def with_text(self, event: Mapping[str, Any], text: str, *, begins: bool) -> dict[str, Any]:
        choice = event["choices"][0]
        delta = {**(choice["delta"] if begins else {}), "content": text}
        return {**event, "choices": [{**choice, "delta": delta, "finish_reason": None, "logprobs": None}]}

    def moved(self, event: Mapping[str, Any], found: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
        return dict(event)

    def without_calls(self, response: Mapping[str, Any], refusal: Refusal) -> Mapping[str, Any]:
        choices = [_without_calls(choice, refusal) for choice in response["choices"]]
        unchanged = all(new is old for new, old in zip(choices, response["choices"], strict=True))
        return response if unchanged else {**response, "choices": choices}


def _without_calls(choice: Mapping[str, Any], refusal: Refusal) -> Mapping[str, Any]:
    message = choice["message"]
    older = message.get("function_call")
    calls = [*as_list(message.get("tool_calls")), *([older] if older else [])]
    refused = {
        id(call): reason
        for call in calls
        if (reason := refusal(called(field(call, "function") or field(call, "custom") or call))) is not None
    }
    if not refused:
        return choice
    kept = [call for call in as_list(message.get("tool_calls")) if id(call) not in refused]
    content = "\n\n".join(filter(None, [message.get("content"), reasons_text(refused.values())]))
    others = {name: value for name, value in message.items() if name not in ("tool_calls", "function_call")}
    changed = {**others, "content": content, **({"tool_calls": kept} if kept else {})}
    return {**choice, "message": changed, **({} if kept else {"finish_reason": "stop"})}


class _ChatAssembler(Assembler):
    def __init__(self, choices: Any) -> None:
        super().__init__()
        self._expected: int = choices if isinstance(choices, int) else 1
        self._choices: dict[int, dict[str, Any]] = {}

    def _assembled(self) -> dict[str, Any] | None:
        choices = [self._choices[index] for index in sorted(self._choices)]
        # Not every server ends with [DONE], and SDKs do not pass it on.
        finished = [choice for choice in choices if choice["finish_reason"]]
        if len(finished) < max(self._expected, len(choices)):
            return None
        return {**self.head, "object": "chat.completion", "choices": [_finished(choice) for choice in choices]}

    def _add(self, event: dict[str, Any]) -> None:
        head = {name: value for name, value in event.items() if name not in ("choices", "obfuscation")}
        self.head.update({name: value for name, value in head.items() if value is not None or name not in self.head})
        for piece in event.get("choices") or ():
            index = piece.get("index", 0)
            message = {"role": "assistant", "content": None}
            choice = self._choices.get(index, {"index": index, "message": message, "finish_reason": None})
            others = {name: value for name, value in piece.items() if name != "delta"}
            self._choices[index] = extended(choice, {**others, "message": piece.get("delta") or {}})


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the pieces of a message: the text and similar fields first, then each tool call."""
    calls = message.get("tool_calls") or ()
    yield {name: value for name, value in message.items() if name != "tool_calls"}
    for index, call in enumerate(calls):
        yield {"tool_calls": [{"index": index, **call}]}


def _finished(choice: dict[str, Any]) -> dict[str, Any]:
    """Return an assembled choice as it is in a response. Calls are not numbered there, nor by all servers."""
    message = dict(choice["message"])
    if calls := message.get("tool_calls"):
        calls = sorted(calls, key=lambda call: call.get("index", 0))
        message["tool_calls"] = [{name: call[name] for name in call if name != "index"} for call in calls]
    return {**choice, "message": message}
