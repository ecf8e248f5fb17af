"""Which events an integration cannot honor, and why. Read by ``validate --for`` without importing any framework."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine.guards import GuardMissingError, RequiredHook
from llxprt_hooks.events import MODEL_EVENTS, TOOL_EVENTS, HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.hooks import Hooks

_AGENT_EVENTS = (HookEventName.BEFORE_AGENT, HookEventName.AFTER_AGENT)
_SESSION_EVENTS = (HookEventName.SESSION_START, HookEventName.SESSION_END)
_ABOUT_THE_CONVERSATION = (*_AGENT_EVENTS, HookEventName.PRE_COMPRESS, HookEventName.NOTIFICATION)

_MCP: Final = {
    HookEventName.BEFORE_MODEL: "an MCP server does not see the model's requests",
    HookEventName.AFTER_MODEL: "an MCP server does not see the model's responses",
    **dict.fromkeys(_AGENT_EVENTS, "an MCP server does not see the user's prompts and the agent's answers"),
    **dict.fromkeys(
        _SESSION_EVENTS, "a connection to an MCP server is not a session; a client opens one to each server"
    ),
    HookEventName.PRE_COMPRESS: "an MCP server does not see the conversation",
    HookEventName.NOTIFICATION: "it is the client that notifies and asks the user",
}
_CLIENT: Final = dict.fromkeys(
    _ABOUT_THE_CONVERSATION, "a client does not know when it happens; fire it with `.hooks.observe(…)`"
)
_MODEL_PROXY: Final = {
    **dict.fromkeys(TOOL_EVENTS, "the agent runs its tools itself, and the proxy only sees its model calls"),
    **dict.fromkeys(_ABOUT_THE_CONVERSATION, "the proxy only sees the agent's model calls"),
}
_CLAUDE: Final = {
    **dict.fromkeys(MODEL_EVENTS, "the SDK's hooks do not see the model: use `hooked()` instead of `with_hooks()`"),
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
    "mcp-proxy": {event: reason for event, reason in _MCP.items() if event is not HookEventName.BEFORE_MODEL},
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

LIMITED: Final[Mapping[str, Mapping[HookEventName, str]]] = {
    "mcp-proxy": {
        HookEventName.BEFORE_MODEL: "only for what the server asks the client's model or user: an MCP server does not "
        "see the model's other requests"
    }
}
"""The events that fire in part, with what they fire for."""

_NO_TURNS: Final = {
    HookEventName.SESSION_START: "a client does not know which request has the first prompt; `.hooks.before_turn(…)` "
    "returns a prompt with its context"
}
NOT_HONORED: Final[Mapping[str, Mapping[HookEventName, str]]] = {
    **{name: {} for name in UNSUPPORTED},
    "claude-agent-sdk": {
        HookEventName.AFTER_AGENT: "the SDK cannot clear its conversation",
        HookEventName.AFTER_TOOL: "the SDK does not replace the error of a tool that failed",
    },
    **dict.fromkeys(("anthropic", "openai"), _NO_TURNS),
    "model-proxy": {
        HookEventName.SESSION_START: "the agent keeps the conversation, so context would be in a single request only"
    },
    "openai-agents": {HookEventName.AFTER_AGENT: "a streamed run cannot be continued or stopped after its end"},
    "adk": {HookEventName.AFTER_AGENT: "a plugin cannot continue or stop a run that has ended"},
    "pydantic-ai": {
        HookEventName.AFTER_AGENT: "the program keeps the conversation, so `clearContext` is only in the last answer's "
        "metadata, and `run_stream` ends with its answer"
    },
}
"""For each integration, the events at which hooks that act cannot have all their effects, with the reason."""


UNSTREAMED: Final[Mapping[str, str]] = {
    "pydantic-ai": "pydantic-ai gets an answer that AfterModel hooks see when it is complete",
}
"""The integrations that stream, but not sentence by sentence, each with the reason."""


ASKS_FIRST: Final = frozenset({"langchain", "pydantic-ai"})
"""The integrations whose framework asks a person about a tool before BeforeTool hooks run."""


def require_supported(required: Iterable[RequiredHook], unsupported: Mapping[HookEventName, str]) -> None:
    """Raise ``GuardMissingError`` if a required hook would never run, because its event never fires."""
    never = ((each, unsupported.get(each.event)) for each in required)
    if missing := [f"{each}: no hook would run, because {reason}." for each, reason in never if reason]:
        raise GuardMissingError(missing)


def unsupported_hooks(unsupported: Mapping[HookEventName, str], hooks: Hooks) -> Iterator[str]:
    """Yield a sentence for each event that has hooks which will never run. ``unsupported`` is such a mapping."""
    for event, reason in unsupported.items():
        if hooks.has_hooks_for(event):
            yield f"hooks for {event} are configured but will not run: {reason}"


def reports(integration: str, hooks: Hooks) -> Iterator[str]:
    """Yield what will not work in an integration: hooks that never run, or not always, and effects they cannot have."""
    yield from unsupported_hooks(UNSUPPORTED[integration], hooks)
    for event, extent in LIMITED.get(integration, {}).items():
        if hooks.has_hooks_for(event):
            yield f"hooks for {event} run {extent}"
    if lost := lost_effects(NOT_HONORED[integration], hooks):
        yield lost


def lost_effects(not_honored: Mapping[HookEventName, str], hooks: Hooks) -> str | None:
    """Return what hooks that act cannot do, in one sentence for all events. ``not_honored`` is such a mapping."""
    plans = {event: plan_for(hooks.config, event) for event in not_honored}
    lost = [f"{event} ({not_honored[event]})" for event, plan in plans.items() if plan is not None and plan.acts]
    return f"some effects of these hooks are not available here: {'; '.join(lost)}" if lost else None
