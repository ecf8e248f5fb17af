"""Hooks in the OpenAI Agents SDK: call ``install()`` once, and every run of an agent has them.

While hooks are installed, a few functions of the SDK are replaced: those that run an agent (sessions and agent events),
list its tools, choose its model, and act on a computer. All agents keep their identity. If a release of the SDK lacks
one of these functions, ``install`` raises, so that no run is without its guards unnoticed.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import json
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from llxprt_hooks.bus.messages import resolve
from llxprt_hooks.engine.session import Session, current_session
from llxprt_hooks.events import MODEL_EVENTS, TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.base import Integration, log, reason_instead
from llxprt_hooks.integrations.extras import from_extra
from llxprt_hooks.integrations.unsupported import UNSUPPORTED
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from llxprt_hooks.protocol.json_codec import read_arguments
from llxprt_hooks.protocol.tool_result import ToolResult
from llxprt_hooks.triggers.relevance import is_hooked
from llxprt_hooks.triggers.sessions import Sessions

with from_extra("openai-agents"):
    import agents
    import agents.run
    from agents import (
        AgentsException,
        ApplyPatchTool,
        ComputerTool,
        CustomTool,
        FunctionTool,
        LocalShellTool,
        Model,
        ModelBehaviorError,
        ModelResponse,
        ModelSettings,
        ModelTracing,
        RunConfig,
        RunState,
        ShellTool,
    )
    from agents.agent import AgentBase
    from agents.editor import ApplyPatchResult
    from agents.run_internal import run_loop
    from agents.run_internal.items import function_tool_error_output
    from agents.run_internal.tool_actions import ComputerAction
    from agents.tool import _SYNC_FUNCTION_TOOL_MARKER, _FailureHandlingFunctionToolInvoker
    from openai.types.responses import ResponseOutputMessage, ResponseStreamEvent
    from pydantic import TypeAdapter

if TYPE_CHECKING:
    from agents import Agent, RunContextWrapper, RunResult, RunResultStreaming, Tool
    from agents.tool_context import ToolContext

    from llxprt_hooks.config import Config
    from llxprt_hooks.model.json_api import Request
    from llxprt_hooks.triggers.model_call import HookedModelCall, ModelCallResult

_SETTINGS = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
"""Settings of the Responses API, and their names in ``ModelSettings``."""
_OURS = "_llxprt_hooks"
"""The attribute of a tool or a context of the SDK that holds what hooks need to know of it."""
_COMPUTER = "computer_use_preview"
"""The name of every ``ComputerTool``."""
_ENDINGS = ("response.completed", "response.incomplete")
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class HookStopped(AgentsException):
    """A hook ended a run whose output cannot be a text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OpenAIAgentsHooks(Integration):
    """The hooks that ``install`` added."""

    unsupported = UNSUPPORTED["openai-agents"]

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._sessions = Sessions(self.hooks.config)
        self._warned: set[str] = set()
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
            with self._sessions.active(outer.nested_run()):
                yield lambda result: None
            return
        prompt = _prompt(given)
        session = self._session_of(given, options)
        with self._sessions.active(session):
            if not isinstance(given, RunState):
                self.hooks.observe(HookEventName.BEFORE_AGENT, prompt=prompt)
            yield lambda result: self._ended(session, prompt, result)

    def _session_of(self, given: Any, options: dict[str, Any]) -> Session:
        session_id = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        if session_id:
            return self._sessions.begin(str(session_id))
        if isinstance(given, RunState) and given._context is not None:
            hooks, interrupted = vars(given._context).get(_OURS, (None, None))
            if hooks is self:
                return cast("Session", interrupted.next_run())
        return Session(self.hooks.config, f"run-{uuid4().hex}", "")

    def _ended(self, session: Session, prompt: str, result: RunResult | RunResultStreaming) -> None:
        for item in result.interruptions:
            self.observe_approval(item.name or "", _arguments(item.arguments or ""))
        if result.interruptions:
            vars(result.context_wrapper)[_OURS] = (self, session)  # the state of a run has a copy of its context
        else:
            answer = "" if result.final_output is None else str(result.final_output)
            self.hooks.observe(HookEventName.AFTER_AGENT, prompt=prompt, prompt_response=answer)

    # What the SDK calls in place of its own functions.

    def model_of(self, model: Model, name: str, run_config: RunConfig) -> Model:
        """Return a model with its hooks, or the model itself if none would run."""
        session = current_session(self.hooks.config)
        is_waiting = session is not None and (session.notes or session.stop_reason is not None)
        if is_waiting or self.has_hooks(*MODEL_EVENTS):
            return _HookedModel(model, name, run_config, self)
        return model

    def tools_of(self, tools: list[Tool]) -> list[Tool]:
        """Return an agent's tools with their hooks. Hooks of a model may restrict or stop the tools."""
        if not self.has_hooks(*TOOL_EVENTS, *MODEL_EVENTS):
            return tools
        self.check_aliases(tool.name for tool in tools)
        return [self._hooked(tool) for tool in tools]

    def _hooked(self, tool: Tool) -> Tool:
        hook = _HOOKED.get(type(tool)) or next((hook for kind, hook in _HOOKED.items() if isinstance(tool, kind)), None)
        if hook is not None and not (isinstance(tool, ShellTool) and tool.executor is None):
            return cast("Tool", _hooked_tool(tool, hook, self))
        if not isinstance(tool, ComputerTool) and tool.name not in self._warned and self.has_hooks(*TOOL_EVENTS):
            self._warned.add(tool.name)
            log.warning("hooks do not see the calls of %s: the provider runs it itself", tool.name)
        return tool

    async def call_tool(
        self,
        tool_name: str,
        show: Callable[[], dict[str, Any]],
        run: Callable[[dict[str, Any] | None], Any],
        refuse: Callable[[str], Any] = str,
        *,
        extends_text: bool = True,
    ) -> Any:
        """Run a tool between its hooks: ``run`` gets the arguments that hooks changed, or None.

        ``refuse`` returns the result of a call that does not run. What hooks say about a result that is not a text
        goes into the next model request.
        """
        config, name = self.hooks.config, self.hook_name(tool_name)
        session = current_session(config)
        refusal = None if session is None else session.restriction.refusal(name)
        if refusal is not None:
            return refuse(refusal)
        is_stopped = session is not None and session.stop_reason is not None
        if not self.is_active or not (is_stopped or is_hooked(config, name)):
            return await resolve(run(None))
        if session is not None:
            return await self._call_in(session, name, show, run, refuse, extends_text)
        # Realtime sessions, and runners of another kind: a stop refuses this call, and affects nothing else.
        session = Session(config, config.session_id, config.transcript_path)
        with self._sessions.active(session):
            outcome = await self._call_in(session, name, show, run, refuse, extends_text)
        if session.stop_reason is not None or session.notes:
            log.warning("%s was called outside of a run: a hook's stop or message has no further effect", name)
        return outcome

    async def _call_in(
        self,
        session: Session,
        name: str,
        show: Callable[[], dict[str, Any]],
        run: Callable[[dict[str, Any] | None], Any],
        refuse: Callable[[str], Any],
        extends_text: bool,
    ) -> Any:
        shown = show()
        call = self.hooks.tool_call(name, shown)
        if (refused := await call.before()) is not None:
            return refuse(str(refused.llm_content))
        outcome = await resolve(run(None if call.input is shown else call.input))
        content = outcome if isinstance(outcome, str) else _plain(outcome)
        result = await call.after(ToolResult(content, content))
        if isinstance(outcome, str) and extends_text:
            return result.llm_content
        if result.additions:
            session.exchange_notes((), tuple(result.additions))
        return outcome


# Installing.

_PLACES: tuple[tuple[Any, str], ...] = (
    (agents.run.AgentRunner, "run"),  # ``run_sync`` calls it
    (agents.run.AgentRunner, "run_streamed"),
    (AgentBase, "get_all_tools"),
    (run_loop, "get_all_tools"),  # an agent's own class may have another method
    (run_loop, "get_model"),
    (ComputerAction, "_execute_action_and_capture"),
)
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
    hooks = OpenAIAgentsHooks.load(**options) if config is None and "hooks" not in options else None
    hooks = OpenAIAgentsHooks(config, **options) if hooks is None else hooks
    if missing := [name for owner, name in _PLACES if name not in vars(owner)]:
        version = agents.version.__version__
        raise RuntimeError(f"hooks cannot be installed in openai-agents {version}: it has no {missing[0]}")
    for owner, name in _PLACES:
        original = vars(owner)[name]
        ours = _REPLACEMENTS[name](original, hooks)
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
    async def act(cls: Any, computer: Any, tool_call: Any) -> Any:
        """Run a batch of actions between hooks. Their result can only be a picture: a refusal follows as a message."""

        def show() -> dict[str, Any]:
            return {"actions": [cls._serialize_action_payload(action) for action in cls._iter_actions(tool_call)]}

        def run(changed: dict[str, Any] | None) -> Any:
            if changed is None:
                return original.__func__(cls, computer, tool_call)
            actions = {"actions": changed.get("actions") or [{"type": "screenshot"}], "action": None}
            return original.__func__(cls, computer, tool_call.model_copy(update=actions))

        def refuse(reason: str) -> Any:
            if (session := current_session(hooks.hooks.config)) is not None:
                session.exchange_notes((), (f"The computer did nothing: {reason}",))
            return computer.screenshot()

        return await resolve(await hooks.call_tool(_COMPUTER, show, run, refuse, extends_text=False))

    return act


_REPLACEMENTS: dict[str, Callable[[Any, OpenAIAgentsHooks], Any]] = {
    "run": _running,
    "run_streamed": _streaming,
    "get_all_tools": _listing_tools,
    "get_model": _choosing_model,
    "_execute_action_and_capture": _acting,
}


# Tools.


def _hooked_tool(tool: Any, hook: Callable[[Any, OpenAIAgentsHooks], None], hooks: OpenAIAgentsHooks) -> Any:
    """Return a copy of a tool that runs with its hooks. It is made again when a field of the tool has changed."""
    fields = vars(tool)
    made = fields.get(_OURS)
    if made is hooks:  # it is such a copy
        return tool
    if isinstance(made, _Made) and made.hooks is hooks and made.ids == [*map(id, fields.values())]:
        return made.tool
    copied = copy.copy(tool)
    vars(copied)[_OURS] = hooks
    hook(copied, hooks)
    if getattr(copied, "needs_approval", False) is not False:
        copied.needs_approval = _unless_restricted(copied.needs_approval, copied.name, hooks)
    fields[_OURS] = made = _Made(hooks, copied)
    made.values = [*fields.values()]
    made.ids = [*map(id, made.values)]
    return copied


class _Made:
    """A tool with hooks, and what the fields of the original were. It keeps their values, so that ids stay unique."""

    values: list[Any]
    ids: list[int]

    def __init__(self, hooks: OpenAIAgentsHooks, tool: Any) -> None:
        self.hooks = hooks
        self.tool = tool


def _unless_restricted(policy: Any, name: str, hooks: OpenAIAgentsHooks) -> Any:
    """Return an approval policy that does not ask about a call that will be refused anyway."""

    async def needs_approval(context: Any, arguments: Any, call_id: str) -> bool:
        session = current_session(hooks.hooks.config)
        if session is not None and not session.restriction.allows(hooks.hook_name(name)):
            return False
        return bool(await resolve(policy(context, arguments, call_id) if callable(policy) else policy))

    return needs_approval


def _hook_function(tool: Any, hooks: OpenAIAgentsHooks) -> None:
    """Replace what runs a tool; by one of the SDK's own kind, by which approval policies inspect arguments."""
    invoker = tool.on_invoke_tool
    if not isinstance(invoker, _FailureHandlingFunctionToolInvoker):
        tool.on_invoke_tool = _Invocation(invoker, tool, hooks)
        return
    inner = _Invocation(invoker._invoke_tool_impl, tool, hooks)
    tool.on_invoke_tool = _FailureHandlingFunctionToolInvoker(inner, invoker._on_handled_error, function_tool=tool)
    if getattr(invoker, _SYNC_FUNCTION_TOOL_MARKER, False):
        setattr(tool.on_invoke_tool, _SYNC_FUNCTION_TOOL_MARKER, True)


class _Invocation:
    """Runs a tool between its hooks. In all else it looks like what it replaces."""

    def __init__(self, run: Callable[[Any, str], Any], tool: Any, hooks: OpenAIAgentsHooks) -> None:
        self._run = run
        self._tool = tool
        self._hooks = hooks
        self._schema = getattr(tool, "output_json_schema", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    async def __call__(self, context: ToolContext[Any], given: str) -> Any:
        def run(changed: dict[str, Any] | None) -> Any:
            if changed is None:
                return self._run(context, given)
            context.tool_arguments = _written(self._tool, changed)
            context._function_tool_arguments = None  # those that were read for the approval policy
            return self._run(context, context.tool_arguments)

        def refuse(reason: str) -> Any:
            return function_tool_error_output(context.tool_call, reason, output_json_schema=self._schema)

        return await self._hooks.call_tool(
            self._tool.name, lambda: _arguments(given), run, refuse, extends_text=self._schema is None
        )


def _hook_shell(tool: ShellTool, hooks: OpenAIAgentsHooks) -> None:
    executor = cast("Callable[[Any], Any]", tool.executor)

    async def execute(request: Any) -> Any:
        action = request.data.action

        def run(changed: dict[str, Any] | None) -> Any:
            if changed is None:
                return executor(request)
            changes = {"commands": [str(changed.get("command", ""))], "timeout_ms": changed.get("timeout_ms")}
            data = dataclasses.replace(request.data, action=dataclasses.replace(action, **changes))
            return executor(dataclasses.replace(request, data=data))

        return await hooks.call_tool(
            tool.name, lambda: _given(command="\n".join(action.commands), timeout_ms=action.timeout_ms), run
        )

    tool.executor = execute


def _hook_local_shell(tool: LocalShellTool, hooks: OpenAIAgentsHooks) -> None:
    executor = tool.executor

    async def execute(request: Any) -> Any:
        action = request.data.action

        def run(changed: dict[str, Any] | None) -> Any:
            if changed is None:
                return executor(request)
            changes = {**changed, "command": shlex.split(str(changed.get("command", "")))}
            data = request.data.model_copy(update={"action": action.model_copy(update=changes)})
            return executor(dataclasses.replace(request, data=data))

        shown = _given(working_directory=action.working_directory, timeout_ms=action.timeout_ms, env=action.env or None)
        return await hooks.call_tool(tool.name, lambda: {"command": shlex.join(action.command), **shown}, run)

    tool.executor = execute


def _hook_patch(tool: ApplyPatchTool, hooks: OpenAIAgentsHooks) -> None:
    tool.editor = _HookedEditor(tool.editor, tool.name, hooks)


class _HookedEditor:
    """Applies patches between hooks, which run for each file."""

    def __init__(self, editor: Any, tool_name: str, hooks: OpenAIAgentsHooks) -> None:
        self._editor = editor
        self._tool_name = tool_name
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._editor, name)

    async def create_file(self, operation: Any) -> Any:
        names = ("type", "path", "diff", "move_to")

        def run(changed: dict[str, Any] | None) -> Any:
            fields = {} if changed is None else {name: changed.get(name) for name in names}
            final = dataclasses.replace(operation, **fields)
            return getattr(self._editor, final.type)(final)

        def refuse(reason: str) -> ApplyPatchResult:
            return ApplyPatchResult(status="failed", output=reason)

        shown = _given(**{name: getattr(operation, name) for name in names})
        return await self._hooks.call_tool(self._tool_name, lambda: shown, run, refuse)

    update_file = delete_file = create_file  # the operation says which of them it is


_HOOKED: dict[type[Any], Callable[[Any, OpenAIAgentsHooks], None]] = {
    FunctionTool: _hook_function,
    CustomTool: _hook_function,
    ShellTool: _hook_shell,
    LocalShellTool: _hook_local_shell,
    ApplyPatchTool: _hook_patch,
}


def _given(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are set."""
    return {name: value for name, value in arguments.items() if value is not None}


def _arguments(given: str) -> dict[str, Any]:
    """Return a call's arguments; text that is not a JSON object is shown under one name."""
    try:
        arguments = read_arguments(given) if given.strip() else {}
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
        self._shown_to_hooks = hooks.translator(self._translator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def close(self) -> None:
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        sending = _Sending(self, system_instructions, input, *args, **kwargs)
        if (result := await sending.call.before()) is not None:
            return self._response(self._answer(result, sending))
        model, options = sending.final()
        response: ModelResponse = await model.get_response(**options)
        shown = self._shown(response, sending.call.request)
        after = await sending.call.after(shown)
        if after.stop_reason is None and after.response is shown:
            kept = sending.without_refused_handoffs(response.output)
            # The server would wait for the result of a call that is left out.
            return response if kept is response.output else dataclasses.replace(response, output=kept, response_id=None)
        return self._response(self._answer(after, sending), response)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        sending = _Sending(self, system_instructions, input, *args, **kwargs)
        if (result := await sending.call.before()) is not None:
            for event in self._events(self._answer(result, sending), sending):
                yield event
            return
        model, options = sending.final()
        holds_back = sending.call.holds_back or sending.refuses_handoffs
        held_back: list[Any] = []
        endings: list[Any] = []
        async for event in model.stream_response(**options):
            if event.type in _ENDINGS:
                endings.append(event)
            elif event.type in ("response.failed", "error"):
                yield _without_output(event) if holds_back else event
                return
            elif holds_back:
                held_back.append(event)
            else:
                yield event
        if not endings:
            raise ModelBehaviorError("the stream ended before the answer was complete")
        ending = endings[-1]
        received: Any = ending.response
        after = await sending.call.after(received)
        if after.stop_reason is not None or after.response is not received:
            for event in self._events(self._answer(after, sending), sending):
                yield event
            return
        output = ending.response.output
        kept = sending.without_refused_handoffs(output)
        if kept is not output:
            ending = _with_response(ending, output=kept, id=None)
            left_out = {index for index, item in enumerate(output) if item not in kept}
            held_back = [event for event in held_back if getattr(event, "output_index", None) not in left_out]
        for event in [] if after.suppress_output else held_back:
            yield event
        yield ending

    def hooked_call(self, request: Request) -> HookedModelCall[Request]:
        return self._hooks.hooks.model_call(request, translator=self._shown_to_hooks)

    def allows(self, call: HookedModelCall[Request], name: str) -> bool:
        return call.restriction.allows(self._hooks.hook_name(name))

    def _answer(self, result: ModelCallResult[Any], sending: _Sending) -> Any:
        """Return the answer that the run gets: after a stop, or a block without an answer, the reason."""
        reason = reason_instead(result)
        if reason is None:
            return result.response
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
        """Return an answer that is not the model's, without the ids by which the server would find that one."""
        output = [ResponseOutputMessage.model_validate(item) for item in self._unstored(answer)["output"]]
        if base is None:
            return ModelResponse(output=list(output), usage=agents.Usage(), response_id=None)
        return dataclasses.replace(base, output=list(output), response_id=None)

    def _events(self, answer: Any, sending: _Sending) -> Iterator[Any]:
        data = self._unstored(answer if isinstance(answer, dict) else answer.model_dump())
        for event in self._translator.wire.events(data, sending.call.request):
            made = _EVENT.validate_python(event)
            if made.type in _ENDINGS:
                made.response.id = None  # the SDK would send it as that of the previous response
            yield made

    def _unstored(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return an answer whose messages have new ids."""
        items = answer["output"]
        renamed = [{**item, "id": f"msg_{uuid4().hex}"} if item.get("type") == "message" else item for item in items]
        return {**answer, "output": renamed}


def _without_output(event: Any) -> Any:
    """Return an event about a failure without the part of the answer that was received before it."""
    return event if event.type == "error" else _with_response(event, output=[])


def _with_response(event: Any, **fields: Any) -> Any:
    return event.model_copy(update={"response": event.response.model_copy(update=fields)})


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
        if self.call.holds_back and tracing is ModelTracing.ENABLED:
            # The model's own span would keep what an AfterModel hook takes out.
            self._options["tracing"] = ModelTracing.ENABLED_WITHOUT_DATA

    def final(self) -> tuple[Model, dict[str, Any]]:
        """Return the model to call and its arguments, with the changes of hooks."""
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

    @property
    def refuses_handoffs(self) -> bool:
        return not all(self._hooked.allows(self.call, name) for name in self._handoffs)

    def without_refused_handoffs(self, output: list[Any]) -> list[Any]:
        """Return an answer without handoffs that the restriction does not allow: they would not fire a tool event."""
        refused = {name for name in self._handoffs if not self._hooked.allows(self.call, name)}
        kept = [item for item in output if getattr(item, "name", None) not in refused]
        if len(kept) == len(output):
            return output
        if not kept:
            shown = map(self._hooked._hooks.hook_name, sorted(refused))
            text = " ".join(filter(None, map(self.call.restriction.refusal, shown)))
            answer = self._hooked._translator.from_hook_llm_response({"text": text})
            kept = list(self._hooked._response(answer).output)
        return kept


def _choice(choice: Any) -> Any:
    """Return a tool choice of ``ModelSettings`` as the Responses API has it."""
    if not isinstance(choice, str):
        return None
    return choice if choice in ("auto", "required", "none") else {"type": "function", "name": choice}


# Small things.


def _prompt(given: Any) -> str:
    """Return the text of the latest message of the user."""
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        messages = OpenAIResponsesTranslator().to_hook_llm_request({"input": given})["messages"]
        return next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    return ""


def _plain(value: Any) -> Any:
    """Return a result as JSON, if it can be; else as text, which is what the SDK sends."""
    try:
        return json.loads(json.dumps(value, default=_dumped))
    except (TypeError, ValueError):
        return str(value)


def _dumped(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value.model_dump() if hasattr(value, "model_dump") else str(value)
