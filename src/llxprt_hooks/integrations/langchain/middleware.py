"""``HooksMiddleware``: all events of a LangChain agent, from the start of its session to the end."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeVar, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelResponse,
    OmitFromInput,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain.agents.structured_output import StructuredOutputError
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from llxprt_hooks.core import loops
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.events import (
    MODEL_EVENTS,
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from llxprt_hooks.integrations.base import Integration, in_session, log, marks_of
from llxprt_hooks.integrations.langchain.held_model import HeldModel, Summarizer
from llxprt_hooks.integrations.langchain.translator import LangChainTranslator, Request, tool_name
from llxprt_hooks.model.access import field

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelCallResult as Answer
    from langchain_core.language_models import BaseChatModel
    from langgraph.runtime import Runtime

    from llxprt_hooks.config import Config
    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.model import Restriction

MessageT = TypeVar("MessageT", AIMessage, ToolMessage)

MARKS = "llxprt_hooks"
"""The key in a message's ``response_metadata`` that says what hooks did to it."""

_AGENT_EVENTS = (HookEventName.SESSION_START, HookEventName.BEFORE_AGENT, HookEventName.AFTER_AGENT)
_MAX_SESSIONS = 10_000
"""Only ids are kept. What hooks leave for later calls is in the agent's state, so that any process can continue."""


def _latest(_: Any, new: Any) -> Any:
    """Several tools may ask for a stop in one step."""
    return new


def _merged(old: dict[str, list[str]], new: dict[str, list[str]]) -> dict[str, list[str]]:
    return {**old, **new}


class HooksState(AgentState[Any]):
    """What hooks add to the state of an agent."""

    hook_stop_reason: NotRequired[Annotated[str | None, OmitFromInput, _latest]]
    """Why a hook stopped the run."""
    hook_notes: NotRequired[Annotated[dict[str, list[str]], PrivateStateAttr, _merged]]
    """Messages of hooks for the next model call, by the name of the middleware."""
    hook_stopped: NotRequired[Annotated[bool, UntrackedValue(bool, guard=False), PrivateStateAttr]]
    """Whether the stop happened in this run. It is not in a checkpoint, so the next run starts without it."""


class HooksMiddleware(Integration, AgentMiddleware[HooksState, Any, Any]):
    """Runs the hooks of a configuration around the tools and the model of an agent.

    Two of them in one agent need different names.
    """

    state_schema = HooksState

    def __init__(self, config: Config | None = None, *, name: str = "HooksMiddleware", **options: Any) -> None:
        super().__init__(config, **options)
        self._name = name
        self._kind = type(self)
        self._sessions: dict[str, None] = {}
        self._translator = LangChainTranslator(self.hook_name)

    @property
    def name(self) -> str:
        """The name, which must differ from that of other middleware of the same agent."""
        # LangChain reads the name before it looks for methods that become nodes of the graph.
        has_hooks = any(map(self.hooks.has_hooks_for, _AGENT_EVENTS))
        if has_hooks is not isinstance(self, _AgentEvents):
            self.__class__ = type(self._kind.__name__, (_AgentEvents, self._kind), {}) if has_hooks else self._kind
        return self._name

    def tool_node(self) -> dict[str, Any]:
        """Return the arguments for ``ToolNode(tools, **hooks.tool_node())`` in a graph of your own.

        There, a stop is in the marks of the message, and in ``hook_stop_reason`` of the state, if the state has such a
        field: route to the end from it.
        """
        return {"wrap_tool_call": self.wrap_tool_call, "awrap_tool_call": self.awrap_tool_call}

    def end_session(self, thread_id: str, reason: str = SessionEndReason.EXIT) -> None:
        """Fire SessionEnd: LangChain does not know when a thread is over."""
        self._sessions.pop(thread_id, None)
        with self._session(thread_id):
            self.hooks.observe(HookEventName.SESSION_END, reason=reason)

    def notifying(self, middleware: AgentMiddleware[Any, Any, Any]) -> AgentMiddleware[Any, Any, Any]:
        """Return middleware such as ``HumanInTheLoopMiddleware`` that fires Notification when it asks a person."""
        kind = type(middleware)
        asking = ("after_model", "aafter_model", "wrap_tool_call", "awrap_tool_call")
        methods = {
            name: method for name in asking if (method := getattr(kind, name)) is not getattr(AgentMiddleware, name)
        }
        notifying = copy.copy(middleware)
        notifying.__class__ = type(
            kind.__name__, (kind,), {name: self._notified(method) for name, method in methods.items()}
        )
        return notifying

    def summarizer(self, model: str | BaseChatModel) -> BaseChatModel:
        """Return a model for ``SummarizationMiddleware(summarizer=…)`` that fires PreCompress before it is called."""
        return Summarizer.around(init_chat_model(model) if isinstance(model, str) else model, self._compressing)

    # Tools.

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Run the hooks around a tool call."""
        if not self._is_hooked(request):
            return handler(request)
        return loops.drive(self._run_tool(request, _awaitable(handler)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Run the hooks around a tool call."""
        if not self._is_hooked(request):
            return await handler(request)
        return await self._run_tool(request, handler)

    def _is_hooked(self, request: ToolCallRequest) -> bool:
        return (
            self.hooks.config.enable_hooks
            and request.tool is not None
            and self.has_tool_hooks(request.tool_call["name"])
        )

    async def _run_tool(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]) -> Any:
        call = request.tool_call

        def run(changed: dict[str, Any] | None) -> Awaitable[Any]:
            return handler(request if changed is None else request.override(tool_call={**call, "args": changed}))

        def message_in(outcome: Any) -> ToolMessage | None:
            return next((item for item in _messages_in(outcome) if field(item, "tool_call_id") == call["id"]), None)

        def show(outcome: Any) -> ToolResult:
            return _tool_result(message_in(outcome))

        with self._session(_thread_id()) as session:
            outcome, result, refused = await self.run_tool(call["name"], call["args"], run, show)
            if refused is not None:
                outcome = _not_run(call, refused.llm_content, blocked=True, stop_reason=refused.stop_reason)
            elif (message := message_in(outcome)) is not None and result is not None:
                new = _with_additions(message, result)
                outcome = outcome if new is message else _replaced(outcome, message, new)
            elif result is not None and result.additions:
                log.warning("a hook's text for the result of %s is dropped: the tool returned no message", call["name"])
            return _stopping(outcome, session.stop_reason)

    # Models.

    def wrap_model_call(self, request: Request, handler: Callable[[Request], ModelResponse[Any]]) -> Answer[Any]:
        """Run the hooks around a model call."""
        if not self._concerns(request):
            return handler(request)
        return loops.drive(self._call_model(request, _awaitable(handler)))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> Answer[Any]:
        """Run the hooks around a model call."""
        if not self._concerns(request):
            return await handler(request)
        return await self._call_model(request, handler)

    def _concerns(self, request: Request) -> bool:
        config, state = self.hooks.config, request.state
        if not config.enable_hooks:
            return False
        self.check_tools(map(tool_name, request.tools))
        if state.get("hook_stop_reason") is not None or self._notes_in(state):
            return True
        return self.has_hooks(*MODEL_EVENTS)

    async def _call_model(
        self, request: Request, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> Answer[Any]:
        state = cast("HooksState", request.state)
        if (reason := state.get("hook_stop_reason")) is not None and _is_stopped(state):
            return AIMessage(reason, response_metadata={MARKS: {"stop_reason": reason}})
        with self._session(_thread_id()) as session:
            session.notes = notes = self._notes_in(state)
            hooked = self.hooks.model_call(request, translator=self._translator)
            if (result := await hooked.before()) is not None:
                response = ModelResponse(result=[_in_place_of_model(result)])
            else:
                response, result = await _ModelRun(hooked, session, self._translator).ask(handler)
                refused = self._refused(response.result, result.restriction)
                response = replace(response, result=[*response.result, *refused]) if refused else response
        update: dict[str, Any] = {} if session.notes == notes else {"hook_notes": {self._name: [*session.notes]}}
        if reason != session.stop_reason:
            update |= _stop(session.stop_reason)
        return ExtendedModelResponse(response, Command(update=update)) if update else response

    def _notes_in(self, state: Mapping[str, Any]) -> tuple[str, ...]:
        notes = state.get("hook_notes")
        return tuple(notes.get(self._name, ())) if notes else ()

    def _refused(self, messages: Sequence[BaseMessage], restriction: Restriction) -> list[ToolMessage]:
        """Return results for the calls in an answer that may not run; the graph runs the others."""
        answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
        pending = [call for call in field(messages[0], "tool_calls") or () if call["id"] not in answered]
        refusals = [(call, restriction.refusal(self.hook_name(call["name"]))) for call in pending]
        return [_not_run(call, reason, restricted=True) for call, reason in refusals if reason is not None]

    # Sessions and events that nobody waits for.

    @contextmanager
    def _session(self, thread_id: str | None) -> Iterator[Session]:
        config = self.hooks.config
        session = Session(config, thread_id or config.session_id, config.transcript_path)
        with in_session(session):
            yield session

    def _observe(self, event: HookEventName, **fields: Any) -> None:
        with self._session(_thread_id()):
            self.hooks.observe(event, **fields)

    def _start_session(self, state: HooksState) -> None:
        """Fire SessionStart for a thread that is new here."""
        thread_id = _thread_id() or self.hooks.config.session_id
        if thread_id in self._sessions:
            return
        if len(self._sessions) >= _MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[thread_id] = None
        was_here = any(isinstance(message, AIMessage) for message in state["messages"])
        source = SessionStartSource.RESUME if was_here else SessionStartSource.STARTUP
        self._observe(HookEventName.SESSION_START, source=source)

    def _compressing(self) -> None:
        self._observe(HookEventName.PRE_COMPRESS, trigger=PreCompressTrigger.AUTO)

    def _notified(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that fires Notification if the original interrupts the run."""
        if not iscoroutinefunction(method):
            return self._interruptions()(method)

        @wraps(method)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            with self._interruptions():
                return await method(*args, **kwargs)

        return call_async

    @contextmanager
    def _interruptions(self) -> Iterator[None]:
        try:
            yield
        except GraphInterrupt as interruption:
            self._notify(interruption)
            raise

    def _notify(self, interruption: GraphInterrupt) -> None:
        if getattr(interruption, MARKS, False):
            return  # one of these methods may call another
        setattr(interruption, MARKS, True)
        for interrupt in interruption.args[0]:
            for action in field(interrupt.value, "action_requests") or [interrupt.value]:
                tool = field(action, "name")
                if tool and isinstance(tool, str):  # the value of an interrupt is the program's own
                    with self._session(_thread_id()):
                        self.observe_approval(tool, field(action, "args"))
                else:
                    kind = NotificationType.TOOL_PERMISSION
                    self._observe(HookEventName.NOTIFICATION, notification_type=kind, message=str(action), details={})


class _AgentEvents(HooksMiddleware):
    """Adds nodes before and after the agent to its graph. They take time, so only where there are such hooks."""

    def before_agent(self, state: HooksState, runtime: Runtime[Any]) -> None:
        self._start_session(state)
        self._observe(HookEventName.BEFORE_AGENT, prompt=_last_text(state, HumanMessage))

    async def abefore_agent(self, state: HooksState, runtime: Runtime[Any]) -> None:
        self.before_agent(state, runtime)

    def after_agent(self, state: HooksState, runtime: Runtime[Any]) -> None:
        prompt, answer = _last_text(state, HumanMessage), _last_text(state, AIMessage)
        self._observe(HookEventName.AFTER_AGENT, prompt=prompt, prompt_response=answer)

    async def aafter_agent(self, state: HooksState, runtime: Runtime[Any]) -> None:
        self.after_agent(state, runtime)


class _ModelRun:
    """One call of the model, between its hooks."""

    def __init__(self, hooked: HookedModelCall[Request], session: Session, translator: LangChainTranslator) -> None:
        self._hooked = hooked
        self._translator = translator
        self._session = session
        self._notes = session.notes
        self._answer: AIMessage | None = None
        self._result: ModelCallResult[AIMessage] | None = None

    async def ask(
        self, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> tuple[ModelResponse[Any], ModelCallResult[AIMessage]]:
        request = self._translator.sendable(self._hooked.request)
        if self._hooked.holds_back:
            request = request.override(model=HeldModel.around(request.model, self._finish))
        try:
            response = await handler(request)
        except StructuredOutputError:
            if self._result is None or self._result.response is self._answer:
                raise
            response = ModelResponse(result=[_marked_answer(self._result, self._answer)])
        if self._result is None:  # nothing is held back, or other middleware answered
            first, *others = response.result
            answer = await self._finish(cast("AIMessage", first))
            is_changed = self._result is None or self._result.response is not first
            structured = None if is_changed else response.structured_response
            response = ModelResponse(result=[answer, *others], structured_response=structured)
        assert self._result is not None
        return response, self._result

    async def _finish(self, answer: AIMessage) -> AIMessage:
        # Other middleware may call the model again: the last answer counts.
        self._session.notes, self._session.stop_reason = self._notes, None
        self._answer = answer
        self._result = await self._hooked.after(answer)
        return _marked_answer(self._result, answer)


def _marked_answer(result: ModelCallResult[AIMessage], original: AIMessage | None) -> AIMessage:
    assert result.response is not None
    return _marked(result.response, changed=result.response is not original, **marks_of(result))


def _awaitable(handler: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    async def call(request: Any) -> Any:
        return handler(request)

    return call


def _thread_id() -> str | None:
    """Return the id of the thread that the running graph belongs to."""
    try:
        thread_id = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:  # called outside of a graph
        return None
    return None if thread_id is None else str(thread_id)


def _last_text(state: HooksState, kind: type[BaseMessage]) -> str:
    return next((str(message.text) for message in reversed(state["messages"]) if isinstance(message, kind)), "")


def _marked(message: MessageT, **marks: Any) -> MessageT:
    """Return a message that says what hooks did to it; the same one if they did nothing."""
    given = {name: value for name, value in marks.items() if value}
    if not given:
        return message
    return message.model_copy(update={"response_metadata": {**message.response_metadata, MARKS: given}})


# Tools.


def _not_run(call: Mapping[str, Any], reason: str, **marks: Any) -> ToolMessage:
    message = ToolMessage(reason, tool_call_id=call["id"], name=call["name"], status="error")
    return _marked(message, **marks)


def _tool_result(message: ToolMessage | None) -> ToolResult:
    """Return a tool's message as AfterTool hooks see it."""
    if message is None:
        return ToolResult()
    text = str(message.text)
    return ToolResult(message.content, text, error={"message": text} if message.status == "error" else None)


def _with_additions(message: ToolMessage, result: ToolResult) -> ToolMessage:
    """Return a tool's message with the text of hooks; its content stays a string, or a list of blocks (D-40)."""
    message = _marked(message, suppress_output=result.suppress_display, stop_reason=result.stop_reason)
    if not result.additions:
        return message
    text, content = "\n\n".join(result.additions), message.content
    is_text = isinstance(content, str)
    added = f"{content}\n\n{text}" if is_text else [*content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": added})


def _messages_in(outcome: Any) -> Iterator[Any]:
    """Yield what a tool returned, or what the ``Command`` that it returned puts into the state."""
    if isinstance(outcome, Command):
        yield from _messages_in([value for _, value in outcome._update_as_tuples()])
    elif isinstance(outcome, (list, tuple)):
        for item in outcome:
            yield from _messages_in(item)
    else:
        yield outcome


def _replaced(outcome: Any, old: ToolMessage, new: ToolMessage) -> Any:
    if isinstance(outcome, Command):
        return _updating(outcome, [(key, _replaced(value, old, new)) for key, value in outcome._update_as_tuples()])
    if isinstance(outcome, list):
        return [_replaced(item, old, new) for item in outcome]
    return new if outcome is old else outcome


def _updating(command: Command[Any], update: list[tuple[str, Any]]) -> Command[Any]:
    """Return a command with another update of the state, in the form that it had: other middleware may read it."""
    return replace(command, update=dict(update) if isinstance(command.update, dict) else update)


def _stop(reason: str | None) -> dict[str, Any]:
    """Return the update of the state for a stop, or for its end."""
    return {"hook_stop_reason": reason, "hook_stopped": reason is not None}


def _stopping(outcome: Any, reason: str | None) -> Any:
    """Return what a tool returned, together with a hook's stop."""
    if reason is None:
        return outcome
    if isinstance(outcome, list):
        return [*outcome, Command(update=_stop(reason))]
    if isinstance(outcome, Command):
        return _updating(outcome, [*outcome._update_as_tuples(), *_stop(reason).items()])
    return Command(update={"messages": [outcome], **_stop(reason)})


# Models.


def _is_stopped(state: HooksState) -> bool:
    """Whether a stop is still in effect. It ends with the next prompt of the user, which starts another run."""
    return bool(state.get("hook_stopped")) or not isinstance(state["messages"][-1], HumanMessage)


def _in_place_of_model(result: ModelCallResult[Any]) -> AIMessage:
    """Return the answer to a request that hooks did not let through."""
    answer = AIMessage(result.reason or result.stop_reason or "") if result.response is None else result.response
    return _marked(answer, reason=result.reason, **marks_of(result))
