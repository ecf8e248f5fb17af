"""The translator that the engine uses, made when it is first needed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from llxprt_hooks.model.translator import TranslationError, in_hook_request_format, in_hook_response_format

if TYPE_CHECKING:
    from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1
    from llxprt_hooks.model.translator import LLMRequest, LLMResponse


@cache
def default_translator() -> HookTranslatorGenAIv1:
    """The one translator that all share; the first call imports google-genai."""
    try:
        from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1
    except ImportError as error:
        raise TranslationError(
            f"Translating model requests needs google-genai, which cannot be imported ({error}): "
            "install it with pip install 'llxprt-hooks[agent]'."
        ) from error
    return HookTranslatorGenAIv1()


def request_payload(value: object) -> LLMRequest:
    """``llm_request`` for a hook (D-16); data that is in hook format already needs no SDK.

    >>> request_payload({"messages": [{"role": "user", "content": "hi"}]})
    {'messages': [{'role': 'user', 'content': 'hi'}]}
    """
    ready = in_hook_request_format(value)
    return default_translator().request_payload(value) if ready is None else ready


def response_payload(value: object) -> LLMResponse:
    """``llm_response`` for a hook (D-16); data that is in hook format already needs no SDK."""
    ready = in_hook_response_format(value)
    return default_translator().response_payload(value) if ready is None else ready
