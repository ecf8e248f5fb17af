"""``HooksCapability``: hooks around the tools and the model of an agent."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pydantic import ValidationError
from pydantic_ai import ModelRequestNode
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import AgentRunError, ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturn,
    UserPromptPart,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_ai.usage import RequestUsage
from pydantic_graph import End

from llxprt_hooks.config import Config
from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine.session import StopRequested, current_session
from llxprt_hooks.events import MODEL_EVENTS, TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.approvals import OpenQuestions
from llxprt_hooks.integrations.base import (
    Integration,
    argument_as_json,
    as_json,
    in_session,
    json_result,
    log,
    marks_of,
    metadata_of,
    reason_instead,
    with_changes,
)
from llxprt_hooks.integrations.pydantic_ai.acting import ASKED_BEFORE, Deferred, Turn, mark_end
from llxprt_hooks.integrations.pydantic_ai.translator import (
    MARK,
    PydanticAIRequest,
    PydanticAITranslator,
    ResolveModel,
    mapping,
    text_of_content,
)
from llxprt_hooks.integrations.unsupported import NOT_HONORED, UNSUPPORTED, lost_effects

if TYPE_CHECKING:
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import DeferredToolResults, RunContext, ToolDefinition

    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.core.engine.session import Session
    from llxprt_hooks.core.protocol.tool_result import ToolResult
    from llxprt_hooks.hooks import Hooks


class _SeenCall(NamedTuple):
    """A call that hooks have seen. Its id says nothing: models choose it, and agents in tools use the same ones."""

    hooks: Hooks
    hook_name: str
    arguments: dict[str, Any]

    def is_same(self, other: _SeenCall) -> bool:
        is_argument = self.arguments is other.arguments  # the framework makes them for each call
        return is_argument and self.hooks is other.hooks and self.hook_name == other.hook_name


_in_progress: ContextVar[_SeenCall | None] = ContextVar("llxprt_hooks_pydantic_ai_call", default=None)
"""The call of a tool that hooks have seen: if its toolset is hooked, too, they do not see it again."""


class HookStopped(AgentRunError):
    """A hook ended a run whose output cannot be a text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(init=False, eq=False, repr=False)
class HooksCapability(Integration, AbstractCapability[Any]):
    """Runs hooks around the tools and model requests of an agent.

    ``resolve_model`` returns the model for a name that a hook chose; by default another name at the same provider, or
    ``provider:name``.
    """

    unsupported = UNSUPPORTED["pydantic-ai"]
    not_honored = NOT_HONORED["pydantic-ai"]
    suspensions = (ApprovalRequired, CallDeferred)

    def __init__(
        self,
        config: Config | None = None,
        *,
        resolve_model: ResolveModel | None = None,
        aliases: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002 - the framework's name
        **config_fields: Any,
    ) -> None:
        if not hasattr(AbstractCapability, "get_wrapper_model"):
            raise RuntimeError("this release of pydantic-ai cannot wrap models: hooks need 2.62 or newer")
        super().__init__(config, aliases=aliases, **config_fields)
        self.id = id
        self._translator = PydanticAITranslator(resolve_model)
        self._shown_to_hooks = self.translator(self._translator)
        self._sessions = Sessions(self.hooks.config)
        self._session: Session | None = None
        """The session of the run that this instance belongs to."""
        self._is_nested = False
        self._turn: Turn | None = None
        """What the run works on; None in a run inside of another one."""
        self._questions = OpenQuestions()

    @classmethod
    def from_spec(cls, project_dir: str = ".", **options: Any) -> HooksCapability:
        """Make a capability for an agent's specification file, from the settings of a project."""
        return cls.load(project_dir, **options)

    def end_session(self, conversation_id: str) -> None:
        """Fire SessionEnd for a conversation, and forget what hooks left for it."""
        self._sessions.end(conversation_id)

    # What pydantic-ai calls.

    async def for_run(self, ctx: RunContext[Any]) -> HooksCapability:
        if not self.hooks.config.enable_hooks:
            return self
        run = copy.copy(self)
        outer = current_session(self.hooks.config)  # that of an agent which runs this one in a tool
        run._is_nested = outer is not None
        asked = self.asked(ctx)
        conversation = ctx.conversation_id or ctx.run_id or ""
        run._session = self._sessions.begin(conversation, asked) if outer is None else self.nested_run(outer, asked)
        return run

    def known_caller(self, context: RunContext[Any]) -> dict[str, Any]:
        """Return the metadata of a run, which is that of the agent and of ``run(metadata=…)``."""
        return metadata_of(context.metadata)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Callable[[], Any]) -> AgentRunResult[Any]:
        prompt = text_of_content(ctx.prompt)
        with in_session(self._session):
            if self._session is not None and not self._is_nested:
                self._turn = Turn(prompt, await self.hooks.before_turn(prompt))
            result: AgentRunResult[Any] = await handler()
            if self._turn is not None and not self._turn.is_over:
                next_prompt = await self._end_turn(self._turn, result.output, ctx.messages)
                if next_prompt is not None:
                    log.warning("AfterAgent: the agent cannot continue after an answer that `run_stream` has streamed")
        return result

    async def wrap_node_run(self, ctx: RunContext[Any], *, node: Any, handler: Callable[[Any], Any]) -> Any:
        """Continue with another prompt instead of the end of the run, if a hook that acts says so."""
        following = await handler(node)
        turn = self._turn
        if turn is None or not isinstance(following, End) or not self.acts(HookEventName.AFTER_AGENT):
            return following
        with in_session(self._session):
            next_prompt = await self._end_turn(turn, following.data.output, ctx.messages)
        turn.is_over = next_prompt is None
        return following if next_prompt is None else ModelRequestNode(ModelRequest([UserPromptPart(next_prompt)]))

    async def _end_turn(self, turn: Turn, output: Any, messages: list[ModelMessage]) -> str | None:
        """Run the AfterAgent hooks on the answer of a run; return the prompt that they want it to continue with."""
        session = self._session
        if session is None or turn.start.reason is not None or isinstance(output, DeferredToolRequests):
            return None
        end = await self.hooks.after_turn(turn.asked, _as_text(output), session.continuations > 0)
        mark_end(end, messages)
        if end.next_prompt is None or session.stop_reason is not None:
            return None
        turn.asked = end.next_prompt
        if end.clear_context:
            messages.clear()
        return end.next_prompt

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        # Hooks of a model may stop a run while its tools run.
        if self._session is None or not self.has_hooks(*TOOL_EVENTS, *MODEL_EVENTS):
            return None
        hooked = HookedToolset(toolset, self)
        hooked._is_whole = True
        return hooked

    def get_wrapper_model(self, model: Model) -> Model | None:
        if self._session is None:
            return None
        starts = (HookEventName.BEFORE_AGENT, HookEventName.SESSION_START)
        is_hooked = self.model_plans(self._session) is not None or self.acts(*starts)
        return _HookedModel(model, self) if is_hooked else None

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: str | dict[str, Any]
    ) -> str | dict[str, Any]:
        """Refuse a call that the restriction does not allow, before anybody is asked to approve it."""
        if self._session is not None and tool_def.kind != "output":
            refusal = self._session.restriction.refusal(self.hook_name(call.tool_name))
            if refusal is not None:
                raise ToolFailed(refusal)
        return args

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        if self._session is not None:
            if lost := lost_effects(ASKED_BEFORE, self.hooks):
                log.warning(lost)
            with self._session.active():
                for call in requests.approvals:
                    self.observe_approval(call.tool_name, call.args_as_dict())
        return None


class HookedToolset(WrapperToolset[Any]):
    """A toolset whose tools run with their hooks, for programs that compose toolsets themselves."""

    def __init__(self, wrapped: AbstractToolset[Any], hooks: HooksCapability | Hooks | Config) -> None:
        super().__init__(wrapped)
        if not isinstance(hooks, HooksCapability):
            hooks = HooksCapability(hooks if isinstance(hooks, Config) else hooks.config)
        self.hooks = hooks
        self._is_whole = False
        """Whether these are all tools of an agent."""

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self._around(await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self._around(await self.wrapped.for_run_step(ctx))

    def visit_and_replace(
        self, visitor: Callable[[AbstractToolset[Any]], AbstractToolset[Any]]
    ) -> AbstractToolset[Any]:
        return self._around(self.wrapped.visit_and_replace(visitor))

    def _around(self, wrapped: AbstractToolset[Any]) -> AbstractToolset[Any]:
        if wrapped is self.wrapped:
            return self
        around = HookedToolset(wrapped, self.hooks)
        around._is_whole = self._is_whole
        return around

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        self.hooks.check_tools(tools, are_all=self._is_whole)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        capability, seen = self.hooks, _in_progress.get()
        is_seen = seen is not None and seen.is_same(self._call(name, tool_args))
        if is_seen or not capability.has_tool_hooks(name, capability._session):
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        try:
            return await self._between_hooks(name, tool_args, ctx, tool)
        except StopRequested as stop:  # a toolset in an agent without the capability
            raise HookStopped(stop.reason) from stop

    def _call(self, name: str, arguments: dict[str, Any]) -> _SeenCall:
        return _SeenCall(self.hooks.hooks, self.hooks.hook_name(name), arguments)

    async def _between_hooks(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        shown = {name: argument_as_json(value) for name, value in tool_args.items()}

        async def run(changed: dict[str, Any] | None) -> Any:
            final = tool_args
            if changed is not None:
                checked = await _validated(tool, with_changes(tool_args, shown, changed), ctx)
                # Validation may copy or convert even what no hook changed.
                kept = {name: value for name, value in tool_args.items() if shown[name] == changed.get(name)}
                final = {**checked, **kept}
            progress = _in_progress.set(self._call(name, final))
            try:
                return await self.wrapped.call_tool(name, final, ctx, tool)
            finally:
                _in_progress.reset(progress)

        def show(outcome: Any) -> ToolResult:
            return json_result(outcome.return_value if isinstance(outcome, ToolReturn) else outcome)

        asking = Deferred(self.hooks._questions, ctx)
        with self.hooks.asked_by(ctx):
            outcome, result, refused = await self.hooks.run_tool(
                name, shown, run, show, self.hooks._session, tool_use_id=ctx.tool_call_id, approver=asking
            )
        asking.close()
        if refused is not None:
            raise ToolFailed(_as_text(refused.llm_content))
        if result is not None and result.replaced:
            if result.error is not None:
                raise ToolFailed(_as_text(result.llm_content))
            outcome = result.llm_content
        return outcome if result is None else _with_additions(outcome, result)


async def _validated(tool: ToolsetTool[Any], arguments: dict[str, Any], ctx: RunContext[Any]) -> dict[str, Any]:
    """Return a hook's arguments in the types of the tool; what the tool does not accept does not run."""
    try:
        checked: dict[str, Any] = tool.args_validator.validate_python(arguments, context=ctx.validation_context)
        if tool.args_validator_func is not None:
            outcome = tool.args_validator_func(ctx, **checked)
            if inspect.isawaitable(outcome):
                await outcome
    except ValidationError as error:
        raise ToolFailed(f"A hook changed the arguments, and they are not valid: {error}") from error
    return checked


def _with_additions(outcome: Any, result: ToolResult) -> Any:
    """Return what a tool returned with the texts of hooks; non-text values keep their type."""
    if not result.additions and not result.suppress_display:
        return outcome
    returned = outcome if isinstance(outcome, ToolReturn) else ToolReturn(outcome)
    changes: dict[str, Any] = {}
    if isinstance(returned.return_value, str):
        changes["return_value"] = result.llm_content
    elif result.additions:
        given = [returned.content] if isinstance(returned.content, str) else list(returned.content or ())
        changes["content"] = [*given, *result.additions]
    if result.suppress_display:
        changes["metadata"] = {**mapping(returned.metadata), MARK: {"suppress_output": True}}
    elif outcome is not returned and "content" not in changes:
        return changes["return_value"]
    return dataclasses.replace(returned, **changes)


_JSON_OUTPUT = ("native", "prompted")
"""Modes in which the text of an answer is JSON; a reason would be taken for an answer to be repeated."""

_Begun: TypeAlias = "tuple[HookedModelCall[PydanticAIRequest], ModelResponse | None]"
_Given: TypeAlias = tuple[list[ModelMessage], ModelSettings | None, ModelRequestParameters]


class _HookedModel(WrapperModel):
    """A model whose requests run with their hooks."""

    def __init__(self, wrapped: Model, capability: HooksCapability) -> None:
        super().__init__(wrapped)
        self._capability = capability
        self._begun: tuple[_Given, _Begun] | None = None

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        call, answer = await self._begun_for(messages, model_settings, model_request_parameters)
        if answer is not None:
            return answer
        sent = call.request
        return await self._finish(call, await sent.model.request(sent.messages, sent.settings, sent.parameters))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call, answer = await self._begun_for(messages, model_settings, model_request_parameters)
        sent, events = call.request, None
        if answer is None:
            async with sent.model.request_stream(sent.messages, sent.settings, sent.parameters, run_context) as stream:
                if not call.holds_back:
                    # The framework may run the tools before the stream is left.
                    if self._capability._session is not None:
                        self._capability._session.restriction = call.restriction
                    yield stream
                    call.passed_on()
                    return
                events = [event async for event in stream]
                response = stream.get()
            answer = await self._finish(call, response)
            events = events if answer is response else None
        yield CompletedStreamedResponse(
            answer,
            model_request_parameters=sent.parameters,
            replay_events=True if events is None else events,
        )

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Count the tokens of a request as hooks leave it: some providers are sent the request for it."""
        call, answer = await self._begin(messages, model_settings, model_request_parameters)
        self._begun = (list(messages), model_settings, model_request_parameters), (call, answer)
        if answer is not None:
            return RequestUsage()
        sent = call.request
        return await sent.model.count_tokens(sent.messages, sent.settings, sent.parameters)

    async def compact_messages(
        self, request_context: ModelRequestContext, *, instructions: str | None = None
    ) -> ModelResponse:
        """Compress the messages as hooks leave them; they are sent to the provider for it."""
        call, answer = await self._begin(
            request_context.messages, request_context.model_settings, request_context.model_request_parameters
        )
        if answer is not None:
            return answer
        sent = call.request
        changed = dataclasses.replace(request_context, messages=sent.messages, model_settings=sent.settings)
        return await self.wrapped.compact_messages(changed, instructions=instructions)

    async def _begun_for(
        self, messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> _Begun:
        """Return the call for a request; hooks have seen it if its tokens were counted."""
        counted, self._begun = self._begun, None
        if counted is not None and counted[0] == (messages, settings, parameters):
            return counted[1]
        return await self._begin(messages, settings, parameters)

    async def _begin(
        self, messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> _Begun:
        """Run the hooks before a request; return an answer if the model is not to be called."""
        request = PydanticAIRequest(self.wrapped, messages, settings, parameters)
        capability = self._capability
        refused = None if capability._turn is None else capability._turn.apply(messages)
        with in_session(capability._session):
            call = capability.hooks.model_call(request, translator=capability._shown_to_hooks)
            result = await call.before() if refused is None else refused
        return call, None if result is None else self._answer(result, request)

    async def _finish(self, call: HookedModelCall[PydanticAIRequest], response: ModelResponse) -> ModelResponse:
        if response.state == "suspended" and not response.parts:
            call.passed_on()
            return response  # the model answers in the background: the framework asks again until there is an answer
        with in_session(self._capability._session):
            result = await call.after(response)
        if result.stop_reason is None and not result.suppress_output and result.response is response:
            return response
        return self._answer(result, call.request)

    def _answer(self, result: ModelCallResult[ModelResponse], request: PydanticAIRequest) -> ModelResponse:
        """Return the answer that the run gets: after a stop, or a block without an answer, the reason."""
        response, reason = result.response, reason_instead(result)
        if response is None or reason is not None:
            if not request.parameters.allow_text_output or request.parameters.output_mode in _JSON_OUTPUT:
                raise HookStopped(reason or "")
            blank = self._capability._translator.blank_response(request)
            response = dataclasses.replace(blank, parts=[TextPart(reason or "")])
        if not (marks := marks_of(result)):
            return response
        return dataclasses.replace(response, metadata={**(response.metadata or {}), MARK: marks})


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else str(as_json(value))
