"""Translation between an SDK's types and the stable format that hook scripts read and write (HOOK-071).

- ``format``: the hook format, and ``HookFormat``, which marks data that is in it
- ``conversation``, ``alignment``: where the messages that a hook returned belong
- ``translator``: what each SDK implements; ``registry``: the translators by name, one line each
- ``messages``: the base for SDKs of messages with parts; ``json_api``, ``openai_api``: what APIs of JSON share
- ``google_genai``, ``openai_chat``, ``openai_responses``, ``anthropic_messages``: one module per SDK or API
- ``wire``: these APIs over HTTP: paths, streams, and answers without the calls that hooks refuse
- ``answers``: the well-formed part of what hooks wrote; ``restriction``: which tools they allow
- ``payload``: a caller's model data as hooks receive it; ``outputs``: the answers of hooks in the caller's types

Importing this package imports no SDK; ``resolve_translator`` does.
"""

from llxprt_hooks.model.conversation import Turn
from llxprt_hooks.model.format import GenerateContentParameters, HookFormat, TranslationError
from llxprt_hooks.model.payload import mark_request, mark_response, request_payload, response_payload
from llxprt_hooks.model.registry import check_translator_name, http_apis, resolve_translator
from llxprt_hooks.model.restriction import Restriction
from llxprt_hooks.model.translator import AnyTranslator, HookTranslator, TranslatorChoice

__all__ = [
    "AnyTranslator",
    "GenerateContentParameters",
    "HookFormat",
    "HookTranslator",
    "Restriction",
    "TranslationError",
    "TranslatorChoice",
    "Turn",
    "check_translator_name",
    "http_apis",
    "mark_request",
    "mark_response",
    "request_payload",
    "resolve_translator",
    "response_payload",
]
