"""What settings say about hooks, declared once: the keys of every object, their types, defaults and meaning.

``checks/keys.py`` holds files against it, and ``json_schema.py`` turns it into JSON Schema for editors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from llxprt_hooks.engine.definitions import DEFAULT_TIMEOUT
from llxprt_hooks.events import (
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from llxprt_hooks.settings import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number or boolean; ``choices`` are all it may be, ``suggestions`` some of it."""

    kind: Kind
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    above: float | None = None
    not_blank: bool = False


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array whose elements are all alike."""

    element: Value
    kind: Kind = Kind.ARRAY


@dataclass(frozen=True, slots=True)
class Shape:
    """An object. What is ``open`` belongs to others too and may have keys that are none of ours."""

    name: str
    description: str
    fields: Mapping[str, Field]
    open: bool = False
    example: Mapping[str, object] | None = None
    kind: Kind = Kind.OBJECT


Value: TypeAlias = "Scalar | ArrayOf | Shape"


@dataclass(frozen=True, slots=True)
class Field:
    """One key of an object."""

    value: Value
    description: str
    default: object = None
    """What holds where the key is absent; None where there is no value for that."""
    required: bool = False
    nullable: bool = False
    """Whether null counts as absent; elsewhere it is of the wrong type."""
    deprecated: bool = False


_BOOLEAN: Final = Scalar(Kind.BOOLEAN)

HOOK: Final = Shape(
    "hook",
    "A command to run, and how.",
    {
        "type": Field(
            Scalar(Kind.STRING, choices=("command",)),
            "What the hook is: `command`. The type `plugin` is accepted, but cannot be run.",
            required=True,
        ),
        "command": Field(
            Scalar(Kind.STRING, not_blank=True),
            "A command line for bash (sh where there is no bash), run in the project folder. It gets the event as JSON "
            "on stdin. `$LLXPRT_PROJECT_DIR` is the project folder, also without quotes.",
            required=True,
        ),
        "timeout": Field(
            Scalar(Kind.NUMBER, above=0),
            "Milliseconds after which the hook is ended and counts as failed.",
            default=int(DEFAULT_TIMEOUT),
            nullable=True,
        ),
        "name": Field(
            Scalar(Kind.STRING),
            "What lists, logs and `hooksConfig.disabled` call the hook; its command if not given.",
            nullable=True,
        ),
        "description": Field(Scalar(Kind.STRING), "What the hook is for, for people.", nullable=True),
        "failClosed": Field(
            _BOOLEAN,
            "Whether a failure of this hook (a crash, a time-out, any exit code but 0 and 2) blocks. For BeforeTool "
            "and BeforeModel; without it a failed hook allows.",
            default=False,
            nullable=True,
        ),
    },
    example={"type": "command", "name": "check", "command": "$LLXPRT_PROJECT_DIR/.llxprt/hooks/check.sh"},
)


@dataclass(frozen=True, slots=True)
class EventShape:
    """An event: when it fires, and what its matchers are held against."""

    description: str
    subject: str = ""
    """The payload's field that a matcher is held against; empty where matchers are ignored."""
    values: tuple[str, ...] = ()
    """What the subject may be, where a matcher is compared with it and not searched in it."""
    group: Shape = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", _group(self))


def _group(event: EventShape) -> Shape:
    return Shape(
        "group",
        "Hooks, and what they are for.",
        {
            "matcher": _matcher(event),
            "hooks": Field(ArrayOf(HOOK), "The hooks of the group.", required=True),
            "sequential": Field(
                _BOOLEAN,
                "Whether the hooks run one after another, each seeing what the one before changed, up to the first "
                "that blocks. One such group makes a chain of all hooks that match the event.",
                default=False,
                nullable=True,
            ),
        },
        example={"hooks": [HOOK.example]},
    )


def _matcher(event: EventShape) -> Field:
    if event.values:
        value = Scalar(Kind.STRING, suggestions=("*", *event.values))
        return Field(value, f"For which `{event.subject}` the group is: compared exactly. None, empty or `*`: for all.",
                     default="*", nullable=True)  # fmt: skip
    if event.subject:
        value = Scalar(Kind.STRING, suggestions=("*", "^write_file$", "^(write_file|replace)$", "^run_shell_command$"))
        return Field(
            value,
            f"For which `{event.subject}` the group is: an ECMAScript regular expression that is found anywhere in the "
            "name, so `^write_file$` for exactly that. None, empty or `*`: for all.",
            default="*",
            nullable=True,
        )
    return Field(Scalar(Kind.STRING), "Ignored: this event has nothing to match.", nullable=True, deprecated=True)


EVENTS: Final[Mapping[HookEventName, EventShape]] = {
    HookEventName.BEFORE_TOOL: EventShape("Before a tool runs: block it, or rewrite its arguments.", "tool_name"),
    HookEventName.AFTER_TOOL: EventShape("After a tool ran: tell the model more, hide the result, stop.", "tool_name"),
    HookEventName.BEFORE_MODEL: EventShape("Before the model is called: block, change the request, or answer."),
    HookEventName.AFTER_MODEL: EventShape("After the model answered: replace or hide the answer, or stop."),
    HookEventName.BEFORE_TOOL_SELECTION: EventShape("Before the model chooses tools: restrict which it may call."),
    HookEventName.BEFORE_AGENT: EventShape("When the user's prompt arrives. The agent does not wait for it."),
    HookEventName.AFTER_AGENT: EventShape("When the agent has answered a prompt."),
    HookEventName.SESSION_START: EventShape("When a session begins.", "source", tuple(SessionStartSource)),
    HookEventName.SESSION_END: EventShape("When a session ends.", "reason", tuple(SessionEndReason)),
    HookEventName.PRE_COMPRESS: EventShape(
        "Before the conversation is compressed.", "trigger", tuple(PreCompressTrigger)
    ),
    HookEventName.NOTIFICATION: EventShape(
        "When the agent needs the user's attention.", "notification_type", tuple(NotificationType)
    ),
}

HOOKS: Final = Shape(
    "hooks",
    "The hooks: event names, each with its groups of hooks.",
    {event.value: Field(ArrayOf(shape.group), shape.description, default=[]) for event, shape in EVENTS.items()},
    example={"BeforeTool": [{"matcher": "^write_file$", "hooks": [HOOK.example]}]},
)

ENVIRONMENT: Final = Shape(
    "environment",
    "Which variables of the environment hooks inherit. A name is written out, or ends with a `*` for any rest.",
    {
        "allow": Field(ArrayOf(Scalar(Kind.STRING)), "Only these are inherited; all, if not given.", default=["*"]),
        "deny": Field(ArrayOf(Scalar(Kind.STRING)), "These are not inherited.", default=[]),
    },
    example={"deny": ["AWS_*", "GITHUB_TOKEN"]},
)

HOOKS_CONFIG: Final = Shape(
    "hooksConfig",
    "About all hooks.",
    {
        "enabled": Field(_BOOLEAN, "Another spelling of `enableHooks`, read where that is absent.", deprecated=True),
        "disabled": Field(
            ArrayOf(Scalar(Kind.STRING)),
            "Hooks that are switched off, by name, or by command where they have no name. The lists of all settings "
            "files are joined.",
            default=[],
        ),
        "environment": Field(ENVIRONMENT, ENVIRONMENT.description),
        "notifications": Field(_BOOLEAN, "For other agents; it has no effect here."),
    },
)

TOOLS: Final = Shape(
    "tools",
    "About tools.",
    {
        "enableHooks": Field(
            _BOOLEAN, "Another spelling of the top-level `enableHooks`, read where that is absent.", deprecated=True
        )
    },
    open=True,
)

SETTINGS: Final = Shape(
    "settings",
    "What `.llxprt/settings.json` says about hooks. Other keys belong to other parts of the agent.",
    {
        "enableHooks": Field(
            _BOOLEAN, "Whether hooks run. The project's word counts over the user's and the system's.", default=False
        ),
        "hooks": Field(HOOKS, "The hooks: event names, each with its groups of hooks.", default={}),
        "hooksConfig": Field(HOOKS_CONFIG, "About all hooks."),
        "tools": Field(TOOLS, "About tools."),
    },
    open=True,
)

EXTENSION_HOOKS: Final = Shape(
    "extension",
    "The hooks of an extension.",
    {"hooks": Field(HOOKS, "The hooks: event names, each with its groups of hooks.", required=True)},
    open=True,
)
