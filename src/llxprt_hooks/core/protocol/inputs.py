"""The inputs of events, and validators for inputs from outside.

The fields of an event are in its row of ``events.EVENTS``. The validators are type predicates over it (DELTA-HPAY-005).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NotRequired, TypedDict, TypeGuard, TypeVar

from llxprt_hooks._support.fields import FLAG, NUMBER, OBJECT, STRING, FieldType, found, one_of
from llxprt_hooks.core.protocol.caller import CALL_FIELDS, CALLER_FIELDS
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.events import EventField, FieldKind, HookEventName

BASE_FIELDS = ("session_id", "cwd", "timestamp", "hook_event_name", "transcript_path")


class HookInput(TypedDict):
    """The base fields. A message on the bus may omit them: they come from the configuration."""

    session_id: NotRequired[str]
    cwd: NotRequired[str]
    timestamp: NotRequired[str]
    hook_event_name: NotRequired[str]
    transcript_path: NotRequired[str]
    metadata: NotRequired[Mapping[str, Any]]
    agent: NotRequired[Mapping[str, Any]]


class BeforeToolInput(HookInput):
    tool_name: str
    tool_input: Mapping[str, Any]
    tool_use_id: NotRequired[str]


class AfterToolInput(BeforeToolInput):
    tool_response: Any
    """A mapping in the payload of a hook; a program may also pass a ``ToolResult``."""
    duration_ms: NotRequired[float]


class BeforeModelInput(HookInput):
    llm_request: Any
    """In the payload of a hook, a mapping in hook format; a program may also pass an object of an SDK."""


class AfterModelInput(BeforeModelInput):
    llm_response: Any


class BeforeToolSelectionInput(HookInput):
    llm_request: Any


class BeforeAgentInput(HookInput):
    prompt: str


class AfterAgentInput(BeforeAgentInput):
    prompt_response: str
    stop_hook_active: bool


class SessionStartInput(HookInput):
    source: str


class SessionEndInput(HookInput):
    reason: str


class PreCompressInput(HookInput):
    trigger: str


class NotificationInput(HookInput):
    notification_type: str
    message: str
    details: Mapping[str, Any]


def _model_data(value: object) -> object:
    return None if isinstance(value, (str, bytes, int, float, list, tuple)) else value


def _tool_result(value: object) -> object:
    return value if isinstance(value, (ToolResult, Mapping)) else None


_FIELDS: Mapping[FieldKind, FieldType] = {
    FieldKind.TEXT: STRING,
    FieldKind.FLAG: FLAG,
    FieldKind.OBJECT: OBJECT,
    FieldKind.MODEL_REQUEST: FieldType(_model_data, "an object"),
    FieldKind.MODEL_RESPONSE: FieldType(_model_data, "an object"),
    FieldKind.TOOL_RESULT: FieldType(_tool_result, "an object"),
}


def input_problem(event_name: HookEventName, value: object) -> str | None:
    """Return the first problem in an event's input, as a sentence, or None."""
    if not isinstance(value, Mapping):
        return f"the input of {event_name} must be an object, found {found(value)}"
    for name, event_field in event_name.spec.fields.items():
        field = _field(event_field)
        if name not in value:
            return f"the input of {event_name} lacks `{name}`, which must be {field.words}"
        if field.read(value[name]) is None:
            return _wrong(event_name, name, field, value[name])
    for name in BASE_FIELDS:
        if name in value and not isinstance(value[name], str):
            return _wrong(event_name, name, STRING, value[name])
    for name, kind in zip(CALL_FIELDS, (STRING, NUMBER), strict=True) if event_name.spec.is_about_tool else ():
        if name in value and kind.read(value[name]) is None:
            return _wrong(event_name, name, kind, value[name])
    for name in CALLER_FIELDS:
        if name in value and not isinstance(value[name], Mapping):
            return _wrong(event_name, name, OBJECT, value[name])
    return None


def _field(event_field: EventField) -> FieldType:
    return one_of(*event_field.values) if event_field.kind is FieldKind.WORD else _FIELDS[event_field.kind]


def _wrong(event_name: HookEventName, name: str, field: FieldType, value: object) -> str:
    return f"`{name}` in the input of {event_name} must be {field.words}, found {found(value, quote=True)}"


InputT = TypeVar("InputT", bound=HookInput)


def _validator(event_name: HookEventName, narrowed: type[InputT]) -> Callable[[object], TypeGuard[InputT]]:
    def validate(value: object) -> TypeGuard[InputT]:
        return input_problem(event_name, value) is None

    validate.__annotations__ = {"value": object, "return": TypeGuard[narrowed]}
    return validate


validate_before_tool_input = _validator(HookEventName.BEFORE_TOOL, BeforeToolInput)
validate_after_tool_input = _validator(HookEventName.AFTER_TOOL, AfterToolInput)
validate_before_model_input = _validator(HookEventName.BEFORE_MODEL, BeforeModelInput)
validate_after_model_input = _validator(HookEventName.AFTER_MODEL, AfterModelInput)
validate_before_tool_selection_input = _validator(HookEventName.BEFORE_TOOL_SELECTION, BeforeToolSelectionInput)
validate_before_agent_input = _validator(HookEventName.BEFORE_AGENT, BeforeAgentInput)
validate_after_agent_input = _validator(HookEventName.AFTER_AGENT, AfterAgentInput)
validate_session_start_input = _validator(HookEventName.SESSION_START, SessionStartInput)
validate_session_end_input = _validator(HookEventName.SESSION_END, SessionEndInput)
validate_pre_compress_input = _validator(HookEventName.PRE_COMPRESS, PreCompressInput)
validate_notification_input = _validator(HookEventName.NOTIFICATION, NotificationInput)
