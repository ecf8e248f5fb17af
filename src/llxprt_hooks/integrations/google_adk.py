"""Hooks in Google's Agent Development Kit: ``App(…, plugins=[HooksPlugin.load(".")])``.

Put the plugin last, so that hooks see what other plugins have left. It reaches sub-agents, transfers, agents that are
tools, and parallel agents. The id of the runner's session is the session id.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from llxprt_hooks._support.text import from_extra
from llxprt_hooks.core.calls.sentences import Sentences
from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine.session import current_session
from llxprt_hooks.events import MODEL_EVENTS, HookEventName
from llxprt_hooks.integrations.approvals import OpenQuestions
from llxprt_hooks.integrations.base import (
    Integration,
    ToolCallHalves,
    as_json,
    in_session,
    json_result,
    log,
    marks_of,
    metadata_of,
    reason_instead,
    with_changes,
)
from llxprt_hooks.integrations.unsupported import NOT_HONORED
from llxprt_hooks.model.format import GenerateContentParameters
from llxprt_hooks.model.restriction import Restriction

with from_extra("adk"):
    from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
    from google.adk.models.google_llm import Gemini
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_confirmation import ToolConfirmation
    from google.genai import types

    from llxprt_hooks.model.google_genai import sendable_tool_config

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext

    from llxprt_hooks.config import Config
    from llxprt_hooks.core.calls.approval import ApprovalRequest, Approver
    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.core.engine.session import Session
    from llxprt_hooks.core.protocol.tool_result import ToolResult

_MARK = "llxprt_hooks"
_TEXT_KEYS = ("result", "output", "error")
"""The keys under which tools put a text; the first of them grows by what hooks say."""


_REFUSED = "[A hook refused this prompt.]"
"""What the conversation has in the place of a prompt that was refused."""
_NEEDS_CONFIRMATION = "This tool call requires confirmation, please approve or reject."
"""The framework's own words."""


class _WaitsForAnswer(Exception):  # a statement, not an error
    """The call has to wait for the user's confirmation."""


class _Caller(NamedTuple):
    """One agent in a run. Parallel agents have a branch each."""

    branch: str | None
    agent: str


class _Run:
    """One run of an app: its session, and what is in progress."""

    def __init__(self, session: Session, *, is_nested: bool) -> None:
        self.session = session
        self.is_nested = is_nested
        self.prompt: str | None = None
        """The user's prompt, as hooks see it; None until they have."""
        self.refusal: str | None = None
        """Why the prompt is not sent to the model."""
        self.answer = ""
        self.models: dict[_Caller, HookedModelCall[GenerateContentParameters]] = {}
        self.sentences: dict[_Caller, Sentences] = {}
        """What was released of an answer that is streamed."""
        self.tools: WeakKeyDictionary[ToolContext, ToolCallHalves] = WeakKeyDictionary()
        """By context, which the framework makes for each call: ids are the model's, and may repeat."""
        self.suppressed: set[str] = set()
        self._parts: dict[_Caller, Session] = {}

    def part_of(self, context: CallbackContext | ToolContext) -> Session:
        """Return the session of one agent: its restriction, and what hooks say about its answers."""
        caller = _caller(context)
        if (part := self._parts.get(caller)) is None:
            part = self._parts[caller] = self.session.part_of(caller)
        return part


class HooksPlugin(Integration, BasePlugin):
    """Runs hooks around the tools and model requests of all agents of an app."""

    not_honored = NOT_HONORED["adk"]

    def __init__(self, config: Config | None = None, *, name: str = "llxprt_hooks", **options: Any) -> None:
        Integration.__init__(self, config, **options)
        BasePlugin.__init__(self, name)
        self._sessions = Sessions(self.hooks.config)
        self._runs: dict[str, _Run] = {}
        """By invocation id. A run stays for as long as the framework has its context, however it ends."""
        self._translator = self.translator("google-genai")
        self._questions = OpenQuestions()

    def summarizer(self, inner: BaseEventsSummarizer) -> BaseEventsSummarizer:
        """Return a summarizer for ``EventsCompactionConfig`` that fires PreCompress before it compresses."""
        return _Summarizer(inner, self)

    # Runs.

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Show a prompt to hooks before it becomes part of the conversation."""
        if not self.hooks.config.enable_hooks or _is_answer(user_message):
            return None
        run = self._begin(invocation_context)
        if run.is_nested:
            return None
        run.prompt = _text(user_message)
        with run.session.active():
            start = await self.hooks.before_turn(run.prompt)
        if start.should_stop:
            run.session.stop_reason = start.stop_reason
        if start.blocked or start.should_stop:
            run.refusal = start.reason or ""
            return types.Content(role="user", parts=[types.Part(text=_REFUSED)])
        added = start.prompt.removeprefix(run.prompt)
        return _extended(user_message, added) if added else None

    def _begin(self, invocation: InvocationContext) -> _Run:
        outer = current_session(self.hooks.config)  # that of an agent which has this one as a tool
        asked = self.asked(invocation)
        known = invocation.session.id
        session = self._sessions.begin(known, asked) if outer is None else self.nested_run(outer, asked)
        run = self._runs[invocation.invocation_id] = _Run(session, is_nested=outer is not None)
        weakref.finalize(invocation, _forget, self._runs, invocation.invocation_id, run).atexit = False
        return run

    def known_caller(self, context: InvocationContext) -> dict[str, Any]:
        """Return the user and the app, and what ``RunConfig(custom_metadata=…)`` says."""
        own = context.run_config.custom_metadata if context.run_config is not None else None
        return {**metadata_of(own), "user_id": context.user_id, "app_name": context.app_name}

    def _run_of(self, context: CallbackContext | ToolContext) -> _Run | None:
        """Return the run that a callback belongs to; None if hooks are disabled."""
        if not self.hooks.config.enable_hooks:
            return None
        return self._runs.get(context.invocation_id) or self._begin(context.get_invocation_context())

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        if self.hooks.config.enable_hooks:
            run = self._runs.get(invocation_context.invocation_id) or self._begin(invocation_context)
            if run.refusal is not None:
                return types.Content(role="model", parts=[types.Part(text=run.refusal)])
            if invocation_context.live_request_queue is not None and self.has_hooks(*MODEL_EVENTS):
                log.warning(
                    "model hooks don't run in this live session, because run_live has no model events; tool hooks do"
                )
            if not run.is_nested and run.prompt is None:
                run.prompt = _text(invocation_context.user_content)
                with run.session.active():
                    self.hooks.observe(HookEventName.BEFORE_AGENT, prompt=run.prompt)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        run = self._runs.get(invocation_context.invocation_id)
        if run is not None and not run.is_nested and run.refusal is None:
            with run.session.active():
                self.hooks.observe(HookEventName.AFTER_AGENT, prompt=run.prompt or "", prompt_response=run.answer)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        # The error keeps the context alive.
        self._runs.pop(invocation_context.invocation_id, None)

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> types.Content | None:
        """Do not start another agent after a stop. The reason was the answer of the one that was stopped."""
        run = self._run_of(callback_context)
        if run is None or run.session.stop_reason is None:
            return None
        callback_context.actions.escalate = True  # a loop runs until an event ends it
        return types.Content(role="model")

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        run = self._runs.get(invocation_context.invocation_id)
        if run is None:
            return None
        if event.is_final_response() and not event.partial and (event.content is None or event.content.parts):
            run.answer = _text(event.content)
        if run.refusal is not None and run.session.stop_reason is not None:
            return _event_marked(event, {"stop_reason": run.session.stop_reason})
        if suppressed := {response.id for response in event.get_function_responses()} & run.suppressed:
            run.suppressed -= suppressed
            return _event_marked(event, {"suppress_output": True})
        return None

    def session_of(self, events: list[Event]) -> Session | None:
        runs = [self._runs[event.invocation_id] for event in reversed(events) if event.invocation_id in self._runs]
        return runs[0].session if runs else None

    def end_session(self, session_id: str) -> None:
        """Fire SessionEnd for a session, and forget what hooks left for it."""
        self._sessions.end(session_id)

    async def close(self) -> None:
        """Fire SessionEnd for all sessions, when the runner is closed."""
        self._sessions.end_all()
        await self.hooks.settle()

    # Tools.

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        run = self._run_of(tool_context)
        if run is None or type(tool) is BaseTool:  # what stands for a tool that does not exist
            return None
        session = run.part_of(tool_context)
        if self.has_tool_hooks(tool.name, session):
            shown = _shown(tool_args)
            call_id = tool_context.function_call_id
            approver = self._approver(tool_context)
            call = ToolCallHalves(self, tool.name, shown, session, tool_use_id=call_id, approver=approver)
            try:
                refused = await call.before()
            except _WaitsForAnswer:
                return {"error": _NEEDS_CONFIRMATION}
            if refused is not None:
                return {"error": refused.llm_content}
            if call.hooked.is_approved and tool_context.tool_confirmation is None:
                tool_context.tool_confirmation = ToolConfirmation(confirmed=True)  # answers the tool's own question
            if call.changed is not None:
                changed = with_changes(tool_args, shown, call.changed)
                tool_args.clear()
                tool_args.update(changed)
            run.tools[tool_context] = call
        if isinstance(tool, AgentTool):
            session.enter()  # until the tool has returned: its agent's run belongs to this session
        return None

    def _approver(self, context: ToolContext) -> Approver:
        """Return what asks by a confirmation of the framework, which runs the call again with the answer."""

        def ask(request: ApprovalRequest) -> bool:
            confirmation, call = context.tool_confirmation, (context.session.id, context.function_call_id)
            returned = _question_in(confirmation) if not self._questions.is_open(call) else None
            if confirmation is not None and (returned is not None or self._questions.is_open(call)):
                is_yes = confirmation.confirmed and self._questions.accepts(call, request, returned)
                self._questions.close(call)
                return is_yes
            question = self._questions.ask(call, request)
            payload = {_MARK: question, "tool_name": request.tool_name, "tool_input": request.tool_input}
            context.request_confirmation(hint=_hint(request), payload=payload)
            context.actions.skip_summarization = True
            raise _WaitsForAnswer

        return ask

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        run = self._run_of(tool_context)
        if run is None:
            return None
        call_id = tool_context.function_call_id
        call = self._left(run, tool, tool_context)
        if call_id in tool_context.actions.requested_tool_confirmations:
            with run.session.active():
                self.observe_approval(tool.name, _shown(tool_args))  # the tool has not run yet
            return None
        if call is None:
            return None
        done = await call.after(json_result(result))
        if done.suppress_display and call_id:
            run.suppressed.add(call_id)
        if done.replaced:
            return _replacement(done)
        return _with_additions(result, done.additions) if done.additions else None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        run = self._run_of(tool_context)
        call = None if run is None else self._left(run, tool, tool_context)
        done = None if call is None else await call.raised(error)
        return None if done is None else _replacement(done)

    def _left(self, run: _Run, tool: BaseTool, tool_context: ToolContext) -> ToolCallHalves | None:
        """Find the pending call of a tool that has finished."""
        if isinstance(tool, AgentTool):
            run.part_of(tool_context).leave()
        return run.tools.pop(tool_context, None)

    # Models.

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        run = self._run_of(callback_context)
        if run is None:
            return None
        self.check_tools(llm_request.tools_dict)
        caller, session = _caller(callback_context), run.part_of(callback_context)
        session.restriction = Restriction()
        run.models.pop(caller, None)
        run.sentences.pop(caller, None)
        if self.model_plans(session) is None:
            return None
        request = GenerateContentParameters(llm_request.model or "", llm_request.contents, llm_request.config)
        with session.active():
            call = self.hooks.model_call(request, translator=self._translator)
            result = await call.before()
        if result is not None:
            return _answer(result, callback_context)
        sent = call.request
        llm_request.model, llm_request.contents = sent.model, list(sent.contents)
        llm_request.config = sent.config
        if call.restriction.allowed is not None and sent.config.tools:
            llm_request.config = self._restricted(sent.config, call.restriction, callback_context)
        run.models[caller] = call
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        run = self._run_of(callback_context)
        call = None if run is None else run.models.get(_caller(callback_context))
        if run is None or call is None:
            return None
        if llm_response.partial:
            return await self._partial(run, callback_context, llm_response) if call.holds_back else None
        response = _response(llm_response)
        sentences = run.sentences.pop(_caller(callback_context), None)
        result = None if sentences is None else sentences.result
        if result is None:
            with run.part_of(callback_context).active():
                result = await call.after(response)  # a model may give several complete responses
        if result.stop_reason is None and result.response is response:
            return _marked(llm_response, result) if result.suppress_output else None
        return _answer(result, callback_context)

    async def _partial(self, run: _Run, context: CallbackContext, response: LlmResponse) -> LlmResponse:
        """Return as much of a part of an answer as hooks have seen; the runner skips a response without content."""
        call = run.models[_caller(context)]
        if not call.streams_sentences:
            return LlmResponse(partial=True)
        sentences = run.sentences.setdefault(_caller(context), Sentences(call))
        text = await sentences.add(_text(response.content))
        content = types.Content(role="model", parts=[types.Part(text=text)]) if text else None
        return LlmResponse(partial=True, content=content)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        if (run := self._run_of(callback_context)) is not None:
            run.models.pop(_caller(callback_context), None)
        return None

    def _restricted(
        self, config: types.GenerateContentConfig, restriction: Restriction, context: CallbackContext
    ) -> types.GenerateContentConfig:
        """Return a restriction as the model understands it: others than Gemini do not read names."""
        tools = config.tools or []
        agent: Any = context.get_invocation_context().agent
        if isinstance(agent.canonical_model, Gemini):
            declared = [name for tool in tools for name in _names(tool)]
            return config.model_copy(update={"tool_config": sendable_tool_config(config.tool_config, declared)})
        kept = [left for tool in tools if (left := self._allowed(tool, restriction)) is not None]
        tool_config = _without_names(config.tool_config) if kept else None
        return config.model_copy(update={"tools": kept, "tool_config": tool_config})

    def _allowed(self, tool: Any, restriction: Restriction) -> Any:
        """Return a tool without the functions that are not allowed; None if nothing is left of it."""
        if not _names(tool):
            return tool
        functions = tool.function_declarations
        kept = [function for function in functions if restriction.allows(self.hook_name(function.name or ""))]
        return tool.model_copy(update={"function_declarations": kept}) if kept else None


def _forget(runs: dict[str, _Run], invocation_id: str, run: _Run) -> None:
    if runs.get(invocation_id) is run:  # a run that is resumed has the same id
        del runs[invocation_id]


class _Summarizer(BaseEventsSummarizer):
    """Fires PreCompress before another summarizer runs."""

    def __init__(self, inner: BaseEventsSummarizer, plugin: HooksPlugin) -> None:
        self._inner = inner
        self._plugin = plugin

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        session = self._plugin.session_of(events)
        with in_session(session):
            if await self._plugin.hooks.before_compression("auto") is not None:
                return None
        return await self._inner.maybe_summarize_events(events=events)


def _is_answer(message: types.Content) -> bool:
    """Whether a message answers a call, such as a confirmation, and is not a prompt."""
    return any(part.function_response is not None for part in message.parts or [])


def _extended(message: types.Content, text: str) -> types.Content:
    """Return a user's message with text after its last text."""
    parts = list(message.parts or [])
    last = max((place for place, part in enumerate(parts) if part.text), default=None)
    if last is None:
        return message.model_copy(update={"parts": [*parts, types.Part(text=text.strip())]})
    parts[last] = parts[last].model_copy(update={"text": f"{parts[last].text}{text}"})
    return message.model_copy(update={"parts": parts})


def _question_in(confirmation: ToolConfirmation | None) -> Mapping[str, Any] | None:
    """Return the question that a program returned with the user's answer."""
    payload = None if confirmation is None else confirmation.payload
    question = payload.get(_MARK) if isinstance(payload, Mapping) else None
    return question if isinstance(question, Mapping) else None


def _hint(request: ApprovalRequest) -> str:
    arguments = json.dumps(request.tool_input, ensure_ascii=False)
    return f"{request.reason}\n\nPlease approve or reject the tool call {request.tool_name} with {arguments}."


def _event_marked(event: Event, mark: dict[str, Any]) -> Event:
    return event.model_copy(update={"custom_metadata": {**(event.custom_metadata or {}), _MARK: mark}})


def _caller(context: CallbackContext | ToolContext) -> _Caller:
    return _Caller(context.branch, context.agent_name)


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _response(llm_response: LlmResponse) -> types.GenerateContentResponse:
    candidate = types.Candidate(content=llm_response.content, finish_reason=llm_response.finish_reason, index=0)
    return types.GenerateContentResponse(
        candidates=[candidate],
        usage_metadata=llm_response.usage_metadata,
        model_version=llm_response.model_version,
    )


def _answer(result: ModelCallResult[Any], context: CallbackContext) -> LlmResponse:
    """Return the answer that the agent gets: after a stop, or a block without an answer, the reason."""
    if result.stop_reason is not None:
        context.actions.escalate = True  # ends the loop and the parallel agents around this one
    response, reason = result.response, reason_instead(result)
    if response is not None and reason is None:
        return _marked(LlmResponse.create(response), result)
    content = types.Content(role="model", parts=[types.Part(text=reason)])
    return _marked(LlmResponse(content=content, finish_reason=types.FinishReason.STOP), result)


def _marked(response: LlmResponse, result: ModelCallResult[Any]) -> LlmResponse:
    if not (marks := marks_of(result)):
        return response
    return response.model_copy(update={"custom_metadata": {**(response.custom_metadata or {}), _MARK: marks}})


def _without_names(tool_config: types.ToolConfig | None) -> types.ToolConfig | None:
    calling = None if tool_config is None else tool_config.function_calling_config
    if tool_config is None or calling is None:
        return tool_config
    calling = calling.model_copy(update={"allowed_function_names": None})
    return tool_config.model_copy(update={"function_calling_config": calling})


def _names(tool: Any) -> list[str]:
    return [function.name or "" for function in getattr(tool, "function_declarations", None) or []]


def _shown(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: as_json(value) for name, value in arguments.items()}


def _with_additions(result: Any, additions: list[str]) -> dict[str, Any]:
    """Return a tool's result with the texts of hooks."""
    text = "".join(f"\n\n{addition}" for addition in additions)
    if isinstance(result, str):
        return {"result": f"{result}{text}"}
    fields = result if isinstance(result, Mapping) else {"result": result}
    key = next((key for key in _TEXT_KEYS if _is_prose(fields.get(key))), None)
    return {**fields, "additional_context": text.strip()} if key is None else {**fields, key: f"{fields[key]}{text}"}


def _replacement(done: ToolResult) -> dict[str, Any]:
    """Return the result that hooks put in the place of a tool's own."""
    content = done.llm_content
    if done.error is not None:
        return {"error": content}
    return _with_additions(content, done.additions) if isinstance(content, Mapping) else {"result": content}


def _is_prose(value: Any) -> bool:
    """Whether text may be appended to a value: what looks like JSON is for a program."""
    return isinstance(value, str) and not value.lstrip().startswith(("{", "["))
