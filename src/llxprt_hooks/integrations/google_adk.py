"""Hooks in Google's Agent Development Kit: ``App(…, plugins=[HooksPlugin.load(".")])``.

Put the plugin last, so that hooks see what other plugins have left. It reaches sub-agents, transfers, agents that are
tools, and parallel agents. The id of the runner's session is the session id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from pydantic_core import to_jsonable_python

from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.base import Integration
from llxprt_hooks.integrations.sessions import Sessions
from llxprt_hooks.model.google_genai import sendable_tool_config
from llxprt_hooks.model.parameters import GenerateContentParameters
from llxprt_hooks.model.restriction import Restriction
from llxprt_hooks.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext

    from llxprt_hooks.config import Config
    from llxprt_hooks.triggers.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.triggers.tool import HookedToolCall

_MARK = "llxprt_hooks"
_TOOL_EVENTS = (HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL)
_MODEL_EVENTS = (HookEventName.BEFORE_TOOL_SELECTION, HookEventName.BEFORE_MODEL, HookEventName.AFTER_MODEL)
_TEXT_KEYS = ("result", "output", "error")
"""The keys under which tools put a text; the first of them grows by what hooks say."""


class _Caller(NamedTuple):
    """One agent in one run. Parallel agents have a branch each."""

    invocation_id: str
    branch: str | None
    agent: str


class HooksPlugin(Integration, BasePlugin):
    """Runs hooks around the tools and model requests of all agents of an app."""

    def __init__(self, config: Config | None = None, *, name: str = "llxprt_hooks", **options: Any) -> None:
        Integration.__init__(self, config, **options)
        BasePlugin.__init__(self, name)
        self._sessions = Sessions(self.hooks)
        self._tools: dict[tuple[str, str | None], HookedToolCall] = {}
        self._models: dict[_Caller, HookedModelCall[GenerateContentParameters]] = {}
        self._restrictions: dict[_Caller, Restriction] = {}
        self._suppressed: set[str] = set()
        self._answers: dict[str, str] = {}

    def summarizer(self, inner: BaseEventsSummarizer) -> BaseEventsSummarizer:
        """Return a summarizer for ``EventsCompactionConfig`` that fires PreCompress before it compresses."""
        return _Summarizer(inner, self)

    # Runs.

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        if self.hooks.config.enable_hooks:
            with self._sessions.active(self._sessions.begin(invocation_context.session.id)):
                prompt = _text(invocation_context.user_content)
                self.hooks.observe(HookEventName.BEFORE_AGENT, prompt=prompt)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        answer = self._answers.pop(invocation_context.invocation_id, "")
        session = self._sessions.get(invocation_context.session.id)
        for store in (self._models, self._restrictions):
            for caller in [caller for caller in store if caller.invocation_id == invocation_context.invocation_id]:
                store.pop(caller)
        if session is not None:
            with self._sessions.active(session):
                prompt = _text(invocation_context.user_content)
                self.hooks.observe(HookEventName.AFTER_AGENT, prompt=prompt, prompt_response=answer)

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> types.Content | None:
        """Do not start another agent after a stop."""
        session = self._sessions.get(callback_context.session.id)
        if session is None or session.stop_reason is None:
            return None
        return types.Content(role="model", parts=[types.Part(text=session.stop_reason)])

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if not self.hooks.config.enable_hooks:
            return None
        if event.is_final_response() and not event.partial:
            self._answers[invocation_context.invocation_id] = _text(event.content)
        suppressed = {response.id for response in event.get_function_responses()} & self._suppressed
        if suppressed:
            self._suppressed -= suppressed
            mark = {_MARK: {"suppress_output": True}}
            return event.model_copy(update={"custom_metadata": {**(event.custom_metadata or {}), **mark}})
        return None

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
        session = self._sessions.get(tool_context.session.id)
        if session is None or type(tool) is BaseTool:  # what stands for a tool that does not exist
            return None
        restriction = self._restrictions.get(_caller(tool_context))
        refusal = None if restriction is None else restriction.refusal(tool.name)
        if refusal is not None:
            return {"error": refusal}
        name = self.hook_name(tool.name)
        is_hooked = any(self.hooks.has_hooks_for(event, name) for event in _TOOL_EVENTS)
        if not is_hooked and session.stop_reason is None:
            return None
        shown = to_jsonable_python(tool_args, fallback=str)
        with self._sessions.active(session):
            call = self.hooks.tool_call(name, shown)
            refused = await call.before()
        if refused is not None:
            return {"error": refused.llm_content}
        if call.input is not shown:
            tool_args.clear()
            tool_args.update(call.input)
        self._tools[tool_context.invocation_id, tool_context.function_call_id] = call
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        call_id = tool_context.function_call_id
        call = self._tools.pop((tool_context.invocation_id, call_id), None)
        session = self._sessions.get(tool_context.session.id)
        if session is None:
            return None
        with self._sessions.active(session):
            if call_id in tool_context.actions.requested_tool_confirmations:
                self._notify(tool, tool_args)  # the tool has not run yet
                return None
            if call is None:
                return None
            content = to_jsonable_python(result, fallback=str)
            done = await call.after(ToolResult(content, content))
        if done.suppress_display and call_id:
            self._suppressed.add(call_id)
        return _with_additions(result, done.additions) if done.additions else None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        self._tools.pop((tool_context.invocation_id, tool_context.function_call_id), None)
        return None

    def _notify(self, tool: BaseTool, tool_args: dict[str, Any]) -> None:
        name = self.hook_name(tool.name)
        self.hooks.observe(
            HookEventName.NOTIFICATION,
            notification_type="ToolPermission",
            message=f"{name} needs approval",
            details={"tool_name": name, "tool_input": to_jsonable_python(tool_args, fallback=str)},
        )

    # Models.

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        session = self._sessions.get(callback_context.session.id)
        if session is None or not (session.notes or session.stop_reason is not None or self._has_hooks(*_MODEL_EVENTS)):
            return None
        caller = _caller(callback_context)
        self._restrictions.pop(caller, None)
        request = GenerateContentParameters(llm_request.model or "", llm_request.contents, llm_request.config)
        with self._sessions.active(session):
            call = self.hooks.model_call(request, translator="google-genai")
            result = await call.before()
        if result is not None:
            return _answer(result)
        sent = call.request
        llm_request.model, llm_request.contents = sent.model, list(sent.contents)
        llm_request.config = sent.config
        _restrict(llm_request, call.restriction)
        self._models[caller] = call
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        caller = _caller(callback_context)
        call = self._models.get(caller)
        session = self._sessions.get(callback_context.session.id)
        if call is None or session is None:
            return None
        if llm_response.partial:
            # The runner skips a response without content.
            return LlmResponse(partial=True) if call.holds_back else None
        self._models.pop(caller)
        response = _response(llm_response)
        with self._sessions.active(session):
            result = await call.after(response)
            # Parallel agents share the session, but not the restriction of an answer.
            self._restrictions[caller], session.restriction = session.restriction, Restriction()
        if result.stop_reason is None and result.response is response:
            return _marked(llm_response, result) if result.suppress_output else None
        return _answer(result)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        self._models.pop(_caller(callback_context), None)
        return None

    def _has_hooks(self, *events: HookEventName) -> bool:
        return any(self.hooks.has_hooks_for(event) for event in events)


class _Summarizer(BaseEventsSummarizer):
    """Fires PreCompress before another summarizer runs."""

    def __init__(self, inner: BaseEventsSummarizer, plugin: HooksPlugin) -> None:
        self._inner = inner
        self._plugin = plugin

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        self._plugin.hooks.observe(HookEventName.PRE_COMPRESS, trigger="auto")
        return await self._inner.maybe_summarize_events(events=events)


def _caller(context: CallbackContext | ToolContext) -> _Caller:
    return _Caller(context.invocation_id, context.branch, context.agent_name)


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _response(llm_response: LlmResponse) -> types.GenerateContentResponse:
    candidate = types.Candidate(content=llm_response.content, finish_reason=llm_response.finish_reason)
    return types.GenerateContentResponse(
        candidates=[candidate],
        usage_metadata=llm_response.usage_metadata,
        model_version=llm_response.model_version,
    )


def _answer(result: ModelCallResult[Any]) -> LlmResponse:
    """Return the answer that the agent gets: after a stop, or a block without an answer, the reason."""
    if result.stop_reason is None and result.response is not None:
        return _marked(LlmResponse.create(result.response), result)
    reason = result.stop_reason if result.stop_reason is not None else result.reason
    content = types.Content(role="model", parts=[types.Part(text=reason or "")])
    return _marked(LlmResponse(content=content, finish_reason=types.FinishReason.STOP), result)


def _marked(response: LlmResponse, result: ModelCallResult[Any]) -> LlmResponse:
    mark = {"stop_reason": result.stop_reason, "blocked": result.blocked, "suppress_output": result.suppress_output}
    marks = {name: value for name, value in mark.items() if value}
    if not marks:
        return response
    return response.model_copy(update={"custom_metadata": {**(response.custom_metadata or {}), _MARK: marks}})


def _restrict(llm_request: LlmRequest, restriction: Restriction) -> None:
    """Put a restriction into a request as its model understands it: models other than Gemini do not read names."""
    config = llm_request.config
    if restriction.allowed is None or not config.tools:
        return
    if "gemini" in (llm_request.model or ""):
        declared = [name for tool in config.tools for name in _names(tool)]
        changes: dict[str, Any] = {"tool_config": sendable_tool_config(config.tool_config, declared)}
    else:
        changes = {"tools": [kept for tool in config.tools if (kept := _allowed(tool, restriction)) is not None]}
    llm_request.config = config.model_copy(update=changes)


def _names(tool: Any) -> list[str]:
    return [function.name or "" for function in getattr(tool, "function_declarations", None) or []]


def _allowed(tool: Any, restriction: Restriction) -> Any:
    """Return a tool without the functions that are not allowed; None if nothing is left of it."""
    if not _names(tool):
        return tool
    kept = [function for function in tool.function_declarations if restriction.allows(function.name or "")]
    return tool.model_copy(update={"function_declarations": kept}) if kept else None


def _with_additions(result: Any, additions: list[str]) -> dict[str, Any]:
    """Return a tool's result with the texts of hooks."""
    text = "".join(f"\n\n{addition}" for addition in additions)
    if not isinstance(result, Mapping):
        return (
            {"result": f"{result}{text}"}
            if isinstance(result, str)
            else {"result": result, "additional_context": text.strip()}
        )
    key = next((key for key in _TEXT_KEYS if isinstance(result.get(key), str)), None)
    if key is None:
        return {**result, "additional_context": text.strip()}
    return {**result, key: f"{result[key]}{text}"}
