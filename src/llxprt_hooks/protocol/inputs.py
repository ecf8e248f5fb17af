"""What an event tells its hooks, checked where it comes from outside.

Each event's own fields stand in one table; the validators are type predicates over it (DELTA-HPAY-005).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NotRequired, TypedDict, TypeGuard

from llxprt_hooks.events import HookEventName, PreCompressTrigger, SessionEndReason, SessionStartSource

BASE_FIELDS = ("session_id", "cwd", "timestamp", "hook_event_name", "transcript_path")


class HookInput(TypedDict):
    """The base fields. Whoever asks over the message bus may leave them out: they come from the configuration."""

    session_id: NotRequired[str]
    cwd: NotRequired[str]
    timestamp: NotRequired[str]
    hook_event_name: NotRequired[str]
    transcript_path: NotRequired[str]


class BeforeToolInput(HookInput):
    tool_name: str
    tool_input: Mapping[str, Any]


class AfterToolInput(BeforeToolInput):
    tool_response: Mapping[str, Any]


class BeforeModelInput(HookInput):
    llm_request: object


class AfterModelInput(BeforeModelInput):
    llm_response: object


class BeforeToolSelectionInput(HookInput):
    llm_request: object


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


class _Kind:
    """What a field must be, as a test and as words."""

    def __init__(self, expected: str, fits: Callable[[object], bool]) -> None:
        self.expected = expected
        self.fits = fits


def _one_of(words: type[SessionStartSource | SessionEndReason | PreCompressTrigger]) -> _Kind:
    allowed = tuple(word.value for word in words)
    return _Kind("one of " + ", ".join(allowed), lambda value: value in allowed)


_STRING = _Kind("a string", lambda value: isinstance(value, str))
_FLAG = _Kind("true or false", lambda value: isinstance(value, bool))
_OBJECT = _Kind("an object", lambda value: isinstance(value, Mapping))
_MODEL_DATA = _Kind("an object", lambda value: not isinstance(value, (type(None), str, bytes, int, float, list, tuple)))

EVENT_FIELDS: Mapping[HookEventName, Mapping[str, _Kind]] = {
    HookEventName.BEFORE_TOOL: {"tool_name": _STRING, "tool_input": _OBJECT},
    HookEventName.AFTER_TOOL: {"tool_name": _STRING, "tool_input": _OBJECT, "tool_response": _OBJECT},
    HookEventName.BEFORE_MODEL: {"llm_request": _MODEL_DATA},
    HookEventName.AFTER_MODEL: {"llm_request": _MODEL_DATA, "llm_response": _MODEL_DATA},
    HookEventName.BEFORE_TOOL_SELECTION: {"llm_request": _MODEL_DATA},
    HookEventName.BEFORE_AGENT: {"prompt": _STRING},
    HookEventName.AFTER_AGENT: {"prompt": _STRING, "prompt_response": _STRING, "stop_hook_active": _FLAG},
    HookEventName.SESSION_START: {"source": _one_of(SessionStartSource)},
    HookEventName.SESSION_END: {"reason": _one_of(SessionEndReason)},
    HookEventName.PRE_COMPRESS: {"trigger": _one_of(PreCompressTrigger)},
    HookEventName.NOTIFICATION: {"notification_type": _STRING, "message": _STRING, "details": _OBJECT},
}

MATCHED_FIELDS: Mapping[HookEventName, str] = {
    HookEventName.BEFORE_TOOL: "tool_name",
    HookEventName.AFTER_TOOL: "tool_name",
    HookEventName.SESSION_START: "source",
    HookEventName.SESSION_END: "reason",
    HookEventName.PRE_COMPRESS: "trigger",
    HookEventName.NOTIFICATION: "notification_type",
}
"""The field that matchers are held against; the other events ignore matchers."""


def input_problem(event_name: HookEventName, value: object) -> str | None:
    """What is wrong with an event's input, as a sentence, or None."""
    if not isinstance(value, Mapping):
        return f"the input of {event_name} must be an object, found {type(value).__name__}"
    for name, kind in EVENT_FIELDS[event_name].items():
        if name not in value:
            return f"the input of {event_name} lacks `{name}`, which must be {kind.expected}"
        if not kind.fits(value[name]):
            return f"`{name}` in the input of {event_name} must be {kind.expected}, found {value[name]!r:.60}"
    for name in BASE_FIELDS:
        if name in value and not isinstance(value[name], str):
            return f"`{name}` in the input of {event_name} must be a string, found {value[name]!r:.60}"
    return None


def validate_before_tool_input(value: object) -> TypeGuard[BeforeToolInput]:
    return input_problem(HookEventName.BEFORE_TOOL, value) is None


def validate_after_tool_input(value: object) -> TypeGuard[AfterToolInput]:
    return input_problem(HookEventName.AFTER_TOOL, value) is None


def validate_before_model_input(value: object) -> TypeGuard[BeforeModelInput]:
    return input_problem(HookEventName.BEFORE_MODEL, value) is None


def validate_after_model_input(value: object) -> TypeGuard[AfterModelInput]:
    return input_problem(HookEventName.AFTER_MODEL, value) is None


def validate_before_tool_selection_input(value: object) -> TypeGuard[BeforeToolSelectionInput]:
    return input_problem(HookEventName.BEFORE_TOOL_SELECTION, value) is None


def validate_before_agent_input(value: object) -> TypeGuard[BeforeAgentInput]:
    return input_problem(HookEventName.BEFORE_AGENT, value) is None


def validate_after_agent_input(value: object) -> TypeGuard[AfterAgentInput]:
    return input_problem(HookEventName.AFTER_AGENT, value) is None


def validate_session_start_input(value: object) -> TypeGuard[SessionStartInput]:
    return input_problem(HookEventName.SESSION_START, value) is None


def validate_session_end_input(value: object) -> TypeGuard[SessionEndInput]:
    return input_problem(HookEventName.SESSION_END, value) is None


def validate_pre_compress_input(value: object) -> TypeGuard[PreCompressInput]:
    return input_problem(HookEventName.PRE_COMPRESS, value) is None


def validate_notification_input(value: object) -> TypeGuard[NotificationInput]:
    return input_problem(HookEventName.NOTIFICATION, value) is None
