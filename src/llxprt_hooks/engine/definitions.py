"""Hook definitions: from the ``hooks`` object of a settings file to frozen entries, one problem named per bad piece."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from llxprt_hooks.events import HookEventName
from llxprt_hooks.text import closest, escape_for_terminal

DEFAULT_TIMEOUT = 60_000.0
"""Milliseconds (HOOK-120)."""


class HookType(StrEnum):
    """What a hook is. ``plugin`` is accepted in settings but cannot be run (HOOK-195)."""

    COMMAND = "command"
    PLUGIN = "plugin"


_HOOK_TYPES = tuple(HookType)


class ConfigSource(StrEnum):
    """Where a definition comes from, highest priority first (HOOK-187)."""

    PROJECT = "project"
    USER = "user"
    SYSTEM = "system"
    EXTENSIONS = "extensions"

    @property
    def priority(self) -> int:
        """1 is the highest."""
        return _SOURCES.index(self) + 1


_SOURCES = tuple(ConfigSource)


@dataclass(frozen=True, slots=True)
class HookConfig:
    """One hook: a command and how to run it. ``timeout`` is in milliseconds."""

    type: HookType
    command: str = ""
    timeout: float = DEFAULT_TIMEOUT
    name: str | None = None
    description: str | None = None
    fail_closed: bool = False
    """A failure of this hook counts as its explicit block; without it a failed hook allows (HOOK-110)."""

    @property
    def identity(self) -> str:
        """What a hook is called in lists and logs: its name, else its command."""
        return self.name or self.command or f"<{self.type}>"

    @property
    def deduplication_key(self) -> str:
        """Two hooks with the same key run once per event (HOOK-091)."""
        return f"{self.type}:{self.command or self.name}"


@dataclass(frozen=True, slots=True)
class HookSet:
    """A ``hooks`` object as it stands in its file, with the words that name it in messages."""

    hooks: Mapping[str, Any]
    source: ConfigSource = ConfigSource.PROJECT
    origin: str = ""
    """The file or extension; empty for hooks that a program passed in."""


@dataclass(frozen=True, slots=True)
class HookDefinition:
    """One hook together with its group's event, matcher and mode."""

    config: HookConfig
    event_name: HookEventName
    source: ConfigSource
    origin: str
    where: str
    """The path of the entry in its file, say ``hooks.BeforeTool[0].hooks[1]``."""
    matcher: str | None = None
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    """A piece of a definition that cannot be used, and what was done about it."""

    origin: str
    where: str
    message: str

    def __str__(self) -> str:
        text = f"{self.origin}: {self.where}: {self.message}" if self.origin else f"{self.where}: {self.message}"
        # A key of the file is part of it, which may hold what breaks the line or commands a terminal.
        return escape_for_terminal(text)


def read_definitions(hook_set: HookSet) -> tuple[list[HookDefinition], list[DefinitionProblem]]:
    """All usable hooks of a ``hooks`` object, in order, and what is wrong with the others."""
    reader = _Reader(hook_set)
    return list(reader.definitions()), reader.problems


class _Reader:
    def __init__(self, hook_set: HookSet) -> None:
        self._set = hook_set
        self.problems: list[DefinitionProblem] = []

    def definitions(self) -> Iterator[HookDefinition]:
        for event, groups in self._set.hooks.items():
            where = f"hooks.{event}"
            event_name = self._event(event, where)
            if event_name is None:
                continue
            if not isinstance(groups, list):
                self._report(where, f"discarded: expected an array of hook groups, found {_found(groups)}")
                continue
            for index, group in enumerate(groups):
                yield from self._group(event_name, group, f"{where}[{index}]")

    def _event(self, event: object, where: str) -> HookEventName | None:
        try:
            return HookEventName(event)  # type: ignore[arg-type]  # any object may be asked about
        except ValueError:
            close = closest(str(event), HookEventName)
            self._report(where, "discarded: no such event" + (f", did you mean `{close}`?" if close else ""))
            return None

    def _group(self, event_name: HookEventName, group: object, where: str) -> Iterator[HookDefinition]:
        if not isinstance(group, Mapping):
            self._report(where, f"discarded: expected an object with `hooks`, found {_found(group)}")
            return
        hooks = group.get("hooks")
        if not isinstance(hooks, list):
            self._report(where, f"discarded: `hooks` must be an array of hooks, found {_found(hooks)}")
            return
        matcher = self._optional(group, "matcher", str, where)
        sequential = self._optional(group, "sequential", bool, where)
        for index, hook in enumerate(hooks):
            hook_where = f"{where}.hooks[{index}]"
            config = self._hook(hook, hook_where)
            if config is not None:
                yield HookDefinition(
                    config=config,
                    event_name=event_name,
                    source=self._set.source,
                    origin=self._set.origin,
                    where=hook_where,
                    matcher=matcher,
                    sequential=bool(sequential),
                )

    def _hook(self, hook: object, where: str) -> HookConfig | None:
        if not isinstance(hook, Mapping):
            self._report(where, f"discarded: expected an object with `type` and `command`, found {_found(hook)}")
            return None
        kind, command = hook.get("type"), hook.get("command")
        if kind not in _HOOK_TYPES:
            self._report(where, f'discarded: `type` must be "command" or "plugin", found {_found(kind)}')
            return None
        if kind == HookType.COMMAND and not (isinstance(command, str) and command.strip()):
            self._report(where, f'discarded: a hook of type "command" needs a `command`, found {_found(command)}')
            return None
        return HookConfig(
            type=HookType(kind),
            command=command if isinstance(command, str) else "",
            timeout=self._timeout(hook, where),
            name=self._optional(hook, "name", str, where),
            description=self._optional(hook, "description", str, where),
            fail_closed=bool(self._optional(hook, "failClosed", bool, where)),
        )

    def _timeout(self, hook: Mapping[str, Any], where: str) -> float:
        timeout = hook.get("timeout")
        if timeout is None:
            return DEFAULT_TIMEOUT
        number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if number and 0 < timeout < math.inf:
            return float(min(timeout, _LONGEST_TIMEOUT))
        self._report(where, f"`timeout` is ignored: expected milliseconds above 0, found {_found(timeout)}")
        return DEFAULT_TIMEOUT

    def _optional(self, fields: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
        value = fields.get(name)
        if value is None or isinstance(value, kind):
            return value
        expected = "a string" if kind is str else "true or false"
        self._report(where, f"`{name}` is ignored: expected {expected}, found {_found(value)}")
        return None

    def _report(self, where: str, message: str) -> None:
        self.problems.append(DefinitionProblem(self._set.origin, where, message))


_LONGEST_TIMEOUT = 1e12
"""Thirty years: beyond that an event loop's clock arithmetic has no meaning."""


def _found(value: object) -> str:
    return "nothing" if value is None else f"{value!r:.60}"
