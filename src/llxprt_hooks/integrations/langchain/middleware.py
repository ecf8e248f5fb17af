"""``HooksMiddleware``: all events of a LangChain agent, from the start of its session to the end."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
    hook_config,
)
from langchain.agents.middleware.types import ModelCallResult as Answer
from langchain.agents.structured_output import StructuredOutputError
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.approval import ApprovalRequest, NobodyToAsk
from llxprt_hooks.core.calls.sentences import Sentences
from llxprt_hooks.core.calls.turn import session_started
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
from llxprt_hooks.integrations.approvals import OpenQuestions, question_about
from llxprt_hooks.integrations.base import Integration, in_session, log, marks_of, metadata_of
from llxprt_hooks.integrations.langchain.held_model import HeldModel, Summarizer, unless_blocked
from llxprt_hooks.integrations.langchain.translator import LangChainTranslator, Request, tool_name
from llxprt_hooks.integrations.unsupported import lost_effects
from llxprt_hooks.model.access import field

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import Runtime

    from llxprt_hooks.config import Config
    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.model import Restriction

MessageT = TypeVar("MessageT", AIMessage, HumanMessage, ToolMessage)

MARKS = "llxprt_hooks"
"""The key in a message's ``response_metadata`` that says what hooks did to it."""

_ASKED_BEFORE = {
    HookEventName.BEFORE_TOOL: '`permissionDecision: "allow"` comes too late for a question that LangChain\'s '
    "middleware asks before tools run"
}
_AGENT_EVENTS = (HookEventName.SESSION_START, HookEventName.BEFORE_AGENT, HookEventName.AFTER_AGENT)
_INTERNAL = ("langgraph_", "ls_", "lc_", "checkpoint_", "__")
"""Prefixes of what LangChain, LangGraph and LangSmith add to the metadata of a run themselves."""
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
    hook_continuations: NotRequired[Annotated[int, PrivateStateAttr]]
    """How many turns in a row hooks have made the agent continue."""
    hook_clears: NotRequired[Annotated[bool, PrivateStateAttr]]
    """Whether the next prompt starts a new conversation."""
    hook_stopped: NotRequired[Annotated[bool, UntrackedValue(bool, guard=False), PrivateStateAttr]]
    """Whether the stop happened in this run. It is not in a checkpoint, so the next run starts without it."""


class HooksMiddleware(Integration, AgentMiddleware[HooksState, Any, Any]):
    """Runs the hooks of a configuration around the tools and the model of an agent.

    Two of them in one agent need different names.
    """

    state_schema = HooksState
    suspensions = (GraphBubbleUp,)

    def __init__(self, config: Config | None = None, *, name: str = "HooksMiddleware", **options: Any) -> None:
        super().__init__(config, **options)
        self._name = name
        self._kind = type(self)
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._started: OrderedDict[str, None] = OrderedDict()
        self._questions = OpenQuestions()
        self._translator = LangChainTranslator(self.hook_name)

    @property
    def name(self) -> str:
        """The name, which must differ from that of other middleware of the same agent."""
        # LangChain reads the name before it looks for methods that become nodes of the graph.
        nodes = None if not self.has_hooks(*_AGENT_EVENTS) else _Turns if self.acts(*_AGENT_EVENTS) else _AgentEvents
        if nodes is None:
            self.__class__ = self._kind
        elif type(self).__bases__[0] is not nodes:
            self.__class__ = type(self._kind.__name__, (nodes, self._kind), {})
        return self._name

    def tool_node(self) -> dict[str, Any]:
        """Return the arguments for ``ToolNode(tools, **hooks.tool_node())`` in a graph of your own.

        There, a stop is in the marks of the message, and in ``hook_stop_reason`` of the state, if the state has such a
        field: route to the end from it.
        """
        return {"wrap_tool_call": self.wrap_tool_call, "awrap_tool_call": self.awrap_tool_call}

    def end_session(self, thread_id: str, reason: str = SessionEndReason.EXIT) -> None:
        """Fire SessionEnd: LangChain does not know when a thread is over."""
        with self._session(thread_id):
            self.hooks.observe(HookEventName.SESSION_END, reason=reason)
        self._sessions.pop(thread_id, None)
        self._started.pop(thread_id, None)

    def notifying(self, middleware: AgentMiddleware[Any, Any, Any]) -> AgentMiddleware[Any, Any, Any]:
        """Return middleware such as ``HumanInTheLoopMiddleware`` that fires Notification when it asks a person."""
        if lost := lost_effects(_ASKED_BEFORE, self.hooks):
            log.warning(lost)
        asking = ("after_model", "aafter_model", "wrap_tool_call", "awrap_tool_call")
        return _with_methods(middleware, asking, self._notified)

    def compressing(self, middleware: AgentMiddleware[Any, Any, Any]) -> AgentMiddleware[Any, Any, Any]:
        """Return a ``SummarizationMiddleware`` that leaves the conversation alone if a PreCompress hook blocks.

        It must have a model of ``summarizer()``.
        """
        return _with_methods(middleware, ("before_model", "abefore_model"), unless_blocked)

    def summarizer(self, model: str | BaseChatModel) -> BaseChatModel:
        """Return a model for ``SummarizationMiddleware(summarizer=…)`` that fires PreCompress before it is called."""
        return Summarizer.around(init_chat_model(model) if isinstance(model, str) else model, self._compressing)

    # Tools.

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        if not self._is_hooked(request):
            return handler(request)
        return loops.drive(self._run_tool(request, _awaitable(handler)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
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
            approver = _Interrupts(self, request, session.session_id)
            with approver:
                outcome, result, refused = await self.run_tool(
                    call["name"], call["args"], run, show, tool_use_id=call["id"], approver=approver
                )
            if refused is not None:
                outcome = _not_run(call, refused.llm_content, blocked=True, stop_reason=refused.stop_reason)
            elif result is not None and result.replaced:
                message = message_in(outcome)
                new = _in_place_of(call, message, result)
                outcome = new if message is None else _replaced(outcome, message, new)
            elif (message := message_in(outcome)) is not None and result is not None:
                new = _with_additions(message, result)
                outcome = outcome if new is message else _replaced(outcome, message, new)
            elif result is not None and result.additions:
                log.warning("a hook's text for the result of %s is dropped: the tool returned no message", call["name"])
            return _stopping(outcome, session.stop_reason)

    # Models.

    def wrap_model_call(self, request: Request, handler: Callable[[Request], ModelResponse[Any]]) -> Answer[Any]:
        if not self._concerns(request):
            return handler(request)
        return loops.drive(self._call_model(request, _awaitable(handler)))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> Answer[Any]:
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
        session_id = thread_id or config.session_id
        with suppress(KeyError):
            self._sessions.move_to_end(session_id)
        conversation = self._sessions.get(session_id)
        if conversation is None:
            conversation = self._sessions[session_id] = Session(config, session_id, config.transcript_path)
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        if (asked := self.asked(_config())) is not None:
            conversation.asked = asked  # for the end of the session, which is outside of any run
        session = conversation.separate_run()
        with in_session(session):
            yield session

    def known_caller(self, context: Any) -> dict[str, Any]:
        """Return ``config["metadata"]`` without what the framework adds to it. The thread is the session id."""
        return metadata_of(
            context.get("metadata"), without=lambda name: name == "thread_id" or name.startswith(_INTERNAL)
        )

    def _observe(self, event: HookEventName, **fields: Any) -> None:
        with self._session(_thread_id()):
            self.hooks.observe(event, **fields)

    def _new_session(self, state: HooksState) -> str | None:
        """Return the source of SessionStart for a thread that is new here, once."""
        thread_id = _thread_id() or self.hooks.config.session_id
        is_new = thread_id not in self._started
        self._started[thread_id] = None
        with suppress(KeyError):  # another thread may have made room for its own
            self._started.move_to_end(thread_id)
        if len(self._started) > _MAX_SESSIONS:
            self._started.popitem(last=False)
        if not is_new:
            return None
        was_here = any(isinstance(message, AIMessage) for message in state["messages"])
        return SessionStartSource.RESUME if was_here else SessionStartSource.STARTUP

    async def _compressing(self) -> str | None:
        with self._session(_thread_id()):
            return await self.hooks.before_compression(PreCompressTrigger.AUTO)

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
        for each in interruption.args[0]:
            for action in field(each.value, "action_requests") or [each.value]:
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
        if source := self._new_session(state):
            self._observe(HookEventName.SESSION_START, source=source)
        self._observe(HookEventName.BEFORE_AGENT, prompt=_last_text(state, HumanMessage))

    async def abefore_agent(self, state: HooksState, runtime: Runtime[Any]) -> None:
        self.before_agent(state, runtime)

    def after_agent(self, state: HooksState, runtime: Runtime[Any]) -> None:
        prompt, answer = _last_text(state, HumanMessage), _last_text(state, AIMessage)
        self._observe(HookEventName.AFTER_AGENT, prompt=prompt, prompt_response=answer)

    async def aafter_agent(self, state: HooksState, runtime: Runtime[Any]) -> None:
        self.after_agent(state, runtime)


class _Turns(HooksMiddleware):
    """Adds nodes that wait for hooks, which may refuse a prompt, add to it, or let the agent continue (D-46)."""

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: HooksState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return loops.drive(self._begin_turn(state))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: HooksState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return await self._begin_turn(state)

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: HooksState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return loops.drive(self._end_turn(state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: HooksState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return await self._end_turn(state)

    async def _begin_turn(self, state: HooksState) -> dict[str, Any]:
        prompt = _last_text(state, HumanMessage)
        with self._session(_thread_id()) as session:
            if source := self._new_session(state):
                await session_started(self.hooks.config, session, source)
            start = await self.hooks.before_turn(prompt)
        update: dict[str, Any] = {"hook_continuations": 0, "hook_clears": False}
        messages = _cleared(state["messages"]) if state.get("hook_clears") else _without_refusals(state["messages"])
        if (reason := start.reason) is not None:
            marks = {"blocked": True, "prompt_refused": True, "stop_reason": start.stop_reason}
            refusal = _marked(AIMessage(reason), **marks)
            last = _last(state["messages"], HumanMessage)
            removed = [] if last is None else [RemoveMessage(id=str(last.id))]
            stop = _stop(reason) if start.should_stop else {}
            return {**update, **stop, "messages": [*messages, *removed, refusal], "jump_to": "end"}
        if start.prompt != prompt and (last := _last(state["messages"], HumanMessage)) is not None:
            messages = [message for message in messages if message is not last]
            messages.append(_with_context(last, prompt, start.prompt.removeprefix(prompt)))
        return {**update, "messages": messages} if messages else update

    async def _end_turn(self, state: HooksState) -> dict[str, Any] | None:
        answer = _last(state["messages"], AIMessage)
        if answer is not None and _marks_in(answer).get("prompt_refused"):
            return None
        asked = _last(state["messages"], HumanMessage)
        prompt = "" if asked is None else _marks_in(asked).get("prompt", str(asked.text))
        with self._session(_thread_id()) as session:
            session.continuations = continued = state.get("hook_continuations", 0)
            end = await self.hooks.after_turn(prompt, "" if answer is None else str(answer.text), continued > 0)
        if end.stop_reason is not None:
            return {"hook_clears": end.clear_context, **_stop(end.stop_reason)}
        if end.next_prompt is None or state.get("hook_stopped"):
            return {"hook_clears": True} if end.clear_context else None
        removed = [RemoveMessage(id=REMOVE_ALL_MESSAGES)] if end.clear_context else []
        messages = [*removed, HumanMessage(end.next_prompt)]
        return {"hook_continuations": session.continuations, "messages": messages, "jump_to": "model"}


class _Interrupts:
    """Asks a person by an interrupt of the graph, which is resumed with the answer (D-127)."""

    def __init__(self, hooks: HooksMiddleware, request: ToolCallRequest, session_id: str) -> None:
        self._hooks = hooks
        self._questions = hooks._questions
        self._request = request
        self._call = (hooks._name, session_id, request.tool_call["id"])

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, GraphBubbleUp):
            self._questions.close(self._call)

    def __call__(self, request: ApprovalRequest) -> bool:
        if (problem := self._problem()) is not None:
            raise NobodyToAsk(f"the program has no approver, and {problem}")
        action = {"name": request.tool_name, "args": request.tool_input, "description": request.reason}
        review = {"action_name": request.tool_name, "allowed_decisions": ["approve", "reject"]}
        question = question_about(request)
        try:
            answer = interrupt({"action_requests": [action], "review_configs": [review], MARKS: question})
        except GraphInterrupt:
            self._questions.asked(self._call, question)
            self._hooks.observe_approval(self._request.tool_call["name"], request.tool_input)
            raise
        if not self._questions.accepts(self._call, request, field(answer, MARKS)):
            raise NobodyToAsk("the answer is for another call, or came too late")
        decisions = field(answer, "decisions") or [{"type": "approve" if answer is True else "reject"}]
        return [field(decision, "type") for decision in decisions] == ["approve"]

    def _problem(self) -> str | None:
        """Return why the graph cannot be resumed with an answer for this call."""
        try:
            config = get_config()
        except RuntimeError:
            return "the tool does not run in a graph"
        if config.get("configurable", {}).get("__pregel_checkpointer") is None:
            return "the graph has no checkpointer"
        path = config.get("metadata", {}).get("langgraph_path") or [""]
        messages = field(self._request.state, "messages") or []
        calls = field(messages[-1], "tool_calls") if messages else None
        if path[0] != "__pregel_push" and len(calls or ()) > 1:
            return "the node runs several calls, so an answer could be taken for another call's"
        return None


class _ModelRun:
    """One call of the model, between its hooks."""

    def __init__(self, hooked: HookedModelCall[Request], session: Session, translator: LangChainTranslator) -> None:
        self._hooked = hooked
        self._translator = translator
        self._session = session
        self._notes = session.notes
        self._answer: AIMessage | None = None
        self._sentences: Sentences | None = None
        """What was released of an answer that is being streamed."""
        self._result: ModelCallResult[AIMessage] | None = None

    async def ask(
        self, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> tuple[ModelResponse[Any], ModelCallResult[AIMessage]]:
        request = self._translator.sendable(self._hooked.request)
        if self._hooked.holds_back:
            begin = self._begin_sentences if self._hooked.streams_sentences else None
            request = request.override(model=HeldModel.around(request.model, self._finish, sentences=begin))
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

    def _begin_sentences(self) -> Sentences:
        # Other middleware may call the model again: the last answer counts.
        self._session.notes, self._session.stop_reason = self._notes, None
        self._sentences = Sentences(self._hooked)
        return self._sentences

    async def _finish(self, answer: AIMessage) -> AIMessage:
        ended, self._sentences = None if self._sentences is None else self._sentences.result, None
        if ended is None:
            self._session.notes, self._session.stop_reason = self._notes, None
        self._answer = answer
        self._result = ended or await self._hooked.after(answer)
        return _marked_answer(self._result, answer)


def _marked_answer(result: ModelCallResult[AIMessage], original: AIMessage | None) -> AIMessage:
    assert result.response is not None
    return _marked(result.response, changed=result.response is not original, **marks_of(result))


def _awaitable(handler: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    async def call(request: Any) -> Any:
        return handler(request)

    return call


def _config() -> RunnableConfig | None:
    """Return the configuration of the running graph; None outside of one."""
    try:
        return get_config()
    except RuntimeError:
        return None


def _thread_id() -> str | None:
    """Return the id of the thread that the running graph belongs to."""
    thread_id = (_config() or {}).get("configurable", {}).get("thread_id")
    return None if thread_id is None else str(thread_id)


def _last(messages: Sequence[Any], kind: type[MessageT]) -> MessageT | None:
    return next((message for message in reversed(messages) if isinstance(message, kind)), None)


def _marks_in(message: BaseMessage) -> dict[str, Any]:
    marks: dict[str, Any] = message.response_metadata.get(MARKS, {})
    return marks


def _without_refusals(messages: Sequence[BaseMessage]) -> list[Any]:
    """Remove what users were told about prompts that were refused: the model has not seen those."""
    return [RemoveMessage(id=str(message.id)) for message in messages if _marks_in(message).get("prompt_refused")]


def _cleared(messages: Sequence[BaseMessage]) -> list[Any]:
    """Remove all messages but those that are new in this run."""
    old = next((n for n, each in reversed([*enumerate(messages, 1)]) if isinstance(each, (AIMessage, ToolMessage))), 0)
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages[old:]]


def _with_context(message: HumanMessage, prompt: str, context: str) -> HumanMessage:
    """Return a prompt with what hooks add, which replaces the message with the same id."""
    content = message.content
    is_text = isinstance(content, str)
    added = f"{content}{context}" if is_text else [*content, {"type": "text", "text": context.lstrip()}]
    return _marked(message.model_copy(update={"content": added}), prompt=prompt)


def _with_methods(
    middleware: AgentMiddleware[Any, Any, Any], names: Sequence[str], around: Callable[[Any], Any]
) -> AgentMiddleware[Any, Any, Any]:
    """Return a copy of middleware with some of its methods wrapped, as far as it has them."""
    kind = type(middleware)
    methods = {name: method for name in names if (method := getattr(kind, name)) is not getattr(AgentMiddleware, name)}
    wrapped = copy.copy(middleware)
    wrapped.__class__ = type(kind.__name__, (kind,), {name: around(method) for name, method in methods.items()})
    return wrapped


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


def _in_place_of(call: Mapping[str, Any], message: ToolMessage | None, result: ToolResult) -> ToolMessage:
    """Return the message of a result that hooks replaced."""
    given, fields = result.llm_content, {"status": "success" if result.error is None else "error", "artifact": None}
    content = given if isinstance(given, (str, list)) else json.dumps(given, ensure_ascii=False, default=str)
    if message is None:
        message = ToolMessage("", tool_call_id=call["id"], name=call["name"])
    new = message.model_copy(update={**fields, "content": content})
    is_text = isinstance(given, str)  # then it already has the additions
    return _with_additions(new, replace(result, additions=[] if is_text else result.additions))


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
