"""Hooks in the OpenAI Agents SDK: call ``install()`` once, and every run of an agent has them.

Three places of the SDK are replaced while hooks are installed: the default runner (sessions and agent events), the
method that lists an agent's tools, and the function that chooses its model. All agents keep their identity. If a
release of the SDK lacks one of these places, ``install`` raises: no run is ever without its guards in silence.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import uuid4

import agents
import agents.run
from agents import (
    AgentsException,
    CustomTool,
    FunctionTool,
    Model,
    ModelBehaviorError,
    ModelResponse,
    ModelSettings,
    RunConfig,
    RunState,
)
from agents.agent import AgentBase
from agents.run_internal import run_loop
from agents.tool import _SYNC_FUNCTION_TOOL_MARKER, _FailureHandlingFunctionToolInvoker
from openai.types.responses import ResponseOutputMessage, ResponseStreamEvent
from pydantic import TypeAdapter

from llxprt_hooks.engine.session import current_session
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.base import Integration, log
from llxprt_hooks.integrations.sessions import Sessions
from llxprt_hooks.integrations.unsupported import UNSUPPORTED
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from llxprt_hooks.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from agents import Agent, RunContextWrapper, RunResult, RunResultStreaming, Tool
    from agents.tool_context import ToolContext

    from llxprt_hooks.config import Config
    from llxprt_hooks.engine.session import Session
    from llxprt_hooks.model.json_api import Request
    from llxprt_hooks.triggers.model_call import HookedModelCall, ModelCallResult

_TOOL_EVENTS = (HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL)
_MODEL_EVENTS = (HookEventName.BEFORE_TOOL_SELECTION, HookEventName.BEFORE_MODEL, HookEventName.AFTER_MODEL)
_RESTRICTING = (HookEventName.BEFORE_TOOL_SELECTION, HookEventName.BEFORE_MODEL)
_SETTINGS = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
"""Settings of the Responses API, and their names in ``ModelSettings``."""
_ENDINGS = ("response.completed", "response.incomplete")
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class HookStopped(AgentsException):
    """A hook ended a run whose output cannot be a text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OpenAIAgentsHooks(Integration):
    """The hooks that ``install`` added."""

    unsupported: ClassVar = UNSUPPORTED["openai-agents"]

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._sessions = Sessions(self.hooks)
        self._warned: set[str] = set()

    def stop_reason(self, session_id: str) -> str | None:
        """Return why a hook stopped the latest run of a session; None if none did."""
        session = self._sessions.get(session_id)
        return None if session is None else session.stop_reason

    def end_session(self, session_id: str) -> None:
        """Fire SessionEnd for a session, and forget what hooks left for it."""
        self._sessions.end(session_id)

    # What the runner calls.

    @contextmanager
    def running(self, given: Any, options: dict[str, Any]) -> Iterator[Callable[[Any], None]]:
        """Make a run's session the current one; yield the function to call with the result."""
        session_id = _session_id(options)
        if session_id is None and current_session(self.hooks.config) is not None:
            yield lambda result: None  # an agent that is a tool of another one
            return
        session = self._sessions.begin(session_id or f"run-{uuid4().hex}", announce=session_id is not None)
        prompt = _prompt(given)
        with self._sessions.active(session):
            if not isinstance(given, RunState):
                self.hooks.observe(HookEventName.BEFORE_AGENT, prompt=prompt)
            yield lambda result: self._ended(prompt, result)

    def _ended(self, prompt: str, result: RunResult | RunResultStreaming) -> None:
        for item in result.interruptions:
            name = self.hook_name(item.name or "")
            self.hooks.observe(
                HookEventName.NOTIFICATION,
                notification_type="ToolPermission",
                message=f"{name} needs approval",
                details={"tool_name": name, "tool_input": _arguments(item.arguments or "")},
            )
        if not result.interruptions:
            answer = "" if result.final_output is None else str(result.final_output)
            self.hooks.observe(HookEventName.AFTER_AGENT, prompt=prompt, prompt_response=answer)

    # What the SDK calls in place of its own functions.

    def model_of(self, model: Model, name: str, run_config: RunConfig) -> Model:
        """Return a model with its hooks, or the model itself if none would run."""
        session = current_session(self.hooks.config)
        is_waiting = session is not None and (session.notes or session.stop_reason is not None)
        if is_waiting or self.has_hooks(*_MODEL_EVENTS):
            return _HookedModel(model, name, run_config, self)
        return model

    def tools_of(self, tools: list[Tool]) -> list[Tool]:
        """Return an agent's tools with their hooks."""
        if not self.has_hooks(*_TOOL_EVENTS, *_RESTRICTING):
            return tools
        return [self._hooked(tool) for tool in tools]

    def _hooked(self, tool: Tool) -> Tool:
        if isinstance(tool, (FunctionTool, CustomTool)):
            return cast("Tool", _hooked_tool(tool, self))
        if tool.name not in self._warned and self.has_hooks(*_TOOL_EVENTS):
            self._warned.add(tool.name)
            log.warning("hooks do not see the calls of %s: the provider or the SDK runs it itself", tool.name)
        return tool

    def has_hooks(self, *events: HookEventName) -> bool:
        return any(self.hooks.has_hooks_for(event) for event in events)


_installed: _Installed | None = None


@dataclasses.dataclass(frozen=True)
class _Installed:
    """What is to be put back."""

    runner: Any
    get_all_tools: Any
    get_model: Any


def install(config: Config | None = None, **options: Any) -> OpenAIAgentsHooks:
    """Run hooks in every ``Runner.run``, ``run_sync`` and ``run_streamed`` from here on.

    Without a configuration, the settings files of the current folder are read. Hooks that were installed before are
    replaced.
    """
    global _installed
    uninstall()
    hooks = OpenAIAgentsHooks.load(**options) if config is None and "hooks" not in options else None
    hooks = OpenAIAgentsHooks(config, **options) if hooks is None else hooks
    try:
        _installed = _Installed(agents.run.DEFAULT_AGENT_RUNNER, AgentBase.get_all_tools, run_loop.get_model)
    except AttributeError as error:
        version = agents.version.__version__
        raise RuntimeError(f"hooks cannot be installed in openai-agents {version}: {error}") from error
    if hooks.hooks.config.enable_hooks:
        _replace(hooks, _installed)
    return hooks


def uninstall() -> None:
    """Put everything back as it was. Runs that have begun keep their hooks."""
    global _installed
    if _installed is not None:
        agents.run.set_default_agent_runner(_installed.runner)
        AgentBase.get_all_tools = _installed.get_all_tools  # type: ignore[method-assign]
        run_loop.get_model = _installed.get_model
        _installed = None


def _replace(hooks: OpenAIAgentsHooks, original: _Installed) -> None:
    @wraps(original.get_all_tools)
    async def get_all_tools(self: AgentBase[Any], run_context: RunContextWrapper[Any]) -> list[Tool]:
        return hooks.tools_of(await original.get_all_tools(self, run_context))

    @wraps(original.get_model)
    def get_model(agent: Agent[Any], run_config: RunConfig) -> Model:
        model = original.get_model(agent, run_config)
        names = (run_config.model, agent.model, getattr(model, "model", None))
        return hooks.model_of(model, next((name for name in names if isinstance(name, str)), ""), run_config)

    agents.run.set_default_agent_runner(_Runner(original.runner, hooks))
    AgentBase.get_all_tools = get_all_tools  # type: ignore[method-assign]
    run_loop.get_model = get_model


class _Runner(agents.run.AgentRunner):
    """Runs agents in a session."""

    def __init__(self, inner: agents.run.AgentRunner, hooks: OpenAIAgentsHooks) -> None:
        self._inner = inner
        self._hooks = hooks

    async def run(self, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> RunResult:
        with self._hooks.running(input, kwargs) as ended:
            result = await self._inner.run(starting_agent, input, **kwargs)
            ended(result)
        return result

    def run_sync(self, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> RunResult:
        with self._hooks.running(input, kwargs) as ended:
            result = self._inner.run_sync(starting_agent, input, **kwargs)
            ended(result)
        return result

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> RunResultStreaming:
        with self._hooks.running(input, kwargs) as ended:
            result = self._inner.run_streamed(starting_agent, input, **kwargs)  # its task keeps this context
            context = contextvars.copy_context()
        if result.run_loop_task is not None:

            def done(task: asyncio.Task[Any]) -> None:
                if not task.cancelled() and task.exception() is None:
                    ended(result)

            result.run_loop_task.add_done_callback(done, context=context)
        return result


# Tools.


def _hooked_tool(tool: Any, hooks: OpenAIAgentsHooks) -> Any:
    """Return a copy of a tool that runs with its hooks. It is made once for each tool."""
    made = tool.__dict__.get("_llxprt_hooks")
    if made is not None and made[0] is hooks and made[1] is tool.on_invoke_tool:
        return made[2]
    copied = copy.copy(tool)
    copied.on_invoke_tool = _hooked_invoker(copied.on_invoke_tool, copied, hooks)
    if copied.needs_approval is not False:
        copied.needs_approval = _unless_restricted(copied.needs_approval, copied.name, hooks)
    tool.__dict__["_llxprt_hooks"] = (hooks, tool.on_invoke_tool, copied)
    return copied


def _hooked_invoker(invoker: Any, tool: Any, hooks: OpenAIAgentsHooks) -> Any:
    """Return what runs a tool, with its hooks; of the SDK's own kind, by which approval policies inspect arguments."""
    if not isinstance(invoker, _FailureHandlingFunctionToolInvoker):
        return _Invocation(invoker, tool, hooks)
    inner = _Invocation(invoker._invoke_tool_impl, tool, hooks)
    hooked = _FailureHandlingFunctionToolInvoker(inner, invoker._on_handled_error, function_tool=tool)
    if getattr(invoker, _SYNC_FUNCTION_TOOL_MARKER, False):
        setattr(hooked, _SYNC_FUNCTION_TOOL_MARKER, True)
    return hooked


def _unless_restricted(policy: Any, name: str, hooks: OpenAIAgentsHooks) -> Any:
    """Return an approval policy that asks nobody about a call that will be refused anyway."""

    async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        session = current_session(hooks.hooks.config)
        if session is not None and not session.restriction.allows(name):
            return False
        needed = policy(context, arguments, call_id) if callable(policy) else policy
        return bool(await needed if inspect.isawaitable(needed) else needed)

    return needs_approval


class _Invocation:
    """Runs a tool between its hooks. In all else it looks like what it replaces."""

    def __init__(self, run: Callable[[Any, str], Any], tool: Any, hooks: OpenAIAgentsHooks) -> None:
        self._run = run
        self._tool = tool
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    async def __call__(self, context: ToolContext[Any], given: str) -> Any:
        hooks = self._hooks.hooks
        session = current_session(hooks.config)
        name = self._hooks.hook_name(self._tool.name)
        refusal = None if session is None else session.restriction.refusal(self._tool.name)
        if refusal is not None:
            return refusal
        if not any(hooks.has_hooks_for(event, name) for event in _TOOL_EVENTS) and not _stopped(session):
            return await self._run(context, given)
        shown = _arguments(given)
        call = hooks.tool_call(name, shown)
        refused = await call.before()
        if refused is not None:
            return refused.llm_content
        if call.input is not shown:
            given = _written(self._tool, call.input)
            context.tool_arguments = given
            context._function_tool_arguments = None  # those that were read for the approval policy
        outcome = await self._run(context, given)
        content = outcome if isinstance(outcome, str) else _plain(outcome)
        result = await call.after(ToolResult(content, content))
        if isinstance(outcome, str):
            return result.llm_content
        if session is not None and result.additions:
            session.exchange_notes(0, tuple(result.additions))
        return outcome


def _arguments(given: str) -> dict[str, Any]:
    """Return a call's arguments; text that is not a JSON object is shown under one name."""
    try:
        arguments = json.loads(given) if given.strip() else {}
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"input": given}


def _written(tool: Any, arguments: dict[str, Any]) -> str:
    if isinstance(tool, CustomTool):
        return str(arguments.get("input", ""))
    return json.dumps(arguments, ensure_ascii=False)


# Models.


class _HookedModel(Model):
    """A model whose calls run with their hooks. In all else it is the model that it wraps."""

    def __init__(self, model: Model, name: str, run_config: RunConfig, hooks: OpenAIAgentsHooks) -> None:
        self._model = model
        self._name = name
        self._run_config = run_config
        self._hooks = hooks
        self._translator = OpenAIResponsesTranslator()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def close(self) -> None:
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        sending = _Sending(self, system_instructions, input, *args, **kwargs)
        result = await sending.call.before()
        if result is not None:
            return self._response(self._answer(result, sending))
        model, options = sending.final()
        response: ModelResponse = await model.get_response(**options)
        shown = self._shown(response, sending.call.request)
        after = await sending.call.after(shown)
        if after.stop_reason is None and after.response is shown:
            return sending.without_refused_handoffs(response)
        return self._response(self._answer(after, sending), response)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        sending = _Sending(self, system_instructions, input, *args, **kwargs)
        result = await sending.call.before()
        if result is not None:
            for event in self._events(self._answer(result, sending), sending):
                yield event
            return
        model, options = sending.final()
        held_back: list[Any] = []
        ending: Any = None
        async for event in model.stream_response(**options):
            if event.type in _ENDINGS:
                ending = event
            elif event.type == "response.failed":
                yield event
                return
            elif sending.call.holds_back:
                held_back.append(event)
            else:
                yield event
        if ending is None:
            raise ModelBehaviorError("the stream ended before the answer was complete")
        after = await sending.call.after(ending.response)
        if after.stop_reason is None and after.response is ending.response:
            for event in [] if after.suppress_output else held_back:
                yield event
            yield ending
            return
        for event in self._events(self._answer(after, sending), sending):
            yield event

    def hooked_call(self, request: Request) -> HookedModelCall[Request]:
        return self._hooks.hooks.model_call(request, translator=self._translator)

    def _answer(self, result: ModelCallResult[Any], sending: _Sending) -> Any:
        """Return the answer that the run gets: after a stop, or a block without an answer, the reason."""
        if result.stop_reason is None and result.response is not None:
            return result.response
        reason = (result.stop_reason if result.stop_reason is not None else result.reason) or ""
        if not sending.takes_text:
            raise HookStopped(reason)
        blank = self._translator.blank_response(sending.call.request)
        return self._translator.from_hook_llm_response({"text": reason}, blank)

    def _shown(self, response: ModelResponse, request: Request) -> dict[str, Any]:
        """Return a response as the API has it, for the translator."""
        return {
            **self._translator.blank_response(request),
            "id": response.response_id,
            "status": "completed",
            "output": response.output,
            "usage": {
                "input_tokens": response.usage.input_tokens,
                "output_tokens": response.usage.output_tokens,
                "total_tokens": response.usage.total_tokens,
            },
        }

    def _response(self, answer: Any, base: ModelResponse | None = None) -> ModelResponse:
        output = [ResponseOutputMessage.model_validate(item) for item in answer["output"]]
        if base is None:
            return ModelResponse(output=list(output), usage=agents.Usage(), response_id=None)
        return dataclasses.replace(base, output=list(output))

    def _events(self, answer: Any, sending: _Sending) -> Iterator[Any]:
        data = answer if isinstance(answer, dict) else answer.model_dump()
        for event in self._translator.wire.events(data, sending.call.request):
            yield _EVENT.validate_python(event)


class _Sending:
    """One request to a model: its arguments, as the SDK has them, and as the Responses API does."""

    def __init__(
        self,
        hooked: _HookedModel,
        system_instructions: Any,
        input: Any,
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **options: Any,
    ) -> None:
        self._hooked = hooked
        self._settings = model_settings
        self._tools = {tool.name: tool for tool in tools}
        self._handoffs = {handoff.tool_name: handoff for handoff in handoffs}
        self._options = {
            **options,
            "system_instructions": system_instructions,
            "output_schema": output_schema,
            "tracing": tracing,
        }
        self.takes_text = output_schema is None or output_schema.is_plain_text()
        names = [*self._tools, *self._handoffs]
        request: Request = {
            "model": hooked._name,
            "input": input,
            "tools": [{"type": "function", "name": name} for name in names],
            "tool_choice": _choice(model_settings.tool_choice),
            **{name: getattr(model_settings, ours) for name, ours in _SETTINGS.items()},
        }
        self.request = {name: value for name, value in request.items() if value is not None}
        self.call = hooked.hooked_call(self.request)

    def final(self) -> tuple[Model, dict[str, Any]]:
        """Return the model to call and its arguments, as hooks left them."""
        sent = self.call.request
        tools, handoffs, settings = dict(self._tools), dict(self._handoffs), self._settings
        changed = {ours: sent.get(name) for name, ours in _SETTINGS.items() if sent.get(name) != self.request.get(name)}
        if sent.get("tool_choice") != self.request.get("tool_choice"):
            changed["tool_choice"], allowed = self._restricted(sent["tool_choice"])
            if allowed is not None:
                tools = {name: tool for name, tool in tools.items() if name in allowed}
                handoffs = {name: handoff for name, handoff in handoffs.items() if name in allowed}
        options = {
            **self._options,
            "input": sent["input"],
            "model_settings": dataclasses.replace(settings, **changed) if changed else settings,
            "tools": list(tools.values()),
            "handoffs": list(handoffs.values()),
        }
        hooked = self._hooked
        if sent["model"] == self.request["model"]:
            return hooked._model, options
        return hooked._run_config.model_provider.get_model(sent["model"]), options

    def _restricted(self, choice: Any) -> tuple[str, list[str] | None]:
        """Return the SDK's tool choice, and the names of the tools to declare; not every model can name several."""
        shown = self._hooked._translator.to_hook_tool_config(choice)
        mode, allowed = shown.get("mode"), shown.get("allowedFunctionNames")
        if mode == "NONE":
            return "none", None
        if mode == "ANY":
            return (allowed[0] if allowed and len(allowed) == 1 else "required"), allowed
        return "auto", allowed

    def without_refused_handoffs(self, response: ModelResponse) -> ModelResponse:
        """Return an answer without handoffs that the restriction does not allow: they would not fire a tool event."""
        refused = [name for name in self._handoffs if not self.call.restriction.allows(name)]
        if not refused or not any(getattr(item, "name", None) in refused for item in response.output):
            return response
        kept = [item for item in response.output if getattr(item, "name", None) not in refused]
        if not kept:
            text = " ".join(filter(None, map(self.call.restriction.refusal, refused)))
            answer = self._hooked._translator.from_hook_llm_response({"text": text})
            kept = list(self._hooked._response(answer).output)
        return dataclasses.replace(response, output=kept)


def _choice(choice: Any) -> Any:
    """Return a tool choice of ``ModelSettings`` as the Responses API has it."""
    if not isinstance(choice, str):
        return None
    return choice if choice in ("auto", "required", "none") else {"type": "function", "name": choice}


# Small things.


def _session_id(options: dict[str, Any]) -> str | None:
    session, run_config = options.get("session"), options.get("run_config")
    ids = (getattr(session, "session_id", None), options.get("conversation_id"), getattr(run_config, "group_id", None))
    return next((str(value) for value in ids if value), None)


def _prompt(given: Any) -> str:
    """Return the text of the latest message of the user."""
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        messages = OpenAIResponsesTranslator().to_hook_llm_request({"input": given})["messages"]
        return next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    return ""


def _stopped(session: Session | None) -> bool:
    return session is not None and session.stop_reason is not None


def _plain(value: Any) -> Any:
    """Return a result as JSON, if it can be; else as text, which is what the SDK sends."""
    try:
        return json.loads(json.dumps(value, default=_dumped))
    except (TypeError, ValueError):
        return str(value)


def _dumped(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else str(value)
