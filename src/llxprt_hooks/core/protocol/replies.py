"""The answers of hooks that are Python functions: plain mappings in the format that scripts print as JSON.

>>> deny("no secrets")
{'decision': 'deny', 'reason': 'no secrets'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Reply: TypeAlias = Mapping[str, Any]
"""A hook's output. A function that has no opinion returns None."""


def allow() -> Reply:
    """Let it happen. Another hook may still block."""
    return {"decision": "allow"}


def deny(reason: str) -> Reply:
    """Block it; the model, or the user, reads the reason."""
    return {"decision": "deny", "reason": reason}


def ask(reason: str) -> Reply:
    """Reserved: nobody is asked, and the call goes ahead (HOOK-182). To block it, use ``deny``."""
    return {"decision": "ask", "reason": reason}


def stop(reason: str) -> Reply:
    """End the agent's work; the user reads the reason."""
    return {"continue": False, "stopReason": reason}


def rewrite(**tool_input: Any) -> Reply:
    """Replace these arguments of a tool call. The other arguments stay."""
    return {"hookSpecificOutput": {"tool_input": tool_input}}


def context(text: str) -> Reply:
    """Add text to what the model reads of a tool's result."""
    return {"hookSpecificOutput": {"additionalContext": text}}
