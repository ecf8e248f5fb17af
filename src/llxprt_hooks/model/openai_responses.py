"""Hook format ⇄ OpenAI Responses: the arguments of ``client.responses.create``, or its JSON.

Each item of ``input`` is a message, a call, a result or something that hooks do not see. A reasoning item belongs to
the item after it, and the API rejects one without the other: nothing is inserted between them, and if a hook removes
the message that a reasoning item belongs to, the reasoning goes with it. Hooks do not see ``instructions``, nor a
history that the server keeps (``previous_response_id``, ``conversation``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from llxprt_hooks.model.access import as_list, copy_with, field, name_of
from llxprt_hooks.model.conversation import CallKeys, Turn
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
from llxprt_hooks.model.wire.openai_responses import ResponsesWire

if TYPE_CHECKING:
    from llxprt_hooks.model.format import LLMCandidate, LLMToolCall

TEXT_TYPES = ("input_text", "output_text", "text")
RESULT_TYPES = ("_output", "_response")
# A request may have only a history that the server keeps.
CONVERSATIONS = ("input", "previous_response_id", "conversation", "prompt")
INCOMPLETE = {"MAX_TOKENS": "max_output_tokens", "SAFETY": "content_filter"}


class OpenAIResponsesTranslator(OpenAITranslator):
    """Translates requests and responses of the Responses API.

    >>> OpenAIResponsesTranslator().to_hook_llm_request({"model": "gpt-5", "input": "Hello"})
    {'model': 'gpt-5', 'messages': [{'role': 'user', 'content': 'Hello'}], 'config': {}}
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "maxOutputTokens": "max_output_tokens",
        "topP": "top_p",
    }
    REQUEST = "the arguments of responses.create"
    RESPONSE = "a Response with output"
    USAGE = usage("usage", "input_tokens", "output_tokens", "total_tokens")
    FINISH_REASONS: ClassVar[Mapping[str, str]] = {
        "completed": "STOP",
        "max_output_tokens": "MAX_TOKENS",
        "content_filter": "SAFETY",
    }
    wire = ResponsesWire()

    def is_request(self, value: dict[str, Any]) -> bool:
        given = value.get("input")
        is_input = given is None or isinstance(given, str) or has_messages(value, "input")
        return is_input and "messages" not in value and any(name in value for name in CONVERSATIONS)

    def is_response(self, value: Any) -> bool:
        return field(value, "object") == "response" and isinstance(field(value, "output"), (list, tuple))

    def conversation(self, request: Request) -> Sequence[Any]:
        given = request.get("input") or []
        return [self.new_message("user", given)] if isinstance(given, str) else as_list(given)

    def with_conversation(self, request: Request, messages: list[Any]) -> Request:
        return {**request, "input": messages}

    def prompt_turns(self, request: Request) -> Sequence[Turn]:
        text = request.get("instructions")
        instructions = [Turn("system", text, INSTRUCTIONS)] if isinstance(text, str) and text else []
        return [*instructions, *super().prompt_turns(request)]

    def with_prompt_turns(self, request: Request, turns: Sequence[Turn]) -> Request:
        own = [turn for turn in turns if turn.source is INSTRUCTIONS]
        request = {**request, "instructions": own[0].text or None} if own and own[0].changed else request
        others = turns[len(own) :]
        return super().with_prompt_turns(request, others) if any(turn.changed for turn in others) else request

    def seen_in(self, source: Any) -> Seen:
        kind = _type(source)
        if kind == "message":
            return super().seen_in(source)
        if kind.endswith(RESULT_TYPES) and field(source, "output") is not None:
            call = name_of(field(source, "call_id")) or name_of(field(source, "id")) or ""
            return Seen(results=[ToolOutput(call, output_text(field(source, "output")))])
        if kind in CALLS:
            return Seen([_shown_call(source)])
        return Seen(parts=[{"type": kind}])

    def with_results(self, source: Any, texts: Sequence[str]) -> Any:
        return copy_with(source, output=with_output_text(field(source, "output"), texts[0]))

    def with_calls(self, message: Any, wanted: Sequence[Mapping[str, Any] | None]) -> Any | None:
        for call in wanted:
            if call is None:
                return None
            if "args" in call and call["args"] != _shown_call(message)["args"]:
                return copy_with(message, **{CALLS[_type(message)]: arguments_text(call["args"])})
        return message

    def answers_in(self, response: Any) -> Sequence[Sequence[Any]]:
        return [field(response, "output")]

    def with_answers(self, response: Any, answers: Sequence[Sequence[Any]]) -> Any:
        output = [_output_message(item) if isinstance(field(item, "content"), str) else item for item in answers[0]]
        turns = [self.turn_of(item) for item in output]
        kept = [item for item, keeps in zip(output, self._kept(turns), strict=True) if keeps]
        text = "".join(turn.text for turn in turns)
        has_text = isinstance(response, Mapping) and "output_text" in response  # SDKs and some servers add it
        return copy_with(response, output=kept, **({"output_text": text} if has_text else {}))

    def role_of(self, message: Any) -> str:
        kind = _type(message)
        if kind == "message":
            return super().role_of(message)
        return "user" if kind.endswith(RESULT_TYPES) else "model"

    def new_message(self, role: str, text: str) -> Any:
        return {"type": "message", **super().new_message(role, text)}

    def parts_of(self, message: Any) -> Sequence[Any]:
        return super().parts_of(message) if _type(message) == "message" else []

    def text_of(self, part: Any) -> str:
        is_text = isinstance(part, str) or field(part, "type") in TEXT_TYPES
        return super().text_of(part) if is_text else ""

    def with_part_text(self, parts: Sequence[Any], text: str) -> Any:
        part = super().with_part_text(parts, text)
        # They repeat each token of the old text, which a hook may have changed to hide it.
        return copy_with(part, logprobs=[]) if field(part, "logprobs") else part

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        return super().with_parts(message, parts) if parts else None

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        if _type(message) in ("message", "reasoning") or _type(message).endswith(RESULT_TYPES):
            return []
        keys = tuple(key for name in ("call_id", "id") if (key := name_of(field(message, name))))
        return [keys] if keys else []

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        if not _type(message).endswith(RESULT_TYPES):
            return []
        names = ("call_id", "approval_request_id", "id")
        key = next((key for name in names if (key := name_of(field(message, name)))), None)
        return [(key,)] if key else []

    def binds_next(self, message: Any) -> bool:
        return _type(message) == "reasoning"

    def rebuild(self, request: Request, turns: Sequence[Turn]) -> Request:
        return super().rebuild(request, [turn for turn, kept in zip(turns, self._kept(turns), strict=True) if kept])

    def _kept(self, turns: Sequence[Turn]) -> list[bool]:
        """Return which turns stay: reasoning goes if the message after it goes and no other output follows."""
        kept: list[bool] = []
        follows_output = goes = False
        previous = None
        for turn in reversed(turns):
            if turn.binds_next:
                kept.append(not goes or follows_output)
            elif self.message(turn) is not None:
                follows_output, goes = turn.source is not None and turn.role == "model", False
                kept.append(True)
            else:
                # Output belongs to the reasoning item just before it.
                follows_output, goes = follows_output and not (previous and previous.binds_next), True
                kept.append(False)
            previous = turn
        return kept[::-1]

    def tool_name(self, tool: Any) -> str | None:
        """Return the name of a function; hosted tools go by their type, remote servers by their label."""
        names = (name_of(field(tool, name)) for name in ("name", "server_label", "type"))
        return next((name for name in names if name), None)

    def reference(self, tool: Any) -> dict[str, Any]:
        return {name: value for name in ("type", "name", "server_label") if (value := field(tool, name)) is not None}

    def function(self, name: str) -> dict[str, Any]:
        return {"type": "function", "name": name}

    def allowed_tools(self, choice: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
        return {"type": "allowed_tools", "mode": choice, "tools": tools}

    def allowed_in(self, tool_choice: Any) -> Any:
        return tool_choice

    def choices_of(self, response: Any) -> list[Choice]:
        parts = [part for item in field(response, "output") for part in self.parts_of(item) or [item]]
        reason = field(field(response, "incomplete_details"), "reason")
        return [Choice(parts, name_of(reason) or name_of(field(response, "status")), 0)]

    def answer_fields(self, candidates: Sequence[LLMCandidate], base: Mapping[str, Any]) -> dict[str, Any]:
        reason = INCOMPLETE.get(candidates[0].get("finishReason", ""))
        status = "incomplete" if reason else "completed"
        text = {"type": "output_text", "text": text_of(candidates[0]), "annotations": [], "logprobs": []}
        ids = (field(item, "id") for item in as_list(base.get("output")) if _type(item) == "message")
        message = {"id": next(ids, None) or new_id("msg_"), "type": "message", "role": "assistant", "status": status}
        return {
            "output": [{**message, "content": [text]}],
            "status": status,
            "incomplete_details": {"reason": reason} if reason else None,
            "error": None,
            **({"output_text": text["text"]} if "output_text" in base else {}),  # SDKs and some servers add it
        }

    def reason_response(self, request: Request, reason: str) -> Any:
        """Return the reason as text; as a refusal if the program expects JSON, which the reason is not."""
        answer = super().reason_response(request, reason)
        if field(field(self.field(request, "text"), "format"), "type") in (None, "text"):
            return answer
        (message,) = answer["output"]
        return {**answer, "output": [{**message, "content": [{"type": "refusal", "refusal": reason}]}]}

    def blank_response(self, request: Request) -> dict[str, Any]:
        cached = {"cached_tokens": 0, "cache_write_tokens": 0}
        details = {"input_tokens_details": cached, "output_tokens_details": {"reasoning_tokens": 0}}
        copied = ("instructions", "metadata", "temperature", "top_p", "max_output_tokens", "previous_response_id")
        return {
            "id": new_id("resp_"),
            "object": "response",
            "created_at": now(),
            "model": self.field(request, "model") or "",
            "output": [],
            "parallel_tool_calls": request.get("parallel_tool_calls") is not False,
            "tool_choice": self.tool_config_of(request) or "auto",
            "tools": list(as_list(self.tools_of(request))),
            "usage": {**no_tokens(self), **details},
            **{name: self.field(request, name) for name in copied},
        }


INSTRUCTIONS = object()
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The calls of a program's own tools, and where their arguments are."""


def _output_message(message: Any) -> dict[str, Any]:
    """Return a message that a hook added to an answer as the API has it there."""
    text = {"type": "output_text", "text": message["content"], "annotations": [], "logprobs": []}
    return {**message, "id": new_id("msg_"), "status": "completed", "content": [text]}


def _shown_call(item: Any) -> LLMToolCall:
    name = name_of(field(item, "name")) or ""
    call = name_of(field(item, "call_id")) or name_of(field(item, "id")) or ""
    given = field(item, CALLS[_type(item)])
    return {"id": call, "name": name, "args": arguments_of(given) if _type(item) == "function_call" else given}


def _type(item: Any) -> str:
    """Return the type of an item; a message may be without one."""
    return name_of(field(item, "type")) or ("item_reference" if field(item, "role") is None else "message")
