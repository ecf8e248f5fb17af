"""Hook format ⇄ pydantic-ai: the requests that a model gets, and its responses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeGuard, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings, ToolOrOutput

from llxprt_hooks.model import answers
from llxprt_hooks.model.conversation import CallKeys, Turn
from llxprt_hooks.model.format import HookToolConfig, LLMToolCall, TranslationError
from llxprt_hooks.model.full_view import Seen, ToolOutput
from llxprt_hooks.model.json_api import arguments_of, output_text, with_output_text
from llxprt_hooks.model.messages import Choice, MessageTranslator, expected, usage
from llxprt_hooks.model.translator import USUAL_SETTINGS

ToolChoice: TypeAlias = str | list[str] | ToolOrOutput
ResolveModel: TypeAlias = Callable[[str], Model]

MARK = "llxprt_hooks"
"""The key in metadata that says what hooks did."""


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
        **{name: usual for name, usual in USUAL_SETTINGS.items() if name != "candidateCount"},
        "maxOutputTokens": "max_tokens",
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
        return expected(value, PydanticAIRequest, "llm_request", "a request of pydantic-ai")

    def read_response(self, value: object) -> ModelResponse:
        return expected(value, ModelResponse, "llm_response", "a ModelResponse of pydantic-ai")

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
            return ModelRequest(parts=[SystemPromptPart(text, scope="request", metadata={MARK: True})])
        return ModelRequest(parts=[UserPromptPart(text)])

    def text_of(self, part: Any) -> str:
        if isinstance(part, UserPromptPart):
            return text_of_content(part.content)
        return part.content if isinstance(part, TextPart) or _is_note(part) else ""

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        return [(part.tool_call_id, part.tool_name) for part in message.parts if isinstance(part, ToolCallPart)]

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        return [
            (part.tool_call_id, part.tool_name)
            for part in message.parts
            if isinstance(part, (ToolReturnPart, RetryPromptPart)) and part.tool_name
        ]

    def prompt_turns(self, request: PydanticAIRequest) -> Sequence[Turn]:
        parts = [part for message in _requests(request) for part in message.parts if _is_prompt(part)]
        instructions = _instructions(request)
        own = [Turn("system", instructions, _INSTRUCTIONS)] if instructions else []
        return [*(Turn("system", part.content, part) for part in parts), *own]

    def with_prompt_turns(self, request: PydanticAIRequest, turns: Sequence[Turn]) -> PydanticAIRequest:
        texts = {id(turn.source): turn.text for turn in turns if turn.changed}
        old = _instructions(request)
        new = texts.get(id(_INSTRUCTIONS), old) or None
        messages: list[Any] = []
        for message in request.messages:
            if not isinstance(message, ModelRequest):
                messages.append(message)
                continue
            parts = [_with_prompt(part, texts) for part in message.parts]
            instructions = new if message.instructions == old else message.instructions
            kept = [part for part in parts if part is not None]
            if kept or instructions:
                messages.append(dataclasses.replace(message, parts=kept, instructions=instructions))
        parameters, given = request.parameters, request.parameters.instruction_parts
        if given and new != old:  # models read these, and the messages only without them
            made = [dataclasses.replace(given[0], content=new, dynamic=True)] if new else []
            parameters = dataclasses.replace(parameters, instruction_parts=made)
        return request._replace(messages=messages, parameters=parameters)

    def seen_in(self, source: Any) -> Seen:
        seen = super().seen_in(source)
        return seen._replace(parts=[part for part in seen.parts if part["type"] != "system-prompt"])

    def call_in(self, part: Any) -> LLMToolCall | None:
        if not isinstance(part, ToolCallPart):
            return None
        return {"id": part.tool_call_id, "name": part.tool_name, "args": arguments_of(part.args)}

    def with_call(self, part: Any, args: Any) -> Any:
        return dataclasses.replace(part, args=args)

    def result_in(self, part: Any) -> ToolOutput | None:
        if not isinstance(part, (ToolReturnPart, RetryPromptPart)) or not part.tool_name:
            return None
        return ToolOutput(part.tool_call_id, output_text(part.content), part.tool_name)

    def with_result(self, part: Any, text: str) -> Any:
        return dataclasses.replace(part, content=with_output_text(part.content, text))

    def answers_in(self, response: ModelResponse) -> Sequence[Sequence[Any]]:
        return [[response]]

    def with_answers(self, response: ModelResponse, answers: Sequence[Sequence[Any]]) -> ModelResponse:
        parts = [part for message in answers[0] for part in message.parts]
        is_called = any(isinstance(part, ToolCallPart) for part in parts) or response.finish_reason != "tool_call"
        ended = response.finish_reason if is_called else "stop"
        return dataclasses.replace(response, parts=parts, finish_reason=ended, **_UNSTORED)

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
        return [Choice(response.parts, response.finish_reason, 0)]

    def blank_response(self, request: PydanticAIRequest) -> ModelResponse:
        return ModelResponse(parts=[], model_name=request.model.model_name, provider_name=request.model.system)

    def from_hook_llm_response(
        self, hook_response: Mapping[str, Any], base: ModelResponse | None = None
    ) -> ModelResponse:
        answer = answers.read_response(hook_response)
        base = ModelResponse(parts=[]) if base is None else base
        counts = self.sdk_counts(answer.get("usageMetadata", {}), base.usage)
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
    return isinstance(part, SystemPromptPart) and MARK in mapping(part.metadata)


_INSTRUCTIONS = object()
"""The source of the turn with the instructions, which are not a part of any message."""


def _requests(request: PydanticAIRequest) -> list[ModelRequest]:
    return [message for message in request.messages if isinstance(message, ModelRequest)]


def _instructions(request: PydanticAIRequest) -> str | None:
    return next((message.instructions for message in reversed(_requests(request))), None)


def _is_prompt(part: Any) -> TypeGuard[SystemPromptPart]:
    return isinstance(part, SystemPromptPart) and not _is_note(part)


def _with_prompt(part: Any, texts: Mapping[int, str]) -> Any | None:
    text = texts.get(id(part))
    if text is None:
        return part
    return dataclasses.replace(part, content=text) if text else None


def _is_text(item: Any) -> bool:
    return isinstance(item, (str, TextContent))


def text_of_content(content: Any) -> str:
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


def mapping(value: Any) -> Mapping[str, Any]:
    """Return metadata, which may be anything, as a mapping."""
    return value if isinstance(value, Mapping) else {}
