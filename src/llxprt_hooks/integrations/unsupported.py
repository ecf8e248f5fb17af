"""Which events an integration cannot honor, and why. Read by ``validate --for`` without importing any framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.hooks import Hooks

_NO_MODEL = "an MCP server does not see the model's requests and answers"
_NO_AGENT = "an MCP server does not see the user's prompts and the agent's answers"
_NO_SESSION = "a connection to an MCP server is not a session; a client opens one to each server"

_MCP: Final = {
    HookEventName.BEFORE_MODEL: _NO_MODEL,
    HookEventName.AFTER_MODEL: _NO_MODEL,
    HookEventName.BEFORE_TOOL_SELECTION: _NO_MODEL,
    HookEventName.BEFORE_AGENT: _NO_AGENT,
    HookEventName.AFTER_AGENT: _NO_AGENT,
    HookEventName.SESSION_START: _NO_SESSION,
    HookEventName.SESSION_END: _NO_SESSION,
    HookEventName.PRE_COMPRESS: "an MCP server does not see the conversation",
    HookEventName.NOTIFICATION: "it is the client that notifies and asks the user",
}

_BY_THE_PROGRAM = "a client does not know when it happens; fire it with `.hooks.observe(…)`"

_CLIENT: Final = {
    HookEventName.BEFORE_AGENT: _BY_THE_PROGRAM,
    HookEventName.AFTER_AGENT: _BY_THE_PROGRAM,
    HookEventName.PRE_COMPRESS: _BY_THE_PROGRAM,
    HookEventName.NOTIFICATION: _BY_THE_PROGRAM,
}

_NO_TOOL = "the agent runs its tools itself, and the proxy only sees its model calls"
_NOT_IN_CALLS = "the proxy only sees the agent's model calls"

_MODEL_PROXY: Final = {
    HookEventName.BEFORE_TOOL: _NO_TOOL,
    HookEventName.AFTER_TOOL: _NO_TOOL,
    HookEventName.BEFORE_AGENT: _NOT_IN_CALLS,
    HookEventName.AFTER_AGENT: _NOT_IN_CALLS,
    HookEventName.PRE_COMPRESS: _NOT_IN_CALLS,
    HookEventName.NOTIFICATION: _NOT_IN_CALLS,
}

_NO_MODEL_CALLBACK = "the SDK's hooks do not see the model: use `hooked()` instead of `with_hooks()`"

_CLAUDE: Final = {
    HookEventName.BEFORE_MODEL: _NO_MODEL_CALLBACK,
    HookEventName.AFTER_MODEL: _NO_MODEL_CALLBACK,
    HookEventName.BEFORE_TOOL_SELECTION: _NO_MODEL_CALLBACK,
    HookEventName.SESSION_END: "the SDK does not report the end of a session: use `hooked()` instead of `with_hooks()`",
}
"""Of ``with_hooks``; ``hooked`` has all events."""

UNSUPPORTED: Final[Mapping[str, Mapping[HookEventName, str]]] = {
    "adk": {},
    "anthropic": _CLIENT,
    "claude-agent-sdk": _CLAUDE,
    "fastmcp": _MCP,
    "langchain": {},
    "mcp": _MCP,
    "mcp-proxy": _MCP,
    "model-proxy": _MODEL_PROXY,
    "openai": _CLIENT,
    "openai-agents": {
        HookEventName.PRE_COMPRESS: "the SDK has no common place where history is compressed",
    },
    "pydantic-ai": {
        HookEventName.PRE_COMPRESS: "pydantic-ai has no common place where history is compressed",
    },
}
"""For each integration, the events that never fire, with the reason."""


def unsupported_hooks(integration: str, hooks: Hooks) -> Iterator[str]:
    """Yield a sentence for each event that has hooks which will never run."""
    for event, reason in UNSUPPORTED[integration].items():
        if hooks.has_hooks_for(event):
            yield f"hooks for {event} are configured but will not run: {reason}"
