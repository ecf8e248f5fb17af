"""The translators by name. Each one is imported on first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from llxprt_hooks._support.text import missing_extra
from llxprt_hooks.model.format import TranslationError

if TYPE_CHECKING:
    from llxprt_hooks.model.translator import AnyTranslator, TranslatorChoice


class _Translator(NamedTuple):
    """The module and class of a translator, and the extra of this package that installs its SDK."""

    module: str
    name: str
    extra: str
    has_wire: bool = True
    """Whether the API over HTTP is described, too; known without importing the SDK."""


TRANSLATORS = {
    "google-genai": _Translator("google_genai", "HookTranslatorGenAIv1", "agent", has_wire=False),
    "openai-chat": _Translator("openai_chat", "OpenAIChatTranslator", "openai"),
    "openai-responses": _Translator("openai_responses", "OpenAIResponsesTranslator", "openai"),
    "anthropic-messages": _Translator("anthropic_messages", "AnthropicMessagesTranslator", "anthropic"),
}
DEFAULT = "google-genai"


def http_apis() -> list[str]:
    """Return the names of the translators that have a ``wire``."""
    return [name for name, entry in TRANSLATORS.items() if entry.has_wire]


def check_translator_name(translator: TranslatorChoice) -> None:
    """Raise ``TranslationError`` for a name that no translator has, without importing any."""
    if isinstance(translator, str) and translator not in TRANSLATORS:
        raise TranslationError(f"Unknown translator {translator!r}; expected one of {', '.join(TRANSLATORS)}.")


def resolve_translator(translator: TranslatorChoice = None) -> AnyTranslator:
    """Return a translator, given as an object or by name; None is google-genai's, which the first call imports.

    Raises ``TranslationError`` if the name is unknown or the SDK cannot be imported.
    """
    translator = DEFAULT if translator is None else translator
    return _translator_named(translator) if isinstance(translator, str) else translator


@cache
def _translator_named(name: str) -> AnyTranslator:
    check_translator_name(name)
    entry = TRANSLATORS[name]
    try:
        translator: AnyTranslator = getattr(import_module(f"{__package__}.{entry.module}"), entry.name)()
    except ImportError as error:
        raise TranslationError(missing_extra(f"The translator {name}", entry.extra, error)) from error
    return translator
