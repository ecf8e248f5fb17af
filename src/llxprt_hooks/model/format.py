"""The hook format: model data as hook scripts read and write it, with any SDK (HOOK-071 to 074).

And a request to google-genai, which programs without that SDK can name too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NotRequired, TypedDict, TypeVar


class TranslationError(Exception):
    """Model data cannot be translated. The message states what was found and what was expected."""


class LLMToolCall(TypedDict):
    """A tool call of the model, in the full view."""

    id: str
    name: str
    args: Any


class LLMPart(TypedDict):
    """Data other than text, in the full view: its type, and never its bytes."""

    type: str
    mimeType: NotRequired[str]


class LLMMessage(TypedDict):
    """The text of one message; ``role`` is ``user``, ``model`` or ``system``, and in the full view also ``tool``."""

    role: str
    content: str
    toolCalls: NotRequired[list[LLMToolCall]]
    """Only in the full view, as are the fields below (D-142)."""
    toolCallId: NotRequired[str]
    name: NotRequired[str]
    parts: NotRequired[list[LLMPart]]


class LLMConfig(TypedDict, total=False):
    """The generation settings that hooks see and may change; unset ones are omitted."""

    temperature: float
    maxOutputTokens: int
    topP: float
    topK: float
    stopSequences: list[str]
    candidateCount: int
    presencePenalty: float
    frequencyPenalty: float


class HookToolConfig(TypedDict, total=False):
    """Which tools the model may call; ``mode`` is ``AUTO``, ``ANY`` or ``NONE`` (HOOK-074)."""

    mode: str
    allowedFunctionNames: list[str]


class LLMRequest(TypedDict, total=False):
    """A model request as hooks see it (HOOK-072). They may return any part of it."""

    model: str
    messages: list[LLMMessage]
    config: LLMConfig
    toolConfig: HookToolConfig


class LLMContent(TypedDict):
    """The text parts of a candidate, in order."""

    role: str
    parts: list[str]
    toolCalls: NotRequired[list[LLMToolCall]]


class LLMSafetyRating(TypedDict, total=False):
    """One safety rating. The SDK's ``blocked`` is omitted on purpose (HOOK-077)."""

    category: str
    probability: str


class LLMCandidate(TypedDict, total=False):
    """One of the answers in a response."""

    content: LLMContent
    finishReason: str
    index: int
    safetyRatings: list[LLMSafetyRating]


class LLMUsage(TypedDict, total=False):
    """The tokens that a call used."""

    promptTokenCount: int
    candidatesTokenCount: int
    totalTokenCount: int


class LLMResponse(TypedDict, total=False):
    """A model response as hooks see it (HOOK-073); ``text`` repeats the first candidate's text."""

    text: str
    candidates: list[LLMCandidate]
    usageMetadata: LLMUsage


DataT = TypeVar("DataT", bound=Mapping[str, Any])


@dataclass(frozen=True, slots=True)
class HookFormat(Generic[DataT]):
    """Marks a request or a response that is already in hook format, such as a recorded one: it is not translated.

    >>> HookFormat({"messages": [{"role": "user", "content": "Hello"}], "config": {}}).data["config"]
    {}
    """

    data: DataT


@dataclass(frozen=True, slots=True)
class GenerateContentParameters:
    """The arguments of ``client.models.generate_content``: google-genai's own types, in any form that it accepts."""

    model: str
    contents: Any
    config: Any = None
