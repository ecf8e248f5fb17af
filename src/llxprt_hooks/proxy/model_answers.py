"""The tool calls in the answers of the model APIs, for callers that cannot keep an agent from running a tool.

A call that may not run becomes text in the answer. If no call is left, the answer is complete, and the agent's turn
ends with that text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from llxprt_hooks.model import TranslationError
from llxprt_hooks.model.access import as_list, field, name_of
from llxprt_hooks.model.json_api import new_id

JSON: TypeAlias = Mapping[str, Any]
Refusal: TypeAlias = Callable[[str], str | None]
"""Returns why a tool may not be called; None if it may."""


def without_calls(api: str, response: JSON, refusal: Refusal) -> JSON:
    """Return a response whose refused calls are text; the same object if none is refused."""
    return _CHANGED[api](response, refusal)


def _messages(response: JSON, refusal: Refusal) -> JSON:
    blocks = response["content"]
    calls = [block for block in blocks if field(block, "type") == "tool_use"]
    refused = {id(call): reason for call in calls if (reason := refusal(_name(call))) is not None}
    if not refused:
        return response
    content = [block for block in blocks if id(block) not in refused]
    content.append({"type": "text", "text": _text(refused.values()), "citations": None})
    return {**response, "content": content, **({} if len(refused) < len(calls) else {"stop_reason": "end_turn"})}


def _chat(response: JSON, refusal: Refusal) -> JSON:
    choices = [_choice(choice, refusal) for choice in response["choices"]]
    unchanged = all(new is old for new, old in zip(choices, response["choices"], strict=True))
    return response if unchanged else {**response, "choices": choices}


def _choice(choice: JSON, refusal: Refusal) -> JSON:
    message = choice["message"]
    older = message.get("function_call")
    calls = [*as_list(message.get("tool_calls")), *([older] if older else [])]
    refused = {
        id(call): reason
        for call in calls
        if (reason := refusal(_name(field(call, "function") or field(call, "custom") or call))) is not None
    }
    if not refused:
        return choice
    kept = [call for call in as_list(message.get("tool_calls")) if id(call) not in refused]
    content = "\n\n".join(filter(None, [message.get("content"), _text(refused.values())]))
    others = {name: value for name, value in message.items() if name not in ("tool_calls", "function_call")}
    changed = {**others, "content": content, **({"tool_calls": kept} if kept else {})}
    return {**choice, "message": changed, **({} if kept else {"finish_reason": "stop"})}


def _responses(response: JSON, refusal: Refusal) -> JSON:
    if response.get("status") in PENDING:
        raise TranslationError("the model answers in the background, and the agent fetches the answer later")
    items = response["output"]
    # The API has already run what it has a result of.
    results = {field(item, "call_id") for item in items if (name_of(field(item, "type")) or "").endswith("_output")}
    waiting = [item for item in items if field(item, "call_id") not in results - {None}]
    refused = {id(item): reason for item in waiting if (reason := _refusal_of_item(item, refusal)) is not None}
    if not refused:
        return response
    text = {"type": "output_text", "text": _text(refused.values()), "annotations": [], "logprobs": []}
    message = {"id": new_id("msg_"), "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    return {**response, "output": [*(item for item in items if id(item) not in refused), message]}


def _refusal_of_item(item: Any, refusal: Refusal) -> str | None:
    """Return why an agent may not act on an item of an answer; None if it may, or if there is nothing to do for it."""
    kind = name_of(field(item, "type")) or ""
    if kind == "mcp_approval_request":
        names = [name_of(field(item, "server_label")) or ""]
    elif kind in NAMED_CALLS or (kind.endswith("_call") and field(item, "call_id") is not None):
        # Of the built-in tools, only calls that the agent answers have this id. They go by their type.
        names = [name] if (name := _name(item)) else TOOL_TYPES.get(kind, [kind.removesuffix("_call")])
    else:
        return None
    reasons = [refusal(name) for name in names]
    return None if None in reasons else reasons[0]


PENDING = ("queued", "in_progress")
"""The states of a response that has no answer yet."""

NAMED_CALLS = ("function_call", "custom_tool_call")

TOOL_TYPES = {"computer_call": ["computer_use_preview", "computer"]}
"""The types of tools whose calls have another type."""


_CHANGED: Mapping[str, Callable[[JSON, Refusal], JSON]] = {
    "anthropic-messages": _messages,
    "openai-chat": _chat,
    "openai-responses": _responses,
}


def _name(call: Any) -> str:
    return name_of(field(call, "name")) or ""


def _text(reasons: Iterable[str]) -> str:
    return "\n\n".join(dict.fromkeys(reasons))
