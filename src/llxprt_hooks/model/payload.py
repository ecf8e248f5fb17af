"""Model data from a caller as hooks receive it (D-16, D-38).

Data is in hook format only if ``HookFormat`` marks it; the translator reads everything else. Messages and recorded
payloads cannot carry the mark: ``mark_request`` and ``mark_response`` add it to data that the translator cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from llxprt_hooks.model.access import described
from llxprt_hooks.model.format import HookFormat, LLMRequest, LLMResponse, TranslationError
from llxprt_hooks.model.registry import resolve_translator

if TYPE_CHECKING:
    from llxprt_hooks.model.translator import AnyTranslator, TranslatorChoice


def request_payload(value: object, translator: TranslatorChoice = None, *, full: bool = False) -> LLMRequest:
    """Return ``llm_request`` for hooks, from an SDK request, its JSON, or ``HookFormat`` data.

    >>> request_payload(HookFormat({"messages": [{"role": "user", "content": "hi"}]}))
    {'messages': [{'role': 'user', 'content': 'hi'}]}
    """
    if isinstance(value, HookFormat):
        expected = "an object with a list of messages"
        return cast("LLMRequest", _marked_data("llm_request", value, has_request_shape, expected))
    used = resolve_translator(translator)
    request = request_from(value, used)
    return used.to_full_llm_request(request) if full else used.to_hook_llm_request(request)


def response_payload(value: object, translator: TranslatorChoice = None, *, full: bool = False) -> LLMResponse:
    """Return ``llm_response`` for hooks, from an SDK response, its JSON, or ``HookFormat`` data."""
    if isinstance(value, HookFormat):
        expected = "an object with text, or with candidates whose parts are strings"
        return cast("LLMResponse", _marked_data("llm_response", value, has_response_shape, expected))
    used = resolve_translator(translator)
    response = response_from(value, used)
    return used.to_full_llm_response(response) if full else used.to_hook_llm_response(response)


def request_from(value: object, translator: AnyTranslator) -> Any:
    """Read an SDK request or its JSON; the error for data in hook format says how to mark it."""
    return _read(translator.read_request, value, has_request_shape)


def response_from(value: object, translator: AnyTranslator) -> Any:
    """Read an SDK response or its JSON; the error for data in hook format says how to mark it."""
    return _read(translator.read_response, value, has_response_shape)


def mark_request(value: object, translator: TranslatorChoice = None) -> object:
    """Mark a request as hook format if it has that shape and the translator cannot read it."""
    return _mark(value, translator, has_request_shape, lambda used: used.read_request(value))


def mark_response(value: object, translator: TranslatorChoice = None) -> object:
    """Mark a response as hook format if it has that shape and the translator cannot read it."""
    return _mark(value, translator, has_response_shape, lambda used: used.read_response(value))


def mark_fields(hook_input: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of an event whose model data, if it has the shape, is marked as hook format."""
    shapes = {"llm_request": has_request_shape, "llm_response": has_response_shape}
    return {
        name: HookFormat(value) if name in shapes and shapes[name](value) else value
        for name, value in hook_input.items()
    }


def has_request_shape(value: object) -> bool:
    """Whether a value could be a request in hook format: an object with a list of messages."""
    return isinstance(value, Mapping) and isinstance(value.get("messages"), list)


def has_response_shape(value: object) -> bool:
    """Whether a value could be a response in hook format: all parts are strings, or it has only ``text``."""
    if not isinstance(value, Mapping):
        return False
    parts = [part for candidate in _list(value.get("candidates")) for part in _parts(candidate)]
    return all(isinstance(part, str) for part in parts) if parts else isinstance(value.get("text"), str)


def _read(read: Callable[[object], Any], value: object, has_shape: Callable[[object], bool]) -> Any:
    try:
        return read(value)
    except TranslationError as error:
        if not has_shape(value):
            raise
        raise TranslationError(f"{error} If it is in hook format, mark it: HookFormat(data).") from error


def _mark(
    value: object,
    translator: TranslatorChoice,
    has_shape: Callable[[object], bool],
    read: Callable[[AnyTranslator], object],
) -> object:
    if not has_shape(value):
        return value
    data = cast("Mapping[str, Any]", value)
    # google-genai, the default, reads only requests with `contents`, and no responses of this shape: do not import it.
    if translator is None and "contents" not in data:
        return HookFormat(data)
    used = resolve_translator(translator)
    try:
        read(used)
    except TranslationError:
        return HookFormat(data)
    return value


def _marked_data(
    name: str, value: HookFormat[Any], has_shape: Callable[[object], bool], expected: str
) -> dict[str, Any]:
    if not has_shape(value.data):
        raise TranslationError(f"{name} is marked as hook format, but is {described(value.data)}; expected {expected}.")
    return dict(value.data)


def _parts(candidate: object) -> list[Any]:
    content = candidate.get("content") if isinstance(candidate, Mapping) else None
    return _list(content.get("parts")) if isinstance(content, Mapping) else []


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
