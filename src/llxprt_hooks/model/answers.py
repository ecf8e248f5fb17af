"""Model data as a hook wrote it, reduced to what is well formed.

A field of the wrong type is ignored by itself, with a warning, and never takes its siblings with it (D-04).
Values are never logged: they may be what a hook was written to hide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model.format import (
    HookToolConfig,
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

MODES = frozenset({"AUTO", "ANY", "NONE"})
ROLES = {"user": "user", "model": "model", "assistant": "model", "system": "system"}


class Kind(NamedTuple):
    """A type of field: how to read a value of it (``None`` where it is none), and what it is called."""

    read: Callable[[Any], Any]
    expected: str


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _integer(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _word(value: object) -> str | None:
    return _string(value) or None


def _strings(value: object) -> list[str] | None:
    if not isinstance(value, list):
        return None
    strings = [item for item in value if isinstance(item, str)]
    return strings if strings or not value else None


def _names(value: object) -> list[str] | None:
    # A list of which nothing is usable still restricts: it comes to no tool at all (D-06).
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None


def _mode(value: object) -> str | None:
    return value if isinstance(value, str) and value in MODES else None


def _object(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None


def _list(value: object) -> list[Any] | None:
    return value if isinstance(value, list) else None


NUMBER = Kind(_number, "a finite number")
INTEGER = Kind(_integer, "an integer")
STRING = Kind(_string, "a string")
WORD = Kind(_word, "a string that is not empty")
STRINGS = Kind(_strings, "a list of strings")
OBJECT = Kind(_object, "an object")
LIST = Kind(_list, "a list")

REQUEST: Mapping[str, Kind] = {"model": WORD, "messages": LIST, "config": OBJECT, "toolConfig": OBJECT}
CONFIG: Mapping[str, Kind] = {
    "temperature": NUMBER,
    "maxOutputTokens": INTEGER,
    "topP": NUMBER,
    "topK": NUMBER,
    "stopSequences": STRINGS,
    "candidateCount": INTEGER,
    "presencePenalty": NUMBER,
    "frequencyPenalty": NUMBER,
}
TOOL_CONFIG: Mapping[str, Kind] = {
    "mode": Kind(_mode, "AUTO, ANY or NONE"),
    "allowedFunctionNames": Kind(_names, "a list of strings"),
}
RESPONSE: Mapping[str, Kind] = {"text": STRING, "candidates": LIST, "usageMetadata": OBJECT}
CANDIDATE: Mapping[str, Kind] = {
    "content": OBJECT,
    "finishReason": STRING,
    "index": INTEGER,
    "safetyRatings": LIST,
}
CONTENT: Mapping[str, Kind] = {"role": STRING, "parts": LIST}
RATING: Mapping[str, Kind] = {"category": STRING, "probability": STRING}
USAGE: Mapping[str, Kind] = {
    "promptTokenCount": INTEGER,
    "candidatesTokenCount": INTEGER,
    "totalTokenCount": INTEGER,
}


def read_request(answer: object) -> LLMRequest:
    """The well-formed part of a hook's ``llm_request``."""
    fields = _fields(answer, REQUEST, "llm_request")
    request: LLMRequest = {}
    if "model" in fields:
        request["model"] = fields["model"]
    if "messages" in fields and (messages := read_messages(fields["messages"])) is not None:
        request["messages"] = messages
    if "config" in fields:
        request["config"] = cast("LLMConfig", _fields(fields["config"], CONFIG, "llm_request.config"))
    if "toolConfig" in fields:
        request["toolConfig"] = read_tool_config(fields["toolConfig"])
    return request


def read_tool_config(answer: object) -> HookToolConfig:
    """The well-formed part of a hook's ``toolConfig``."""
    return cast("HookToolConfig", _fields(answer, TOOL_CONFIG, "toolConfig"))


def read_messages(answers: list[Any]) -> list[LLMMessage] | None:
    """The messages that say something; ``None`` (leave all as they were) for a list in which none is well formed.

    A message whose content is the empty string is as good as none (HOOK-076): to empty a message is to remove it.
    """
    messages = [_message(answer, f"llm_request.messages[{index}]") for index, answer in enumerate(answers)]
    well_formed = [message for message in messages if message is not None]
    if answers and not well_formed:
        return None
    return [message for message in well_formed if message["content"]]


def read_response(answer: object) -> LLMResponse:
    """The well-formed part of a hook's ``llm_response``, with at least one candidate."""
    fields = _fields(answer, RESPONSE, "llm_response")
    text: str | None = fields.get("text")
    candidates = [
        candidate
        for index, item in enumerate(fields.get("candidates", []))
        if (candidate := _candidate(item, f"llm_response.candidates[{index}]", text if index == 0 else None))
    ]
    if not candidates and text is not None:
        candidates = [{"content": {"role": "model", "parts": [text]}, "finishReason": "STOP", "index": 0}]
    if not candidates:
        raise TranslationError("A hook's llm_response has neither a text nor a candidate with text parts.")
    said = "".join(candidates[0]["content"]["parts"])
    if text is not None and text != said:
        log.warning("llm_response.text differs from the first candidate's parts; the parts are used")
    response: LLMResponse = {"text": said, "candidates": candidates}
    if "usageMetadata" in fields:
        response["usageMetadata"] = cast("LLMUsage", _fields(fields["usageMetadata"], USAGE, "usageMetadata"))
    return response


def ignored(path: str, expected: str, value: object) -> None:
    """Tell that a piece of a hook's answer has no effect."""
    log.warning("ignored %s of a hook's answer: expected %s, found %s", path, expected, type(value).__name__)


def _fields(answer: object, kinds: Mapping[str, Kind], path: str) -> dict[str, Any]:
    """The known and well-formed fields; ``null`` leaves a field as it was, like its absence."""
    fields: dict[str, Any] = {}
    if not isinstance(answer, Mapping):
        ignored(path, OBJECT.expected, answer)
        return fields
    for name, value in answer.items():
        if value is None:
            continue
        kind = kinds.get(name)
        if kind is None:
            log.warning("ignored %s.%s of a hook's answer: the hook format has no such field", path, name)
        elif (read := kind.read(value)) is None:
            ignored(f"{path}.{name}", kind.expected, value)
        else:
            fields[name] = read
            if isinstance(read, list) and len(read) < len(value):
                log.warning("ignored %d items of %s.%s that are no strings", len(value) - len(read), path, name)
    return fields


def _message(answer: object, path: str) -> LLMMessage | None:
    if not isinstance(answer, Mapping):
        ignored(path, "an object with role and content", answer)
        return None
    content = answer.get("content")
    texts = [content] if isinstance(content, str) else _texts(content, f"{path}.content")
    if texts is None:
        ignored(f"{path}.content", "a string", content)
        return None
    return {"role": _role(answer.get("role"), f"{path}.role"), "content": "".join(texts)}


def _role(role: object, path: str) -> str:
    known = ROLES.get(role) if isinstance(role, str) else None
    if known is None and role is not None:
        ignored(path, "user, model or system", role)
    return known or "user"


def _texts(parts: object, path: str) -> list[str] | None:
    """The texts in a list of strings and ``{"text": …}``; ``None`` where nothing of it is well formed."""
    if not isinstance(parts, list):
        return None
    texts: list[str] = []
    for index, part in enumerate(parts):
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            texts.append(text)
        else:
            ignored(f"{path}[{index}]", "a text", part)
    return texts if texts or not parts else None


def _candidate(answer: object, path: str, text: str | None) -> LLMCandidate | None:
    if not isinstance(answer, Mapping):
        ignored(path, "an object with content", answer)
        return None
    fields = _fields(answer, CANDIDATE, path)
    content = _fields(fields.get("content", {}), CONTENT, f"{path}.content")
    texts = _texts(content.get("parts"), f"{path}.content.parts")
    if not texts and text is not None:
        texts = [text]
    if texts is None:
        ignored(path, "a candidate with text parts", answer)
        return None
    candidate: LLMCandidate = {"content": {"role": "model", "parts": texts}}
    if "finishReason" in fields:
        candidate["finishReason"] = fields["finishReason"]
    if "index" in fields:
        candidate["index"] = fields["index"]
    if "safetyRatings" in fields:
        candidate["safetyRatings"] = _ratings(fields["safetyRatings"], f"{path}.safetyRatings")
    return candidate


def _ratings(answers: list[Any], path: str) -> list[LLMSafetyRating]:
    ratings: list[LLMSafetyRating] = []
    for index, answer in enumerate(answers):
        if isinstance(answer, Mapping):
            ratings.append(cast("LLMSafetyRating", _fields(answer, RATING, f"{path}[{index}]")))
        else:
            ignored(f"{path}[{index}]", "an object with category and probability", answer)
    return ratings
