"""What an MCP server asks its client's model (sampling) or user (elicitation), as BeforeModel hooks see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine.results import ProcessedHookResult
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.mcp_results import is_text_block, text_block

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.session import Session

JSON = dict[str, Any]

SAMPLING: Final = "sampling/createMessage"
ELICITATION: Final = "elicitation/create"
REQUESTS: Final = (SAMPLING, ELICITATION)

_REJECTED: Final = -1
"""The code of a sampling request that a user rejects, according to MCP."""
_NOT_APPLIED: Final = "a hook changed the request in a way that cannot be applied to it"
_CONFIG: Final = {"maxTokens": "maxOutputTokens", "temperature": "temperature", "stopSequences": "stopSequences"}


class HookedRequest(NamedTuple):
    """A request after its hooks: sent with these parameters, or answered in the client's place."""

    params: JSON
    answer: JSON | None = None
    """``{"result": …}`` or ``{"error": …}``; None if the client gets the request."""
    reason: str = ""


async def hooked_request(config: Any, session: Session, method: str, params: Mapping[str, Any]) -> HookedRequest:
    """Show a server's request to BeforeModel hooks."""
    given = dict(params)
    plan = plan_for(config, HookEventName.BEFORE_MODEL)
    if plan is None:
        return HookedRequest(given)
    if session.stop_reason is not None:
        return _refused(given, method, session.stop_reason)
    shown = _shown(method, given)
    with session.active():
        decision = await plan.fire({"llm_request": shown})
    processed, output = ProcessedHookResult.of(decision), decision.final_output
    specific = (output.hook_specific_output if output is not None else None) or {}
    if processed.should_stop:
        session.stop(processed.stop_reason or "", None)
    if (text := _text_of(specific.get("llm_response"))) is not None and method == SAMPLING:
        answer = {"role": "assistant", "content": text_block(text), "model": "llxprt-hooks", "stopReason": "endTurn"}
        return HookedRequest(given, {"result": answer})
    if processed.should_stop or decision.is_blocked(HookEventName.BEFORE_MODEL):
        reason = output.get_effective_reason() if output is not None else processed.stop_reason
        return _refused(given, method, reason or "a hook refused it")
    changed = specific.get("llm_request")
    messages = changed.get("messages", shown["messages"]) if isinstance(changed, Mapping) else shown["messages"]
    if messages == shown["messages"]:
        return HookedRequest(given)
    applied = _applied(method, given, shown["messages"], messages)
    return _refused(given, method, _NOT_APPLIED) if applied is None else HookedRequest(applied)


def _refused(params: JSON, method: str, reason: str) -> HookedRequest:
    if method == ELICITATION:
        return HookedRequest(params, {"result": {"action": "decline"}}, reason)
    return HookedRequest(params, {"error": {"code": _REJECTED, "message": f"llxprt-hooks: {reason}"}}, reason)


def _shown(method: str, params: JSON) -> JSON:
    """Return a request in hook format."""
    if method == ELICITATION:
        fields = {name: params[name] for name in ("requestedSchema", "url") if name in params}
        text = "\n\n".join([str(params.get("message", "")), *([write_json(fields).decode()] if fields else [])])
        return {"model": "", "messages": [{"role": "user", "content": text}], "config": {}}
    messages = [{"role": _role(each), "content": _content_text(each)} for each in _messages(params)]
    if isinstance(system := params.get("systemPrompt"), str):
        messages.insert(0, {"role": "system", "content": system})
    preferences = params.get("modelPreferences")
    hints = preferences.get("hints") if isinstance(preferences, Mapping) else None
    first = hints[0] if isinstance(hints, list) and hints else None
    model = first.get("name", "") if isinstance(first, Mapping) else ""
    config = {ours: params[theirs] for theirs, ours in _CONFIG.items() if theirs in params}
    return {"model": model, "messages": messages, "config": config}


def _messages(params: Mapping[str, Any]) -> list[Any]:
    messages = params.get("messages")
    return messages if isinstance(messages, list) else []


def _role(message: Any) -> str:
    return "model" if isinstance(message, Mapping) and message.get("role") == "assistant" else "user"


def _blocks(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, Mapping) else None
    return content if isinstance(content, list) else [content]


def _content_text(message: Any) -> str:
    texts = [block["text"] for block in _blocks(message) if is_text_block(block)]
    return "\n".join(texts)


def _applied(method: str, params: JSON, before: list[Any], after: Any) -> JSON | None:
    """Return parameters with the texts that hooks changed; None if more than texts has changed."""
    same_roles = isinstance(after, list) and [each["role"] for each in before] == [
        each.get("role") if isinstance(each, Mapping) else None for each in after
    ]
    if not same_roles or method == ELICITATION:
        return None
    texts = [each.get("content") for each in after]
    if not all(isinstance(text, str) for text in texts):
        return None
    changed = dict(params)
    if before and before[0]["role"] == "system":
        changed["systemPrompt"], before = texts.pop(0), before[1:]
    pairs = zip(_messages(params), before, texts, strict=True)
    changed["messages"] = [each if text == shown["content"] else _with_text(each, text) for each, shown, text in pairs]
    return changed


def _with_text(message: Any, text: str) -> JSON:
    """Return a message with other text; what is not text stays."""
    blocks = _blocks(message)
    others = [block for block in blocks if not is_text_block(block)]
    content = [text_block(text), *others]
    return {**message, "content": content if others or isinstance(message.get("content"), list) else content[0]}


def _text_of(response: Any) -> str | None:
    """Return the text of an answer that a hook gave instead of the model."""
    if not isinstance(response, Mapping):
        return None
    if isinstance(text := response.get("text"), str):
        return text
    candidates = response.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, Mapping) else None
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list):
        return None
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in parts)
