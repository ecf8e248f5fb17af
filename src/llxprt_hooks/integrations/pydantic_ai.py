"""Hooks in pydantic-ai: ``Agent(…, capabilities=[HooksCapability.load(".")])``.

Tools are hooked by a wrapper of the agent's toolset, the model by a wrapper of the model that sends a request, so both
see what other capabilities have left. A run belongs to a session with the id of its conversation.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

from llxprt_hooks.config import Config
from llxprt_hooks.engine.session import StopRequested, current_session
from llxprt_hooks.events import MODEL_EVENTS, TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.base import Integration, as_json, marks_of, reason_instead, with_changes
from llxprt_hooks.integrations.extras import from_extra
from llxprt_hooks.integrations.unsupported import UNSUPPORTED
from llxprt_hooks.model import answers
from llxprt_hooks.model.access import described
from llxprt_hooks.model.format import TranslationError
from llxprt_hooks.model.messages import Choice, MessageTranslator, usage
from llxprt_hooks.protocol.tool_result import ToolResult
from llxprt_hooks.triggers.relevance import is_hooked
from llxprt_hooks.triggers.sessions import Sessions

with from_extra("pydantic-ai"):
    from pydantic import ValidationError
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import AgentRunError, ToolFailed
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        RetryPromptPart,
        SystemPromptPart,
        TextContent,
        TextPart,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import (
        CompletedStreamedResponse,
        Model,
        ModelRequestParameters,
        StreamedResponse,
        infer_model,
    )
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings, ToolOrOutput
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
    from pydantic_ai.usage import RequestUsage

if TYPE_CHECKING:
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition

    from llxprt_hooks.engine.session import Session
    from llxprt_hooks.hooks import Hooks
    from llxprt_hooks.model.conversation import CallKeys
    from llxprt_hooks.model.format import HookToolConfig
    from llxprt_hooks.triggers.model_call import HookedModelCall, ModelCallResult

ToolChoice: TypeAlias = str | list[str] | ToolOrOutput
ResolveModel: TypeAlias = Callable[[str], Model]

_MARK = "llxprt_hooks"
_in_progress: ContextVar[tuple[Hooks, str | None] | None] = ContextVar("llxprt_hooks_pydantic_ai_call", default=None)
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
        run._session = (
            self._sessions.begin(ctx.conversation_id or ctx.run_id or "") if outer is None else outer.nested_run()
        )
        return run

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Callable[[], Any]) -> AgentRunResult[Any]:
        if self._session is None:
            return cast("AgentRunResult[Any]", await handler())
        prompt = _text_of_content(ctx.prompt)
        with self._sessions.active(self._session):
            if self._is_nested:
                return cast("AgentRunResult[Any]", await handler())
            self.hooks.observe(HookEventName.BEFORE_AGENT, prompt=prompt)
            result = cast("AgentRunResult[Any]", await handler())
            answer = result.output if isinstance(result.output, str) else _as_text(result.output)
            self.hooks.observe(HookEventName.AFTER_AGENT, prompt=prompt, prompt_response=answer)
        return result

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        # Hooks of a model may stop a run while its tools run.
        if self._session is None or not self.has_hooks(*TOOL_EVENTS, *MODEL_EVENTS):
            return None
        return HookedToolset(toolset, self)

    def get_wrapper_model(self, model: Model) -> Model | None:
        session = self._session
        if session is None or not (session.notes or session.stop_reason or self.has_hooks(*MODEL_EVENTS)):
            return None
        return _HookedModel(model, self)

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
            with self._sessions.active(self._session):
                for call in requests.approvals:
                    self.observe_approval(call.tool_name, call.args_as_dict())
        return None

    # What the wrappers call.

    def model_call(self, request: PydanticAIRequest) -> HookedModelCall[PydanticAIRequest]:
        return self.hooks.model_call(request, translator=self._shown_to_hooks)

    @contextmanager
    def active(self) -> Iterator[Session | None]:
        """Make the run's session that of the current context."""
        if self._session is None:
            yield None
        else:
            with self._sessions.active(self._session):
                yield self._session


class HookedToolset(WrapperToolset[Any]):
    """A toolset whose tools run with their hooks, for programs that compose toolsets themselves."""

    def __init__(self, wrapped: AbstractToolset[Any], hooks: HooksCapability | Hooks | Config) -> None:
        super().__init__(wrapped)
        if not isinstance(hooks, HooksCapability):
            hooks = HooksCapability(hooks if isinstance(hooks, Config) else hooks.config)
        self.hooks = hooks

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self._around(await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self._around(await self.wrapped.for_run_step(ctx))

    def visit_and_replace(
        self, visitor: Callable[[AbstractToolset[Any]], AbstractToolset[Any]]
    ) -> AbstractToolset[Any]:
        return self._around(self.wrapped.visit_and_replace(visitor))

    def _around(self, wrapped: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return self if wrapped is self.wrapped else HookedToolset(wrapped, self.hooks)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        self.hooks.check_aliases(tools)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        capability = self.hooks
        hooks, hook_name, session = capability.hooks, capability.hook_name(name), capability._session
        is_stopped = session is not None and session.stop_reason is not None
        if not is_stopped and not is_hooked(hooks.config, hook_name):
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        if _in_progress.get() == (hooks, ctx.tool_call_id):
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        progress = _in_progress.set((hooks, ctx.tool_call_id))
        try:
            return await self._between_hooks(name, tool_args, ctx, tool)
        except StopRequested as stop:  # a toolset in an agent without the capability
            raise HookStopped(stop.reason) from stop
        finally:
            _in_progress.reset(progress)

    async def _between_hooks(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        capability = self.hooks
        shown = {name: as_json(value) for name, value in tool_args.items()}
        with capability.active():
            call = capability.hooks.tool_call(capability.hook_name(name), shown)
            refused = await call.before()
        if refused is not None:
            raise ToolFailed(_as_text(refused.llm_content))
        if call.input is not shown:
            checked = await _validated(tool, with_changes(tool_args, shown, call.input), ctx)
            # Validation may copy or convert even what no hook changed.
            kept = {name: value for name, value in tool_args.items() if shown[name] == call.input.get(name)}
            tool_args = {**checked, **kept}
        outcome = await self.wrapped.call_tool(name, tool_args, ctx, tool)
        value = outcome.return_value if isinstance(outcome, ToolReturn) else outcome
        content = as_json(value)
        with capability.active():
            result = await call.after(ToolResult(content, content))
        return _with_additions(outcome, value, result)


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


def _with_additions(outcome: Any, value: Any, result: ToolResult) -> Any:
    """Return what a tool returned with the texts of hooks; other values than texts keep their type."""
    if not result.additions and not result.suppress_display:
        return outcome
    returned = outcome if isinstance(outcome, ToolReturn) else ToolReturn(outcome)
    changes: dict[str, Any] = {}
    if isinstance(value, str):
        changes["return_value"] = result.llm_content
    elif result.additions:
        given = [returned.content] if isinstance(returned.content, str) else list(returned.content or ())
        changes["content"] = [*given, *result.additions]
    if result.suppress_display:
        changes["metadata"] = {**_mapping(returned.metadata), _MARK: {"suppress_output": True}}
    elif outcome is not returned and "content" not in changes:
        return changes["return_value"]
    return dataclasses.replace(returned, **changes)


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
        with self._capability.active():
            call = self._capability.model_call(request)
            result = await call.before()
        return call, None if result is None else self._answer(result, request)

    async def _finish(self, call: HookedModelCall[PydanticAIRequest], response: ModelResponse) -> ModelResponse:
        if response.state == "suspended" and not response.parts:
            call.passed_on()
            return response  # the model answers in the background: the framework asks again until there is an answer
        with self._capability.active():
            result = await call.after(response)
        if result.stop_reason is None and not result.suppress_output and result.response is response:
            return response
        return self._answer(result, call.request)

    def _answer(self, result: ModelCallResult[ModelResponse], request: PydanticAIRequest) -> ModelResponse:
        """Return the answer that the run gets: after a stop, or a block without an answer, the reason."""
        response, reason = result.response, reason_instead(result)
        if response is None or reason is not None:
            if not request.parameters.allow_text_output:
                raise HookStopped(reason or "")
            blank = self._capability._translator.blank_response(request)
            response = dataclasses.replace(blank, parts=[TextPart(reason or "")])
        if not (marks := marks_of(result)):
            return response
        return dataclasses.replace(response, metadata={**(response.metadata or {}), _MARK: marks})


class PydanticAIRequest(NamedTuple):
    """A request to a model, as pydantic-ai sends it."""

    model: Model
    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters


class PydanticAITranslator(MessageTranslator[PydanticAIRequest, ModelResponse, ToolChoice]):
    """Translates pydantic-ai's messages. Instructions and system prompts are not shown to hooks."""

    PARTS = "parts"
    TOOL_CONFIG = "tool_choice"
    SETTINGS: ClassVar = {
        "temperature": "temperature",
        "maxOutputTokens": "max_tokens",
        "topP": "top_p",
        "topK": "top_k",
        "stopSequences": "stop_sequences",
        "presencePenalty": "presence_penalty",
        "frequencyPenalty": "frequency_penalty",
    }
    USAGE = usage("usage", "input_tokens", "output_tokens", "total_tokens")
    FINISH_REASONS: ClassVar = {
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
        "tool_call": "STOP",
        "error": "OTHER",
    }

    def __init__(self, resolve_model: ResolveModel | None = None) -> None:
        self._resolve_model = resolve_model

    def read_request(self, value: object) -> PydanticAIRequest:
        if isinstance(value, PydanticAIRequest):
            return value
        raise TranslationError(f"llm_request is {described(value)}; expected a request of pydantic-ai.")

    def read_response(self, value: object) -> ModelResponse:
        if isinstance(value, ModelResponse):
            return value
        raise TranslationError(f"llm_response is {described(value)}; expected a ModelResponse of pydantic-ai.")

    def field(self, request: PydanticAIRequest, name: str) -> Any:
        if name == "model":
            return request.model.model_name
        if name == "tools":
            return request.parameters.function_tools or None
        return (request.settings or {}).get(name)

    def with_fields(self, request: PydanticAIRequest, fields: Mapping[str, Any]) -> PydanticAIRequest:
        settings = dict(fields)
        if "model" in settings:
            request = request._replace(model=self._model(request.model, settings.pop("model")))
        if settings:
            request = request._replace(settings=cast("ModelSettings", {**(request.settings or {}), **settings}))
        return request

    def _model(self, model: Model, name: str) -> Model:
        try:
            return _renamed(model, name) if self._resolve_model is None else self._resolve_model(name)
        except Exception as error:
            raise TranslationError(f"there is no model `{name}`: {error}") from error

    def messages(self, request: PydanticAIRequest) -> Sequence[Any]:
        return request.messages

    def with_messages(self, request: PydanticAIRequest, messages: list[Any]) -> PydanticAIRequest:
        """Return a request with other messages; the instructions, which the last request has, stay in force."""
        instructions = next((m.instructions for m in reversed(request.messages) if isinstance(m, ModelRequest)), None)
        last = messages[-1] if messages else None
        if instructions is not None and isinstance(last, ModelRequest) and last.instructions != instructions:
            messages = [*messages[:-1], dataclasses.replace(last, instructions=instructions)]
        return request._replace(messages=messages)

    def role_of(self, message: Any) -> str:
        if isinstance(message, ModelResponse):
            return "model"
        return "system" if message.parts and all(map(_is_note, message.parts)) else "user"

    def new_message(self, role: str, text: str) -> Any:
        if role == "model":
            return ModelResponse(parts=[TextPart(text)])
        if role == "system":
            return ModelRequest(parts=[SystemPromptPart(text, scope="request", metadata={_MARK: True})])
        return ModelRequest(parts=[UserPromptPart(text)])

    def text_of(self, part: Any) -> str:
        if isinstance(part, UserPromptPart):
            return _text_of_content(part.content)
        return part.content if isinstance(part, TextPart) or _is_note(part) else ""

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        return [(part.tool_call_id, part.tool_name) for part in message.parts if isinstance(part, ToolCallPart)]

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        return [
            (part.tool_call_id, part.tool_name)
            for part in message.parts
            if isinstance(part, (ToolReturnPart, RetryPromptPart)) and part.tool_name
        ]

    def with_part_text(self, parts: Sequence[Any], text: str) -> Any:
        part = parts[0]
        if isinstance(part, TextPart):
            # By its id a provider would find the text that the hook replaced.
            return dataclasses.replace(part, content=text, id=None, provider_details=None)
        return dataclasses.replace(part, content=_with_text(part.content, text))

    def without_text(self, part: Any) -> Any | None:
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            rest = [item for item in part.content if not _is_text(item)]
            return dataclasses.replace(part, content=rest) if rest else None
        return None

    def is_blank(self, part: Any) -> bool:
        return isinstance(part, (TextPart, UserPromptPart)) and part.content in ("", [])

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        if not parts:
            return None
        if isinstance(message, ModelResponse):
            return dataclasses.replace(message, parts=parts, **_UNSTORED)
        return dataclasses.replace(message, parts=parts)

    def kinds_of(self, part: Any) -> Sequence[str]:
        return [] if self.text_of(part) else [part.part_kind]

    def choices_of(self, response: ModelResponse) -> Sequence[Choice]:
        return [Choice(response.parts, response.finish_reason)]

    def blank_response(self, request: PydanticAIRequest) -> ModelResponse:
        return ModelResponse(parts=[], model_name=request.model.model_name, provider_name=request.model.system)

    def from_hook_llm_response(
        self, hook_response: Mapping[str, Any], base: ModelResponse | None = None
    ) -> ModelResponse:
        answer = answers.read_response(hook_response)
        base = ModelResponse(parts=[]) if base is None else base
        names = self.USAGE[1]
        counts: dict[str, Any] = {
            names[name]: count for name, count in answer.get("usageMetadata", {}).items() if name in names
        }
        counts.pop("total_tokens", None)  # the sum of the others
        usage = dataclasses.replace(base.usage, **counts) if counts else base.usage
        text = "".join(answer["candidates"][0]["content"]["parts"]) if answer["candidates"] else ""
        return dataclasses.replace(base, parts=[TextPart(text)], usage=usage, finish_reason="stop", **_UNSTORED)

    def to_hook_tool_config(self, tool_config: ToolChoice | None) -> HookToolConfig:
        if isinstance(tool_config, ToolOrOutput):
            return {"mode": "AUTO", "allowedFunctionNames": list(tool_config.function_tools)}
        if isinstance(tool_config, list):
            return {"mode": "ANY", "allowedFunctionNames": list(tool_config)}
        if tool_config == "none":
            return {"mode": "NONE", "allowedFunctionNames": []}
        return {"mode": _MODES[tool_config]} if tool_config in _MODES else {}

    def build_tool_config(self, tool_config: HookToolConfig, base: ToolChoice | None) -> ToolChoice:
        mode, names = tool_config.get("mode"), tool_config.get("allowedFunctionNames")
        if mode == "NONE":
            return "none"
        if names is None:
            return "required" if mode == "ANY" else "auto"
        return list(names) if mode == "ANY" else ToolOrOutput(list(names))

    def with_tool_config(self, request: PydanticAIRequest, tool_config: ToolChoice) -> PydanticAIRequest:
        """Return a request with another tool choice, without names of unknown tools."""
        names = tool_config.function_tools if isinstance(tool_config, ToolOrOutput) else tool_config
        if not isinstance(names, str):
            declared = request.parameters.tool_defs
            known = [name for name in names if name in declared]
            choice = known if isinstance(tool_config, list) else ToolOrOutput(known)
            tool_config = choice if known else "none"
        return super().with_tool_config(request, tool_config)


_MODES = {"auto": "AUTO", "required": "ANY"}
_UNSTORED: dict[str, Any] = {"provider_response_id": None, "history_digest": None, "provider_details": None}
"""Without these a provider cannot use its own copy of an answer that hooks changed; details may have its tokens."""


def _renamed(model: Model, name: str) -> Model:
    """Return the model with this name at the same provider, with the same client."""
    if ":" in name:
        return infer_model(name)
    if model.provider is None or isinstance(model, WrapperModel):
        return infer_model(f"{model.system}:{name}")
    kind: Any = type(model)
    return cast("Model", kind(name, provider=model.provider, settings=model.settings))


def _is_note(part: Any) -> bool:
    """Whether a part is a hook's message in this request."""
    return isinstance(part, SystemPromptPart) and _MARK in _mapping(part.metadata)


def _is_text(item: Any) -> bool:
    return isinstance(item, (str, TextContent))


def _text_of_content(content: Any) -> str:
    items = [content] if isinstance(content, str) else content or ()
    return "".join(item if isinstance(item, str) else item.content for item in items if _is_text(item))


def _with_text(content: Any, text: str) -> Any:
    """Return the content of a prompt with one text in place of all its texts."""
    if isinstance(content, str):
        return text
    place = next(index for index, item in enumerate(content) if _is_text(item))
    items = [item for index, item in enumerate(content) if index == place or not _is_text(item)]
    place = next(index for index, item in enumerate(items) if _is_text(item))
    old = items[place]
    items[place] = text if isinstance(old, str) else TextContent(text, metadata=old.metadata)
    return items


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else str(as_json(value))
