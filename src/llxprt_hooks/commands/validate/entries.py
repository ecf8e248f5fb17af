"""The events, groups and hooks of a settings file, each with its position and parent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from llxprt_hooks.commands.validate.diagnostic import Diagnostic, Source, diagnostic_at
from llxprt_hooks.events import EventSpec, HookEventName
from llxprt_hooks.settings import Document, Kind, Member, Node
from llxprt_hooks.settings.definitions import HookConfig, read_hook
from llxprt_hooks.settings.did_you_mean import meant_event
from llxprt_hooks.settings.extensions import PathInserter
from llxprt_hooks.settings.hook_entries import SWITCHES, HookEntry, HookGroup, event_groups
from llxprt_hooks.settings.matcher import Matches, compile_matcher
from llxprt_hooks.settings.schema import fields_of_type, own_fields, settings_executor, shell_fields
from llxprt_hooks.settings.shape import shown_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llxprt_hooks.commands.validate.rules import Rule

_CHARACTER: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
"""One character of a JSON string, possibly an escape."""


class Role(StrEnum):
    """The role of a file, highest priority first; ``FILE`` belongs to no level."""

    PROJECT = "project"
    USER = "user"
    SYSTEM = "system"
    EXTENSION = "extension"
    MANIFEST = "manifest"
    FILE = "file"


@dataclass(frozen=True, eq=False)
class SettingsFile:
    """A settings file that could be read."""

    document: Document
    role: Role
    acts: bool = False
    """Whether its hooks act: the profile of the settings that apply is ``full``."""
    source: Source = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", Source(self.document.file, self.document.text, self._secrets))

    @property
    def root(self) -> Node:
        return self.document.root

    @property
    def extension(self) -> Path | None:
        """The folder of the extension that the file belongs to, if any."""
        return self.document.file.absolute().parent.parent if self.role is Role.EXTENSION else None

    @cached_property
    def events(self) -> tuple[FileEvent, ...]:
        """The events under ``hooks``; of duplicates the last, as in the engine."""
        hooks = None if self.role is Role.MANIFEST else self.root.at("hooks")
        members = hooks.fields.items() if hooks else ()
        return tuple(FileEvent(self, member) for key, member in members if key not in SWITCHES)

    @property
    def hooks(self) -> Iterator[FileHook]:
        """All hooks of the file, including those that cannot run."""
        return (hook for event in self.events for group in event.groups for hook in group.hooks)

    def _secrets(self) -> Iterator[tuple[int, int]]:
        """Return where values are that are never shown."""
        for hook in self.hooks:
            declared = fields_of_type(hook.type)
            for member in hook.node.members:
                field_ = declared.get(member.key)
                if field_ is not None and field_.secret:
                    values = [each.value for each in member.value.members] or [member.value]
                    yield from ((value.start, value.end) for value in values)
                elif field_ is not None and field_.address:
                    yield from _addresses_with_passwords(member.value)
        yield from _addresses_with_passwords(self.root.at("hooksConfig", "audit", "nats", "servers"))

    def at(self, rule: Rule, node: Node, message: str, fix: str) -> Diagnostic:
        return diagnostic_at(self.source, rule, node.start, node.end, message, fix)

    def at_key(self, rule: Rule, member: Member, message: str, fix: str) -> Diagnostic:
        return diagnostic_at(self.source, rule, member.key_start, member.key_end, message, fix)

    def inside(self, rule: Rule, node: Node, span: tuple[int, int], message: str, fix: str) -> Diagnostic:
        """Return a diagnostic for a part of a string, by offsets into its value."""
        written = list(_CHARACTER.finditer(self.source.text, node.start + 1, node.end - 1))
        ends = [node.start + 1, *(character.end() for character in written)]
        return diagnostic_at(self.source, rule, ends[span[0]], ends[span[1]], message, fix)

    def place(self, node: Node, *, seen_from: SettingsFile) -> str:
        """Return the position of a value for a message."""
        line = self.source.position(node.start)[0]
        return f"line {line}" if self is seen_from else f"{self.document.file}:{line}"


@dataclass(frozen=True, eq=False)
class FileEvent:
    """One key under ``hooks``, and its groups."""

    file: SettingsFile
    member: Member

    @cached_property
    def name(self) -> HookEventName | None:
        """The event; None if the name is unknown."""
        return next((event for event in HookEventName if event == self.member.key), None)

    @cached_property
    def meant(self) -> HookEventName | None:
        """The event, or the most likely intended one."""
        return self.name or meant_event(self.member.key)

    @cached_property
    def groups(self) -> tuple[FileGroup, ...]:
        """The groups that are objects."""
        return tuple(FileGroup(self, group) for group in event_groups(self.member.key, self.member.value))


@dataclass(frozen=True, eq=False)
class FileGroup:
    event: FileEvent
    written: HookGroup

    @property
    def node(self) -> Node:
        return self.written.node

    @property
    def file(self) -> SettingsFile:
        return self.event.file

    @property
    def matcher(self) -> Node | None:
        """The matcher, if it is a string."""
        return _of_kind(self.node.at("matcher"), Kind.STRING)

    @property
    def sequential(self) -> Node | None:
        """The value ``true`` that makes the group sequential, if present."""
        node = self.node.at("sequential")
        return node if node and node.scalar is True else None

    @cached_property
    def matches(self) -> Matches | None:
        """The compiled matcher; None for an unknown event."""
        matcher = self.matcher
        return compile_matcher(self.event.meant, str(matcher.scalar) if matcher else None) if self.event.meant else None

    @property
    def is_bare_hook(self) -> bool:
        """Whether it is a hook in the place of a group, which the engine skips."""
        return is_bare_hook(self.node)

    @cached_property
    def hooks(self) -> tuple[FileHook, ...]:
        """The hooks that are objects."""
        if self.is_bare_hook:
            return (FileHook(self, HookEntry(self.written, self.node, 0)),)
        return tuple(FileHook(self, hook) for hook in self.written.entries())


@dataclass(frozen=True, eq=False)
class FileHook:
    group: FileGroup
    entry: HookEntry

    @property
    def node(self) -> Node:
        return self.entry.node

    @property
    def file(self) -> SettingsFile:
        return self.group.file

    @property
    def event(self) -> HookEventName | None:
        return self.group.event.meant

    @property
    def spec(self) -> EventSpec | None:
        """The facts about the event, for hooks that act or for those that do not."""
        return self.event.spec_if(self.file.acts) if self.event else None

    @cached_property
    def inserted(self) -> Node:
        """The hook as the engine gets it, with ``${extensionPath}`` replaced."""
        folder = self.file.extension
        if folder is None:
            return self.node
        inserter = PathInserter(lambda *_: None, str(folder), shell_fields())  # the engine reports what it leaves out
        return inserter.insert(self.node)

    @property
    def type(self) -> object:
        node = self.node.at("type")
        return node.scalar if node else None

    @cached_property
    def config(self) -> HookConfig | None:
        """The hook as the engine reads it; None if it is invalid."""
        return read_hook(self.inserted)[0]

    @property
    def command_node(self) -> Node | None:
        """The shell command, if it is not blank."""
        nodes = (_of_kind(self.node.at(key), Kind.STRING) for key in shell_fields())
        return next((node for node in nodes if node and str(node.scalar).strip()), None)

    @property
    def command(self) -> str:
        return str(self.command_node.scalar) if self.command_node else ""

    def in_command(self, rule: Rule, span: tuple[int, int] | None, message: str, fix: str) -> Diagnostic:
        """Return a diagnostic for a part of the command, or for all of it."""
        node = self.command_node or self.node
        return self.file.inside(rule, node, span, message, fix) if span else self.file.at(rule, node, message, fix)

    @property
    def main_node(self) -> Node:
        """The value that best describes what runs."""
        executor = settings_executor(self.type)
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
        """Whether a failure of the hook blocks."""
        node = self.node.at("failClosed")
        return node is not None and node.scalar is True

    @property
    def blocks_on_failure(self) -> bool:
        return bool(self.config and self.config.blocks_on_failure and self.spec and self.spec.can_block)

    @property
    def identity(self) -> str:
        """The name in lists, logs and ``hooksConfig.disabled``."""
        return self.config.identity if self.config else self.name or self.command

    @property
    def key(self) -> str:
        """The deduplication key: hooks of an event with the same key run once."""
        return self.config.deduplication_key if self.config else ""

    @property
    def can_run(self) -> bool:
        """Whether the engine runs it: a valid hook of a supported type under a known event."""
        is_usable = self.config is not None and not self.config.executor.unsupported
        return is_usable and self.group.event.name is not None and not self.group.is_bare_hook


def is_bare_hook(node: Node) -> bool:
    """Return whether an entry of an event is a hook instead of a group."""
    keys = {member.key for member in node.members}
    return "hooks" not in keys and bool(keys & {"type", *own_fields()})


def _addresses_with_passwords(node: Node | None) -> Iterator[tuple[int, int]]:
    for each in (node.items or (node,)) if node else ():
        if shown_addresses(value := each.to_value()) != value:
            yield each.start, each.end


def _of_kind(node: Node | None, kind: Kind) -> Node | None:
    return node if node and node.kind is kind else None
