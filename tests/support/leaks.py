"""Requests and answers of each API with a secret where hooks see nothing by default."""

from __future__ import annotations

from typing import Any

SECRET = "sk-live-999"
PLACES = ("result", "arguments", "prompt")


def request(api: str, place: str) -> Any:
    """A request with the secret in one place."""
    result, value, prompt = (f"it is {SECRET}" if each == place else "harmless" for each in PLACES)
    return _REQUESTS[api](result, value, prompt)


def answer(api: str) -> Any:
    """An answer that calls a tool with the secret."""
    return _ANSWERS[api]


def _chat(result: str, value: str, prompt: str) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": f'{{"a": "{value}"}}'}}
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": prompt},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": result},
        ],
    }


def _responses(result: str, value: str, prompt: str) -> dict[str, Any]:
    return {
        "model": "m",
        "instructions": prompt,
        "input": [
            {"role": "user", "content": "Hello"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": f'{{"a": "{value}"}}'},
            {"type": "function_call_output", "call_id": "c1", "output": result},
        ],
    }


def _messages(result: str, value: str, prompt: str) -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": value}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": result}]},
        ],
    }


def _genai(result: str, value: str, prompt: str) -> dict[str, Any]:
    return {
        "model": "m",
        "contents": [
            {"role": "user", "parts": [{"text": "Hello"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": value}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"x": result}}}]},
        ],
        "systemInstruction": {"parts": [{"text": prompt}]},
    }


_REQUESTS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _messages,
    "google-genai": _genai,
}
APIS = tuple(_REQUESTS)

_CHAT_CALL = {"id": "c2", "type": "function", "function": {"name": "f", "arguments": f'{{"a":"{SECRET}"}}'}}
_ANSWERS: dict[str, Any] = {
    "openai-chat": {
        "id": "1",
        "object": "chat.completion",
        "model": "m",
        "created": 1,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Calling.", "tool_calls": [_CHAT_CALL]},
                "finish_reason": "tool_calls",
            }
        ],
    },
    "openai-responses": {
        "id": "1",
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [
            {"type": "function_call", "id": "f2", "call_id": "c2", "name": "f", "arguments": f'{{"a":"{SECRET}"}}'}
        ],
    },
    "anthropic-messages": {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "tool_use", "id": "c2", "name": "f", "input": {"a": SECRET}}],
    },
    "google-genai": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"functionCall": {"id": "c2", "name": "f", "args": {"a": SECRET}}}],
                }
            }
        ]
    },
}


def refusing(payload: Any) -> Any:
    """A guard that blocks a request with the secret anywhere in it."""
    return {"decision": "deny", "reason": "a secret"} if SECRET in str(payload["llm_request"]) else None


def redacting(payload: Any) -> Any:
    """A hook that removes the secret from every text of a request, and from an answer."""
    field = "llm_response" if "llm_response" in payload else "llm_request"
    changed = _redacted(payload[field] if field == "llm_response" else {"messages": payload[field]["messages"]})
    return {"hookSpecificOutput": {field: changed}}


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _redacted(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_redacted(each) for each in value]
    return value.replace(SECRET, "***") if isinstance(value, str) else value
