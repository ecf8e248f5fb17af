"""The stable hook format of model data, and what a translator between it and an SDK has to offer.

Nothing here knows an SDK; another one is one more subclass of ``HookTranslator``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar, cast


class TranslationError(Exception):
    """Model data that cannot be translated; its text says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class GenerateContentParameters:
    """What ``client.models.generate_content`` takes: google-genai's own types, in any form that it accepts."""

    model: str
    contents: Any
    config: Any = None


class LLMMessage(TypedDict):
    """The text of one message; ``role`` is ``user``, ``model`` or ``system``."""

    role: str
    content: str


class LLMConfig(TypedDict, total=False):
    """The generation settings that hooks see and may change; unset ones are left out."""

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
    """A model request as hooks see it (HOOK-072), and as they may return it: any part of it."""

    model: str
    messages: list[LLMMessage]
    config: LLMConfig
    toolConfig: HookToolConfig


class LLMContent(TypedDict):
    """What a candidate says: its text parts, in order."""

    role: str
    parts: list[str]


class LLMSafetyRating(TypedDict, total=False):
    """One safety rating. The SDK's ``blocked`` is left out on purpose (HOOK-077)."""

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


RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
ToolConfigT = TypeVar("ToolConfigT")


class HookTranslator(ABC, Generic[RequestT, ResponseT, ToolConfigT]):
    """Translates one SDK's requests, responses and tool configurations to the hook format and back.

    No method changes what it is given.
    """

    @abstractmethod
    def to_hook_llm_request(self, request: RequestT) -> LLMRequest:
        """The request as hooks see it: text only, unset fields left out."""

    @abstractmethod
    def from_hook_llm_request(self, hook_request: Mapping[str, Any], base_request: RequestT) -> RequestT:
        """``base_request`` with the well-formed changes of a hook's (partial) request; all else is as it was."""

    @abstractmethod
    def to_hook_llm_response(self, response: ResponseT) -> LLMResponse:
        """The response as hooks see it: text only."""

    @abstractmethod
    def from_hook_llm_response(self, hook_response: Mapping[str, Any]) -> ResponseT:
        """An SDK response that says what the hook's does; without any text or candidate a ``TranslationError``."""

    @abstractmethod
    def to_hook_tool_config(self, tool_config: ToolConfigT | None) -> HookToolConfig:
        """The tool configuration as hooks see it; empty where nothing is set."""

    @abstractmethod
    def from_hook_tool_config(
        self, hook_tool_config: Mapping[str, Any], base_tool_config: ToolConfigT | None
    ) -> ToolConfigT:
        """``base_tool_config`` with the hook's mode and allowed names; omitted ones stay as they were."""

    @abstractmethod
    def read_request(self, value: object) -> RequestT:
        """An SDK request, or the same as JSON, as a request; a ``TranslationError`` for anything else."""

    @abstractmethod
    def read_response(self, value: object) -> ResponseT:
        """An SDK response, or the same as JSON, as a response; a ``TranslationError`` for anything else."""

    def request_payload(self, value: object) -> LLMRequest:
        """``llm_request`` for a hook, from an SDK request, its JSON, or a request already in hook format."""
        ready = in_hook_request_format(value)
        return self.to_hook_llm_request(self.read_request(value)) if ready is None else ready

    def response_payload(self, value: object) -> LLMResponse:
        """``llm_response`` for a hook, from an SDK response, its JSON, or a response already in hook format."""
        ready = in_hook_response_format(value)
        return self.to_hook_llm_response(self.read_response(value)) if ready is None else ready


AnyTranslator: TypeAlias = HookTranslator[Any, Any, Any]
"""A translator for whichever SDK; the engine passes its types through unseen."""


def in_hook_request_format(value: object) -> LLMRequest | None:
    """A copy of a request that is in hook format, recognised by its ``messages``; ``None`` for any other value."""
    if not isinstance(value, Mapping) or "messages" not in value:
        return None
    if not isinstance(value["messages"], list):
        raise TranslationError(
            f"llm_request.messages is of type {type(value['messages']).__name__}; a list of messages is expected."
        )
    return cast("LLMRequest", dict(value))


def in_hook_response_format(value: object) -> LLMResponse | None:
    """A copy of a response that is in hook format: its parts are strings, or it has only ``text``."""
    if not isinstance(value, Mapping):
        return None
    parts = [part for candidate in _list(value.get("candidates")) for part in _parts(candidate)]
    if parts and all(isinstance(part, str) for part in parts):
        return cast("LLMResponse", dict(value))
    if not parts and isinstance(value.get("text"), str):
        return cast("LLMResponse", dict(value))
    return None


def _parts(candidate: object) -> list[Any]:
    content = candidate.get("content") if isinstance(candidate, Mapping) else None
    return _list(content.get("parts")) if isinstance(content, Mapping) else []


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
