"""Installing: the hooks of a configuration, and what replaces a few functions of the SDK.

These are the functions that run an agent (sessions and agent events), list its tools, choose its model, and act on a
computer. All agents keep their identity. If a release of the SDK lacks one of these functions, ``install`` raises, so
that no run is without its guards unnoticed.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import agents.run
from agents import CustomTool, FunctionTool, RunState
from agents.agent import AgentBase
from agents.run_internal import run_loop
from agents.run_internal.run_steps import QueueCompleteSentinel
from agents.run_internal.tool_actions import ComputerAction

from llxprt_hooks.core.calls.approval import NobodyToAsk
from llxprt_hooks.core.calls.lookup import tool_plans
from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine.session import Session, current_session
from llxprt_hooks.events import MODEL_EVENTS, TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.approvals import OpenQuestions
from llxprt_hooks.integrations.base import Integration, ToolCallHalves, in_session, log, metadata_of
from llxprt_hooks.integrations.openai_agents.model import HookedModel, HookStopped
from llxprt_hooks.integrations.openai_agents.tools import (
    OURS,
    Arguments,
    Prepared,
    WaitsForAnswer,
    act,
    arguments_of,
    hooked,
)
from llxprt_hooks.integrations.unsupported import NOT_HONORED, UNSUPPORTED
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator

if TYPE_CHECKING:
    from agents import Agent, Model, RunConfig, RunContextWrapper, RunResult, RunResultStreaming, Tool
    from agents.items import ToolApprovalItem

    from llxprt_hooks.config import Config
    from llxprt_hooks.core.calls.approval import ApprovalRequest, Approver
    from llxprt_hooks.core.protocol.caller import Asked

_MAX_PREPARED = 1000


class OpenAIAgentsHooks(Integration):
    """The hooks that ``install`` added."""

    unsupported = UNSUPPORTED["openai-agents"]
    not_honored = NOT_HONORED["openai-agents"]

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._sessions = Sessions(self.hooks.config)
        self.unseen_tools: set[str] = set()
        """Tools that the provider runs itself. That hooks do not see them has been logged."""
        self.is_installed = True
        self._questions = OpenQuestions()
        self._requests: OrderedDict[tuple[str, str], ApprovalRequest] = OrderedDict()
        self._prepared: OrderedDict[tuple[str, str], Prepared] = OrderedDict()

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
    def running(self, given: Any, options: dict[str, Any]) -> Iterator[_Turn]:
        """Make a run's session the current one; yield the turn."""
        outer = current_session(self.hooks.config)
        asked = self.asked({**options, "context": _context_of(given, options)})
        session = self._session_of(given, options, asked) if outer is None else self.nested_run(outer, asked)
        turn = _Turn(self, session, given, options, is_nested=outer is not None)
        previous = _turn.set(turn)
        try:
            with in_session(session):
                yield turn
        finally:
            _turn.reset(previous)

    def known_caller(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a run's traces have: its metadata, and the group of runs that it belongs to."""
        config = context.get("run_config")
        group = getattr(config, "group_id", None)
        return metadata_of(getattr(config, "trace_metadata", None)) | ({} if group is None else {"group_id": group})

    def _session_of(self, given: Any, options: dict[str, Any], asked: Asked | None) -> Session:
        session_id = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        if session_id:
            return self._sessions.begin(str(session_id), asked)
        if isinstance(given, RunState) and given._context is not None:
            hooks, interrupted = vars(given._context).get(OURS, (None, None))
            if hooks is self:
                continued = cast("Session", interrupted.next_run())
                continued.asked = asked
                return continued
        session = Session(self.hooks.config, f"run-{uuid4().hex}", "")
        session.asked = asked
        return session

    # Questions.

    def asks_before(self, tool: Any) -> bool:
        """Whether a hook that acts runs before a tool that the SDK can ask about."""
        if not isinstance(tool, (FunctionTool, CustomTool)):
            return False
        before = tool_plans(self.hooks.config, self.hook_name(tool.name))[0]
        return before is not None and before.acts

    async def prepare(self, tool_name: str, arguments: Arguments, call_id: str, session: Session) -> Prepared:
        """Run the hooks before a call whose tool the SDK has not been told to run yet."""
        key = (session.session_id, call_id)
        if (found := self._prepared.get(key)) is not None and found.arguments == arguments:
            return found
        approver = self._interrupting(key)
        call = ToolCallHalves(self, tool_name, arguments, session, tool_use_id=call_id, approver=approver)
        prepared = self._prepared[key] = Prepared(call, arguments)
        if len(self._prepared) > _MAX_PREPARED:
            self._prepared.popitem(last=False)
        await prepared.run_hooks()
        return prepared

    def take_prepared(self, call_id: str, given: str) -> Prepared | None:
        """Return a call whose hooks have run, unless a person had to be asked: then they run again."""
        if not self._prepared:
            return None
        session = current_session(self.hooks.config)
        found = None if session is None else self._prepared.pop((session.session_id, call_id), None)
        return None if found is None or found.waits or found.arguments != arguments_of(given) else found

    def _interrupting(self, key: tuple[str, str]) -> Approver:
        def ask(request: ApprovalRequest) -> bool:
            self._questions.ask(key, request)
            self._requests[key] = request
            if len(self._requests) > _MAX_PREPARED:
                self._requests.popitem(last=False)
            raise WaitsForAnswer

        return ask

    def resumed_approver(self, session: Session, call_id: str) -> Approver:
        """Return who answers for a call that runs: the person to whom the SDK has shown it."""
        key, turn = (session.session_id, call_id), _turn.get()

        def ask(request: ApprovalRequest) -> bool:
            shown = None if turn is None else turn.resumed.get(call_id)
            if shown is None:
                raise NobodyToAsk("the SDK did not ask about this call")
            if self._questions.is_open(key):
                is_yes = self._questions.accepts(key, request)
                self._questions.close(key)
                return is_yes
            return shown == request.tool_input  # asked in another process, with the model's arguments

        return ask

    def request_of(self, item: ToolApprovalItem) -> ApprovalRequest | None:
        """Return what a hook asks about one of a run's interruptions, with the arguments that the tool would get."""
        found = [request for (_, call_id), request in self._requests.items() if call_id == item.call_id]
        return found[-1] if found else None

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


class _Turn:
    """One run of an agent that is not part of another one, or, if it is, nothing."""

    def __init__(
        self, hooks: OpenAIAgentsHooks, session: Session, given: Any, options: dict[str, Any], *, is_nested: bool
    ) -> None:
        self._hooks = hooks
        self._session = session
        self._options = options
        self._is_nested = is_nested
        self._prompt = _prompt(given)
        self._is_resumed = isinstance(given, RunState)
        items = given.get_interruptions() if isinstance(given, RunState) else []
        self.resumed = {item.call_id: arguments_of(item.arguments or "") for item in items}
        """The arguments of the calls that a person was asked about, by the id of the call."""

    async def start(self, given: Any) -> Any:
        """Run the hooks before the agent; return the input with what they add. Raises ``HookStopped``."""
        if self._is_nested or self._is_resumed:
            return given
        start = await self._hooks.hooks.before_turn(self._prompt)
        if start.should_stop:
            self._session.stop_reason = start.stop_reason
        if start.blocked or start.should_stop:
            raise HookStopped(start.reason or "")
        added = start.prompt.removeprefix(self._prompt)
        return _extended(given, added) if added else given

    async def end(self, result: RunResult) -> tuple[Any, dict[str, Any]] | None:
        """Run the hooks after the agent; return what it is to work on next, as input and options."""
        if self._is_nested or self._interrupted(result):
            return None
        session, stopped = self._session, self._session.stop_reason
        active = session.continuations > 0
        end = await self._hooks.hooks.after_turn(self._prompt, _answer(result), active)
        if end.should_stop and stopped is None:
            session.stop_reason = end.stop_reason
        options = self._options
        if end.clear_context:
            options = await _cleared(options)
        if end.next_prompt is None or stopped is not None:
            return None
        self._prompt = end.next_prompt
        return _next_input(result, end.next_prompt, options, cleared=end.clear_context)

    def observe_end(self, result: RunResultStreaming) -> None:
        """Show the end of a streamed run to hooks: it is over, so that they cannot act."""
        if self._is_nested or self._interrupted(result):
            return
        fields = {"prompt": self._prompt, "prompt_response": _answer(result)}
        self._hooks.hooks.observe(HookEventName.AFTER_AGENT, **fields)

    def _interrupted(self, result: RunResult | RunResultStreaming) -> bool:
        for item in result.interruptions:
            request = self._hooks.request_of(item)
            shown = arguments_of(item.arguments or "") if request is None else request.tool_input
            self._hooks.observe_approval(item.name or "", shown)
        if result.interruptions:  # the state of a run has a copy of its context
            vars(result.context_wrapper)[OURS] = (self._hooks, self._session)
        return bool(result.interruptions)


_turn: ContextVar[_Turn | None] = ContextVar("llxprt_hooks_openai_agents_turn", default=None)


def _context_of(given: Any, options: Mapping[str, Any]) -> Any:
    """Return the program's own object for a run. A run that continues has kept it."""
    if options.get("context") is None and isinstance(given, RunState) and given._context is not None:
        return given._context.context
    return options.get("context")


def _answer(result: RunResult | RunResultStreaming) -> str:
    return "" if result.final_output is None else str(result.final_output)


def _extended(given: Any, added: str) -> Any:
    """Return an input with text after its last user message."""
    if isinstance(given, str):
        return f"{given}{added}"
    items = list(given)
    for place in reversed(range(len(items))):
        item = items[place]
        if item.get("role") == "user":
            content = item["content"]
            part = {"type": "input_text", "text": added.strip()}
            items[place] = {**item, "content": f"{content}{added}" if isinstance(content, str) else [*content, part]}
            return items
    return [*items, {"role": "user", "content": added.strip()}]


async def _cleared(options: dict[str, Any]) -> dict[str, Any]:
    """Clear the conversation that a run belongs to; return the options of a run that starts a new one."""
    if (session := options.get("session")) is not None:
        await session.clear_session()
    if options.get("conversation_id") is not None:
        log.warning("AfterAgent: a hook clears the conversation, but one that OpenAI's server keeps stays as it is")
    return {**options, "previous_response_id": None}


def _next_input(
    result: RunResult, prompt: str, options: dict[str, Any], *, cleared: bool
) -> tuple[Any, dict[str, Any]]:
    if options.get("session") is not None or options.get("conversation_id") is not None or cleared:
        return prompt, options
    if options.get("previous_response_id") is not None and result.last_response_id is not None:
        return prompt, {**options, "previous_response_id": result.last_response_id}
    return [*result.to_input_list(), {"role": "user", "content": prompt}], options


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
        with hooks.running(input, kwargs) as turn:
            sent = await turn.start(input)
            while True:
                result: RunResult = await original(self, starting_agent, sent, **kwargs)
                if (following := await turn.end(result)) is None:
                    return result
                starting_agent, (sent, kwargs) = result.last_agent, following

    return run


def _streaming(original: Any, hooks: OpenAIAgentsHooks) -> Any:
    @wraps(original)
    def run_streamed(self: Any, starting_agent: Agent[Any], input: Any, **kwargs: Any) -> RunResultStreaming:
        if not hooks.is_active:
            return cast("RunResultStreaming", original(self, starting_agent, input, **kwargs))
        with hooks.running(input, kwargs) as turn:
            result: RunResultStreaming = original(self, starting_agent, input, **kwargs)  # its task keeps this context
            context = contextvars.copy_context()
        if result.run_loop_task is not None:

            def done(task: asyncio.Task[Any]) -> None:
                if not task.cancelled() and task.exception() is None:
                    turn.observe_end(result)

            result.run_loop_task.add_done_callback(done, context=context)
        return result

    return run_streamed


def _starting_stream(original: Any, hooks: OpenAIAgentsHooks) -> Any:
    @wraps(original)
    async def start_streaming(
        starting_input: Any, streamed_result: RunResultStreaming, *args: Any, **kwargs: Any
    ) -> Any:
        turn = _turn.get()
        if hooks.is_active and turn is not None:
            try:
                starting_input = streamed_result.input = await turn.start(starting_input)
            except HookStopped:
                streamed_result.is_complete = True
                streamed_result._event_queue.put_nowait(QueueCompleteSentinel())
                raise
        return await original(starting_input, streamed_result, *args, **kwargs)

    return start_streaming


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
    (agents.run, "start_streaming", _starting_stream),
    (AgentBase, "get_all_tools", _listing_tools),
    (run_loop, "get_all_tools", _listing_tools),  # an agent's own class may have another method
    (run_loop, "get_model", _choosing_model),
    (ComputerAction, "_execute_action_and_capture", _acting),
)
