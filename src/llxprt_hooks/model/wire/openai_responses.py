"""Streams of the Responses API: events about each item, and a last one with the whole response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from llxprt_hooks.model.access import field, name_of
from llxprt_hooks.model.format import TranslationError
from llxprt_hooks.model.json_api import new_id
from llxprt_hooks.model.wire.base import Assembler, Refusal, Wire, called, fetches, reasons_text

FINAL = ("response.completed", "response.incomplete", "response.failed")
PENDING = ("queued", "in_progress")
"""The states of a response that has no answer yet."""
NAMED_CALLS = ("function_call", "custom_tool_call")
TOOL_TYPES = {"computer_call": ["computer_use_preview", "computer"]}
"""The types of tools whose calls have another type."""


class ResponsesWire(Wire):
    path = "/responses"
    bypasses = (
        fetches("/responses/[^/]+(/input_items)?", "a stored response"),
        fetches("/responses/[^/]+/cancel", "a response that is cancelled", "POST"),
        fetches("/conversations/[^/]+/items(/[^/]+)?", "a stored conversation"),
    )

    def answers_later(self, request: Mapping[str, Any]) -> bool:
        return bool(request.get("background"))

    def assembler(self, request: Mapping[str, Any] | None = None) -> Assembler:
        return _ResponsesAssembler()

    def events(self, response: Mapping[str, Any], request: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        numbers = count()
        for event in _events(response):
            yield {**event, "sequence_number": next(numbers)}

    def text_in(self, event: Mapping[str, Any]) -> str | None:
        text = event.get("delta") if event.get("type") == "response.output_text.delta" else None
        return text if isinstance(text, str) else None

    def with_text(self, event: Mapping[str, Any], text: str, *, begins: bool) -> dict[str, Any]:
        return {**event, "delta": text, "logprobs": []}

    def moved(self, event: Mapping[str, Any], found: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
        changed = {**event, "sequence_number": event["sequence_number"] + first.get("sequence_number", 0)}
        if (place := event.get("output_index")) is None:
            return changed
        changed["output_index"] = place - found["output_index"] + first["output_index"]
        if place == found["output_index"]:
            changed |= {"item_id": first["item_id"]} if "item_id" in event else {}
            changed |= {"item": {**event["item"], "id": first["item_id"]}} if "item" in event else {}
        return changed

    def without_calls(self, response: Mapping[str, Any], refusal: Refusal) -> Mapping[str, Any]:
        if response.get("status") in PENDING:
            raise TranslationError("the model answers in the background, and the agent fetches the answer later")
        items = response["output"]
        # The API has already run what it has a result of.
        results = {field(item, "call_id") for item in items if (name_of(field(item, "type")) or "").endswith("_output")}
        waiting = [item for item in items if field(item, "call_id") not in results - {None}]
        refused = {id(item): reason for item in waiting if (reason := _refusal_of_item(item, refusal)) is not None}
        if not refused:
            return response
        text = {"type": "output_text", "text": reasons_text(refused.values()), "annotations": [], "logprobs": []}
        message = {"id": new_id("msg_"), "type": "message", "role": "assistant", "status": "completed"}
        kept = [item for item in items if id(item) not in refused]
        return {**response, "output": [*kept, {**message, "content": [text]}]}


def _refusal_of_item(item: Any, refusal: Refusal) -> str | None:
    """Return why an agent may not act on an item of an answer; None if it may, or if there is nothing to do for it."""
    kind = name_of(field(item, "type")) or ""
    if kind == "mcp_approval_request":
        names = [name_of(field(item, "server_label")) or ""]
    elif kind in NAMED_CALLS or (kind.endswith("_call") and field(item, "call_id") is not None):
        # Of the built-in tools, only calls that the agent answers have this id. They go by their type.
        names = [name] if (name := called(item)) else TOOL_TYPES.get(kind, [kind.removesuffix("_call")])
    else:
        return None
    reasons = [refusal(name) for name in names]
    return None if None in reasons else reasons[0]


class _ResponsesAssembler(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._response: dict[str, Any] | None = None
        self._items: dict[int, Any] = {}

    def _assembled(self) -> dict[str, Any] | None:
        return self._response

    def _add(self, event: dict[str, Any]) -> None:
        if event.get("type") == "response.created":
            self.head = event["response"]
        elif event.get("type") == "response.output_item.done":
            self._items[event["output_index"]] = event["item"]
        elif event.get("type") in FINAL:
            # Some servers leave the output out of the last event: the items have all of it.
            items = [self._items[index] for index in sorted(self._items)]
            self._response = {**event["response"], "output": event["response"].get("output") or items}


def _events(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    started = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for index, item in enumerate(response.get("output", ())):
        place = {"output_index": index, "item_id": item.get("id")}
        yield {"type": "response.output_item.added", "output_index": index, "item": _empty(item)}
        if (events := _ITEM_EVENTS.get(item.get("type"))) is not None:
            yield from ({**event, **place} for event in events(item))
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    status = response.get("status")
    last = f"response.{status}" if status in ("incomplete", "failed") else "response.completed"
    yield {"type": last, "response": dict(response)}


EMPTY: Mapping[str, dict[str, Any]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
"""The fields of an item that are sent in pieces, before the first one."""


def _empty(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item before its first piece."""
    started = {"status": "in_progress"} if "status" in item else {}
    return {**item, **started, **EMPTY.get(item.get("type", ""), {})}


def _message_events(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(item.get("content", ())):
        place = {"content_index": index}
        if part.get("type") == "output_text":
            kind, name, empty = "response.output_text", "text", {"text": "", "annotations": [], "logprobs": []}
        elif part.get("type") == "refusal":
            kind, name, empty = "response.refusal", "refusal", {"refusal": ""}
        else:
            continue
        # Only texts have log probabilities.
        logprobs = {"logprobs": part.get("logprobs") or []} if name == "text" else {}
        yield {"type": "response.content_part.added", "part": {**part, **empty}, **place}
        yield {"type": f"{kind}.delta", "delta": part[name], **logprobs, **place}
        for number, annotation in enumerate(part.get("annotations") or ()):
            added = {"type": f"{kind}.annotation.added", "annotation_index": number, "annotation": annotation}
            yield {**added, **place}
        yield {"type": f"{kind}.done", name: part[name], **logprobs, **place}
        yield {"type": "response.content_part.done", "part": part, **place}


def _reasoning_events(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(item.get("summary") or ()):
        place = {"summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", "part": {**part, "text": ""}, **place}
        yield {"type": "response.reasoning_summary_text.delta", "delta": part["text"], **place}
        yield {"type": "response.reasoning_summary_text.done", "text": part["text"], **place}
        yield {"type": "response.reasoning_summary_part.done", "part": part, **place}


def _function_events(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.function_call_arguments.delta", "delta": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"], "name": item["name"]}


def _custom_events(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.custom_tool_call_input.delta", "delta": item["input"]}
    yield {"type": "response.custom_tool_call_input.done", "input": item["input"]}


_ITEM_EVENTS = {
    "message": _message_events,
    "reasoning": _reasoning_events,
    "function_call": _function_events,
    "custom_tool_call": _custom_events,
}
