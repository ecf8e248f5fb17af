"""Hook format ⇄ google-genai's types. The only module that imports that SDK.

SDK objects, the SDK's dicts and the API's JSON (``function_call`` or ``functionCall``) are read without converting them
first, so that reading never fails on a field that this version of the SDK does not know.

A thought is not text, and neither is an empty string: models use those to carry a signature.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from google.genai import types

from llxprt_hooks.model import answers
from llxprt_hooks.model.access import as_list, copy_with, described, field, name_of, spelling
from llxprt_hooks.model.format import (
    GenerateContentParameters,
    HookToolConfig,
    LLMCandidate,
    LLMSafetyRating,
    LLMToolCall,
    TranslationError,
)
from llxprt_hooks.model.full_view import ToolOutput
from llxprt_hooks.model.json_api import output_text, with_output_text
from llxprt_hooks.model.messages import Choice, MessageTranslator, usage
from llxprt_hooks.model.translator import USUAL_SETTINGS

if TYPE_CHECKING:
    from llxprt_hooks.model.conversation import CallKeys, Turn

# VALIDATED is AUTO with checked arguments; the hook format does not have that mode.
SHOWN_MODES = {"AUTO": "AUTO", "ANY": "ANY", "NONE": "NONE", "VALIDATED": "AUTO"}
# Metadata fields of a part; any other field is data.
ABOUT_DATA = frozenset(
    {"thought", "thought_signature", "part_metadata", "speech_metadata", "video_metadata", "media_resolution"}
    | {"thoughtSignature", "partMetadata", "speechMetadata", "videoMetadata", "mediaResolution"}
    | {"media_processing", "mediaProcessing"}
)
RESPONSE_FIELDS = ("candidates", "prompt_feedback", "usage_metadata")

EnumT = TypeVar("EnumT", bound=Enum)


class HookTranslatorGenAIv1(
    MessageTranslator[GenerateContentParameters, "types.GenerateContentResponse | dict[str, Any]", types.ToolConfig]
):
    """Translates google-genai's requests, responses and tool configurations (HOOK-075 to 079).

    >>> translator = HookTranslatorGenAIv1()
    >>> translator.to_hook_llm_request(GenerateContentParameters("gemini-3-flash", "Hello"))
    {'model': 'gemini-3-flash', 'messages': [{'role': 'user', 'content': 'Hello'}], 'config': {}}
    """

    SETTINGS = USUAL_SETTINGS
    PARTS = "parts"
    USAGE = usage("usage_metadata", "prompt_token_count", "candidates_token_count", "total_token_count")

    def read_request(self, value: object) -> GenerateContentParameters:
        """Read an object or a mapping with ``contents``: ``generate_content``'s arguments or the API's JSON."""
        if isinstance(value, GenerateContentParameters):
            return value
        if isinstance(value, Mapping) and "contents" in value:
            return GenerateContentParameters(
                name_of(value.get("model")) or "", value["contents"], _json_config(dict(value))
            )
        if not isinstance(value, Mapping) and hasattr(value, "contents"):
            return GenerateContentParameters(
                name_of(field(value, "model")) or "", value.contents, field(value, "config")
            )
        raise TranslationError(
            f"llm_request is {described(value)}; expected GenerateContentParameters, the Gemini API's JSON "
            "with contents, or the hook format with a list of messages."
        )

    def read_response(self, value: object) -> types.GenerateContentResponse | dict[str, Any]:
        """Read a ``GenerateContentResponse``, or a mapping with one of its fields."""
        if isinstance(value, types.GenerateContentResponse):
            return value
        if isinstance(value, Mapping) and _is_api_response(value):
            return dict(value)
        raise TranslationError(
            f"llm_response is {described(value)}; expected a GenerateContentResponse, the Gemini API's JSON "
            "with candidates, or the hook format with text or candidates."
        )

    def field(self, request: GenerateContentParameters, name: str) -> Any:
        return request.model if name == "model" else field(request.config, name)

    def with_fields(self, request: GenerateContentParameters, fields: Mapping[str, Any]) -> GenerateContentParameters:
        settings = dict(fields)
        model = settings.pop("model", request.model)
        config = _with_settings(request.config, settings) if settings else request.config
        return GenerateContentParameters(model, request.contents, config)

    def messages(self, request: GenerateContentParameters) -> list[Any]:
        """Return the contents in any form that the SDK accepts.

        As in the SDK, consecutive bare parts in the list form one content, of the model if they are function calls and
        otherwise of the user. A list in the list is a content of the user.
        """
        messages: list[Any] = []
        for is_call, items in groupby(as_list(request.contents), _group):
            if is_call is None:
                messages += [_BareParts("user", item) if isinstance(item, list) else item for item in items]
            else:
                messages.append(_BareParts("model" if is_call else "user", list(items)))
        return messages

    def with_messages(self, request: GenerateContentParameters, messages: list[Any]) -> GenerateContentParameters:
        return replace(request, contents=messages)

    def role_of(self, message: Any) -> str:
        role = message.role if message.__class__ is types.Content else field(message, "role")
        return answers.ROLES.get(role, "user") if isinstance(role, str) else "user"

    def new_message(self, role: str, text: str) -> types.Content:
        # google-genai has no system role inside a conversation (D-13).
        text = f"[System] {text}" if role == "system" else text
        return types.Content(role="model" if role == "model" else "user", parts=[types.Part(text=text)])

    def message(self, turn: Turn) -> Any | None:
        message = super().message(turn)
        return message.content() if isinstance(message, _BareParts) else message

    def parts_of(self, message: Any) -> Sequence[Any]:
        return message.parts or () if message.__class__ is types.Content else super().parts_of(message)

    def text_of(self, part: Any) -> str:
        """Return the text of a part. A thought is not text."""
        if part.__class__ is types.Part:  # a large request asks for every part
            thought, text = part.thought, part.text
        elif isinstance(part, str):
            return part
        else:
            thought, text = field(part, "thought"), field(part, "text")
        return text if isinstance(text, str) and not thought else ""

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        return _keys(self.parts_of(message), "function_call")

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        return _keys(self.parts_of(message), "function_response")

    def prompt_turns(self, request: GenerateContentParameters) -> Sequence[Turn]:
        instruction = self.field(request, "system_instruction")
        if instruction is None or instruction == "":
            return []
        message = instruction if _has_parts(instruction) else _BareParts("user", as_list(instruction))
        return [self.turn_of(message)._replace(role="system")]

    def with_prompt_turns(self, request: GenerateContentParameters, turns: Sequence[Turn]) -> GenerateContentParameters:
        is_text = isinstance(self.field(request, "system_instruction"), str)
        instruction = turns[0].text or None if is_text else self.message(turns[0])
        return self.with_fields(request, {"system_instruction": instruction})

    def call_in(self, part: Any) -> LLMToolCall | None:
        call = field(part, "function_call")
        if call is None:
            return None
        name = name_of(field(call, "name")) or ""
        return {"id": name_of(field(call, "id")) or name, "name": name, "args": field(call, "args") or {}}

    def with_call(self, part: Any, args: Any) -> Any:
        return copy_with(part, **{_spelled(part, "function_call"): copy_with(field(part, "function_call"), args=args)})

    def result_in(self, part: Any) -> ToolOutput | None:
        result = field(part, "function_response")
        if result is None:
            return None
        name, output = name_of(field(result, "name")) or "", field(result, "response")
        key = _only_text(output)
        text = output_text(output if key is None else output[key])
        return ToolOutput(name_of(field(result, "id")) or name, text, name)

    def with_result(self, part: Any, text: str) -> Any:
        result = field(part, "function_response")
        output = field(result, "response")
        key = _only_text(output)
        changed = {key: text} if key is not None else with_output_text(output, text)
        response = changed if isinstance(changed, dict) else {"output": text}
        return copy_with(part, **{_spelled(part, "function_response"): copy_with(result, response=response)})

    def answers_in(self, response: types.GenerateContentResponse | dict[str, Any]) -> Sequence[Sequence[Any]]:
        contents = [field(candidate, "content") for candidate in as_list(field(response, "candidates"))]
        return [[] if content is None else [content] for content in contents]

    def with_answers(
        self, response: types.GenerateContentResponse | dict[str, Any], answers: Sequence[Sequence[Any]]
    ) -> types.GenerateContentResponse | dict[str, Any]:
        candidates = [
            copy_with(candidate, content=self._joined(messages))
            for candidate, messages in zip(as_list(field(response, "candidates")), answers, strict=True)
        ]
        changed: types.GenerateContentResponse | dict[str, Any] = copy_with(response, candidates=candidates)
        return changed

    def _joined(self, messages: Sequence[Any]) -> Any:
        if len(messages) == 1:
            return messages[0]
        parts = [part for message in messages for part in self.parts_of(message)]
        return copy_with(messages[-1], parts=parts) if messages else types.Content(role="model", parts=[])

    def without_text(self, part: Any) -> Any | None:
        return copy_with(part, text=None) if _data_fields(part) else None

    def is_blank(self, part: Any) -> bool:
        """Whether a part is only an empty text. With other fields, models use it to carry a signature."""
        return super().is_blank(part) and (isinstance(part, str) or _set_fields(part) == ["text"])

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        if isinstance(message, _BareParts):
            return message._replace(parts=parts) if parts else None
        return super().with_parts(message, parts)

    def kinds_of(self, part: Any) -> Sequence[str]:
        return ["thought"] if field(part, "thought") else _data_fields(part)

    def choices_of(self, response: types.GenerateContentResponse | dict[str, Any]) -> list[Choice]:
        return [
            Choice(
                self.parts_of(field(candidate, "content")),
                name_of(field(candidate, "finish_reason")),
                field(candidate, "index"),
                _hook_ratings(field(candidate, "safety_ratings")),
            )
            for candidate in as_list(field(response, "candidates"))
        ]

    def from_hook_llm_response(
        self, hook_response: Mapping[str, Any], base: types.GenerateContentResponse | dict[str, Any] | None = None
    ) -> types.GenerateContentResponse:
        """Return a response of text parts only; nothing of the base is kept (HOOK-079)."""
        answer = answers.read_response(hook_response)
        usage = self.sdk_counts(answer.get("usageMetadata", {}), None)
        return types.GenerateContentResponse(
            candidates=[_sdk_candidate(candidate) for candidate in answer["candidates"]],
            usage_metadata=types.GenerateContentResponseUsageMetadata.model_validate(usage) if usage else None,
        )

    def to_hook_tool_config(self, tool_config: types.ToolConfig | dict[str, Any] | None) -> HookToolConfig:
        """Return the mode and the allowed names, without those that are not set."""
        calling = field(tool_config, "function_calling_config")
        hook_tool_config: HookToolConfig = {}
        if mode := SHOWN_MODES.get(name_of(field(calling, "mode")) or ""):
            hook_tool_config["mode"] = mode
        if (names := field(calling, "allowed_function_names")) is not None:
            hook_tool_config["allowedFunctionNames"] = list(as_list(names))
        return hook_tool_config

    def build_tool_config(
        self, tool_config: HookToolConfig, base: types.ToolConfig | dict[str, Any] | None
    ) -> types.ToolConfig:
        sdk_base = _sdk_tool_config(base)
        shown = self.to_hook_tool_config(sdk_base)
        if tool_config == shown:
            return sdk_base
        calling = sdk_base.function_calling_config or types.FunctionCallingConfig()
        # A hook that repeats the mode it was shown does not change it, not even VALIDATED.
        keeps_mode = tool_config.get("mode") == shown.get("mode")
        changed = {
            "mode": calling.mode if keeps_mode else types.FunctionCallingConfigMode[tool_config["mode"]],
            "allowed_function_names": tool_config.get("allowedFunctionNames"),
        }
        return sdk_base.model_copy(update={"function_calling_config": calling.model_copy(update=changed)})


class _BareParts(NamedTuple):
    """Parts that form a content without a ``Content`` object around them."""

    role: str
    parts: Sequence[Any]

    def content(self) -> types.Content:
        form = types.ModelContent if self.role == "model" else types.UserContent
        try:
            return form(parts=list(self.parts))
        except ValueError as error:
            raise TranslationError(
                f"google-genai does not accept the parts in the request's contents: {error}"
            ) from error


def _group(item: Any) -> bool | None:
    """Return whether a bare part is a function call; None for a whole content."""
    if item.__class__ is types.Content:
        return None
    is_whole = isinstance(item, list) or hasattr(item, "parts")
    if isinstance(item, dict):
        is_whole = not item or "parts" in item or "role" in item
    return None if is_whole else field(item, "function_call") is not None


def _keys(parts: Sequence[Any], name: str) -> tuple[CallKeys, ...]:
    """Return the keys that match the calls among the parts with their responses: the id, if any, and the name."""
    return tuple(
        tuple((key, value) for key in ("id", "name") if isinstance(value := field(call, key), str))
        for part in parts
        if (call := field(part, name)) is not None
    )


def _data_fields(part: Any) -> list[str]:
    """Return the names of a part's data other than text, as the part spells them."""
    return [name for name in _set_fields(part) if name != "text" and name not in ABOUT_DATA]


def _set_fields(part: Any) -> list[str]:
    if isinstance(part, dict):
        return [name for name, value in part.items() if value is not None]
    return [name for name, value in part if value is not None] if isinstance(part, types.Part) else []


def _has_parts(instruction: Any) -> bool:
    return "parts" in instruction if isinstance(instruction, dict) else hasattr(instruction, "parts")


def _spelled(part: Any, name: str) -> str:
    return spelling(part, name) if isinstance(part, dict) else name


def _only_text(output: Any) -> str | None:
    """Return the one field of a tool's result if that is a text, as most programs send it."""
    if not isinstance(output, dict) or len(output) != 1:
        return None
    ((key, value),) = output.items()
    return key if isinstance(value, str) else None


def _is_api_response(value: Mapping[str, Any]) -> bool:
    """Whether JSON is the API's: it does not have ``text`` next to the candidates, and its parts are objects."""
    contents = [field(candidate, "content") for candidate in as_list(value.get("candidates"))]
    parts = [part for content in contents for part in as_list(field(content, "parts"))]
    return (
        any(spelling(value, name) in value for name in RESPONSE_FIELDS)
        and "text" not in value
        and not any(isinstance(part, str) for part in parts)
    )


def _hook_ratings(ratings: Any) -> list[LLMSafetyRating] | None:
    names = ("category", "probability")
    shown = [{name: value for name in names if (value := name_of(field(rating, name)))} for rating in as_list(ratings)]
    return None if ratings is None else cast("list[LLMSafetyRating]", shown)


def _json_config(request: dict[str, Any]) -> Any:
    """Return the configuration in a request: the SDK's ``config``, or the API's fields next to ``contents``."""
    if request.get("config") is not None:
        return request["config"]
    generation = field(request, "generation_config")
    excluded = {"model", "contents", "config", "generation_config", "generationConfig"}
    others = {name: value for name, value in request.items() if name not in excluded}
    return {**(generation if isinstance(generation, dict) else {}), **others}


def _with_settings(config: Any, updates: dict[str, Any]) -> Any:
    """Return a shallow copy of a configuration with other settings; tools and callables in it are not copied."""
    if config is None:
        return types.GenerateContentConfig().model_copy(update=updates)
    if isinstance(config, dict):
        return {**config, **{spelling(config, name): value for name, value in updates.items()}}
    if isinstance(config, types.GenerateContentConfig):
        return config.model_copy(update=updates)
    raise TranslationError(
        f"The request's config is {described(config)}; expected a GenerateContentConfig, a dict or None."
    )


def _sdk_tool_config(tool_config: types.ToolConfig | dict[str, Any] | None) -> types.ToolConfig:
    if isinstance(tool_config, types.ToolConfig):
        return tool_config
    try:
        return types.ToolConfig.model_validate(tool_config or {})
    except ValueError as error:
        raise TranslationError(f"google-genai does not accept the tool_config: {error}") from error


def _sdk_candidate(candidate: LLMCandidate) -> types.Candidate:
    parts = [types.Part(text=text) for text in candidate["content"]["parts"]]
    ratings = candidate.get("safetyRatings")
    return types.Candidate(
        content=types.Content(role="model", parts=parts),
        finish_reason=_member(types.FinishReason, candidate.get("finishReason")),
        index=candidate.get("index"),
        safety_ratings=None if ratings is None else [_sdk_rating(rating) for rating in ratings],
    )


def _sdk_rating(rating: LLMSafetyRating) -> types.SafetyRating:
    return types.SafetyRating(
        category=_member(types.HarmCategory, rating.get("category")),
        probability=_member(types.HarmProbability, rating.get("probability")),
    )


def _member(enum: type[EnumT], name: str | None) -> EnumT | None:
    """Return the member of that name. Calling the enum would warn about an unknown name and create a member for it."""
    member = None if name is None else enum.__members__.get(name.upper())
    if name is not None and member is None:
        answers.ignored(enum.__name__, f"one of {', '.join(enum.__members__)}", name)
    return member


def sendable_tool_config(tool_config: types.ToolConfig | None, declared: Collection[str]) -> types.ToolConfig | None:
    """Return the tool configuration in the form the Gemini API accepts (D-15).

    The API accepts only names of declared tools, and only with ANY or VALIDATED. It treats an empty list as no
    restriction. So AUTO with names is sent as VALIDATED, and a list without any declared tool as NONE.
    """
    modes = types.FunctionCallingConfigMode
    calling = tool_config.function_calling_config if tool_config else None
    if tool_config is None or calling is None or calling.allowed_function_names is None:
        return tool_config
    names = [name for name in calling.allowed_function_names if name in declared]
    if calling.mode == modes.NONE or not names:
        sent = types.FunctionCallingConfig(mode=modes.NONE)
    else:
        mode = modes.ANY if calling.mode == modes.ANY else modes.VALIDATED
        sent = calling.model_copy(update={"mode": mode, "allowed_function_names": names})
    return tool_config.model_copy(update={"function_calling_config": sent})
