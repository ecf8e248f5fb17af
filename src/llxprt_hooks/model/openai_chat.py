"""Hook format ⇄ OpenAI Chat Completions: the arguments of ``client.chat.completions.create``, or its JSON.

Hooks do not see tool results. ``functions`` and ``function_call``, the older form of tools, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from llxprt_hooks.model.access import as_list, copy_with, field, name_of
from llxprt_hooks.model.full_view import Seen, ToolOutput
from llxprt_hooks.model.json_api import (
    Request,
    arguments_of,
    arguments_text,
    has_messages,
    new_id,
    no_tokens,
    now,
    output_text,
    text_of,
    with_output_text,
)
from llxprt_hooks.model.messages import Choice, usage
from llxprt_hooks.model.openai_api import OpenAITranslator
from llxprt_hooks.model.translator import USUAL_SETTINGS
from llxprt_hooks.model.wire.openai_chat import ChatWire

if TYPE_CHECKING:
    from llxprt_hooks.model.conversation import CallKeys
    from llxprt_hooks.model.format import LLMCandidate, LLMToolCall

RESULT_ROLES = ("tool", "function")
TOOL_TYPES = ("function", "custom")
# Data that a message may have besides its text.
OTHER_DATA = ("tool_calls", "function_call", "audio", "refusal")
FINISHED = {"MAX_TOKENS": "length", "SAFETY": "content_filter"}


class OpenAIChatTranslator(OpenAITranslator):
    """Translates requests and responses of Chat Completions.

    >>> request = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]}
    >>> OpenAIChatTranslator().to_hook_llm_request(request)
    {'model': 'gpt-5', 'messages': [{'role': 'user', 'content': 'Hello'}], 'config': {}}
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {
        **{name: usual for name, usual in USUAL_SETTINGS.items() if name != "topK"},
        "maxOutputTokens": "max_completion_tokens",
        "stopSequences": "stop",
        "candidateCount": "n",
    }
    REQUEST = "the arguments of chat.completions.create"
    RESPONSE = "a ChatCompletion with choices"
    USAGE = usage("usage", "prompt_tokens", "completion_tokens", "total_tokens")
    FINISH_REASONS: ClassVar[Mapping[str, str]] = {
        "stop": "STOP",
        "tool_calls": "STOP",
        "function_call": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
    }
    wire = ChatWire()

    def is_request(self, value: dict[str, Any]) -> bool:
        return has_messages(value)

    def is_response(self, value: Any) -> bool:
        # A chunk of a stream and a legacy completion have choices, too, and may have none.
        kind, choices = name_of(field(value, "object")) or "", field(value, "choices")
        is_other = kind.endswith(".chunk") or kind == "text_completion"
        is_list = isinstance(choices, (list, tuple)) and not is_other
        return is_list and all(field(choice, "message") is not None for choice in choices)

    def field(self, request: Request, name: str) -> Any:
        value = super().field(request, self._spelling(request, name))
        return list(as_list(value)) if name == "stop" and value is not None else value

    def with_fields(self, request: Request, fields: Mapping[str, Any]) -> Request:
        return {**request, **{self._spelling(request, name): value for name, value in fields.items()}}

    def _spelling(self, request: Request, name: str) -> str:
        """Return the name of a field in a request: the token limit has two, and the one that is set counts."""
        if name != "max_completion_tokens" or "max_tokens" not in request:
            return name
        is_older = super().field(request, "max_tokens") is not None or name not in request
        return "max_tokens" if is_older else name

    def parts_of(self, message: Any) -> Sequence[Any]:
        return [] if field(message, "role") in RESULT_ROLES else super().parts_of(message)

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        older = name_of(field(field(message, "function_call"), "name"))
        calls = [name_of(field(call, "id")) for call in as_list(field(message, "tool_calls"))]
        return [(call,) for call in (*calls, older) if call]

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        role = field(message, "role")
        call = field(message, "tool_call_id" if role == "tool" else "name") if role in RESULT_ROLES else None
        return [(call,)] if isinstance(call, str) else []

    def seen_in(self, source: Any) -> Seen:
        role = field(source, "role")
        if role in RESULT_ROLES:
            call, name = name_of(field(source, "tool_call_id")), name_of(field(source, "name"))
            return Seen(results=[ToolOutput(call or name or "", output_text(field(source, "content")), name or "")])
        return Seen([_shown_call(call) for call in _calls(source)], (), super().seen_in(source).parts)

    def with_results(self, source: Any, texts: Sequence[str]) -> Any:
        return copy_with(source, content=with_output_text(field(source, "content"), texts[0]))

    def with_calls(self, message: Any, wanted: Sequence[Mapping[str, Any] | None]) -> Any | None:
        calls = [
            _with_arguments(call, given["args"]) if "args" in given and given != _shown_call(call) else call
            for call, given in zip(_calls(message), wanted, strict=True)
            if given is not None
        ]
        older = field(message, "function_call")
        fields: dict[str, Any] = {"tool_calls": [call for call in calls if not _is_older(call)] or None}
        if older is not None:
            fields["function_call"] = next(filter(_is_older, calls), None)
        if not calls and field(message, "content") is None:
            fields["content"] = ""
        return copy_with(message, **fields)

    def answers_in(self, response: Any) -> Sequence[Sequence[Any]]:
        return [[field(choice, "message")] for choice in field(response, "choices")]

    def with_answers(self, response: Any, answers: Sequence[Sequence[Any]]) -> Any:
        choices = []
        for choice, messages in zip(field(response, "choices"), answers, strict=True):
            old = field(choice, "message")
            *added, message = messages
            message = copy_with(message, content=field(added[0], "content")) if added else message
            changed: dict[str, Any] = {}
            if not _calls(message) and field(choice, "finish_reason") in ("tool_calls", "function_call"):
                changed["finish_reason"] = "stop"
            if field(choice, "logprobs") is not None and field(message, "content") != field(old, "content"):
                changed["logprobs"] = None  # they repeat each token of the old text
            choices.append(copy_with(choice, message=message, **changed))
        return copy_with(response, choices=choices)

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        has_more = any(field(message, name) for name in OTHER_DATA)
        return super().with_parts(message, parts) if parts or has_more else None

    def tool_name(self, tool: Any) -> str | None:
        return name_of(field(field(tool, _tool_type(tool)), "name"))

    def reference(self, tool: Any) -> dict[str, Any]:
        kind = _tool_type(tool)
        return {"type": kind, kind: {"name": self.tool_name(tool)}}

    def function(self, name: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name}}

    def allowed_tools(self, choice: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": tools}}

    def allowed_in(self, tool_choice: Any) -> Any:
        return field(tool_choice, "allowed_tools")

    def choices_of(self, response: Any) -> list[Choice]:
        return [
            Choice(
                [*self.parts_of(field(choice, "message")), *as_list(field(field(choice, "message"), "tool_calls"))],
                name_of(field(choice, "finish_reason")),
                field(choice, "index") or 0,
            )
            for choice in field(response, "choices")
        ]

    def answer_fields(self, candidates: Sequence[LLMCandidate], base: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "choices": [
                {
                    "index": candidate.get("index", index),
                    "message": {"role": "assistant", "content": text_of(candidate), "refusal": None},
                    "finish_reason": FINISHED.get(candidate.get("finishReason", ""), "stop"),
                    "logprobs": None,
                }
                for index, candidate in enumerate(candidates)
            ]
        }

    def reason_response(self, request: Request, reason: str) -> Any:
        """Return the reason as text; as a refusal if the program expects JSON, which the reason is not."""
        answer = super().reason_response(request, reason)
        if field(self.field(request, "response_format"), "type") in (None, "text"):
            return answer
        (choice,) = answer["choices"]
        return {**answer, "choices": [{**choice, "message": {**choice["message"], "content": None, "refusal": reason}}]}

    def blank_response(self, request: Request) -> dict[str, Any]:
        return {
            "id": new_id("chatcmpl-"),
            "object": "chat.completion",
            "created": now(),
            "model": self.field(request, "model") or "",
            "choices": [],
            "usage": no_tokens(self),
        }


def _calls(message: Any) -> list[Any]:
    older = field(message, "function_call")
    return [*as_list(field(message, "tool_calls")), *([older] if older is not None else [])]


def _is_older(call: Any) -> bool:
    return field(call, "id") is None and field(call, "function") is None and field(call, "custom") is None


def _shown_call(call: Any) -> LLMToolCall:
    function = call if _is_older(call) else field(call, _tool_type(call))
    name = name_of(field(function, "name")) or ""
    given = field(function, "arguments")
    args = field(function, "input") if given is None else arguments_of(given)
    return {"id": name_of(field(call, "id")) or name, "name": name, "args": {} if args is None else args}


def _with_arguments(call: Any, args: Any) -> Any:
    if _is_older(call):
        return copy_with(call, arguments=arguments_text(args))
    kind = _tool_type(call)
    changed = {"input" if kind == "custom" else "arguments": arguments_text(args)}
    return copy_with(call, **{kind: copy_with(field(call, kind), **changed)})


def _tool_type(tool: Any) -> str:
    return next((kind for kind in TOOL_TYPES if field(tool, kind) is not None), "function")
