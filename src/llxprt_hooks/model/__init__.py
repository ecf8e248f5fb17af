"""Model data between an SDK's types and the stable format that hook scripts read and write (HOOK-071).

Importing this package imports no SDK: ``default_translator()`` does, when it is first called.
"""

from llxprt_hooks.model.default import default_translator, request_payload, response_payload
from llxprt_hooks.model.translator import (
    AnyTranslator,
    GenerateContentParameters,
    HookToolConfig,
    HookTranslator,
    LLMCandidate,
    LLMConfig,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    TranslationError,
)

__all__ = [
    "AnyTranslator",
    "GenerateContentParameters",
    "HookToolConfig",
    "HookTranslator",
    "LLMCandidate",
    "LLMConfig",
    "LLMContent",
    "LLMMessage",
    "LLMRequest",
    "LLMResponse",
    "LLMSafetyRating",
    "LLMUsage",
    "TranslationError",
    "default_translator",
    "request_payload",
    "response_payload",
]
