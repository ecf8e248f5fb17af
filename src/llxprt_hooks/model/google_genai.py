"""Hook format ⇄ google-genai's types. The only module that imports that SDK.

SDK objects, the SDK's dicts and the API's JSON (``function_call`` or ``functionCall``) are read without converting them
first, so that reading never fails on a field that this version of the SDK does not know.

- The text of a message is the text of its parts, joined without a separator, like the SDK's own ``response.text``. A
  thought is not text, and neither is an empty string: models use those to carry a signature.
- If the text of a message changes, the first text part gets the new text and keeps its other fields, such as a
  signature. The other text parts are removed; everything else stays in place.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypeVar

from google.genai import types

from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import answers
from llxprt_hooks.model.access import as_list, copy_with, described, field, name_of, spelling
from llxprt_hooks.model.conversation import CallKeys, Turn
from llxprt_hooks.model.format import HookToolConfig, LLMCandidate, LLMResponse, LLMSafetyRating, TranslationError
from llxprt_hooks.model.parameters import GenerateContentParameters
from llxprt_hooks.model.translator import HookTranslator, build_hook_response

log = debug_logger("translator")

USAGE_NAMES = {
    "promptTokenCount": "prompt_token_count",
    "candidatesTokenCount": "candidates_token_count",
    "totalTokenCount": "total_token_count",
}
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
    HookTranslator[GenerateContentParameters, "types.GenerateContentResponse | dict[str, Any]", types.ToolConfig]
):
    """Translates google-genai's requests, responses and tool configurations (HOOK-075 to 079).

    >>> translator = HookTranslatorGenAIv1()
    >>> translator.to_hook_llm_request(GenerateContentParameters("gemini-3-flash", "Hello"))
    {'model': 'gemini-3-flash', 'messages': [{'role': 'user', 'content': 'Hello'}], 'config': {}}
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "maxOutputTokens": "max_output_tokens",
        "topP": "top_p",
        "topK": "top_k",
        "stopSequences": "stop_sequences",
        "candidateCount": "candidate_count",
        "presencePenalty": "presence_penalty",
        "frequencyPenalty": "frequency_penalty",
    }

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

    def turns(self, request: GenerateContentParameters) -> list[Turn]:
        """Return the conversation in ``contents``, in any form that the SDK accepts.

        As in the SDK, consecutive bare parts in the list form one content, of the model if they are function calls and
        otherwise of the user. A list in the list is a content of the user.
        """
        turns: list[Turn] = []
        bare: list[Any] = []
        for item in as_list(request.contents):
            whole = _content_turn(item) if _is_content(item) else _bare_turn(item) if isinstance(item, list) else None
            if bare and (whole or _is_call(bare[0]) != _is_call(item)):
                turns.append(_bare_turn(bare, by_call=True))
                bare = []
            if whole:
                turns.append(whole)
            else:
                bare.append(item)
        return [*turns, _bare_turn(bare, by_call=True)] if bare else turns

    def rebuild(self, request: GenerateContentParameters, turns: Sequence[Turn]) -> GenerateContentParameters:
        contents = [content for content in map(_content, turns) if content is not None]
        return replace(request, contents=contents)

    def to_hook_llm_response(self, response: types.GenerateContentResponse | dict[str, Any]) -> LLMResponse:
        """Return the texts, finish reasons, ratings and token counts; dropped parts are logged (HOOK-079)."""
        _log_dropped(response)
        candidates = [_hook_candidate(candidate) for candidate in as_list(field(response, "candidates"))]
        return build_hook_response(candidates, field(response, "usage_metadata"), USAGE_NAMES)

    def from_hook_llm_response(
        self, hook_response: Mapping[str, Any], base: types.GenerateContentResponse | dict[str, Any] | None = None
    ) -> types.GenerateContentResponse:
        """Return a response of text parts only; nothing of the base is kept (HOOK-079)."""
        answer = answers.read_response(hook_response)
        usage = {USAGE_NAMES[name]: count for name, count in answer.get("usageMetadata", {}).items()}
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


# Reading


class _BareParts(NamedTuple):
    """Parts that form a content without a ``Content`` object around them."""

    parts: Sequence[Any]


def _is_content(item: Any) -> bool:
    if isinstance(item, dict):
        return not item or "parts" in item or "role" in item
    return isinstance(item, types.Content) or hasattr(item, "parts")


def _is_call(part: Any) -> bool:
    return field(part, "function_call") is not None


def _content_turn(content: Any) -> Turn:
    role = field(content, "role")
    known = answers.ROLES.get(role, "user") if isinstance(role, str) else "user"
    return _turn(known, content, as_list(field(content, "parts")))


def _bare_turn(parts: list[Any], *, by_call: bool = False) -> Turn:
    return _turn("model" if by_call and _is_call(parts[0]) else "user", _BareParts(parts), parts)


def _turn(role: str, source: Any, parts: Sequence[Any]) -> Turn:
    return Turn(
        role,
        "".join([_text(part) for part in parts]),
        source,
        calls=_keys(parts, "function_call"),
        results=_keys(parts, "function_response"),
    )


def _keys(parts: Sequence[Any], name: str) -> tuple[CallKeys, ...]:
    """Return the keys that match the calls among the parts with their responses: the id, if any, and the name."""
    return tuple(
        tuple((key, value) for key in ("id", "name") if isinstance(value := field(call, key), str))
        for part in parts
        if (call := field(part, name)) is not None
    )


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = field(part, "text")
    return text if isinstance(text, str) and not field(part, "thought") else ""


def _data_fields(part: Any) -> list[str]:
    """Return the names of a part's data other than text, as the part spells them."""
    return [name for name in _set_fields(part) if name != "text" and name not in ABOUT_DATA]


def _set_fields(part: Any) -> list[str]:
    if isinstance(part, dict):
        return [name for name, value in part.items() if value is not None]
    return [name for name, value in part if value is not None] if isinstance(part, types.Part) else []


def _is_api_response(value: Mapping[str, Any]) -> bool:
    """Whether JSON is the API's: it does not have ``text`` next to the candidates, and its parts are objects."""
    parts = [part for candidate in as_list(value.get("candidates")) for part in _candidate_parts(candidate)]
    return (
        any(spelling(value, name) in value for name in RESPONSE_FIELDS)
        and "text" not in value
        and not any(isinstance(part, str) for part in parts)
    )


def _candidate_parts(candidate: Any) -> Sequence[Any]:
    return as_list(field(field(candidate, "content"), "parts"))


def _hook_candidate(candidate: Any) -> LLMCandidate:
    texts = [text for part in _candidate_parts(candidate) if (text := _text(part))]
    hook_candidate: LLMCandidate = {"content": {"role": "model", "parts": texts}}
    if finish_reason := name_of(field(candidate, "finish_reason")):
        hook_candidate["finishReason"] = finish_reason
    if (index := field(candidate, "index")) is not None:
        hook_candidate["index"] = index
    if (ratings := field(candidate, "safety_ratings")) is not None:
        hook_candidate["safetyRatings"] = [_hook_rating(rating) for rating in as_list(ratings)]
    return hook_candidate


def _hook_rating(rating: Any) -> LLMSafetyRating:
    hook_rating: LLMSafetyRating = {}
    if category := name_of(field(rating, "category")):
        hook_rating["category"] = category
    if probability := name_of(field(rating, "probability")):
        hook_rating["probability"] = probability
    return hook_rating


def _log_dropped(response: Any) -> None:
    if not log.isEnabledFor(logging.DEBUG):
        return
    parts = [part for candidate in as_list(field(response, "candidates")) for part in _candidate_parts(candidate)]
    dropped = Counter(name for part in parts for name in _kinds(part))
    if dropped:
        counts = ", ".join(f"{count} {name}" for name, count in dropped.items())
        log.debug("hooks see only the text of a response; dropped: %s", counts)


def _kinds(part: Any) -> list[str]:
    return ["thought"] if field(part, "thought") else _data_fields(part)


def _json_config(request: dict[str, Any]) -> Any:
    """Return the configuration in a request: the SDK's ``config``, or the API's fields next to ``contents``."""
    if request.get("config") is not None:
        return request["config"]
    generation = field(request, "generation_config")
    apart = {"model", "contents", "config", "generation_config", "generationConfig"}
    beside = {name: value for name, value in request.items() if name not in apart}
    return {**(generation if isinstance(generation, dict) else {}), **beside}


# Writing


def _content(turn: Turn) -> Any:
    """Return a turn as the SDK accepts it; None if nothing of it is left."""
    if turn.source is None:
        # google-genai has no system role inside a conversation (D-13).
        text = f"[System] {turn.text}" if turn.role == "system" else turn.text
        return types.Content(role="model" if turn.role == "model" else "user", parts=[types.Part(text=text)])
    is_bare = isinstance(turn.source, _BareParts)
    if not turn.changed:
        return _new_content(turn.role, turn.source.parts) if is_bare else turn.source
    parts = list(_parts_with_text(as_list(field(turn.source, "parts")), turn.text))
    if not parts:
        return None
    return _new_content(turn.role, parts) if is_bare else copy_with(turn.source, parts=parts)


def _new_content(role: str, parts: Sequence[Any]) -> types.Content:
    form = types.ModelContent if role == "model" else types.UserContent
    try:
        return form(parts=list(parts))
    except ValueError as error:
        raise TranslationError(f"google-genai does not accept the parts in the request's contents: {error}") from error


def _parts_with_text(parts: Sequence[Any], text: str) -> Iterator[Any]:
    """Put ``text`` into the first part with text; other parts with text keep only their other data."""
    for part in parts:
        if not _text(part):
            if not _is_blank(part):
                yield part
        elif text:
            yield text if isinstance(part, str) else copy_with(part, text=text)
            text = ""
        elif _data_fields(part):
            yield copy_with(part, text=None)


def _is_blank(part: Any) -> bool:
    """Whether a part is only an empty text: the API rejects a content of nothing else."""
    return part == "" if isinstance(part, str) else field(part, "text") == "" and _set_fields(part) == ["text"]


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
