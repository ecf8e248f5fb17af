"""Model data from a caller, in whichever form, as hooks get it (D-16, D-38).

The translator is asked first. What it cannot read counts as hook format if it has that shape; data that is in hook
format for certain is marked with ``HookFormat`` and needs no translator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from llxprt_hooks.model.format import HookFormat, LLMRequest, LLMResponse, TranslationError
from llxprt_hooks.model.registry import resolve_translator

if TYPE_CHECKING:
    from llxprt_hooks.model.translator import TranslatorChoice


def request_payload(value: object, translator: TranslatorChoice = None) -> LLMRequest:
    """``llm_request`` for a hook, from an SDK request, its JSON, or a request in hook format.

    >>> request_payload(HookFormat({"messages": [{"role": "user", "content": "hi"}]}))
    {'messages': [{'role': 'user', 'content': 'hi'}]}
    """
    if _is_hook_format(value, translator, has_request_shape):
        return cast("LLMRequest", _data("llm_request", value, has_request_shape))
    used = resolve_translator(translator)
    try:
        request = used.read_request(value)
    except TranslationError:
        if not has_request_shape(value):
            raise
        return cast("LLMRequest", _data("llm_request", value, has_request_shape))
    return used.to_hook_llm_request(request)


def response_payload(value: object, translator: TranslatorChoice = None) -> LLMResponse:
    """``llm_response`` for a hook, from an SDK response, its JSON, or a response in hook format."""
    if _is_hook_format(value, translator, has_response_shape):
        return cast("LLMResponse", _data("llm_response", value, has_response_shape))
    used = resolve_translator(translator)
    try:
        response = used.read_response(value)
    except TranslationError:
        if not has_response_shape(value):
            raise
        return cast("LLMResponse", _data("llm_response", value, has_response_shape))
    return used.to_hook_llm_response(response)


def has_request_shape(value: object) -> bool:
    """Whether a value could be a request in hook format: an object with a list of messages."""
    return isinstance(value, Mapping) and isinstance(value.get("messages"), list)


def has_response_shape(value: object) -> bool:
    """Whether a value could be a response in hook format: all parts are strings, or it has only ``text``."""
    if not isinstance(value, Mapping):
        return False
    parts = [part for candidate in _list(value.get("candidates")) for part in _parts(candidate)]
    return all(isinstance(part, str) for part in parts) if parts else isinstance(value.get("text"), str)


def _is_hook_format(value: object, translator: TranslatorChoice, has_shape: Callable[[object], bool]) -> bool:
    """Whether data is marked as hook format, or google-genai, the default, need not be imported to decline it.

    The Gemini API's requests have ``contents``, its responses neither ``text`` nor parts that are strings.
    """
    if isinstance(value, HookFormat):
        return True
    return translator is None and has_shape(value) and "contents" not in cast("Mapping[str, Any]", value)


def _data(name: str, value: object, has_shape: Callable[[object], bool]) -> dict[str, Any]:
    data: Any = value.data if isinstance(value, HookFormat) else value
    if not has_shape(data):
        raise TranslationError(f"{name} is marked as hook format, but lacks the fields of the hook format.")
    return dict(data)


def _parts(candidate: object) -> list[Any]:
    content = candidate.get("content") if isinstance(candidate, Mapping) else None
    return _list(content.get("parts")) if isinstance(content, Mapping) else []


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
