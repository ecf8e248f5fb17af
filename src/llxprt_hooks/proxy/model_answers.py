"""The tool calls in the answers of the model APIs, for callers that cannot keep an agent from running a tool.

A call that may not run becomes text in the answer. If no call is left, the answer is complete, and the agent's turn
ends with that text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

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
    refused = _refused(blocks, ("tool_use",), refusal)
    if not refused:
        return response
    content = [block for block in blocks if id(block) not in refused]
    content.append({"type": "text", "text": _text(refused.values()), "citations": None})
    calls = any(field(block, "type") == "tool_use" for block in content)
    return {**response, "content": content, **({} if calls else {"stop_reason": "end_turn"})}


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
    items = response["output"]
    refused = _refused(items, ("function_call", "custom_tool_call"), refusal)
    if not refused:
        return response
    text = {"type": "output_text", "text": _text(refused.values()), "annotations": [], "logprobs": []}
    message = {"id": new_id("msg_"), "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    return {**response, "output": [*(item for item in items if id(item) not in refused), message]}


_CHANGED: Mapping[str, Callable[[JSON, Refusal], JSON]] = {
    "anthropic-messages": _messages,
    "openai-chat": _chat,
    "openai-responses": _responses,
}


def _refused(items: Iterable[Any], types: tuple[str, ...], refusal: Refusal) -> dict[int, str]:
    """Return the reasons for the calls that may not run, by the identity of the call."""
    calls = [item for item in items if field(item, "type") in types]
    return {id(call): reason for call in calls if (reason := refusal(_name(call))) is not None}


def _name(call: Any) -> str:
    return name_of(field(call, "name")) or ""


def _text(reasons: Iterable[str]) -> str:
    return "\n\n".join(dict.fromkeys(reasons))
