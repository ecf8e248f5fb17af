"""Reads model data that a hook wrote, and keeps the well-formed part.

A field of the wrong type is ignored with a warning; the other fields still apply (D-04). Values are never logged: they
may be what a hook was written to hide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

from llxprt_hooks._support.fields import (
    INTEGER,
    LIST,
    NAMES,
    NUMBER,
    OBJECT,
    STRING,
    STRINGS,
    WORD,
    FieldType,
    checked,
    found,
    object_of,
    one_of,
)
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.model.format import (
    HookToolConfig,
    LLMCandidate,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    TranslationError,
)

log = debug_logger("translator")

ROLES = {"user": "user", "model": "model", "assistant": "model", "system": "system"}

CONFIG: Mapping[str, FieldType] = {
    "temperature": NUMBER,
    "maxOutputTokens": INTEGER,
    "topP": NUMBER,
    "topK": NUMBER,
    "stopSequences": STRINGS,
    "candidateCount": INTEGER,
    "presencePenalty": NUMBER,
    "frequencyPenalty": NUMBER,
}
TOOL_CONFIG: Mapping[str, FieldType] = {"mode": one_of("AUTO", "ANY", "NONE"), "allowedFunctionNames": NAMES}
REQUEST: Mapping[str, FieldType] = {
    "model": WORD,
    "messages": LIST,
    "config": OBJECT,
    "toolConfig": object_of(TOOL_CONFIG),
}
RESPONSE: Mapping[str, FieldType] = {"text": STRING, "candidates": LIST, "usageMetadata": OBJECT}
CANDIDATE: Mapping[str, FieldType] = {
    "content": OBJECT,
    "finishReason": STRING,
    "index": INTEGER,
    "safetyRatings": LIST,
}
CONTENT: Mapping[str, FieldType] = {"role": STRING, "parts": LIST, "toolCalls": LIST}
FULL_MESSAGE: Mapping[str, FieldType] = {
    "toolCallId": STRING,
    "name": STRING,
    "toolCalls": FieldType(lambda value: value if _are_calls(value) else None, "a list of calls with id and name"),
    "parts": LIST,
}
RATING: Mapping[str, FieldType] = {"category": STRING, "probability": STRING}
USAGE: Mapping[str, FieldType] = {
    "promptTokenCount": INTEGER,
    "candidatesTokenCount": INTEGER,
    "totalTokenCount": INTEGER,
}


def read_request(
    answer: object, shown: Callable[[], Sequence[LLMMessage]] = tuple, *, full: bool = False
) -> LLMRequest:
    """Return the well-formed part of a hook's ``llm_request``; ``shown`` returns the messages that the hook got."""
    fields = _fields(answer, REQUEST, "llm_request")
    if "messages" in fields:
        given = fields.pop("messages")
        messages = read_full_messages(given, shown()) if full else read_messages(given, shown)
        if messages is not None:
            fields["messages"] = messages
    if "config" in fields:
        fields["config"] = _fields(fields["config"], CONFIG, "llm_request.config")
    return cast("LLMRequest", fields)


def read_tool_config(answer: object) -> HookToolConfig:
    """Return the well-formed part of a hook's ``toolConfig``."""
    return cast("HookToolConfig", _fields(answer, TOOL_CONFIG, "toolConfig"))


def request_problems(answer: object) -> list[str]:
    """Return one sentence for each part of a hook's ``llm_request`` that is well formed in neither view."""
    with collected_problems() as problems:
        read_request(answer, full=True)
    return problems


@contextmanager
def collected_problems() -> Iterator[list[str]]:
    """Collect what is ignored of hooks' answers, instead of logging it."""
    problems: list[str] = []
    token = _collected.set(problems)
    try:
        yield problems
    finally:
        _collected.reset(token)


def read_messages(answers: list[Any], shown: Callable[[], Sequence[LLMMessage]] = tuple) -> list[LLMMessage] | None:
    """Return the messages with text; None, which leaves all as they were, if no message is well formed.

    A message with empty content counts as removed (HOOK-076). One that is not well formed leaves the message in its
    place as it was, if the hook returned as many as it was shown.
    """
    messages = [_message(answer, f"llm_request.messages[{index}]") for index, answer in enumerate(answers)]
    well_formed = [message for message in messages if message is not None]
    if answers and not well_formed:
        return None
    if len(well_formed) < len(answers) == len(given := shown()):
        well_formed = [message or original for message, original in zip(messages, given, strict=True)]
    return [message for message in well_formed if message["content"]]


def read_full_messages(given: list[Any], shown: Sequence[LLMMessage]) -> list[LLMMessage] | None:
    """Return the messages of a hook that was shown the full view; None, which leaves all as they were, if none is well
    formed.

    A message with empty content counts as removed, unless it has calls, is a result, or has data other than text.
    """
    messages = [_full_message(answer, f"llm_request.messages[{index}]") for index, answer in enumerate(given)]
    if given and not any(messages):
        return None
    if None in messages and len(given) == len(shown):
        messages = [message or original for message, original in zip(messages, shown, strict=True)]
    return [message for message in messages if message is not None]


def _full_message(answer: object, path: str) -> LLMMessage | None:
    if not isinstance(answer, Mapping):
        ignored(path, "an object with role and content", answer)
        return None
    is_result = answer.get("role") == "tool"
    given = {**answer, "role": "user"} if is_result else answer
    message = _message({**given, "content": given.get("content", "")}, path)
    if message is None:
        return None
    message["role"] = "tool" if is_result else message["role"]
    beside_text = {name: answer[name] for name in FULL_MESSAGE if name in answer}
    for name, value in _fields(beside_text, FULL_MESSAGE, path).items():
        message[name] = value  # type: ignore[literal-required]
    return message


def read_response(answer: object) -> LLMResponse:
    """Return the well-formed part of a hook's ``llm_response``, with at least one candidate."""
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
    parts = "".join(candidates[0]["content"]["parts"])
    if text is not None and text != parts:
        log.warning("llm_response.text differs from the first candidate's parts; the parts are used")
    response: LLMResponse = {"text": parts, "candidates": candidates}
    if "usageMetadata" in fields:
        response["usageMetadata"] = cast("LLMUsage", _fields(fields["usageMetadata"], USAGE, "usageMetadata"))
    return response


class Answer(NamedTuple):
    """One candidate of a hook that was shown the full view."""

    texts: list[str] | None
    """None leaves the text as it was."""
    calls: list[Any] | None
    """The calls that stay; None if the hook says nothing about calls."""


def read_answers(answer: object) -> list[Answer]:
    """Return the well-formed candidates of a hook's ``llm_response``, with what it says about their calls."""
    fields = _fields(answer, RESPONSE, "llm_response")
    found: list[Answer] = []
    for index, item in enumerate(fields.get("candidates", [])):
        path = f"llm_response.candidates[{index}].content"
        content = _fields(item.get("content", {}) if isinstance(item, Mapping) else {}, CONTENT, path)
        texts = _texts(content["parts"], f"{path}.parts") if "parts" in content else None
        found.append(Answer(texts, content.get("toolCalls")))
    return found


def ignored(path: str, expected: str, value: object) -> None:
    """Report that a part of a hook's answer is ignored."""
    report(f"`{path}` is ignored: expected {expected}, found {found(value)}")


_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def report(problem: str) -> None:
    """Log that a part of a hook's answer is ignored, unless a caller collects such problems."""
    collected = _collected.get()
    if collected is None:
        log.warning("a hook's answer: %s", problem)
    else:
        collected.append(problem)


def _fields(answer: object, table: Mapping[str, FieldType], path: str) -> dict[str, Any]:
    """Return the known and well-formed fields. ``null`` counts as absent and leaves a field as it was."""
    if not isinstance(answer, Mapping):
        ignored(path, OBJECT.words, answer)
        return {}
    problems: list[str] = []
    fields = checked(answer, table, problems, f"{path}.", keep_unknown=False)
    for problem in problems:
        report(problem)
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


def _are_calls(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(call, Mapping) and isinstance(call.get("id"), str) and isinstance(call.get("name"), str)
        for call in value
    )


def _role(role: object, path: str) -> str:
    known = ROLES.get(role) if isinstance(role, str) else None
    if known is None and role is not None:
        ignored(path, "user, model or system", role)
    return known or "user"


def _texts(parts: object, path: str) -> list[str] | None:
    """Return the texts in a list of strings and ``{"text": …}``; None if no item is well formed."""
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
    if "safetyRatings" in fields:
        fields["safetyRatings"] = _ratings(fields["safetyRatings"], f"{path}.safetyRatings")
    return cast("LLMCandidate", {**fields, "content": {"role": "model", "parts": texts}})


def _ratings(answers: list[Any], path: str) -> list[LLMSafetyRating]:
    ratings: list[LLMSafetyRating] = []
    for index, answer in enumerate(answers):
        if isinstance(answer, Mapping):
            ratings.append(cast("LLMSafetyRating", _fields(answer, RATING, f"{path}[{index}]")))
        else:
            ignored(f"{path}[{index}]", "an object with category and probability", answer)
    return ratings
