"""Hook format ⇄ OpenAI Chat Completions, as plain dicts or as the SDK's objects. The SDK itself is not imported.

A request is the keyword arguments of ``client.chat.completions.create``. A response, and each message in a request, may
be a dict or the SDK's own object.

- The leading ``system`` and ``developer`` messages are the system prompt, which hooks do not see. Hooks do not see
  results of tools either.
- A message with a list of parts keeps its images and files: the first text part gets the new text, the other text parts
  are removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar, TypeAlias

from llxprt_hooks.model import answers
from llxprt_hooks.model.access import as_list, copy_with, described, field, is_copyable
from llxprt_hooks.model.conversation import Turn
from llxprt_hooks.model.format import HookToolConfig, LLMCandidate, LLMResponse, TranslationError
from llxprt_hooks.model.translator import HookTranslator, build_hook_response

Request: TypeAlias = dict[str, Any]
ToolChoice: TypeAlias = str | dict[str, Any]

ROLES = {"assistant": "model", "system": "system", "developer": "system"}
PROMPT_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
TOOL_TYPES = ("function", "custom")
# Data that a message may have besides its text.
OTHER_DATA = ("tool_calls", "function_call", "audio", "refusal")
MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
CHOICES = {mode: choice for choice, mode in MODES.items()}
FINISH_REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
FINISHED = {"MAX_TOKENS": "length", "SAFETY": "content_filter"}
USAGE = {
    "promptTokenCount": "prompt_tokens",
    "candidatesTokenCount": "completion_tokens",
    "totalTokenCount": "total_tokens",
}


class OpenAIChatTranslator(HookTranslator[Request, Any, ToolChoice]):
    """Translates requests and responses of Chat Completions.

    >>> request = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]}
    >>> OpenAIChatTranslator().to_hook_llm_request(request)
    {'model': 'gpt-5', 'messages': [{'role': 'user', 'content': 'Hello'}], 'config': {}}
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "maxOutputTokens": "max_completion_tokens",
        "topP": "top_p",
        "stopSequences": "stop",
        "candidateCount": "n",
        "presencePenalty": "presence_penalty",
        "frequencyPenalty": "frequency_penalty",
    }
    TOOL_CONFIG = "tool_choice"

    def read_request(self, value: object) -> Request:
        if isinstance(value, dict) and not _is_hook_format(value):
            messages = value.get("messages")
            if isinstance(messages, (list, tuple)) and all(map(_is_message, messages)):
                return value
        raise TranslationError(f"llm_request is {described(value)}; expected the arguments of chat.completions.create.")

    def read_response(self, value: object) -> Any:
        if is_copyable(value) and not _is_other_response(value):
            choices = field(value, "choices")
            if isinstance(choices, (list, tuple)) and all(field(choice, "message") is not None for choice in choices):
                return value
        raise TranslationError(f"llm_response is {described(value)}; expected a ChatCompletion with choices.")

    def field(self, request: Request, name: str) -> Any:
        value = _value(request, _spelling(request, name))
        return list(as_list(value)) if name == "stop" and value is not None else value

    def with_fields(self, request: Request, fields: Mapping[str, Any]) -> Request:
        return {**request, **{_spelling(request, name): value for name, value in fields.items()}}

    def turns(self, request: Request) -> list[Turn]:
        return [_turn(message) for message in request["messages"][len(_prompt(request)) :]]

    def rebuild(self, request: Request, turns: Sequence[Turn]) -> Request:
        messages = [message for message in map(_message, turns) if message is not None]
        return {**request, "messages": [*_prompt(request), *messages]}

    def with_tool_config(self, request: Request, tool_config: ToolChoice) -> Request:
        """Leave a request without tools as it is, and drop names of unknown tools: the API rejects both."""
        if not self.tools_of(request):
            return request
        shown = self.to_hook_tool_config(tool_config)
        if "allowedFunctionNames" in shown and tool_config != self.tool_config_of(request):
            declared = {_tool_name(tool): _tool_type(tool) for tool in as_list(self.tools_of(request))}
            types = {name: declared[name] for name in shown["allowedFunctionNames"] if name in declared}
            tool_config = _tool_choice(CHOICES[shown["mode"]], types)
        return super().with_tool_config(request, tool_config)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        candidates = [_candidate(choice) for choice in field(response, "choices")]
        return build_hook_response(candidates, field(response, "usage"), USAGE)

    def from_hook_llm_response(self, hook_response: Mapping[str, Any], base: Any = None) -> Any:
        """Return a completion with the hook's text; id, model, usage and similar fields are those of the base."""
        answer = answers.read_response(hook_response)
        new: dict[str, Any] = {"id": "chatcmpl-hook", "object": "chat.completion", "created": 0, "model": ""}
        is_mapping = base is None or isinstance(base, Mapping)
        fields: Mapping[str, Any] = new if base is None else base if is_mapping else base.model_dump()
        choices = [_choice(candidate, index) for index, candidate in enumerate(answer["candidates"])]
        counts = {USAGE[name]: count for name, count in answer.get("usageMetadata", {}).items()}
        old_usage = fields.get("usage")
        usage = {"usage": copy_with(old_usage if is_copyable(old_usage) else {}, **counts)} if counts else {}
        response = {**fields, "choices": choices, **usage}
        return response if is_mapping else type(base).model_validate(response)

    def to_hook_tool_config(self, tool_config: ToolChoice | None) -> HookToolConfig:
        if isinstance(tool_config, str):
            return {"mode": MODES[tool_config]} if tool_config in MODES else {}
        if name := _tool_name(tool_config):
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        allowed = field(tool_config, "allowed_tools")
        if allowed is None:
            return {}
        tools = as_list(field(allowed, "tools"))
        names = [name for tool in tools if (name := _tool_name(tool))]
        shown: HookToolConfig = {"mode": MODES.get(field(allowed, "mode"), "AUTO")}
        if names or not tools:  # an empty list would forbid tools of a type that is unknown here
            shown["allowedFunctionNames"] = names
        return shown

    def build_tool_config(self, tool_config: HookToolConfig, base: ToolChoice | None) -> ToolChoice:
        if base is not None and tool_config == self.to_hook_tool_config(base):
            return base
        choice, names = CHOICES[tool_config.get("mode", "AUTO")], tool_config.get("allowedFunctionNames")
        if choice == "none" or names is None:
            return choice
        return _tool_choice(choice, dict.fromkeys(names, "function"))  # with_tool_config sets the declared types


def _is_hook_format(value: dict[str, Any]) -> bool:
    """Whether a request with ``messages`` is in hook format: it has fields that this API does not know."""
    return "config" in value or "toolConfig" in value


def _is_message(value: object) -> bool:
    return is_copyable(value) and all(isinstance(part, str) or is_copyable(part) for part in _parts(value))


def _is_other_response(value: object) -> bool:
    """Whether a response is a chunk of a stream or a legacy completion; either may have no choices."""
    kind = field(value, "object")
    return isinstance(kind, str) and (kind.endswith(".chunk") or kind == "text_completion")


def _value(request: Request, name: str) -> Any:
    """Return a field's value; None for the SDK's markers of an unset field, ``NOT_GIVEN`` and ``omit``."""
    value = request.get(name)
    return value if isinstance(value, (str, int, float, list, tuple)) or is_copyable(value) else None


def _spelling(request: Request, name: str) -> str:
    """Return the name of a field in a request: the token limit has two, and the one that is set counts."""
    if name != "max_completion_tokens" or "max_tokens" not in request:
        return name
    is_older = _value(request, "max_tokens") is not None or name not in request
    return "max_tokens" if is_older else name


def _tool_type(tool: Any) -> str:
    return next((kind for kind in TOOL_TYPES if field(tool, kind) is not None), "function")


def _tool_name(tool: Any) -> str | None:
    """Return the name in a declared tool, or in a tool choice for one tool."""
    name = field(field(tool, _tool_type(tool)), "name")
    return name if isinstance(name, str) and name else None


def _tool_choice(choice: str, types: Mapping[str, str]) -> ToolChoice:
    """Return a choice among tools, given as a mapping from name to type."""
    tools = [{"type": kind, kind: {"name": name}} for name, kind in types.items()]
    if not tools:
        return "none"
    if choice == "required" and len(tools) == 1:
        return tools[0]  # unlike allowed_tools, every server of this API supports this form
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": tools}}


def _prompt(request: Request) -> list[Any]:
    return list(takewhile(lambda message: field(message, "role") in PROMPT_ROLES, request["messages"]))


def _turn(message: Any) -> Turn:
    role = field(message, "role")
    is_result = role in RESULT_ROLES
    calls = [field(call, "id") for call in as_list(field(message, "tool_calls"))]
    results = [field(message, "tool_call_id")] if is_result else []
    return Turn(
        ROLES.get(role, "user"),
        "" if is_result else "".join(map(_text, _parts(message))),
        message,
        calls=tuple((call,) for call in calls if isinstance(call, str)),
        results=tuple((call,) for call in results if isinstance(call, str)),
    )


def _parts(message: Any) -> Sequence[Any]:
    return as_list(field(message, "content"))


def _text(part: Any) -> str:
    text = part if isinstance(part, str) else field(part, "text")
    return text if isinstance(text, str) else ""


def _message(turn: Turn) -> Any:
    """Return a turn as the API accepts it; None if nothing of it is left."""
    if turn.source is None:
        return {"role": "assistant" if turn.role == "model" else turn.role, "content": turn.text}
    if not turn.changed:
        return turn.source
    content: Any = turn.text or None
    if isinstance(field(turn.source, "content"), (list, tuple)):
        content = _parts_with_text(_parts(turn.source), turn.text) or None
    if content is None and not any(field(turn.source, name) for name in OTHER_DATA):
        return None
    return copy_with(turn.source, content=content)


def _parts_with_text(parts: Sequence[Any], text: str) -> list[Any]:
    kept: list[Any] = []
    for part in parts:
        if not _text(part):
            if not _is_blank(part):
                kept.append(part)
        elif text:
            kept.append(text if isinstance(part, str) else copy_with(part, text=text))
            text = ""
    return kept


def _is_blank(part: Any) -> bool:
    """Whether a part is an empty text: the API rejects a message of nothing else."""
    return "" in (part, field(part, "text"))


def _candidate(choice: Any) -> LLMCandidate:
    texts = [text for part in _parts(field(choice, "message")) if (text := _text(part))]
    candidate: LLMCandidate = {"content": {"role": "model", "parts": texts}, "index": field(choice, "index") or 0}
    if finish_reason := field(choice, "finish_reason"):
        candidate["finishReason"] = FINISH_REASONS.get(finish_reason, str(finish_reason).upper())
    return candidate


def _choice(candidate: LLMCandidate, index: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(candidate["content"]["parts"])}
    finish_reason = FINISHED.get(candidate.get("finishReason", ""), "stop")
    return {"index": candidate.get("index", index), "message": message, "finish_reason": finish_reason}
