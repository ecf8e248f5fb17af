"""The events at which hooks run, and all facts about them: one row per event in ``EVENTS``.

A new event is a member of ``HookEventName`` and a row. This module has no behavior: the engine and the tools around it
map the enumerations below to functions and classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from functools import cached_property
from typing import Any


class UnknownEventError(TypeError, ValueError):
    """There is no event with this name."""


class HookEventName(StrEnum):
    """An event, by the name that settings files and payloads use."""

    BEFORE_TOOL = "BeforeTool"
    AFTER_TOOL = "AfterTool"
    BEFORE_AGENT = "BeforeAgent"
    AFTER_AGENT = "AfterAgent"
    BEFORE_MODEL = "BeforeModel"
    AFTER_MODEL = "AfterModel"
    BEFORE_TOOL_SELECTION = "BeforeToolSelection"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    PRE_COMPRESS = "PreCompress"
    NOTIFICATION = "Notification"

    __hash__ = str.__hash__  # as that of the string that it equals; the enumeration's own is slower

    @cached_property
    def spec(self) -> EventSpec:
        """The row of the event in ``EVENTS``."""
        return EVENTS[self]

    def spec_if(self, acts: bool) -> EventSpec:
        """The row as it is for hooks that act, or for those that do not."""
        return self.spec.acting if acts else self.spec


MODEL_EVENTS = (HookEventName.BEFORE_TOOL_SELECTION, HookEventName.BEFORE_MODEL, HookEventName.AFTER_MODEL)


class SessionStartSource(StrEnum):
    """How a session started."""

    STARTUP = "startup"
    RESUME = "resume"
    CLEAR = "clear"
    COMPRESS = "compress"


class SessionEndReason(StrEnum):
    """Why a session ended."""

    EXIT = "exit"
    CLEAR = "clear"
    LOGOUT = "logout"
    PROMPT_INPUT_EXIT = "prompt_input_exit"
    OTHER = "other"


class PreCompressTrigger(StrEnum):
    """Who asked for the conversation to be compressed."""

    MANUAL = "manual"
    AUTO = "auto"


class NotificationType(StrEnum):
    """What a notification is about."""

    TOOL_PERMISSION = "ToolPermission"


class FieldKind(Enum):
    """The type of a field of a payload."""

    TEXT = auto()
    WORD = auto()
    """One of the field's ``values``."""
    FLAG = auto()
    OBJECT = auto()
    MODEL_REQUEST = auto()
    """An SDK's request, its JSON, or a request in hook format; hooks receive the hook format."""
    MODEL_RESPONSE = auto()
    TOOL_RESULT = auto()
    """A ``ToolResult``, or the object that hooks receive for it."""


class MatchKind(Enum):
    """How a matcher is compared with the matched field."""

    SEARCHED = auto()
    """A regular expression that is found anywhere in the value."""
    EXACT = auto()
    IGNORED = auto()


class MergeStrategy(Enum):
    """How the outputs of several hooks become one (HOOK-190)."""

    OR_DECISION = auto()
    FIELD_REPLACEMENT = auto()
    TOOL_SELECTION = auto()


class OutputKind(StrEnum):
    """The class of the merged output."""

    DEFAULT = auto()
    BEFORE_TOOL = auto()
    BEFORE_MODEL = auto()
    AFTER_MODEL = auto()
    BEFORE_TOOL_SELECTION = auto()


class Effect(Enum):
    """What a caller does with one field of ``hookSpecificOutput``."""

    REWRITE_ARGUMENTS = "tool_input", True
    ADD_CONTEXT = "additionalContext", None
    CHANGE_REQUEST = "llm_request", True
    ANSWER_FOR_MODEL = "llm_response", False
    REPLACE_ANSWER = "llm_response", None
    RESTRICT_TOOLS = "toolConfig", None
    REPLACE_RESULT = "tool_response", True
    CLEAR_CONTEXT = "clearContext", None

    def __init__(self, field: str, if_allowed: bool | None) -> None:
        self.field = field
        self.if_allowed = if_allowed
        """True: only if nothing blocks or stops. False: only if something does. None: always."""


@dataclass(frozen=True, slots=True)
class EventField:
    """A field of an event's payload, besides the base fields that every event has."""

    kind: FieldKind
    sample: Any
    """An example of it, for trying hooks without an agent."""
    values: tuple[str, ...] = ()
    """The known values. If the kind is ``WORD``, no other value is allowed."""
    default: Any = None
    """What ``Hooks.observe`` sends if the caller omits it. None: it must be given."""


@dataclass(frozen=True, slots=True)
class Acting:
    """What else callers do with the answers of hooks that act (D-46)."""

    block: bool = True
    """Whether they honor a block."""
    effects: tuple[Effect, ...] = ()
    asks: bool = False
    """Whether a person is asked if hooks say so."""


@dataclass(frozen=True, kw_only=True)
class EventSpec:
    """The facts about one event."""

    description: str
    """When it fires and what hooks can do, for settings files and their JSON Schema."""
    fields: Mapping[str, EventField]
    match: MatchKind = MatchKind.IGNORED
    matched_field: str = ""
    """The field that matchers are compared with; empty if they are ignored."""
    awaited: bool = False
    """Whether callers wait for the hooks and apply their answers; other events are fire-and-forget (HOOK-203)."""
    can_block: bool = False
    """Whether callers honor a block (HOOK-177 to 181); for other events it only ends a sequential chain."""
    streams: bool = False
    """Whether hooks can get what it is about in parts, while it arrives (D-151)."""
    blocked_word: str = "blocked"
    """What a block does, in the log."""
    asks: bool = False
    """Whether a person is asked if hooks say so."""
    effects: tuple[Effect, ...] = ()
    """The fields of ``hookSpecificOutput`` that callers honor."""
    suppressible: bool = False
    """Whether ``suppressOutput`` hides something that the user would see."""
    chained_field: str = ""
    """The field that a hook in a chain can change for the next one (HOOK-211): an object is merged by top-level key
    (HOOK-105, 216), and ``additionalContext`` is appended to a text."""
    merge: MergeStrategy = MergeStrategy.OR_DECISION
    output: OutputKind = OutputKind.DEFAULT
    prints_context_elsewhere: bool = False
    """Whether other agents add the output of this event's hooks to the conversation."""
    if_acting: Acting | None = None
    """What changes for hooks that act; None if nothing does."""

    @cached_property
    def acting(self) -> EventSpec:
        """The facts for hooks that act: callers wait for these, and honor more of their answers."""
        more = self.if_acting
        if more is None:
            return self
        effects = (*(each for each in self.effects if each is not Effect.ANSWER_FOR_MODEL), *more.effects)
        can_block = self.can_block or more.block
        return replace(self, awaited=True, can_block=can_block, asks=more.asks, effects=effects, if_acting=None)

    @property
    def matched_values(self) -> tuple[str, ...]:
        """The known values of the matched field; empty if it can be anything."""
        return self.fields[self.matched_field].values if self.matched_field else ()

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The fields that a caller may omit."""
        return {name: field.default for name, field in self.fields.items() if field.default is not None}

    @cached_property
    def merged_object(self) -> str:
        """The chained field if it is an object, which parallel hooks change by top-level key too; otherwise empty."""
        chained = self.fields.get(self.chained_field)
        return self.chained_field if chained and chained.kind is not FieldKind.TEXT else ""

    @cached_property
    def is_about_tool(self) -> bool:
        """Whether the event is about one call of a tool."""
        return "tool_name" in self.fields

    @cached_property
    def translated_fields(self) -> tuple[str, ...]:
        """Fields that are translated before hooks see them."""
        kinds = (FieldKind.MODEL_REQUEST, FieldKind.MODEL_RESPONSE, FieldKind.TOOL_RESULT)
        return tuple(name for name, field in self.fields.items() if field.kind in kinds)


_TOOL_NAME = EventField(FieldKind.TEXT, "write_file")
_TOOL_INPUT = EventField(FieldKind.OBJECT, {"file_path": "example.txt", "content": "Hello.\n"})
_PROMPT = EventField(FieldKind.TEXT, "What does this project do?")
_REQUEST = EventField(
    FieldKind.MODEL_REQUEST,
    {
        "model": "gemini-2.5-flash",
        "messages": [{"role": "user", "content": "What does this project do?"}],
        "config": {"temperature": 0.7},
    },
)
_RESPONSE = EventField(
    FieldKind.MODEL_RESPONSE,
    {
        "text": "It runs hooks.",
        "candidates": [
            {"content": {"role": "model", "parts": ["It runs hooks."]}, "finishReason": "STOP", "index": 0},
        ],
        "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 4, "totalTokenCount": 16},
    },
)

EVENTS: Mapping[HookEventName, EventSpec] = {
    HookEventName.BEFORE_TOOL: EventSpec(
        description="Right before a tool runs: block it, or rewrite its arguments.",
        fields={"tool_name": _TOOL_NAME, "tool_input": _TOOL_INPUT},
        match=MatchKind.SEARCHED,
        matched_field="tool_name",
        awaited=True,
        can_block=True,
        effects=(Effect.REWRITE_ARGUMENTS,),
        chained_field="tool_input",
        output=OutputKind.BEFORE_TOOL,
        if_acting=Acting(asks=True),
    ),
    HookEventName.AFTER_TOOL: EventSpec(
        description="When a tool has run, before the model gets its result: add context, hide the result, or stop.",
        fields={
            "tool_name": _TOOL_NAME,
            "tool_input": _TOOL_INPUT,
            "tool_response": EventField(
                FieldKind.TOOL_RESULT, {"llmContent": "done", "returnDisplay": "done", "metadata": {}}
            ),
        },
        match=MatchKind.SEARCHED,
        matched_field="tool_name",
        awaited=True,
        blocked_word="replaced",
        effects=(Effect.ADD_CONTEXT,),
        suppressible=True,
        if_acting=Acting(effects=(Effect.REPLACE_RESULT,)),
    ),
    HookEventName.BEFORE_MODEL: EventSpec(
        description="When a model request is complete, before it is sent: block it, change it, or answer instead.",
        fields={"llm_request": _REQUEST},
        awaited=True,
        can_block=True,
        effects=(Effect.CHANGE_REQUEST, Effect.ANSWER_FOR_MODEL),
        chained_field="llm_request",
        merge=MergeStrategy.FIELD_REPLACEMENT,
        output=OutputKind.BEFORE_MODEL,
        if_acting=Acting(effects=(Effect.REPLACE_ANSWER,)),
    ),
    HookEventName.AFTER_MODEL: EventSpec(
        description="When the model response is complete, before it is used: replace or hide it, or stop.",
        fields={"llm_request": _REQUEST, "llm_response": _RESPONSE},
        awaited=True,
        blocked_word="replaced",
        effects=(Effect.REPLACE_ANSWER,),
        suppressible=True,
        merge=MergeStrategy.FIELD_REPLACEMENT,
        output=OutputKind.AFTER_MODEL,
        streams=True,
        if_acting=Acting(),
    ),
    HookEventName.BEFORE_TOOL_SELECTION: EventSpec(
        description="Before a request with tools is sent: restrict which tools the model may call.",
        fields={"llm_request": _REQUEST},
        awaited=True,
        effects=(Effect.RESTRICT_TOOLS,),
        merge=MergeStrategy.TOOL_SELECTION,
        output=OutputKind.BEFORE_TOOL_SELECTION,
    ),
    HookEventName.BEFORE_AGENT: EventSpec(
        description="Before the agent starts to work on a prompt. It does not wait for the hooks.",
        fields={"prompt": _PROMPT},
        blocked_word="refused",
        chained_field="prompt",
        prints_context_elsewhere=True,
        if_acting=Acting(effects=(Effect.ADD_CONTEXT,)),
    ),
    HookEventName.AFTER_AGENT: EventSpec(
        description="When the agent is done with a prompt.",
        fields={
            "prompt": _PROMPT,
            "prompt_response": EventField(FieldKind.TEXT, "It runs hooks."),
            "stop_hook_active": EventField(FieldKind.FLAG, False, default=False),
        },
        blocked_word="continued",
        if_acting=Acting(effects=(Effect.CLEAR_CONTEXT,)),
    ),
    HookEventName.SESSION_START: EventSpec(
        description="When a session begins.",
        fields={"source": EventField(FieldKind.WORD, "startup", tuple(SessionStartSource), SessionStartSource.STARTUP)},
        match=MatchKind.EXACT,
        matched_field="source",
        prints_context_elsewhere=True,
        if_acting=Acting(block=False, effects=(Effect.ADD_CONTEXT,)),
    ),
    HookEventName.SESSION_END: EventSpec(
        description="When a session ends.",
        fields={"reason": EventField(FieldKind.WORD, "exit", tuple(SessionEndReason), SessionEndReason.EXIT)},
        match=MatchKind.EXACT,
        matched_field="reason",
    ),
    HookEventName.PRE_COMPRESS: EventSpec(
        description="Before the conversation is compressed.",
        fields={"trigger": EventField(FieldKind.WORD, "manual", tuple(PreCompressTrigger))},
        match=MatchKind.EXACT,
        matched_field="trigger",
        if_acting=Acting(),
    ),
    HookEventName.NOTIFICATION: EventSpec(
        description="When the agent notifies or asks the user.",
        fields={
            "notification_type": EventField(FieldKind.TEXT, "ToolPermission", tuple(NotificationType)),
            "message": EventField(FieldKind.TEXT, "write_file needs approval"),
            "details": EventField(FieldKind.OBJECT, {"tool_name": "write_file"}, default={}),
        },
        match=MatchKind.EXACT,
        matched_field="notification_type",
    ),
}

TOOL_EVENTS = tuple(event for event, spec in EVENTS.items() if spec.is_about_tool)
