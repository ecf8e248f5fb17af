"""What settings say about hooks, declared once: the keys of every object, their types, defaults and meaning.

``checks/keys.py`` holds files against it, and ``json_schema.py`` turns it into JSON Schema for editors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from llxprt_hooks.engine.definitions import DEFAULT_TIMEOUT
from llxprt_hooks.events import EVENTS, EventSpec, HookEventName, MatchKind
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


def _group(spec: EventSpec) -> Shape:
    return Shape(
        "group",
        "Hooks, and what they are for.",
        {
            "matcher": _matcher(spec),
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


def _matcher(spec: EventSpec) -> Field:
    field = spec.matched_field
    if spec.match is MatchKind.EXACT:
        value = Scalar(Kind.STRING, suggestions=("*", *spec.matched_values))
        return Field(value, f"For which `{field}` the group is: compared exactly. None, empty or `*`: for all.",
                     default="*", nullable=True)  # fmt: skip
    if spec.match is MatchKind.SEARCHED:
        value = Scalar(Kind.STRING, suggestions=("*", "^write_file$", "^(write_file|replace)$", "^run_shell_command$"))
        return Field(
            value,
            f"For which `{field}` the group is: an ECMAScript regular expression that is found anywhere in the "
            "name, so `^write_file$` for exactly that. None, empty or `*`: for all.",
            default="*",
            nullable=True,
        )
    return Field(Scalar(Kind.STRING), "Ignored: this event has nothing to match.", nullable=True, deprecated=True)


GROUPS: Final[Mapping[HookEventName, Shape]] = {event: _group(spec) for event, spec in EVENTS.items()}
"""The hook group of each event."""

HOOKS: Final = Shape(
    "hooks",
    "The hooks: event names, each with its groups of hooks.",
    {event.value: Field(ArrayOf(group), event.spec.description, default=[]) for event, group in GROUPS.items()},
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
