"""The settings for hooks, declared once: the keys of every object, their types, defaults and meaning.

``definitions`` reads hooks by it, ``llxprt-hooks validate`` checks files against it, and the JSON Schema is generated
from it. What a hook may contain depends on its type: each executor declares its own fields. What is not about single
hooks, such as ``hooksConfig``, is declared in ``hook_fields``, where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from llxprt_hooks.events import EVENTS, EventSpec, HookEventName, MatchKind
from llxprt_hooks.settings.extensions import EXTENSION
from llxprt_hooks.settings.foreign import DIALECTS, NATIVE
from llxprt_hooks.settings.hook_fields import HOOKS as FILE_HOOKS
from llxprt_hooks.settings.hook_fields import SETTINGS as FILE_SETTINGS
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.shape import ArrayOf, Field, Scalar, Shape

if TYPE_CHECKING:
    from llxprt_hooks.core.executors import Executor

AnyExecutor: TypeAlias = "Executor[Any]"


@cache
def executors() -> dict[str, AnyExecutor]:
    """All types by name, with those that only a program can create."""
    # The one import against the order of the folders, so that a hook type is declared and run by one module.
    from llxprt_hooks.core.executors import EXECUTORS

    return EXECUTORS


def settings_executors() -> dict[str, AnyExecutor]:
    """The hook types that settings may name."""
    return {name: executor for name, executor in executors().items() if executor.fields is not None}


def settings_executor(type_name: object) -> AnyExecutor | None:
    """The executor of a ``type`` in settings; None if there is no such type."""
    executor = executors().get(type_name) if isinstance(type_name, str) else None
    return executor if executor is not None and executor.fields is not None else None


DEFAULT_TIMEOUT = 60_000.0
"""Milliseconds (HOOK-120)."""

ENFORCE: Final = "enforce"
OBSERVE: Final = "observe"
"""The modes of a hook (D-80)."""

WHOLE: Final = "whole"
SENTENCES: Final = "sentences"
"""What an AfterModel hook gets of an answer that is streamed (D-151)."""

_BOOLEAN: Final = Scalar(Kind.BOOLEAN)

HOOK_FIELDS: Final[Mapping[str, Field]] = {
    "timeout": Field(
        Scalar(Kind.NUMBER, above=0),
        "Milliseconds after which the hook is killed and counts as failed.",
        default=int(DEFAULT_TIMEOUT),
        nullable=True,
    ),
    "name": Field(
        Scalar(Kind.STRING),
        "The hook's name in lists, logs and `hooksConfig.disabled`. Without it, they show its command.",
        nullable=True,
    ),
    "description": Field(Scalar(Kind.STRING), "What the hook is for, for people.", nullable=True),
    "failClosed": Field(
        _BOOLEAN,
        "For BeforeTool and BeforeModel: if the hook fails (a crash, a timeout, any exit code except 0 and 2, unclear "
        "output), the call is blocked. Without it, the call goes ahead.",
        default=False,
        nullable=True,
    ),
    "mode": Field(
        Scalar(Kind.STRING, choices=(ENFORCE, OBSERVE)),
        "With `observe`, the hook runs and is logged with what it would have decided, but changes nothing.",
        default=ENFORCE,
        nullable=True,
    ),
    "stream": Field(
        Scalar(Kind.STRING, choices=(WHOLE, SENTENCES)),
        "For AfterModel. With `sentences`, the hook gets a streamed response sentence by sentence, and what it returns "
        "is shown at once. It has an effect only if all AfterModel hooks have it.",
        default=WHOLE,
        nullable=True,
    ),
}
"""What a hook of any type may have beside its type."""


def hook_shape(type_name: object) -> Shape:
    """What a hook of a type may have; of an unknown type, what hooks of all types may have, and nothing required."""
    executor = settings_executor(type_name)
    if executor is not None:
        example = {"type": type_name, **executor.example} if executor.example else None
        return Shape("hook", "What to run, and how.", {**_type_field(), **(executor.fields or {}), **HOOK_FIELDS},
                     example=example)  # fmt: skip
    fields = {key: replace(field, required=False) for key, field in own_fields().items()}
    return Shape("hook", "What to run, and how.", {**_type_field(), **fields, **HOOK_FIELDS})


def own_fields() -> dict[str, Field]:
    """The fields that belong to hooks of one type, of all types."""
    found: dict[str, Field] = {}
    for executor in settings_executors().values():
        for key, field in (executor.fields or {}).items():
            found.setdefault(key, field)  # the first type's declaration, if several types have the key
    return found


def fields_of_type(type_name: object) -> Mapping[str, Field]:
    """The fields that belong to hooks of a type; of an unknown type, those of all types."""
    executor = settings_executor(type_name)
    return own_fields() if executor is None else executor.fields or {}


def shell_fields() -> tuple[str, ...]:
    """The fields that are command lines for the shell."""
    return tuple(
        key for key, field in own_fields().items() if isinstance(field.value, Scalar) and field.value.is_command_line
    )


def supported_types() -> tuple[str, ...]:
    """The types that can be written in settings and run."""
    return tuple(name for name, executor in settings_executors().items() if not executor.unsupported)


def _type_field() -> dict[str, Field]:
    names = ", ".join(f"`{name}`" for name in supported_types())
    others = [f"`{name}`" for name in settings_executors() if name not in supported_types()]
    unsupported = f" Accepted, but always fails: {', '.join(others)}." if others else ""
    value = Scalar(Kind.STRING, choices=supported_types())
    return {"type": Field(value, f"What the hook is: {names}.{unsupported}", required=True)}


HOOK: Final = Shape("hook", "What to run, and how.", HOOK_FIELDS)
"""A hook of any type, for the shapes below. ``hook_shape`` is the shape of a hook of one type."""

_EXAMPLE: Final = {"type": "command", "name": "check", "command": "$LLXPRT_PROJECT_DIR/.llxprt/hooks/check.sh"}


def _group(spec: EventSpec) -> Shape:
    return Shape(
        "group",
        "Hooks, and what they are for.",
        {
            "matcher": _matcher(spec),
            "hooks": Field(ArrayOf(HOOK), "The hooks of the group.", required=True),
            "sequential": Field(
                _BOOLEAN,
                "`true` runs all hooks that match the event as a chain, one after another. Each sees what the one "
                "before changed, and the first that blocks ends the chain.",
                default=False,
                nullable=True,
            ),
            "dialect": Field(
                Scalar(Kind.STRING, choices=(NATIVE, *DIALECTS)),
                "The language that the group's hooks speak: which payload they get, and how their output is read. "
                "Event, matcher and timeout stay native.",
                default=NATIVE,
                nullable=True,
            ),
        },
        example={"hooks": [_EXAMPLE]},
    )


def _matcher(spec: EventSpec) -> Field:
    field = spec.matched_field
    if spec.match is MatchKind.EXACT:
        value = Scalar(Kind.STRING, suggestions=("*", *spec.matched_values))
        return Field(value, f"The `{field}` for which the group runs, compared exactly. Absent, empty or `*`: all.",
                     default="*", nullable=True)  # fmt: skip
    if spec.match is MatchKind.SEARCHED:
        value = Scalar(Kind.STRING, suggestions=("*", "^write_file$", "^(write_file|replace)$", "^run_shell_command$"))
        return Field(
            value,
            f"The `{field}` for which the group runs: an ECMAScript regular expression that can match anywhere in the "
            "name, so `^write_file$` for exactly that tool. Absent, empty or `*`: all.",
            default="*",
            nullable=True,
        )
    return Field(Scalar(Kind.STRING), "Ignored: this event has nothing to match.", nullable=True, deprecated=True)


def _with_hooks(shape: Shape, hooks: Shape) -> Shape:
    """The shape of a file, with events."""
    return replace(shape, fields={**shape.fields, "hooks": replace(shape.fields["hooks"], value=hooks)})


GROUPS: Final[Mapping[HookEventName, Shape]] = {event: _group(spec) for event, spec in EVENTS.items()}

_EVENT_FIELDS: Final = {
    event.value: Field(ArrayOf(group), event.spec.description, default=[]) for event, group in GROUPS.items()
}
_HOOKS_EXAMPLE: Final = {"BeforeTool": [{"matcher": "^write_file$", "hooks": [_EXAMPLE]}]}

HOOKS: Final = replace(FILE_HOOKS, fields={**_EVENT_FIELDS, **FILE_HOOKS.fields}, open=False, example=_HOOKS_EXAMPLE)

SETTINGS: Final = _with_hooks(FILE_SETTINGS, HOOKS)

EXTENSION_HOOKS: Final = _with_hooks(EXTENSION, replace(HOOKS, fields=_EVENT_FIELDS))
