"""Reads the hook fields of one settings file. Each invalid field is reported and ignored; the others still apply."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.settings.audit import AUDIT, NOWHERE, AuditRule
from llxprt_hooks.settings.environment import ENVIRONMENT, NOTHING, EnvironmentRule
from llxprt_hooks.settings.foreign import DIALECTS, NATIVE
from llxprt_hooks.settings.hook_entries import DISCARDED, SWITCHES, WrittenHooks
from llxprt_hooks.settings.jsonc import Kind, Node, shown
from llxprt_hooks.settings.problem import Problem, first_problems
from llxprt_hooks.settings.shape import ArrayOf, Field, Misfit, Mistake, Scalar, Shape, misfits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from llxprt_hooks.settings.document import Document

ENABLING_KEYS: Final = (
    ("enableHooks",),
    ("tools", "enableHooks"),
    ("hooksConfig", "enabled"),
    ("hooks", "enabled"),
)
"""The keys that turn hooks on or off. The first takes precedence; among the others, ``false`` wins."""

DISABLED_LISTS: Final = (("hooksConfig", "disabled"), ("hooks", "disabled"))
"""The keys that list disabled hooks; all lists are joined."""

MANAGED: Final = "managed"
MANAGED_ONLY: Final = "managedOnly"
"""The keys of ``hooksConfig`` for managed hooks."""

STANDARD: Final = "standard"
FULL: Final = "full"
PROFILES: Final = (STANDARD, FULL)
"""How much the answers of hooks can do (D-46)."""

WARM_LEVELS: Final = ("project", "user", "system", "extensions")
"""Whose hooks can be warm together."""

DEFAULT_MAX_CONTINUATIONS: Final = 8

_BOOLEAN: Final = Scalar(Kind.BOOLEAN)
_ENABLED: Final = Field(_BOOLEAN, "Another spelling of `enableHooks`, read if that is absent.", deprecated=True)
_DISABLED: Final = Field(
    ArrayOf(Scalar(Kind.STRING)),
    "Disabled hooks, by name, or by command if they have no name. The lists of all settings files are joined.",
    default=[],
)

HOOKS_CONFIG: Final = Shape(
    "hooksConfig",
    "About all hooks.",
    {
        "enabled": _ENABLED,
        "disabled": _DISABLED,
        "tools": Field(
            ArrayOf(Scalar(Kind.STRING)),
            "Your own program's tools. `validate`, `trust`, `doctor` and `fire` compare matchers with these instead "
            "of LLxprt Code's tools. The lists of all settings files are joined.",
            default=[],
        ),
        "environment": Field(ENVIRONMENT, ENVIRONMENT.description),
        "audit": Field(AUDIT, AUDIT.description),
        "profile": Field(
            Scalar(Kind.STRING, choices=PROFILES),
            "`full` lets hooks act: refuse prompts, replace results and responses, let agents go on, and ask people.",
            default=STANDARD,
        ),
        "maxContinuations": Field(
            Scalar(Kind.NUMBER, above=0),
            "How many turns in a row AfterAgent hooks can make the agent continue, with the profile `full`.",
            default=DEFAULT_MAX_CONTINUATIONS,
        ),
        "log": Field(
            _BOOLEAN,
            "Every program that loads these settings records its hooks for `llxprt-hooks log`, as `run` does.",
            default=False,
        ),
        "dialects": Field(
            ArrayOf(Scalar(Kind.STRING, choices=(NATIVE, *DIALECTS))),
            "Other agents whose hooks run as well, from their own settings files. The lists of all settings files are "
            "joined.",
            default=[],
        ),
        "warm": Field(
            ArrayOf(Scalar(Kind.STRING, choices=(*WARM_LEVELS, NATIVE, *DIALECTS)), or_boolean=True),
            "Which commands are warm: all (`true`), none (`false`), or those of some levels and agents, except hooks "
            'with `"warm": false`. Without it, hooks with `"warm": true` are.',
        ),
        MANAGED: Field(
            _BOOLEAN,
            "Only in a system file that only root can write: its hooks run first, and no other file can disable or "
            "change them.",
            default=False,
        ),
        MANAGED_ONLY: Field(
            _BOOLEAN,
            "In a file with `managed`: the hooks of all other files and of extensions do not run.",
            default=False,
        ),
        "notifications": Field(_BOOLEAN, "Read by other agents, without an effect here."),
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

HOOKS: Final = Shape(
    "hooks",
    "The hooks: event names, each with its groups of hooks.",
    {
        "enabled": _ENABLED,
        "disabled": replace(_DISABLED, description="Another spelling of `hooksConfig.disabled`.", deprecated=True),
    },
    open=True,
)
"""The ``hooks`` of a settings file, except for events, which ``schema`` adds."""

SETTINGS: Final = Shape(
    "settings",
    "The hook settings in `.llxprt/settings.json`. Other keys belong to other parts of the agent.",
    {
        "enableHooks": Field(
            _BOOLEAN, "Whether hooks run. The project's word counts over the user's and the system's.", default=False
        ),
        "hooks": Field(HOOKS, HOOKS.description, default={}),
        "hooksConfig": Field(HOOKS_CONFIG, "About all hooks."),
        "tools": Field(TOOLS, "About tools."),
    },
    open=True,
)
"""A settings file, with ``HOOKS`` as above."""


@dataclass(frozen=True, slots=True)
class HookFields:
    enabled: bool | None
    """Whether hooks are on; ``None`` if the file does not set it."""
    hooks: WrittenHooks
    """Event name to hook groups."""
    disabled: tuple[str, ...]
    tools: tuple[str, ...]
    """The program's own tools, if the file names them."""
    environment: EnvironmentRule | None
    """Which variables hooks inherit; ``None`` if the file does not set it."""
    dialects: tuple[str, ...]
    """The other agents whose hooks run as well."""
    warm: Sequence[str] | bool | None
    """Which hooks are started before their events; ``None`` if the file does not set it."""
    log: bool | None
    """Whether programs record executions in the local log; ``None`` if the file does not set it."""
    profile: str | None
    """How much hooks can do; ``None`` if the file does not set it."""
    max_continuations: int | None
    audit: AuditRule | None
    """Where records of executions are sent; ``None`` if the file does not set it, ``NOWHERE`` if it is invalid."""
    managed: bool
    """Whether the file says that its hooks are managed; only root can say so (D-36)."""
    managed_only: bool
    """Whether it says that only managed hooks run."""
    problems: tuple[Problem, ...]


def read_hook_fields(document: Document) -> HookFields:
    reader = FieldReader(document, SETTINGS)
    return HookFields(
        enabled=switched_by(reader.value(*path) for path in ENABLING_KEYS),
        hooks=WrittenHooks(document, reader.events()),
        disabled=tuple(name for path in DISABLED_LISTS for name in reader.value(*path) or ()),
        tools=tuple(reader.value("hooksConfig", "tools") or ()),
        environment=_environment(reader),
        dialects=tuple(reader.value("hooksConfig", "dialects") or ()),
        warm=reader.value("hooksConfig", "warm"),
        log=reader.value("hooksConfig", "log"),
        profile=reader.value("hooksConfig", "profile"),
        max_continuations=reader.value("hooksConfig", "maxContinuations"),
        audit=_audit(reader) if document.root.at("hooksConfig", "audit") else None,
        managed=bool(reader.value("hooksConfig", MANAGED)),
        managed_only=bool(reader.value("hooksConfig", MANAGED_ONLY)),
        problems=(*document.duplicate_keys(), *reader.problems),
    )


class FieldReader:
    """Reads the values of a document that fit their declaration, and collects problems with the others."""

    def __init__(self, document: Document, declared: Shape) -> None:
        self._document = document
        self._problems: list[Problem] = []
        self._unfit: set[int] = set()
        self._effects: set[str] = set()
        for misfit in misfits(declared, document.root):
            if misfit.mistake is not Mistake.UNKNOWN or misfit.shape is ENVIRONMENT:
                self._add(misfit)

    @property
    def problems(self) -> list[Problem]:
        return first_problems(self._problems)

    def value(self, *path: str) -> Any:
        """Return the value at a path, without unfit elements if it is an array; ``None`` if it is missing or unfit."""
        node = self._document.root.at(*path)
        if node is None or node.start in self._unfit:
            return None
        if node.kind is Kind.ARRAY:
            return [item.to_value() for item in node.items if item.start not in self._unfit]
        return node.to_value()

    def is_unfit(self, shape: Shape) -> bool:
        """Return whether an object is not used because of a mistake anywhere in it."""
        return shape.if_unfit in self._effects

    def events(self) -> Node:
        """Return the ``hooks`` object with nothing but events that have an array of hook groups."""
        hooks = self._document.root.at("hooks")
        events = [member for key, member in hooks.fields.items() if key not in SWITCHES] if hooks else []
        for event, *_, node in events:
            if node.kind is not Kind.ARRAY:
                expected = f"`{shown(event)}` must be an array of hook groups"
                self.report(node, f"{expected}, found {self._document.found(node)}, {_DISCARDED}")
        return Node(Kind.OBJECT, 0, 0, members=tuple(each for each in events if each.value.kind is Kind.ARRAY))

    def report(self, node: Node, message: str) -> None:
        self._problems.append(self._document.problem_at(node.start, message))

    def _add(self, misfit: Misfit) -> None:
        self._unfit.add(misfit.node.start)
        self._effects.add(misfit.effect)
        if misfit.effect:
            effect = f"; {misfit.effect}"
        elif misfit.mistake is Mistake.MISSING:
            effect = ""
        else:
            effect = f", {_DISCARDED if misfit.key == 'hooks' else 'which is ignored'}"
        node = misfit.member.value if misfit.member else misfit.node
        self.report(node, misfit.words(self._document) + effect)


_DISCARDED: Final = f"which is {DISCARDED}"


def switched_by(values: Iterable[object]) -> bool | None:
    """Whether settings turn hooks on, from the values of ``ENABLING_KEYS``; None if they do not say."""
    canonical, *aliases = (value if isinstance(value, bool) else None for value in values)
    if canonical is not None:
        return canonical
    given = [alias for alias in aliases if alias is not None]
    return all(given) if given else None


def _environment(reader: FieldReader) -> EnvironmentRule | None:
    if reader.is_unfit(ENVIRONMENT):
        return NOTHING
    given = reader.value("hooksConfig", "environment")
    return None if given is None else EnvironmentRule(**{key: tuple(names) for key, names in given.items()})


def _audit(reader: FieldReader) -> AuditRule:
    nats = None if reader.is_unfit(AUDIT) else reader.value("hooksConfig", "audit", "nats")
    payloads = bool(reader.value("hooksConfig", "audit", "payloads"))
    key = reader.value("hooksConfig", "audit", "signingKey")
    return NOWHERE if nats is None else AuditRule.of(nats, payloads=payloads, signing_key=key)
