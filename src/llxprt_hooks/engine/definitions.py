"""Hook definitions: from the ``hooks`` object of a settings file to frozen entries, with a problem for each bad piece.

What a definition may contain is declared in ``schema``, and by each hook type in ``executors``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from llxprt_hooks.engine.executors import EXECUTORS, settings_executor, settings_executors
from llxprt_hooks.engine.matcher import is_invalid
from llxprt_hooks.engine.schema import DEFAULT_TIMEOUT, GROUPS, HOOK_FIELDS
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.hook_groups import SWITCHES, HookEntry, HookGroup, Steps, hook_groups, where_words
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.shape import FieldProblem, FieldReader, found_words
from llxprt_hooks.text import closest

if TYPE_CHECKING:
    from llxprt_hooks.engine.executors import Executor
    from llxprt_hooks.settings.document import Document


class HookType(StrEnum):
    """The types of LLxprt Code's own settings (HOOK-083); ``EXECUTORS`` has all types."""

    COMMAND = "command"
    PLUGIN = "plugin"


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


BeforeStart = Callable[[], str | None]
"""Returns why a hook must not be started now, as the end of a sentence that starts with the hook; else None.

It may read files. It knows nothing of event loops, so that it can be called in any thread.
"""


class HookConfig(msgspec.Struct, frozen=True):
    """One hook: what to run, in the form of its type, and how. ``timeout`` is in milliseconds."""

    type: str
    spec: Any
    timeout: float = DEFAULT_TIMEOUT
    name: str | None = None
    description: str | None = None
    fail_closed: bool = False
    """A failure of this hook counts as its explicit block; without it a failed hook allows (HOOK-110)."""
    before_start: BeforeStart | None = None
    """Called before every start; what it returns keeps the hook from running (D-28)."""

    @property
    def executor(self) -> Executor[Any]:
        """The hook type's implementation."""
        return EXECUTORS[self.type]

    @property
    def command(self) -> str:
        """What the hook runs, in one line: the command line, or what another type has in its place."""
        return self.executor.describe(self.spec)

    @property
    def identity(self) -> str:
        """What a hook is called in lists and logs: its name, else its command."""
        return self.name or self.command

    @property
    def deduplication_key(self) -> str:
        """Two hooks with the same key run once per event (HOOK-091)."""
        return f"{self.type}:{self.executor.key(self.spec) or self.name}"


@dataclass(frozen=True, slots=True)
class HookSet:
    """A ``hooks`` object, and where it comes from."""

    hooks: Mapping[str, Any]
    source: ConfigSource = ConfigSource.PROJECT
    origin: str = ""
    """The file or extension; empty for hooks that a program passed in."""
    document: Document | None = field(default=None, repr=False, compare=False)
    """The file that it was read from, for the line and column of problems."""
    before_start: BeforeStart | None = field(default=None, repr=False, compare=False)
    """Called before every start of one of these hooks."""


class HookDefinition(msgspec.Struct, frozen=True):
    """One hook together with its group's event, matcher and mode."""

    config: HookConfig
    event_name: HookEventName
    source: ConfigSource
    origin: str
    where: str
    """The path of the entry in its file, for example ``hooks.BeforeTool[0].hooks[1]``."""
    matcher: str | None = None
    sequential: bool = False
    matches_all: bool = False
    """Whether the matcher is not valid and the group, because of ``failClosed``, is for everything (D-27)."""


def read_definitions(hook_set: HookSet) -> tuple[list[HookDefinition], list[Problem]]:
    """All usable hooks of a ``hooks`` object, in order, and what is wrong with the others."""
    reader = _Reader(hook_set)
    return reader.definitions(), reader.problems


def read_hook(fields: Mapping[str, Any]) -> tuple[HookConfig | None, list[FieldProblem]]:
    """A hook as it is written in settings; None where it cannot be used, with the reasons."""
    executor = settings_executor(fields.get("type"))
    if executor is None or executor.fields is None:
        names = " or ".join(f'"{name}"' for name in settings_executors())
        message = f"`type` must be {names}, found {found_words(fields.get('type'))}"
        return None, [FieldProblem("type", message, discards=True)]
    values, problems = _reader(executor).read(fields)
    spec = [problem for problem in problems if problem.discards] or executor.read(values)
    if isinstance(spec, list):
        return None, spec
    config = HookConfig(
        type=fields["type"],
        spec=spec,
        timeout=float(min(values["timeout"], _LONGEST_TIMEOUT)),
        name=values["name"],
        description=values["description"],
        fail_closed=values["failClosed"],
    )
    return config, problems


@cache
def _reader(executor: Executor[Any]) -> FieldReader:
    return FieldReader({**(executor.fields or {}), **HOOK_FIELDS})


_LONGEST_TIMEOUT: Final = 1e12
"""Thirty years: beyond that an event loop's clock arithmetic has no meaning."""

_GROUP_READERS: Final = {
    event: FieldReader({key: field for key, field in shape.fields.items() if key != "hooks"})
    for event, shape in GROUPS.items()
}


class _Reader:
    def __init__(self, hook_set: HookSet) -> None:
        self._set = hook_set
        self.problems: list[Problem] = []

    def definitions(self) -> list[HookDefinition]:
        events = {key: event for key in self._set.hooks if key not in SWITCHES and (event := self._event(key))}
        hooks = {key: self._set.hooks[key] for key in events}
        found: list[HookDefinition] = []
        for group in hook_groups(hooks, self._report):
            self._group(events[group.event], group, found)
        return found

    def _event(self, key: object) -> HookEventName | None:
        try:
            return HookEventName(key)  # type: ignore[arg-type]  # any object may be asked about
        except ValueError:
            close = closest(str(key), HookEventName)
            hint = f", did you mean `{close}`?" if close else ""
            self._report(("hooks", str(key)), f"discarded: no such event{hint}")
            return None

    def _group(self, event_name: HookEventName, group: HookGroup, found: list[HookDefinition]) -> None:
        fields, problems = _GROUP_READERS[event_name].read(group.fields)
        for problem in problems:
            self._report((*group.path, problem.key), problem.message, group.path)
        matcher = group.fields.get("matcher")
        matcher = matcher if isinstance(matcher, str) else None
        hooks = [(config, entry.where) for entry in group.entries(self._report) if (config := self._hook(entry))]
        matches_all = any(config.fail_closed for config, _ in hooks) and is_invalid(event_name, matcher)
        if matches_all:
            message = (
                f"`matcher` {matcher!r} is not a valid regular expression; "
                "the group is for every tool, because it has a hook with failClosed"
            )
            self._report((*group.path, "matcher"), message, group.path)
        found += [
            HookDefinition(
                config=config,
                event_name=event_name,
                source=self._set.source,
                origin=self._set.origin,
                where=where,
                matcher=matcher,
                sequential=fields["sequential"],
                matches_all=matches_all,
            )
            for config, where in hooks
        ]

    def _hook(self, entry: HookEntry) -> HookConfig | None:
        config, problems = read_hook(entry.hook)
        for problem in problems:
            message = f"discarded: {problem.message}" if problem.discards else problem.message
            self._report((*entry.path, problem.key), message, entry.path)
        if config is not None and self._set.before_start is not None:
            config = msgspec.structs.replace(config, before_start=self._set.before_start)
        return config

    def _report(self, path: Steps, message: str, where: Steps | None = None) -> None:
        """Add a problem at the value that a path leads to, or at the nearest one around it."""
        words, document = where_words(where or path), self._set.document
        if document is None:
            self.problems.append(Problem(None, 0, 0, message, where=words, origin=self._set.origin))
            return
        nodes = (document.root.at(*path[:length]) for length in range(len(path), 0, -1))
        node = next((node for node in nodes if node is not None), document.root)
        self.problems.append(replace(document.problem_at(node.start, message), where=words, origin=self._set.origin))
