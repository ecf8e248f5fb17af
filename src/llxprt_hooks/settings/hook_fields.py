"""Reads the hook fields of one settings file. Each invalid field is reported and ignored; the others still apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.settings.audit import read_audit
from llxprt_hooks.settings.environment import read_environment
from llxprt_hooks.settings.hook_groups import DISCARDED, SWITCHES
from llxprt_hooks.settings.jsonc import Kind, shown
from llxprt_hooks.settings.problem import ProblemList

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llxprt_hooks.settings.audit import AuditRule
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.environment import EnvironmentRule
    from llxprt_hooks.settings.jsonc import Node
    from llxprt_hooks.settings.problem import Problem


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


@dataclass(frozen=True, slots=True)
class HookFields:
    enabled: bool | None
    """Whether hooks are on; ``None`` if the file does not set it."""
    hooks: Mapping[str, list[Any]]
    """Event name to hook groups."""
    disabled: tuple[str, ...]
    environment: EnvironmentRule | None
    """Which variables hooks inherit; ``None`` if the file does not set it."""
    warm: bool | None
    """Whether waiting interpreters may run hooks; ``None`` if the file does not set it."""
    audit: AuditRule | None
    """Where records of executions are sent; ``None`` if the file does not set it."""
    managed: bool
    """Whether the file says that its hooks are managed; only root can say so (D-36)."""
    managed_only: bool
    """Whether it says that only managed hooks run."""
    problems: tuple[Problem, ...]


_DISCARDED: Final = f"which is {DISCARDED}"


def read_hook_fields(document: Document) -> HookFields:
    reader = FieldReader(document)
    config = reader.member(document.root, "hooksConfig", Kind.OBJECT)
    reader.member(document.root, "tools", Kind.OBJECT)
    return HookFields(
        enabled=_switch(reader, document.root),
        hooks={event: groups.to_value() for event, groups in reader.events(document.root).items()},
        disabled=tuple(name for *way, key in DISABLED_LISTS for name in reader.strings(document.root.at(*way), key)),
        environment=read_environment(reader, config),
        warm=reader.switch(config, "warm"),
        audit=read_audit(reader, config),
        managed=bool(reader.switch(config, MANAGED)),
        managed_only=bool(reader.switch(config, MANAGED_ONLY)),
        problems=(*document.duplicate_keys(), *reader.problems),
    )


class FieldReader:
    """Reads fields of the expected kind from a document and collects problems with the others."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._problems = ProblemList()

    @property
    def problems(self) -> list[Problem]:
        return self._problems.all()

    def member(self, parent: Node | None, key: str, kind: Kind) -> Node | None:
        """Return the value of a key, or ``None`` if it is missing or of another kind."""
        node = parent.at(key) if parent else None
        return node if node and self._is(kind, node, f'"{key}" must be {kind}') else None

    def switch(self, parent: Node | None, key: str) -> bool | None:
        """Return a boolean field, or ``None``."""
        node = self.member(parent, key, Kind.BOOLEAN)
        return bool(node.scalar) if node else None

    def strings(self, parent: Node | None, key: str) -> list[str]:
        """Return a list of strings, without elements of other kinds."""
        node = self.member(parent, key, Kind.ARRAY)
        expected = f'"{key}" must list strings'
        return [str(item.scalar) for item in node.items if self._is(Kind.STRING, item, expected)] if node else []

    def events(self, root: Node) -> dict[str, Node]:
        """Return the arrays of hook groups under ``hooks``, by event name."""
        hooks = root.at("hooks")
        if hooks and not self._is(Kind.OBJECT, hooks, '"hooks" must be an object', _DISCARDED):
            return {}
        groups = {member.key: member.value for member in hooks.members if member.key not in SWITCHES} if hooks else {}
        return {
            event: node
            for event, node in groups.items()
            if self._is(Kind.ARRAY, node, f'"{shown(event)}" must be an array of hook groups', _DISCARDED)
        }

    def report(self, node: Node, message: str) -> None:
        """Add a problem with a node."""
        self._problems.add(lambda: self._document.problem_at(node.start, message))

    def _is(self, kind: Kind, node: Node, expected: str, effect: str = "which is ignored") -> bool:
        if node.kind is kind:
            return True
        document = self._document
        self._problems.add(
            lambda: document.problem_at(node.start, f"{expected}, found {document.found(node)}, {effect}")
        )
        return False


def _switch(reader: FieldReader, root: Node) -> bool | None:
    canonical, *aliases = (reader.switch(root.at(*way), key) for *way, key in ENABLING_KEYS)
    if canonical is not None:
        return canonical
    given = [alias for alias in aliases if alias is not None]
    return all(given) if given else None
