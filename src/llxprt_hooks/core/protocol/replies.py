"""The answers of hooks that are Python functions: plain mappings in the format that scripts print as JSON.

>>> deny("no secrets")
{'decision': 'deny', 'reason': 'no secrets'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, Unpack

from llxprt_hooks.model.format import LLMConfig, LLMRequest

Reply: TypeAlias = Mapping[str, Any]
"""A hook's output. A function that has no opinion returns None."""


def allow() -> Reply:
    """Let it happen. Another hook may still block."""
    return {"decision": "allow"}


def deny(reason: str) -> Reply:
    """Block it; the model, or the user, reads the reason."""
    return {"decision": "deny", "reason": reason}


def ask(reason: str) -> Reply:
    """Let the program's approver decide, with the profile ``full``. Without it, the call goes ahead (HOOK-182)."""
    return {"decision": "ask", "reason": reason}


def stop(reason: str) -> Reply:
    """End the agent's work; the user reads the reason."""
    return {"continue": False, "stopReason": reason}


def rewrite(**tool_input: Any) -> Reply:
    """Replace these arguments of a tool call. The other arguments stay."""
    return {"hookSpecificOutput": {"tool_input": tool_input}}


def context(text: str) -> Reply:
    """Add text to what the model reads: of a tool's result or, with the profile ``full``, of a prompt."""
    return {"hookSpecificOutput": {"additionalContext": text}}


def replace_result(value: str | Mapping[str, Any]) -> Reply:
    """Replace a tool's result by text, or by the given fields of it, with the profile ``full``."""
    return {"hookSpecificOutput": {"tool_response": value}}


def replace_answer(text: str) -> Reply:
    """Replace the model's response. Before the model is called, that takes a block or the profile ``full``."""
    return {"hookSpecificOutput": {"llm_response": {"text": text}}}


def change_request(**fields: Unpack[LLMRequest]) -> Reply:
    """Change these fields of a model request: ``model``, ``messages``, ``config`` or ``toolConfig``."""
    if unknown := fields.keys() - LLMRequest.__annotations__:
        field = min(unknown)
        where = f": write config={{'{field}': …}}" if field in LLMConfig.__annotations__ else ""
        raise TypeError(f"a model request has no field `{field}`{where}")
    return {"hookSpecificOutput": {"llm_request": fields}}


def restrict(*names: str, mode: str = "AUTO") -> Reply:
    """Let the model call only these tools. The mode ``NONE`` allows no tool, ``ANY`` demands a call."""
    return {"hookSpecificOutput": {"toolConfig": {"mode": mode, "allowedFunctionNames": list(names)}}}


def message(text: str) -> Reply:
    """Say something to the model, and never to the user."""
    return {"systemMessage": text}
