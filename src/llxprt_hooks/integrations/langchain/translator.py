"""Hook format ⇄ LangChain: the requests and answers that middleware of an agent gets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from langchain.agents.middleware.types import ModelRequest
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from llxprt_hooks.model import answers
from llxprt_hooks.model.access import as_list, field
from llxprt_hooks.model.anthropic_messages import SAMPLING, AnthropicMessagesTranslator
from llxprt_hooks.model.format import HookToolConfig, LLMToolCall, TranslationError
from llxprt_hooks.model.full_view import Seen, ToolOutput
from llxprt_hooks.model.json_api import arguments_text, output_text, with_output_text
from llxprt_hooks.model.messages import Choice, MessageTranslator, expected, usage
from llxprt_hooks.model.openai_chat import OpenAIChatTranslator
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from llxprt_hooks.model.translator import USUAL_SETTINGS

if TYPE_CHECKING:
    from langchain_core.messages.ai import UsageMetadata

    from llxprt_hooks.model.conversation import CallKeys, Turn

Request: TypeAlias = ModelRequest[Any]


class ChoiceOfNames(str):
    """A tool choice with the names that hooks allow, as hooks know them."""

    allowed: Sequence[str] | None = None


_CHOICES = {"AUTO": "auto", "ANY": "any", "NONE": "none"}
_MODES = {"auto": "AUTO", "any": "ANY", "required": "ANY", "none": "NONE"}
# How a provider's `bind_tools` is told that no tool may be called.
_NO_TOOL = {"openai-chat": "none", "azure-openai-chat": "none", "anthropic-chat": {"type": "none"}}
_SPELLINGS = {"max_tokens": ("max_tokens", "max_output_tokens"), "stop": ("stop", "stop_sequences")}
_THINKING = ("reasoning", "redacted_thinking", "thinking")
_KEPT_METADATA = ("model", "model_name", "model_provider")
_FINISHED = {"MAX_TOKENS": "length", "SAFETY": "content_filter"}


class LangChainTranslator(MessageTranslator[Request, AIMessage, Any]):
    """Translates the requests and answers that middleware of an agent gets.

    By default, hooks do not see the system prompt and tool results. A system message of a hook becomes a user message
    that starts with ``[System]``: most providers accept no other.
    """

    SETTINGS: ClassVar = {
        **USUAL_SETTINGS,
        "maxOutputTokens": "max_tokens",
        "stopSequences": "stop",
        "candidateCount": "n",
    }
    TOOL_CONFIG = "tool_choice"
    USAGE = usage("usage_metadata", "input_tokens", "output_tokens", "total_tokens")
    FINISH_REASONS: ClassVar[Mapping[str, str]] = {
        **AnthropicMessagesTranslator.FINISH_REASONS,
        **OpenAIResponsesTranslator.FINISH_REASONS,
        **OpenAIChatTranslator.FINISH_REASONS,
    }

    def __init__(self, hook_name: Callable[[str], str] = str) -> None:
        self._hook_name = hook_name

    def read_request(self, value: object) -> Request:
        return expected(value, ModelRequest, "llm_request", "LangChain's ModelRequest")

    def read_response(self, value: object) -> AIMessage:
        return expected(value, AIMessage, "llm_response", "LangChain's AIMessage")

    def field(self, request: Request, name: str) -> Any:
        if name == "model":
            return model_name_of(request.model)
        if name in ("tools", self.TOOL_CONFIG):
            return getattr(request, name) or None
        spelling = self._spelling(request, name)
        value = request.model_settings.get(spelling, getattr(request.model, spelling, None))
        return list(as_list(value)) if name == "stop" and value is not None else value

    def with_fields(self, request: Request, fields: Mapping[str, Any]) -> Request:
        own = {name: value for name, value in fields.items() if name in ("model", "tools", self.TOOL_CONFIG)}
        settings = {self._spelling(request, name): value for name, value in fields.items() if name not in own}
        if "model" in own:
            own["model"] = _with_name(request.model, own["model"])
        if settings:
            own["model_settings"] = {**request.model_settings, **settings}
        return request.override(**own)

    def supports(self, request: Request, setting: str) -> bool:
        name = self.SETTINGS[setting]
        if setting in SAMPLING and field(request.model, "_llm_type") == "anthropic-chat":
            # Newer models reject these, unless the program has tried.
            return any(self.field(request, sampling) is not None for sampling in SAMPLING.values())
        spelling = self._spelling(request, name)
        return name == "stop" or spelling in request.model_settings or hasattr(request.model, spelling)

    def _spelling(self, request: Request, name: str) -> str:
        """Return the name of a setting in a request, or else in its model."""
        spellings = _SPELLINGS.get(name, (name,))
        given = [spelling for spelling in spellings if spelling in request.model_settings]
        own = [spelling for spelling in spellings if hasattr(request.model, spelling)]
        return [*given, *own, name][0]

    def messages(self, request: Request) -> Sequence[Any]:
        return request.messages[len(_prompt(request)) :]

    def with_messages(self, request: Request, messages: list[Any]) -> Request:
        return request.override(messages=[*_prompt(request), *messages])

    def role_of(self, message: Any) -> str:
        return {"ai": "model", "system": "system"}.get(message.type, "user")

    def new_message(self, role: str, text: str) -> Any:
        return AIMessage(text) if role == "model" else HumanMessage(f"[System] {text}" if role == "system" else text)

    def parts_of(self, message: Any) -> Sequence[Any]:
        return [] if message.type in ("tool", "function") else super().parts_of(message)

    def text_of(self, part: Any) -> str:
        return super().text_of(part) if isinstance(part, str) or field(part, "type") == "text" else ""

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        if all(field(part, "type") in _THINKING for part in parts) and not self.calls_in(message):
            return None
        is_text = isinstance(message.content, str) or not parts
        return message.model_copy(update={"content": (parts or [""])[0] if is_text else parts})

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
        return [(call["id"],) for call in calls if call["id"]]

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        return [(message.tool_call_id,)] if isinstance(message, ToolMessage) else []

    def prompt_turns(self, request: Request) -> Sequence[Turn]:
        own = [] if request.system_message is None else [request.system_message]
        return [self.turn_of(message) for message in (*own, *_prompt(request))]

    def with_prompt_turns(self, request: Request, turns: Sequence[Turn]) -> Request:
        system, *others = [self.message(turn) for turn in turns]
        if request.system_message is None:
            system, others = None, [system, *others]
        prompt = [message for message in others if message is not None]
        messages = [*prompt, *request.messages[len(others) :]]
        return request.override(system_message=cast("SystemMessage | None", system), messages=messages)

    def seen_in(self, source: Any) -> Seen:
        if isinstance(source, ToolMessage):
            output = output_text(source.content)
            return Seen(results=[ToolOutput(source.tool_call_id, output, self._hook_name(source.name or ""))])
        calls = [self._shown_call(call) for call in _calls(source)]
        return Seen(calls, (), [part for part in super().seen_in(source).parts if part["type"] not in _CALL_BLOCKS])

    def with_results(self, source: Any, texts: Sequence[str]) -> Any:
        return source.model_copy(update={"content": with_output_text(source.content, texts[0])})

    def with_calls(self, message: Any, wanted: Sequence[Mapping[str, Any] | None]) -> Any | None:
        """Return a message with other calls, also where a provider's own data repeats them."""
        kept = [
            {**call, "args": given.get("args", call["args"])}
            for call, given in zip(_calls(message), wanted, strict=True)
            if given is not None
        ]
        args = {call["id"]: call["args"] for call in kept}
        update: dict[str, Any] = {
            "tool_calls": [call for call in kept if call.get("type") != "invalid_tool_call"],
            "invalid_tool_calls": [call for call in kept if call.get("type") == "invalid_tool_call"],
            "additional_kwargs": {k: v for k, v in message.additional_kwargs.items() if k not in _REPEATED_CALLS},
        }
        if not isinstance(message.content, str):
            blocks = (_block_with(block, args) for block in message.content)
            update["content"] = [block for block in blocks if block is not None]
        return message.model_copy(update=update)

    def _shown_call(self, call: Any) -> LLMToolCall:
        args = call["args"] or {}
        return {"id": call["id"] or call["name"] or "", "name": self._hook_name(call["name"] or ""), "args": args}

    def answers_in(self, response: AIMessage) -> Sequence[Sequence[Any]]:
        return [[response]]

    def with_answers(self, response: AIMessage, answers: Sequence[Sequence[Any]]) -> AIMessage:
        *added, message = answers[0] or [response.model_copy(update={"content": "", **_NO_CALLS})]
        if added:
            text = added[0].content
            is_text = isinstance(message.content, str)
            content = text if is_text else [{"type": "text", "text": text}, *message.content]
            message = message.model_copy(update={"content": content})
        metadata = message.response_metadata
        ended = {} if _calls(message) else {name: "stop" for name in _FINISH if metadata.get(name) in _CALLED}
        kept = {name: metadata[name] for name in (*_KEPT_METADATA, *_FINISH) if name in metadata}
        changed: AIMessage = message.model_copy(update={"response_metadata": {**kept, **ended}})
        return changed

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        if isinstance(tool_config, ChoiceOfNames):
            shown: HookToolConfig = {"mode": _MODES[tool_config]}
            return shown if tool_config.allowed is None else {**shown, "allowedFunctionNames": [*tool_config.allowed]}
        if not tool_config:
            return {}
        if tool_config is True:
            return {"mode": "ANY"}
        kind = tool_config if isinstance(tool_config, str) else field(tool_config, "type")
        if kind in _MODES:
            return {"mode": _MODES[kind]}
        name = tool_config if isinstance(tool_config, str) else tool_name(tool_config)
        return {"mode": "ANY", "allowedFunctionNames": [self._hook_name(name)]}

    def build_tool_config(self, tool_config: HookToolConfig, base: Any) -> Any:
        if base is not None and tool_config == self.to_hook_tool_config(base):
            return base
        choice = ChoiceOfNames(_CHOICES[tool_config.get("mode", "AUTO")])
        choice.allowed = tool_config.get("allowedFunctionNames")
        return choice

    def sendable(self, request: Request) -> Request:
        """Return a request with a tool choice that LangChain can send.

        It cannot name several tools: the others are left out. Where a provider cannot be told that no tool may be
        called, tools stay, and the calls in the answer are refused.
        """
        choice = request.tool_choice
        if not isinstance(choice, ChoiceOfNames):
            return request
        allowed = choice.allowed
        tools = [tool for tool in request.tools if allowed is None or self._hook_name(tool_name(tool)) in allowed]
        if choice == "none" or not tools:
            tools = [tool for tool in request.tools if isinstance(tool, BaseTool)]  # not those that the provider runs
            return request.override(tools=tools, tool_choice=_NO_TOOL.get(field(request.model, "_llm_type")))
        return request.override(tools=tools, tool_choice="any" if choice == "any" else None)

    def choices_of(self, response: AIMessage) -> Sequence[Choice]:
        return [Choice([*self.parts_of(response), *response.tool_calls], _finish_reason(response), 0)]

    def from_hook_llm_response(self, hook_response: Mapping[str, Any], base: AIMessage | None = None) -> AIMessage:
        """Return an answer with the hook's text.

        Of the original's metadata only the model is kept: the rest may repeat the replaced text, or refer to it.
        """
        answer = answers.read_response(hook_response)
        finish_reason = answer["candidates"][0].get("finishReason", "")
        metadata = {} if base is None else base.response_metadata
        old_usage = field(base, "usage_metadata") or {}
        counts = self.sdk_counts(answer.get("usageMetadata", {}), old_usage)
        usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, **old_usage, **counts}
        return AIMessage(
            answer["text"],
            id=field(base, "id"),
            name=field(base, "name"),
            response_metadata={
                **{name: metadata[name] for name in _KEPT_METADATA if name in metadata},
                "finish_reason": _FINISHED.get(finish_reason, "stop"),
            },
            usage_metadata=cast("UsageMetadata", usage) if any(usage.values()) else None,
        )


_CALL_BLOCKS = ("tool_use", "tool_call", "function_call")
_REPEATED_CALLS = ("tool_calls", "function_call")
_NO_CALLS: Mapping[str, Any] = {"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}}
_FINISH = ("finish_reason", "stop_reason")
_CALLED = ("tool_calls", "tool_use", "function_call")


def _calls(message: Any) -> list[Any]:
    return [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []


def _block_with(block: Any, args: Mapping[str | None, Any]) -> Any | None:
    """Return a block of a message's content with the arguments of its call; None if the call was left out."""
    if field(block, "type") not in _CALL_BLOCKS:
        return block
    call = field(block, "call_id") or field(block, "id")
    if call not in args:
        return None
    given = args[call]
    names = {"input": given, "args": given, "arguments": arguments_text(given)}
    return {**block, **{name: value for name, value in names.items() if name in block}}


def _prompt(request: Request) -> list[AnyMessage]:
    """Return the leading system messages: they are part of the system prompt."""
    return list(takewhile(lambda message: isinstance(message, SystemMessage), request.messages))


def tool_name(tool: Any) -> str:
    """Return the name of a tool, or of what a tool choice requires; tools of a provider may only have a type."""
    function = field(tool, "function")
    return str(field(tool, "name") or field(function, "name") or field(tool, "type") or "")


def _model_field(model: Any) -> str | None:
    fields = getattr(type(model), "model_fields", {})
    return next((name for name in ("model_name", "model", "model_id") if name in fields), None)


def model_name_of(model: Any) -> str | None:
    name = getattr(model, _model_field(model) or "model_name", None)
    return name if isinstance(name, str) else None


def _with_name(model: Any, name: str) -> Any:
    """Return another model: of any provider, if the name starts with it, as in ``openai:gpt-5``, or of the same."""
    if re.match("[a-z_]+:", name):
        try:
            return _initialized(name)
        except ValueError:  # not a provider: `ft:gpt-5:…` is a name of OpenAI
            pass
    if (own := _model_field(model)) is None:
        raise TranslationError(f"{type(model).__name__} has no field for the name of the model.")
    return model.model_copy(update={own: name})


@cache
def _initialized(name: str) -> Any:
    return init_chat_model(name)


def _finish_reason(response: AIMessage) -> str | None:
    metadata = response.response_metadata
    incomplete = field(metadata.get("incomplete_details"), "reason")
    reasons = (metadata.get("finish_reason"), metadata.get("stop_reason"), incomplete, metadata.get("status"))
    return next((reason for reason in reasons if isinstance(reason, str)), None)
