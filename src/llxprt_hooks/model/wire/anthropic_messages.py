"""Streams of the Messages API: the message without content, each content block in pieces, and how it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from llxprt_hooks.model.access import field
from llxprt_hooks.model.wire.base import Assembler, Refusal, Wire, called, extended, fetches, reasons_text, sends

# What a message is sent with at its end, and not at its start.
ENDING = ("stop_reason", "stop_sequence", "stop_details", "container")


class MessagesWire(Wire):
    path = "/v1/messages"
    bypasses = (
        sends("/messages/batches", "a batch"),
        fetches("/messages/batches/[^/]+/results", "the result of a batch"),
    )

    def assembler(self, request: Mapping[str, Any] | None = None) -> Assembler:
        return _MessagesAssembler()

    def events(self, response: Mapping[str, Any], request: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        usage = response.get("usage") or {}
        ending = {name: response[name] for name in ENDING if name in response}
        started = {**response, "content": [], "usage": {**usage, "output_tokens": 0}, **dict.fromkeys(ending)}
        yield {"type": "message_start", "message": started}
        for index, block in enumerate(response.get("content", ())):
            start, deltas = _pieces(block)
            yield {"type": "content_block_start", "index": index, "content_block": start}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": usage.get("output_tokens", 0)}}
        yield {"type": "message_stop"}

    def text_in(self, event: Mapping[str, Any]) -> str | None:
        delta = event.get("delta") if event.get("type") == "content_block_delta" else None
        text = field(delta, "text") if field(delta, "type") == "text_delta" else None
        return text if isinstance(text, str) else None

    def with_text(self, event: Mapping[str, Any], text: str, *, begins: bool) -> dict[str, Any]:
        return {**event, "delta": {"type": "text_delta", "text": text}}

    def moved(self, event: Mapping[str, Any], found: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
        place = {"index": event["index"] + first["index"] - found["index"]} if "index" in event else {}
        return {**event, **place}

    def without_calls(self, response: Mapping[str, Any], refusal: Refusal) -> Mapping[str, Any]:
        blocks = response["content"]
        calls = [block for block in blocks if field(block, "type") == "tool_use"]
        refused = {id(call): reason for call in calls if (reason := refusal(called(call))) is not None}
        if not refused:
            return response
        content = [block for block in blocks if id(block) not in refused]
        content.append({"type": "text", "text": reasons_text(refused.values()), "citations": None})
        return {**response, "content": content, **({} if len(refused) < len(calls) else {"stop_reason": "end_turn"})}


class _MessagesAssembler(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._input: dict[int, str] = {}
        self._is_complete = False

    def _assembled(self) -> dict[str, Any] | None:
        if not self._is_complete:
            return None
        return {**self.head, "content": [self._block(index) for index in sorted(self._blocks)]}

    def _add(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            self.head = dict(event["message"])
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._add_delta(event["index"], event["delta"])
        elif kind == "message_delta":
            others = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
            usage = {name: n for name, n in (event.get("usage") or {}).items() if n is not None}
            usage = {**(self.head.get("usage") or {}), **usage}
            self.head = {**self.head, **others, **event["delta"], "usage": usage}
        elif kind == "message_stop":
            self._is_complete = bool(self.head)

    def _add_delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        for name, value in delta.items():
            if name == "partial_json":
                self._input[index] = self._input.get(index, "") + value
            elif name == "citation":
                block["citations"] = [*(block.get("citations") or ()), value]
            elif name != "type":
                block[name] = extended(block.get(name), value)

    def _block(self, index: int) -> dict[str, Any]:
        """Return a block; the input of a call that was cut off stays text, as it is not valid JSON."""
        text = self._input.get(index)
        if not text:
            return self._blocks[index]
        try:
            return {**self._blocks[index], "input": json.loads(text)}
        except ValueError:
            return {**self._blocks[index], "input": text}


def _pieces(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a content block before its first piece, and the pieces."""
    kind = str(block.get("type"))
    if kind == "text":
        cited = [{"type": "citations_delta", "citation": citation} for citation in block.get("citations") or ()]
        start = {**block, "text": "", **({"citations": []} if cited else {})}
        return start, [{"type": "text_delta", "text": block["text"]}, *cited]
    if kind == "thinking":
        thinking, signature = block["thinking"], block.get("signature", "")
        deltas = [{"type": "thinking_delta", "thinking": thinking}, {"type": "signature_delta", "signature": signature}]
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind.endswith("tool_use"):
        given = block.get("input", {})
        text = given if isinstance(given, str) else json.dumps(given)
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text}]
    return dict(block), []
