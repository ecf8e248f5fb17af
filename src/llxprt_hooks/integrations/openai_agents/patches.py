"""Installing: the hooks of a configuration, and what replaces a few functions of the SDK.

These are the functions that run an agent (sessions and agent events), list its tools, choose its model, and act on a
computer. All agents keep their identity. If a release of the SDK lacks one of these functions, ``install`` raises, so
that no run is without its guards unnoticed.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import agents.run
from agents import RunState
from agents.agent import AgentBase
from agents.run_internal import run_loop
from agents.run_internal.tool_actions import ComputerAction

from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine.session import Session, current_session
from llxprt_hooks.events import MODEL_EVENTS, TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.base import Integration, in_session
from llxprt_hooks.integrations.openai_agents.model import HookedModel
from llxprt_hooks.integrations.openai_agents.tools import OURS, act, arguments_of, hooked
from llxprt_hooks.integrations.unsupported import UNSUPPORTED
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator

if TYPE_CHECKING:
    from agents import Agent, Model, RunConfig, RunContextWrapper, RunResult, RunResultStreaming, Tool

    from llxprt_hooks.config import Config


class OpenAIAgentsHooks(Integration):
    """The hooks that ``install`` added."""

    unsupported = UNSUPPORTED["openai-agents"]

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._sessions = Sessions(self.hooks.config)
        self.unseen_tools: set[str] = set()
        """Tools that the provider runs itself. That hooks do not see them has been logged."""
        self.is_installed = True

    @property
    def is_active(self) -> bool:
        return self.is_installed and self.hooks.config.enable_hooks

    def stop_reason(self, session_id: str) -> str | None:
        """Return why a hook stopped the latest run of a session; None if none did."""
        session = self._sessions.latest(session_id)
        return None if session is None else session.stop_reason

    def end_session(self, session_id: str) -> None:
        """Fire SessionEnd for a session, and forget what hooks left for it."""
        self._sessions.end(session_id)

    # What the runner calls.

    @contextmanager
    def running(self, given: Any, options: dict[str, Any]) -> Iterator[Callable[[Any], None]]:
        """Make a run's session the current one; yield the function to call with the result."""
        outer = current_session(self.hooks.config)
        if outer is not None:  # an agent that is a tool of another one
            with in_session(outer.nested_run()):
                yield lambda result: None
            return
        prompt = _prompt(given)
        session = self._session_of(given, options)
        with session.active():
            if not isinstance(given, RunState):
                self.hooks.observe(HookEventName.BEFORE_AGENT, prompt=prompt)
            yield lambda result: self._ended(session, prompt, result)

    def _session_of(self, given: Any, options: dict[str, Any]) -> Session:
        session_id = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        if session_id:
            return self._sessions.begin(str(session_id))
        if isinstance(given, RunState) and given._context is not None:
            hooks, interrupted = vars(given._context).get(OURS, (None, None))
            if hooks is self:
                return cast("Session", interrupted.next_run())
        return Session(self.hooks.config, f"run-{uuid4().hex}", "")

    def _ended(self, session: Session, prompt: str, result: RunResult | RunResultStreaming) -> None:
        for item in result.interruptions:
            self.observe_approval(item.name or "", arguments_of(item.arguments or ""))
        if result.interruptions:
            vars(result.context_wrapper)[OURS] = (self, session)  # the state of a run has a copy of its context
        else:
            answer = "" if result.final_output is None else str(result.final_output)
            self.hooks.observe(HookEventName.AFTER_AGENT, prompt=prompt, prompt_response=answer)

    # What the SDK calls in place of its own functions.

    def model_of(self, model: Model, name: str, run_config: RunConfig) -> Model:
        """Return a model with its hooks, or the model itself if none would run."""
        is_hooked = self.model_plans(current_session(self.hooks.config)) is not None
        return HookedModel(model, name, run_config, self) if is_hooked else model

    def tools_of(self, tools: list[Tool]) -> list[Tool]:
        """Return an agent's tools with their hooks. Hooks of a model may restrict or stop the tools."""
        if not self.has_hooks(*TOOL_EVENTS, *MODEL_EVENTS):
            return tools
        self.check_tools(tool.name for tool in tools)
        return [hooked(tool, self) for tool in tools]


def _prompt(given: Any) -> str:
    """Return the text of the latest message of the user."""
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        messages = OpenAIResponsesTranslator().to_hook_llm_request({"input": given})["messages"]
        return next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    return ""


_installed: OpenAIAgentsHooks | None = None
_replaced: list[tuple[Any, str, Any, Any]] = []
"""What was replaced: where, its name, the original, and what replaced it."""


def install(config: Config | None = None, **options: Any) -> OpenAIAgentsHooks:
    """Run hooks in every ``Runner.run``, ``run_sync`` and ``run_streamed`` from now on.

    Without a configuration, the settings files of the current folder are read. Hooks that were installed before are
    replaced.
    """
    global _installed
    uninstall()
    is_given = config is not None or "hooks" in options
    hooks = OpenAIAgentsHooks(config, **options) if is_given else OpenAIAgentsHooks.load(**options)
    if missing := [name for owner, name, _ in _REPLACEMENTS if name not in vars(owner)]:
        version = agents.version.__version__
        raise RuntimeError(f"hooks cannot be installed in openai-agents {version}: it has no {missing[0]}")
    for owner, name, replacement in _REPLACEMENTS:
        original = vars(owner)[name]
        ours = replacement(original, hooks)
        setattr(owner, name, ours)
        _replaced.append((owner, name, original, ours))
    _installed = hooks
    return hooks


def uninstall() -> None:
    """Put everything back as it was, except what somebody else has replaced since: there, hooks no longer run."""
    global _installed
    if _installed is not None:
        _installed.is_installed = False
        _installed = None
    for owner, name, original, ours in _replaced:
        if vars(owner)[name] is ours:
            setattr(owner, name, original)
    _replaced.clear()


def _running(original: Any, hooks: OpenAIAgentsHooks) -> Any:
    @wraps(original)
    async def run(self: Any, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> RunResult:
        if not hooks.is_active:
            return cast("RunResult", await original(self, starting_agent, input, **kwargs))
        with hooks.running(input, kwargs) as ended:
            result: RunResult = await original(self, starting_agent, input, **kwargs)
            ended(result)
        return result

    return run


def _streaming(original: Any, hooks: OpenAIAgentsHooks) -> Any:
    @wraps(original)
    def run_streamed(self: Any, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> RunResultStreaming:
        if not hooks.is_active:
            return cast("RunResultStreaming", original(self, starting_agent, input, **kwargs))
        with hooks.running(input, kwargs) as ended:
            result: RunResultStreaming = original(self, starting_agent, input, **kwargs)  # its task keeps this context
            context = contextvars.copy_context()
        if result.run_loop_task is not None:

            def done(task: asyncio.Task[Any]) -> None:
                if not task.cancelled() and task.exception() is None:
                    ended(result)

            result.run_loop_task.add_done_callback(done, context=context)
        return result

    return run_streamed


def _listing_tools(original: Any, hooks: OpenAIAgentsHooks) -> Any:
    @wraps(original)
    async def get_all_tools(agent: AgentBase[Any], run_context: RunContextWrapper[Any]) -> list[Tool]:
        tools: list[Tool] = await original(agent, run_context)
        if not hooks.is_active:
            return tools
        # The function of the run loop calls the method, which has done it unless the agent has its own.
        is_done = type(agent).get_all_tools is AgentBase.get_all_tools is not get_all_tools
        return tools if is_done else hooks.tools_of(tools)

    return get_all_tools


def _choosing_model(original: Any, hooks: OpenAIAgentsHooks) -> Any:
    @wraps(original)
    def get_model(agent: Agent[Any], run_config: RunConfig) -> Model:
        model: Model = original(agent, run_config)
        if not hooks.is_active:
            return model
        chosen = agent.model if run_config.model is None else run_config.model
        name = chosen if isinstance(chosen, str) else getattr(model, "model", None)
        return hooks.model_of(model, name if isinstance(name, str) else "", run_config)

    return get_model


def _acting(original: Any, hooks: OpenAIAgentsHooks) -> Any:
    @classmethod  # type: ignore[misc]
    @wraps(original.__func__)
    async def act_between_hooks(cls: Any, computer: Any, tool_call: Any) -> Any:
        return await act(cls, computer, tool_call, original.__func__, hooks)

    return act_between_hooks


_REPLACEMENTS: tuple[tuple[Any, str, Callable[[Any, OpenAIAgentsHooks], Any]], ...] = (
    (agents.run.AgentRunner, "run", _running),  # ``run_sync`` calls it
    (agents.run.AgentRunner, "run_streamed", _streaming),
    (AgentBase, "get_all_tools", _listing_tools),
    (run_loop, "get_all_tools", _listing_tools),  # an agent's own class may have another method
    (run_loop, "get_model", _choosing_model),
    (ComputerAction, "_execute_action_and_capture", _acting),
)
