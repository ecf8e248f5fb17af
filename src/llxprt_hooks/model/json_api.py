"""The base of translators for an API's own JSON: the arguments of the SDK's ``create``, or the body of the request.

No SDK is imported. A request is a dict; the messages in it, their parts and a response may be dicts or the SDK's own
objects. The leading ``system`` and ``developer`` messages are the system prompt.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from uuid import uuid4

from llxprt_hooks._support.json_codec import read_arguments, read_json, write_json
from llxprt_hooks.model import answers
from llxprt_hooks.model.access import as_list, copy_with, described, field, is_copyable
from llxprt_hooks.model.format import LLMCandidate, TranslationError
from llxprt_hooks.model.messages import MessageTranslator

if TYPE_CHECKING:
    from llxprt_hooks.model.conversation import Turn
    from llxprt_hooks.model.wire.base import Wire

Request: TypeAlias = dict[str, Any]
ToolChoice: TypeAlias = str | dict[str, Any]

ROLES = {"assistant": "model", "system": "system", "developer": "system"}
PROMPT_ROLES = ("system", "developer")


class JSONTranslator(MessageTranslator[Request, Any, ToolChoice]):
    """Translates the JSON of one API; a subclass knows the fields of its messages and responses."""

    TOOL_CONFIG = "tool_choice"
    REQUEST: ClassVar[str]
    """What a request is, for error messages."""
    RESPONSE: ClassVar[str]
    """What a response is, for error messages."""
    wire: ClassVar[Wire]

    @abstractmethod
    def is_request(self, value: dict[str, Any]) -> bool:
        """Whether a dict is a request to this API."""

    @abstractmethod
    def is_response(self, value: Any) -> bool:
        """Whether a mapping or an object is a response of this API."""

    @abstractmethod
    def answer_fields(self, candidates: Sequence[LLMCandidate], base: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a response with these answers, text only; ``base`` is the response they replace."""

    @abstractmethod
    def blank_response(self, request: Request) -> dict[str, Any]: ...

    def read_request(self, value: object) -> Request:
        # The hook format has a list of messages, too, but no API has one of these fields next to it.
        if isinstance(value, dict) and not {"config", "toolConfig"} & value.keys() and self.is_request(value):
            return value
        raise TranslationError(f"llm_request is {described(value)}; expected {self.REQUEST}.")

    def read_response(self, value: object) -> Any:
        if is_copyable(value) and self.is_response(value):
            return value
        raise TranslationError(f"llm_response is {described(value)}; expected {self.RESPONSE}.")

    def field(self, request: Request, name: str) -> Any:
        """Return a field's value; None for the SDK's markers of an unset field, ``NOT_GIVEN`` and ``omit``."""
        value = request.get(name)
        return value if isinstance(value, (str, int, float, list, tuple)) or is_copyable(value) else None

    def with_fields(self, request: Request, fields: Mapping[str, Any]) -> Request:
        return {**request, **fields}

    def messages(self, request: Request) -> Sequence[Any]:
        return self.conversation(request)[len(self.prompt(request)) :]

    def with_messages(self, request: Request, messages: list[Any]) -> Request:
        return self.with_conversation(request, [*self.prompt(request), *messages])

    def with_conversation(self, request: Request, messages: list[Any]) -> Request:
        """Return a copy of a request with other messages, the system prompt included."""
        return {**request, "messages": messages}

    def conversation(self, request: Request) -> Sequence[Any]:
        """Return all messages of a request."""
        return as_list(request["messages"])

    def prompt(self, request: Request) -> list[Any]:
        """Return the leading messages that are the system prompt."""
        return list(takewhile(lambda message: field(message, "role") in PROMPT_ROLES, self.conversation(request)))

    def prompt_turns(self, request: Request) -> Sequence[Turn]:
        return [self.turn_of(message) for message in self.prompt(request)]

    def with_prompt_turns(self, request: Request, turns: Sequence[Turn]) -> Request:
        messages = [message for message in map(self.message, turns) if message is not None]
        return self.with_conversation(request, [*messages, *self.conversation(request)[len(turns) :]])

    def role_of(self, message: Any) -> str:
        return ROLES.get(field(message, "role"), "user")

    def new_message(self, role: str, text: str) -> Any:
        return {"role": "assistant" if role == "model" else role, "content": text}

    def with_parts(self, message: Any, parts: list[Any]) -> Any | None:
        """Return a message with other parts; a content that was a string stays one."""
        is_text = isinstance(field(message, self.PARTS), str) and bool(parts)
        return copy_with(message, **{self.PARTS: parts[0] if is_text else parts or None})

    def from_hook_llm_response(self, hook_response: Mapping[str, Any], base: Any = None) -> Any:
        """Return a response with the hook's text; id, model, usage and similar fields are those of the base."""
        answer = answers.read_response(hook_response)
        base = self.blank_response({}) if base is None else base
        fields = dumped(base)
        usage_field = self.USAGE[0]
        old_usage = fields.get(usage_field)
        counts = self.sdk_counts(answer.get("usageMetadata", {}), old_usage)
        usage = {usage_field: copy_with(old_usage if is_copyable(old_usage) else {}, **counts)} if counts else {}
        response = {**fields, **self.answer_fields(answer["candidates"], fields), **usage}
        return response if isinstance(base, Mapping) else _as_object(type(base), response)


def has_messages(value: dict[str, Any], name: str = "messages") -> bool:
    """Whether a field is a list of messages that can be read and copied, with parts that can."""
    messages = value.get(name)
    return isinstance(messages, (list, tuple)) and all(map(is_message, messages))


def is_message(value: object) -> bool:
    """Whether a message and its parts can be read and copied."""
    return is_copyable(value) and all(
        isinstance(part, str) or is_copyable(part) for part in as_list(field(value, "content"))
    )


def output_text(output: Any) -> str:
    """Return a tool's result as text: text as it is, the texts of a list of parts, and anything else as JSON."""
    if output is None or isinstance(output, str):
        return output or ""
    if isinstance(output, (list, tuple)) and any(_part_text(part) is not None for part in output):
        return "".join(_part_text(part) or "" for part in output)
    return write_json(_json(output)).decode()


def with_output_text(output: Any, text: str) -> Any:
    """Return a tool's result with another text. Parts other than text stay, and so does JSON that is still JSON."""
    if output is None or isinstance(output, str):
        return text
    if isinstance(output, (list, tuple)) and any(_part_text(part) is not None for part in output):
        first = next(place for place, part in enumerate(output) if _part_text(part) is not None)
        return [
            part if _part_text(part) is None else _with_text(part, text)
            for place, part in enumerate(output)
            if _part_text(part) is None or (place == first and text)
        ]
    try:
        return read_json(text.encode())
    except ValueError:
        return text


def arguments_of(text: Any) -> Any:
    """Return the arguments of a call, which APIs send as text; as it is, if it is not JSON."""
    try:
        return read_arguments(text) if isinstance(text, str) and text else text or {}
    except ValueError:
        return text


def arguments_text(args: Any) -> str:
    """Return arguments as APIs send them."""
    return args if isinstance(args, str) else write_json(args).decode()


def _part_text(part: Any) -> str | None:
    text = part if isinstance(part, str) else field(part, "text")
    return text if isinstance(text, str) else None


def _with_text(part: Any, text: str) -> Any:
    return text if isinstance(part, str) else copy_with(part, text=text)


def _json(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_json(each) for each in value]
    return dumped(value) if is_copyable(value) else value


def text_of(candidate: LLMCandidate) -> str:
    """Return the text of an answer in hook format."""
    return "".join(candidate["content"]["parts"])


def dumped(value: Any) -> dict[str, Any]:
    """Return a mapping or an object of an SDK as the API's JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    fields: dict[str, Any] = value.model_dump(by_alias=True, exclude_unset=True, warnings=False)
    return fields


def no_tokens(translator: JSONTranslator) -> dict[str, Any]:
    """Return the usage of a call that did not take place."""
    return dict.fromkeys(translator.USAGE[1].values(), 0)


def new_id(prefix: str) -> str:
    """Return an id for an answer that did not come from the API."""
    return f"{prefix}hook_{uuid4().hex}"


def now() -> int:
    """Return the current time as these APIs have it."""
    return int(time.time())


def _as_object(kind: Any, fields: dict[str, Any]) -> Any:
    """Return an object of the SDK. It accepts what the API sends, valid or not, and so must this."""
    try:
        return kind.model_validate(fields)
    except ValueError:
        return kind.model_construct(**fields)
