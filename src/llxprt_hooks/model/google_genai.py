"""Hook format ⇄ google-genai's types. The only module that knows that SDK.

Requests and responses are read as they come: SDK objects, the SDK's dicts and the API's JSON (``function_call`` or
``functionCall``) alike, so that reading never fails on a field that this version of the SDK does not know.

- The text of a message is the text of its parts, joined by nothing, as the SDK's own ``response.text`` is. A thought
  is not text, and neither is an empty string: models send those to carry a signature.
- A message whose text did not change keeps the very object it came from. In a changed one the first text part gets
  the new text and keeps its other fields (a signature, say); its other text parts go, all else stays in place.
- Nothing that a hook leaves as it was is changed; where nothing is, the base request itself is returned.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from google.genai import types

from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import answers
from llxprt_hooks.model.alignment import Message, rearrange
from llxprt_hooks.model.translator import (
    GenerateContentParameters,
    HookToolConfig,
    HookTranslator,
    LLMCandidate,
    LLMConfig,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    TranslationError,
)

log = debug_logger("translator")

CONFIG_NAMES = {
    "temperature": "temperature",
    "maxOutputTokens": "max_output_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop_sequences",
    "candidateCount": "candidate_count",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
USAGE_NAMES = {
    "promptTokenCount": "prompt_token_count",
    "candidatesTokenCount": "candidates_token_count",
    "totalTokenCount": "total_token_count",
}
# VALIDATED is AUTO with checked arguments; the hook format has no word for that.
SHOWN_MODES = {"AUTO": "AUTO", "ANY": "ANY", "NONE": "NONE", "VALIDATED": "AUTO"}
# The fields of a part that say something about its data; any other is data of its own.
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
    {'model': 'gemini-3-flash', 'messages': [{'role': 'user', 'content': 'Hello'}]}
    """

    def to_hook_llm_request(self, request: GenerateContentParameters) -> LLMRequest:
        """The texts, the eight settings and the tool configuration of a request, so far as they are set."""
        hook_request: LLMRequest = {"model": request.model} if request.model else {}
        hook_request["messages"] = [_message(turn) for turn in _turns(request.contents) if turn.text]
        if config := _hook_config(request.config):
            hook_request["config"] = config
        if tool_config := self.to_hook_tool_config(_field(request.config, "tool_config")):
            hook_request["toolConfig"] = tool_config
        return hook_request

    def from_hook_llm_request(
        self, hook_request: Mapping[str, Any], base_request: GenerateContentParameters
    ) -> GenerateContentParameters:
        """The base request with a hook's changes; parts that the hook cannot see stay where they are (D-13)."""
        wanted = answers.read_request(hook_request)
        model = wanted.get("model", base_request.model)
        contents = _changed_contents(base_request.contents, wanted.get("messages"))
        config = self._changed_config(base_request.config, wanted)
        if model == base_request.model and contents is base_request.contents and config is base_request.config:
            return base_request
        return GenerateContentParameters(model, contents, config)

    def to_hook_llm_response(self, response: types.GenerateContentResponse | dict[str, Any]) -> LLMResponse:
        """The texts, finish reasons, ratings and token counts of a response; what is dropped is logged (HOOK-079)."""
        _log_dropped(response)
        candidates = [_hook_candidate(candidate) for candidate in _list(_field(response, "candidates"))]
        text = "".join(candidates[0]["content"]["parts"]) if candidates else ""
        hook_response: LLMResponse = {"text": text, "candidates": candidates}
        usage = _field(response, "usage_metadata")
        counts = {name: _field(usage, sdk_name) for name, sdk_name in USAGE_NAMES.items()}
        if set_counts := {name: count for name, count in counts.items() if count is not None}:
            hook_response["usageMetadata"] = cast("LLMUsage", set_counts)
        return hook_response

    def from_hook_llm_response(self, hook_response: Mapping[str, Any]) -> types.GenerateContentResponse:
        """A response of text parts only (HOOK-079)."""
        answer = answers.read_response(hook_response)
        usage = {USAGE_NAMES[name]: count for name, count in answer.get("usageMetadata", {}).items()}
        return types.GenerateContentResponse(
            candidates=[_sdk_candidate(candidate) for candidate in answer["candidates"]],
            usage_metadata=types.GenerateContentResponseUsageMetadata.model_validate(usage) if usage else None,
        )

    def to_hook_tool_config(self, tool_config: types.ToolConfig | dict[str, Any] | None) -> HookToolConfig:
        """Mode and allowed names, so far as they are set."""
        calling = _field(tool_config, "function_calling_config")
        hook_tool_config: HookToolConfig = {}
        if mode := SHOWN_MODES.get(_name(_field(calling, "mode")) or ""):
            hook_tool_config["mode"] = mode
        if (names := _field(calling, "allowed_function_names")) is not None:
            hook_tool_config["allowedFunctionNames"] = list(_list(names))
        return hook_tool_config

    def from_hook_tool_config(
        self, hook_tool_config: Mapping[str, Any], base_tool_config: types.ToolConfig | dict[str, Any] | None
    ) -> types.ToolConfig:
        """The base with the hook's mode and names on it. No tool at all is ``NONE`` with an empty list (D-06)."""
        base = _sdk_tool_config(base_tool_config)
        calling = base.function_calling_config or types.FunctionCallingConfig()
        mode, names = _tool_choice(answers.read_tool_config(hook_tool_config), calling)
        if (mode, names) == (calling.mode, calling.allowed_function_names):
            return base
        calling = calling.model_copy(update={"mode": mode, "allowed_function_names": names})
        return base.model_copy(update={"function_calling_config": calling})

    def read_request(self, value: object) -> GenerateContentParameters:
        """An object with ``contents``, or a mapping with them: ``generate_content``'s arguments or the API's JSON."""
        if isinstance(value, GenerateContentParameters):
            return value
        if isinstance(value, Mapping) and "contents" in value:
            return GenerateContentParameters(
                _name(value.get("model")) or "", value["contents"], _json_config(dict(value))
            )
        if not isinstance(value, Mapping) and hasattr(value, "contents"):
            return GenerateContentParameters(
                _name(_field(value, "model")) or "", value.contents, _field(value, "config")
            )
        raise TranslationError(
            f"llm_request is {_described(value)}; expected GenerateContentParameters, the Gemini API's JSON "
            "with contents, or the hook format with messages."
        )

    def read_response(self, value: object) -> types.GenerateContentResponse | dict[str, Any]:
        """An object or a mapping with one of the fields of a ``GenerateContentResponse``."""
        if isinstance(value, types.GenerateContentResponse):
            return value
        if isinstance(value, Mapping) and any(_spelling(value, name) in value for name in RESPONSE_FIELDS):
            return dict(value)
        raise TranslationError(
            f"llm_response is {_described(value)}; expected a GenerateContentResponse, the Gemini API's JSON "
            "with candidates, or the hook format with text or candidates."
        )

    def _changed_config(self, config: Any, wanted: LLMRequest) -> Any:
        updates: dict[str, Any] = {
            CONFIG_NAMES[name]: value
            for name, value in wanted.get("config", {}).items()
            if value != _field(config, CONFIG_NAMES[name])
        }
        base_tool_config = _field(config, "tool_config")
        shown = self.to_hook_tool_config(base_tool_config)
        tool_config = wanted.get("toolConfig", {})
        if {**shown, **tool_config} != shown:
            updates["tool_config"] = self.from_hook_tool_config(tool_config, base_tool_config)
        return _with_settings(config, updates) if updates else config


# Reading


class _Turn(NamedTuple):
    """One content of a conversation: the caller's own object, or bare parts (``source=None``) that form one."""

    role: str
    parts: Sequence[Any]
    source: Any
    text: str


def _turns(contents: Any) -> list[_Turn]:
    """The conversation in ``contents``, whichever of the forms that the SDK accepts it has.

    As in the SDK, parts that stand in the list by themselves form one content, of the model if they are function
    calls and else of the user, and a list in the list is a content of the user.
    """
    turns: list[_Turn] = []
    bare: list[Any] = []
    for item in _list(contents):
        whole = _content_turn(item) if _is_content(item) else _list_turn(item) if isinstance(item, list) else None
        if bare and (whole or _is_call(bare[0]) != _is_call(item)):
            turns.append(_bare_turn(bare))
            bare = []
        if whole:
            turns.append(whole)
        else:
            bare.append(item)
    return [*turns, _bare_turn(bare)] if bare else turns


def _is_content(item: Any) -> bool:
    if isinstance(item, dict):
        return not item or "parts" in item or "role" in item
    return isinstance(item, types.Content) or hasattr(item, "parts")


def _is_call(part: Any) -> bool:
    return _field(part, "function_call") is not None


def _content_turn(content: Any) -> _Turn:
    parts = _list(_field(content, "parts"))
    role = _field(content, "role")
    return _Turn(answers.ROLES.get(role, "user") if isinstance(role, str) else "user", parts, content, _joined(parts))


def _list_turn(parts: list[Any]) -> _Turn:
    return _Turn("user", parts, None, _joined(parts))


def _bare_turn(parts: list[Any]) -> _Turn:
    return _Turn("model" if _is_call(parts[0]) else "user", parts, None, _joined(parts))


def _message(turn: _Turn) -> LLMMessage:
    return {"role": turn.role, "content": turn.text}


def _joined(parts: Sequence[Any]) -> str:
    return "".join([_text(part) for part in parts])


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = _field(part, "text")
    return text if isinstance(text, str) and not _field(part, "thought") else ""


def _data_fields(part: Any) -> list[str]:
    """The names of what a part holds beside text, as they are spelled there."""
    return [name for name in _set_fields(part) if name != "text" and name not in ABOUT_DATA]


def _set_fields(part: Any) -> list[str]:
    if isinstance(part, dict):
        return [name for name, value in part.items() if value is not None]
    return [name for name, value in part if value is not None] if isinstance(part, types.Part) else []


def _hook_config(config: Any) -> LLMConfig:
    values = {name: _field(config, sdk_name) for name, sdk_name in CONFIG_NAMES.items()}
    return cast("LLMConfig", {name: _plain(value) for name, value in values.items() if value is not None})


def _plain(value: Any) -> Any:
    """A setting as a script expects it: ``topK`` is a float in the SDK, but 40 and not 40.0 for everyone else."""
    if isinstance(value, list):
        return list(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _hook_candidate(candidate: Any) -> LLMCandidate:
    parts = _list(_field(_field(candidate, "content"), "parts"))
    hook_candidate: LLMCandidate = {
        "content": {"role": "model", "parts": [text for part in parts if (text := _text(part))]}
    }
    if finish_reason := _name(_field(candidate, "finish_reason")):
        hook_candidate["finishReason"] = finish_reason
    if (index := _field(candidate, "index")) is not None:
        hook_candidate["index"] = index
    if (ratings := _field(candidate, "safety_ratings")) is not None:
        hook_candidate["safetyRatings"] = [_hook_rating(rating) for rating in _list(ratings)]
    return hook_candidate


def _hook_rating(rating: Any) -> LLMSafetyRating:
    hook_rating: LLMSafetyRating = {}
    if category := _name(_field(rating, "category")):
        hook_rating["category"] = category
    if probability := _name(_field(rating, "probability")):
        hook_rating["probability"] = probability
    return hook_rating


def _log_dropped(response: Any) -> None:
    if not log.isEnabledFor(logging.DEBUG):
        return
    candidates = _list(_field(response, "candidates"))
    parts = [part for candidate in candidates for part in _list(_field(_field(candidate, "content"), "parts"))]
    dropped = Counter(name for part in parts for name in _kinds(part))
    if dropped:
        counts = ", ".join(f"{count} {name}" for name, count in dropped.items())
        log.debug("hooks are shown the text of a response only, and not its %s", counts)


def _kinds(part: Any) -> list[str]:
    return ["thought"] if _field(part, "thought") else _data_fields(part)


def _json_config(request: dict[str, Any]) -> Any:
    """The configuration in a request as JSON: ``config`` as the SDK has it, or the API's fields beside ``contents``."""
    if request.get("config") is not None:
        return request["config"]
    generation = _field(request, "generation_config")
    apart = {"model", "contents", "config", "generation_config", "generationConfig"}
    beside = {name: value for name, value in request.items() if name not in apart}
    return {**(generation if isinstance(generation, dict) else {}), **beside}


# Writing


def _changed_contents(contents: Any, wanted: Sequence[LLMMessage] | None) -> Any:
    if wanted is None:
        return contents
    turns = _turns(contents)
    if wanted == [_message(turn) for turn in turns if turn.text]:
        return contents
    messages = [Message(turn.role, turn.text) for turn in turns]
    steps = rearrange(messages, _glued(turns), [Message(message["role"], message["content"]) for message in wanted])
    changed = [
        _new_content(step.message) if step.turn is None else _told_anew(turns[step.turn], step.message.text)
        for step in steps
    ]
    return [content for content in changed if content is not None]


def _glued(turns: Sequence[_Turn]) -> list[bool]:
    """Which turns stay with the one before: those without text, and all from a function call to its response."""
    glued: list[bool] = []
    calls: defaultdict[tuple[str, Any], deque[int]] = defaultdict(deque)
    reaches: list[int] = []
    for index, turn in enumerate(turns):
        responses = [response for part in turn.parts if (response := _field(part, "function_response")) is not None]
        glued.append(not turn.text or bool(responses))
        reaches.append(min((_taken(calls, response, index) for response in responses), default=index))
        for part in turn.parts:
            if (call := _field(part, "function_call")) is not None:
                for key in _keys(call):
                    calls[key].append(index)
    reach = len(turns)
    for index in reversed(range(len(turns))):
        reach = min(reach, reaches[index])
        glued[index] = glued[index] or reach < index
    return glued


def _keys(call: Any) -> list[tuple[str, Any]]:
    """What a call and its response have in common: the id where there is one, else the name."""
    return [(name, value) for name in ("id", "name") if isinstance(value := _field(call, name), str)]


def _taken(calls: Mapping[tuple[str, Any], deque[int]], response: Any, default: int) -> int:
    """The turn of the call that a response answers, which is then no longer open."""
    for key in _keys(response):
        if calls.get(key):
            return calls[key].popleft()
    return default


def _new_content(message: Message) -> types.Content:
    # google-genai has no system role inside a conversation (D-13).
    text = f"[System] {message.text}" if message.role == "system" else message.text
    role = "model" if message.role == "model" else "user"
    return types.Content(role=role, parts=[types.Part(text=text)])


def _told_anew(turn: _Turn, text: str) -> Any:
    """A turn with another text, or none (``""``); ``None`` for one of which nothing is left."""
    if text == turn.text:
        return _content(turn, turn.parts) if turn.source is None else turn.source
    parts = list(_parts_with_text(turn.parts, text))
    if not parts:
        return None
    return _content(turn, parts) if turn.source is None else _with(turn.source, "parts", parts)


def _parts_with_text(parts: Sequence[Any], text: str) -> Iterator[Any]:
    """The parts with ``text`` in the first of those that have any; the others of them keep what else they hold."""
    for part in parts:
        if not _text(part):
            if not _is_blank(part):
                yield part
        elif text:
            yield text if isinstance(part, str) else _with(part, "text", text)
            text = ""
        elif _data_fields(part):
            yield _with(part, "text", None)


def _is_blank(part: Any) -> bool:
    """Whether a part is an empty text and nothing else: alone in a content the API would refuse it."""
    return part == "" if isinstance(part, str) else _field(part, "text") == "" and _set_fields(part) == ["text"]


def _content(turn: _Turn, parts: Sequence[Any]) -> types.Content:
    form = types.ModelContent if turn.role == "model" else types.UserContent
    try:
        return form(parts=list(parts))
    except ValueError as error:
        raise TranslationError(f"google-genai takes no such parts in the request's contents: {error}") from error


def _with_settings(config: Any, updates: dict[str, Any]) -> Any:
    """A copy of a configuration with other settings; tools, callables and all else in it are shared, not copied."""
    if config is None:
        return types.GenerateContentConfig().model_copy(update=updates)
    if isinstance(config, dict):
        return {**config, **{_spelling(config, name): value for name, value in updates.items()}}
    if isinstance(config, types.GenerateContentConfig):
        return config.model_copy(update=updates)
    raise TranslationError(
        f"The request's config is {_described(config)}; expected a GenerateContentConfig, a dict or None."
    )


def _sdk_tool_config(tool_config: types.ToolConfig | dict[str, Any] | None) -> types.ToolConfig:
    if isinstance(tool_config, types.ToolConfig):
        return tool_config
    try:
        return types.ToolConfig.model_validate(tool_config or {})
    except ValueError as error:
        raise TranslationError(f"google-genai takes no such tool_config: {error}") from error


def _tool_choice(
    wanted: HookToolConfig, base: types.FunctionCallingConfig
) -> tuple[types.FunctionCallingConfigMode | None, list[str] | None]:
    modes = types.FunctionCallingConfigMode
    mode, names = base.mode, base.allowed_function_names
    # A hook that repeats the mode it was shown leaves it alone, VALIDATED too.
    if "mode" in wanted and wanted["mode"] != SHOWN_MODES.get(_name(mode) or ""):
        # The empty list that came with NONE goes with it.
        names = None if mode is modes.NONE and not names else names
        mode = modes[wanted["mode"]]
    if "allowedFunctionNames" in wanted:
        names = wanted["allowedFunctionNames"]
        mode = mode or modes.AUTO
        if not names:
            mode = modes.NONE
    if wanted and mode is modes.NONE:
        names = []
    return mode, names


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
    """The member of that name. The enum is not called: it would warn of an unknown name, and invent a member."""
    member = None if name is None else enum.__members__.get(name.upper())
    if name is not None and member is None:
        answers.ignored(enum.__name__, f"one of {', '.join(enum.__members__)}", name)
    return member


# One way to look at SDK objects, the SDK's dicts and JSON


@cache
def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def _spelling(mapping: Mapping[str, Any], name: str) -> str:
    """``name`` as a mapping spells it: ``top_k`` or ``topK``."""
    return name if name in mapping or _camel(name) not in mapping else _camel(name)


def _field(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(_spelling(value, name))
    return getattr(value, name, None)


def _with(value: Any, name: str, field: Any) -> Any:
    """A shallow copy in which one field, spelled alike in both notations, is another."""
    return {**value, name: field} if isinstance(value, dict) else value.model_copy(update={name: field})


def _list(value: Any) -> Sequence[Any]:
    if value is None:
        return []
    return value if isinstance(value, (list, tuple)) else [value]


def _name(value: Any) -> str | None:
    """The name that an enum member or a string stands for."""
    name = value.value if isinstance(value, Enum) else value
    return name if isinstance(name, str) and name else None


def _described(value: object) -> str:
    if isinstance(value, Mapping):
        names = (name if name.isprintable() else repr(name) for name in map(str, value))
        return f"an object with the fields {', '.join(names) or '(none)'}"
    return f"of type {type(value).__name__}"
