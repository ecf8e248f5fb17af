"""Hook format ⇄ Anthropic Messages: the arguments of ``client.messages.create``, or its JSON.

- Hooks do not see ``system``. The API has no system role that every model accepts: a message of a hook becomes a user
  message that starts with ``[System]``. The API combines messages of the same role that follow each other.
- Thinking stays in its message. The API rejects a message of thinking alone: if a hook removes the text that the
  thinking led to, and there is no call, the thinking goes with it.
- Tools are restricted by ``tool_choice``. It cannot name several tools: then the others are removed from ``tools``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.model.access import as_list, copy_with, field, name_of
from llxprt_hooks.model.full_view import ToolOutput
from llxprt_hooks.model.json_api import (
    JSONTranslator,
    Request,
    ToolChoice,
    dumped,
    has_messages,
    new_id,
    no_tokens,
    output_text,
    text_of,
    with_output_text,
)
from llxprt_hooks.model.messages import Choice, usage
from llxprt_hooks.model.wire.anthropic_messages import MessagesWire

if TYPE_CHECKING:
    from llxprt_hooks.model.conversation import CallKeys, Turn
    from llxprt_hooks.model.format import HookToolConfig, LLMCandidate, LLMToolCall

log = debug_logger("translator")

THINKING = ("thinking", "redacted_thinking")
MODES = {"none": "NONE", "auto": "AUTO", "any": "ANY", "tool": "ANY"}
CHOICES = {"NONE": "none", "AUTO": "auto", "ANY": "any"}
STOPPED = {"MAX_TOKENS": "max_tokens", "SAFETY": "refusal"}
# Newer models reject these: a hook may change them only if the request has one already.
SAMPLING = {"temperature": "temperature", "topP": "top_p", "topK": "top_k"}


class RestrictedChoice(dict[str, Any]):
    """A tool choice with the names that hooks allow, for which the API has no field."""

    allowed: Sequence[str]


class AnthropicMessagesTranslator(JSONTranslator):
    """Translates requests and responses of the Messages API.

    >>> request = {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
    >>> AnthropicMessagesTranslator().to_hook_llm_request(request)["config"]
    {'maxOutputTokens': 100}
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {
        **SAMPLING,
        "maxOutputTokens": "max_tokens",
        "stopSequences": "stop_sequences",
    }
    REQUEST = "the arguments of messages.create"
    RESPONSE = "a Message with content"
    USAGE = usage("usage", "input_tokens", "output_tokens")
    CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
    FINISH_REASONS: ClassVar[Mapping[str, str]] = {
        "end_turn": "STOP",
        "stop_sequence": "STOP",
        "tool_use": "STOP",
        "max_tokens": "MAX_TOKENS",
        "model_context_window_exceeded": "MAX_TOKENS",
        "refusal": "SAFETY",
    }
    wire = MessagesWire()

    def is_request(self, value: dict[str, Any]) -> bool:
        return has_messages(value)

    def is_response(self, value: Any) -> bool:
        return field(value, "type") == "message" and isinstance(field(value, "content"), (list, tuple))

    def supports(self, request: Request, setting: str) -> bool:
        is_sampled = any(self.field(request, name) is not None for name in SAMPLING.values())
        return super().supports(request, setting) and (is_sampled or setting not in SAMPLING)

    def new_message(self, role: str, text: str) -> Any:
        return super().new_message("user", f"[System] {text}") if role == "system" else super().new_message(role, text)

    def text_of(self, part: Any) -> str:
        is_text = isinstance(part, str) or field(part, "type") == "text"
        return super().text_of(part) if is_text else ""

    def with_part_text(self, parts: Sequence[Any], text: str) -> Any:
        marks = [mark for part in parts if (mark := field(part, "cache_control")) is not None]
        part = super().with_part_text(parts, text)
        return copy_with(part, cache_control=marks[-1]) if marks else part

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        is_empty = all(field(part, "type") in THINKING for part in parts)
        return None if is_empty else super().with_parts(message, parts)

    def prompt_turns(self, request: Request) -> Sequence[Turn]:
        system = self.field(request, "system")
        return [self.turn_of({"role": "system", "content": system})] if system else []

    def with_prompt_turns(self, request: Request, turns: Sequence[Turn]) -> Request:
        message = self.message(turns[0])
        if message is None or not message["content"]:
            return {name: value for name, value in request.items() if name != "system"}
        return {**request, "system": message["content"]}

    def call_in(self, part: Any) -> LLMToolCall | None:
        if field(part, "type") != "tool_use":
            return None
        name, call = name_of(field(part, "name")) or "", name_of(field(part, "id")) or ""
        return {"id": call, "name": name, "args": _plain(field(part, "input") or {})}

    def with_call(self, part: Any, args: Any) -> Any:
        return copy_with(part, input=args)

    def result_in(self, part: Any) -> ToolOutput | None:
        if field(part, "type") != "tool_result":
            return None
        return ToolOutput(name_of(field(part, "tool_use_id")) or "", output_text(field(part, "content")))

    def with_result(self, part: Any, text: str) -> Any:
        return copy_with(part, content=with_output_text(field(part, "content"), text))

    def answers_in(self, response: Any) -> Sequence[Sequence[Any]]:
        return [[response]]

    def with_answers(self, response: Any, answers: Sequence[Sequence[Any]]) -> Any:
        blocks = [block for message in answers[0] for block in self.parts_of(message)]
        added = [{"type": "text", "text": block, "citations": None} for block in blocks if isinstance(block, str)]
        content = [block for block in blocks if not isinstance(block, str)]
        thinking = list(takewhile(lambda block: field(block, "type") in THINKING, content))
        changed = copy_with(response, content=[*thinking, *added, *content[len(thinking) :]])
        is_called = field(changed, "stop_reason") != "tool_use" or self.seen_in(changed).calls
        return changed if is_called else copy_with(changed, stop_reason="end_turn")

    def calls_in(self, message: Any) -> Sequence[CallKeys]:
        return [(call,) for call in _ids(message, "tool_use", "id") if call not in _ids(message, *RESULT)]

    def results_in(self, message: Any) -> Sequence[CallKeys]:
        return [(call,) for call in _ids(message, *RESULT) if call not in _ids(message, "tool_use", "id")]

    def with_tool_config(self, request: Request, tool_config: ToolChoice) -> Request:
        tools = as_list(self.tools_of(request))
        if not tools:
            return request  # the API rejects a choice without tools
        shown = self.to_hook_tool_config(tool_config)
        if shown == self.to_hook_tool_config(self.tool_config_of(request)):
            return request
        if (names := shown.get("allowedFunctionNames")) is not None:
            declared = [name for tool in tools if (name := name_of(field(tool, "name"))) in names]
            tool_config = self.build_tool_config({**shown, "allowedFunctionNames": declared}, tool_config)
        thinking = field(self.field(request, "thinking"), "type") not in (None, "disabled")
        if thinking and shown.get("mode") == "ANY":
            log.warning(
                "a hook requires a tool call, but the API rejects that while thinking is on; the model may choose"
            )
            tool_config = self.build_tool_config({**self.to_hook_tool_config(tool_config), "mode": "AUTO"}, None)
        if isinstance(tool_config, RestrictedChoice):
            request = {**request, "tools": [tool for tool in tools if field(tool, "name") in tool_config.allowed]}
        return super().with_tool_config(request, tool_config)

    def to_hook_tool_config(self, tool_config: ToolChoice | None) -> HookToolConfig:
        kind = field(tool_config, "type")
        shown: HookToolConfig = {"mode": MODES[kind]} if kind in MODES else {}
        if kind == "tool":
            shown["allowedFunctionNames"] = [field(tool_config, "name")]
        elif isinstance(tool_config, RestrictedChoice):
            shown["allowedFunctionNames"] = list(tool_config.allowed)
        return shown

    def build_tool_config(self, tool_config: HookToolConfig, base: ToolChoice | None) -> ToolChoice:
        if base is not None and tool_config == self.to_hook_tool_config(base):
            return base
        names, mode = tool_config.get("allowedFunctionNames"), tool_config.get("mode", "AUTO")
        if mode == "NONE" or names == []:
            return {"type": "none"}
        disable = field(base, "disable_parallel_tool_use")
        others = {} if disable is None else {"disable_parallel_tool_use": disable}
        if names is None:
            return {"type": CHOICES[mode], **others}
        if mode == "ANY" and len(names) == 1:
            return {"type": "tool", "name": names[0], **others}
        choice = RestrictedChoice(type=CHOICES[mode], **others)
        choice.allowed = tuple(names)
        return choice

    def choices_of(self, response: Any) -> list[Choice]:
        return [Choice(self.parts_of(response), name_of(field(response, "stop_reason")), 0)]

    def answer_fields(self, candidates: Sequence[LLMCandidate], base: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "content": [{"type": "text", "text": text_of(candidates[0]), "citations": None}],
            "stop_reason": STOPPED.get(candidates[0].get("finishReason", ""), "end_turn"),
            "stop_sequence": None,
            **({"stop_details": None} if "stop_details" in base else {}),
        }

    def blank_response(self, request: Request) -> dict[str, Any]:
        return {
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": self.field(request, "model") or "",
            "content": [],
            "usage": no_tokens(self),
        }


RESULT = ("tool_result", "tool_use_id")


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, Mapping)) else dumped(value)


def _ids(message: Any, kind: str, name: str) -> list[str]:
    """Return the ids of calls or results in a message, of the program's tools and of tools that the API runs."""
    blocks = as_list(field(message, "content"))
    found = [field(block, name) for block in blocks if (name_of(field(block, "type")) or "").endswith(kind)]
    return [value for value in found if isinstance(value, str)]
