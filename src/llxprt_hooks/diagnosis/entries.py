"""A settings file as its hooks: events, groups and hooks, each knowing where it stands and what it belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.diagnosis.diagnostic import Diagnostic, Rule, Source, diagnostic_at
from llxprt_hooks.diagnosis.suggestions import meant_event
from llxprt_hooks.engine.definitions import read_hook
from llxprt_hooks.engine.executors import settings_executor
from llxprt_hooks.engine.matcher import Matches, compile_matcher
from llxprt_hooks.engine.schema import own_fields, shell_fields
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings import Document, Kind, Member, Node
from llxprt_hooks.settings.extensions import PLACEHOLDER
from llxprt_hooks.settings.hook_groups import SWITCHES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llxprt_hooks.engine.definitions import HookConfig

_CHARACTER: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
"""One character of a JSON string as it is written."""


class Role(StrEnum):
    """What a file is, highest priority first; ``FILE`` is one that no level knows."""

    PROJECT = "project"
    USER = "user"
    SYSTEM = "system"
    EXTENSION = "extension"
    FILE = "file"


@dataclass(frozen=True, eq=False)
class SettingsFile:
    """A settings file that could be read."""

    document: Document
    role: Role
    source: Source = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", Source(self.document.file, self.document.text))

    @property
    def root(self) -> Node:
        return self.document.root

    @property
    def extension(self) -> Path | None:
        """The folder of the extension whose hooks these are."""
        return self.document.file.absolute().parent.parent if self.role is Role.EXTENSION else None

    @cached_property
    def events(self) -> tuple[EventEntry, ...]:
        """The events under ``hooks``; of two with one name the last, as for the engine."""
        hooks = self.root.at("hooks")
        members = {member.key: member for member in hooks.members if member.key not in SWITCHES} if hooks else {}
        return tuple(EventEntry(self, member) for member in members.values())

    @property
    def hooks(self) -> Iterator[HookEntry]:
        """All hooks of the file, whether or not they can run."""
        return (hook for event in self.events for group in event.groups for hook in group.hooks)

    def at(self, rule: Rule, node: Node, message: str, fix: str) -> Diagnostic:
        """A diagnostic for a value."""
        return diagnostic_at(self.source, rule, node.start, node.end, message, fix)

    def at_key(self, rule: Rule, member: Member, message: str, fix: str) -> Diagnostic:
        """A diagnostic for a key."""
        return diagnostic_at(self.source, rule, member.key_start, member.key_end, message, fix)

    def inside(self, rule: Rule, node: Node, span: tuple[int, int], message: str, fix: str) -> Diagnostic:
        """A diagnostic for a part of a string, by offsets into its value."""
        written = list(_CHARACTER.finditer(self.source.text, node.start + 1, node.end - 1))
        ends = [node.start + 1, *(character.end() for character in written)]
        return diagnostic_at(self.source, rule, ends[span[0]], ends[span[1]], message, fix)

    def place(self, node: Node, *, seen_from: SettingsFile) -> str:
        """Where a value begins, as a message tells it."""
        line = self.source.position(node.start)[0]
        return f"line {line}" if self is seen_from else f"{self.document.file}:{line}"


@dataclass(frozen=True, eq=False)
class EventEntry:
    """One key under ``hooks``, and its groups."""

    file: SettingsFile
    member: Member

    @cached_property
    def name(self) -> HookEventName | None:
        """The event, or None where there is none of that name."""
        return next((event for event in HookEventName if event == self.member.key), None)

    @cached_property
    def meant(self) -> HookEventName | None:
        """The event, or the one that was most likely meant."""
        return self.name or meant_event(self.member.key)

    @cached_property
    def groups(self) -> tuple[GroupEntry, ...]:
        """The groups that are objects."""
        return tuple(GroupEntry(self, item) for item in self.member.value.items if item.kind is Kind.OBJECT)


@dataclass(frozen=True, eq=False)
class GroupEntry:
    """A group of hooks."""

    event: EventEntry
    node: Node

    @property
    def file(self) -> SettingsFile:
        return self.event.file

    @property
    def matcher(self) -> Node | None:
        """The matcher, where it is a string."""
        return _of_kind(self.node.at("matcher"), Kind.STRING)

    @property
    def sequential(self) -> Node | None:
        """The word ``true`` that makes the group sequential, where it stands."""
        node = self.node.at("sequential")
        return node if node and node.scalar is True else None

    @cached_property
    def matches(self) -> Matches | None:
        """What the matcher selects; None for an event that nobody knows."""
        matcher = self.matcher
        return compile_matcher(self.event.meant, str(matcher.scalar) if matcher else None) if self.event.meant else None

    @property
    def is_bare_hook(self) -> bool:
        """Whether it is no group but a hook, which the engine leaves out."""
        return is_bare_hook(self.node)

    @cached_property
    def hooks(self) -> tuple[HookEntry, ...]:
        """The hooks that are objects."""
        if self.is_bare_hook:
            return (HookEntry(self, self.node),)
        hooks = self.node.at("hooks")
        return tuple(HookEntry(self, item) for item in hooks.items if item.kind is Kind.OBJECT) if hooks else ()


@dataclass(frozen=True, eq=False)
class HookEntry:
    """One hook."""

    group: GroupEntry
    node: Node

    @property
    def file(self) -> SettingsFile:
        return self.group.file

    @property
    def event(self) -> HookEventName | None:
        return self.group.event.meant

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The hook as the engine gets it: with the extension's folder in its place."""
        folder, fields = self.file.extension, self.node.to_value()
        if folder is None:
            return dict(fields)
        return {
            key: value.replace(PLACEHOLDER, str(folder)) if isinstance(value, str) else value
            for key, value in fields.items()
        }

    @cached_property
    def config(self) -> HookConfig | None:
        """The hook as the engine reads it; None where it discards it."""
        return read_hook(self.fields)[0]

    @property
    def command_node(self) -> Node | None:
        """The command line for the shell, where there is one that is not blank."""
        nodes = (_of_kind(self.node.at(key), Kind.STRING) for key in shell_fields())
        return next((node for node in nodes if node and str(node.scalar).strip()), None)

    @property
    def command(self) -> str:
        return str(self.command_node.scalar) if self.command_node else ""

    @property
    def main_node(self) -> Node:
        """The value that tells most about what runs."""
        executor = settings_executor(self.fields.get("type"))
        keys = executor.described if executor else ()
        return next((node for key in keys if (node := self.node.at(key))), self.node)

    @property
    def name_node(self) -> Node | None:
        return _of_kind(self.node.at("name"), Kind.STRING)

    @property
    def name(self) -> str | None:
        return str(self.name_node.scalar) if self.name_node else None

    @property
    def fails_closed(self) -> bool:
        """Whether a failure of it blocks."""
        node = self.node.at("failClosed")
        return node is not None and node.scalar is True

    @property
    def identity(self) -> str:
        """What lists, logs and ``hooksConfig.disabled`` call it."""
        return self.config.identity if self.config else self.name or self.command

    @property
    def key(self) -> str:
        """Hooks of an event with the same key run once."""
        return self.config.deduplication_key if self.config else ""

    @property
    def can_run(self) -> bool:
        """Whether the engine runs it: a usable hook of a supported type under an event that exists."""
        is_usable = self.config is not None and not self.config.executor.unsupported
        return is_usable and self.group.event.name is not None and not self.group.is_bare_hook


def is_bare_hook(node: Node) -> bool:
    """Whether what is in a group's place is a hook."""
    keys = {member.key for member in node.members}
    return "hooks" not in keys and bool(keys & {"type", *own_fields()})


def _of_kind(node: Node | None, kind: Kind) -> Node | None:
    return node if node and node.kind is kind else None
