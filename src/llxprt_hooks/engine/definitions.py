"""Hook definitions: from the ``hooks`` object of a settings file to frozen entries, with a problem for each bad piece.

What a definition may contain is declared in ``schema``, and by each hook type in ``executors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, cached_property, partial, reduce
from operator import or_
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import asdict

from llxprt_hooks.engine.executors import EXECUTORS, settings_executor, settings_executors
from llxprt_hooks.engine.executors.base import BeforeStart, HookScope
from llxprt_hooks.engine.matcher import is_invalid
from llxprt_hooks.engine.schema import DEFAULT_TIMEOUT, ENFORCE, GROUPS, HOOK_FIELDS, OBSERVE, hook_shape
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.hook_groups import (
    DISCARDED,
    SWITCHES,
    HookEntry,
    HookGroup,
    Steps,
    hook_groups,
    where_words,
)
from llxprt_hooks.settings.problem import Problem, ProblemList
from llxprt_hooks.settings.shape import FieldProblem, found_words, read_fields, usual_struct

if TYPE_CHECKING:
    from llxprt_hooks.engine.executors import Executor
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.jsonc import Member, Node
    from llxprt_hooks.settings.shape import Field, Shape


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


class HookConfig(msgspec.Struct, frozen=True):
    """One hook: what to run, in the form of its type, and how. ``timeout`` is in milliseconds."""

    type: str
    spec: Any
    timeout: float = DEFAULT_TIMEOUT
    name: str | None = None
    description: str | None = None
    fail_closed: bool = False
    """A failure of this hook counts as its explicit block; without it, the call goes ahead (HOOK-110)."""
    before_start: BeforeStart | None = None
    """Called before every start; what it returns keeps the hook from running (D-28)."""
    scope: HookScope = HookScope.PROJECT
    observe: bool = False
    """It runs and is logged with what it would have decided, and changes nothing (D-80)."""

    @property
    def blocks_on_failure(self) -> bool:
        """Whether its failure blocks: a hook that only observes blocks nothing."""
        return self.fail_closed and not self.observe

    @property
    def mode(self) -> str:
        """The mode, as settings have it."""
        return OBSERVE if self.observe else ENFORCE

    @property
    def executor(self) -> Executor[Any]:
        """The hook type's implementation."""
        return EXECUTORS[self.type]

    @property
    def fail_closed_key(self) -> str:
        """The name of ``failClosed`` where the hook is configured: in settings, or in Python."""
        return "fail_closed" if self.executor.fields is None else "failClosed"

    @property
    def command(self) -> str:
        """What the hook runs, in one line: the command line, or what another type has in its place."""
        return self.executor.describe(self.spec)

    @property
    def warm(self) -> bool:
        """Whether a waiting interpreter may run the hook."""
        return self.executor.is_warm(self.spec)

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
    scope: HookScope = HookScope.PROJECT
    disabled: tuple[str, ...] = ()
    """Of managed hooks, those that their own file disables; other lists do not affect them."""
    before_start: BeforeStart | None = field(default=None, repr=False, compare=False)
    """Called before every start of one of these hooks."""


class HookDefinition(msgspec.Struct, frozen=True):
    """One hook together with its group's event, matcher and mode."""

    config: HookConfig
    event_name: HookEventName
    source: ConfigSource
    origin: str
    group_number: int | None
    number: int
    """The position of the hook in its group, and of the group among those of the event; None if a program registered
    the hook."""
    matcher: str | None = None
    sequential: bool = False
    matches_all: bool = False
    """Whether the matcher is not valid and the group, because of ``failClosed``, is for everything (D-27)."""

    @property
    def where(self) -> str:
        """The path of the entry in its file, for example ``hooks.BeforeTool[0].hooks[1]``."""
        if self.group_number is None:
            return f"hooks.on({self.event_name.value!r})"
        return where_words(("hooks", self.event_name, self.group_number, "hooks", self.number))


def read_definitions(hook_set: HookSet) -> tuple[list[HookDefinition], list[Problem]]:
    """All usable hooks of a ``hooks`` object, in order, and what is wrong with the others."""
    reader = _Reader(hook_set)
    return reader.definitions(), reader.problems


def read_hook(
    fields: Mapping[str, Any], before_start: BeforeStart | None = None, scope: HookScope = HookScope.PROJECT
) -> tuple[HookConfig | None, list[FieldProblem]]:
    """A hook as it is written in settings; None where it cannot be used, with the reasons."""
    executor = settings_executor(fields.get("type"))
    if executor is None:
        names = " or ".join(f'"{name}"' for name in settings_executors())
        message = f"`type` must be {names}, found {found_words(fields.get('type'))}"
        return None, [FieldProblem("type", message, discards=True)]
    values, problems = read_fields(_hook_fields(executor), fields)
    config = [problem for problem in problems if problem.discards] or _config(
        fields["type"], values, before_start, scope
    )
    return (None, config) if isinstance(config, list) else (config, problems)


def _config(
    type_name: str, values: Mapping[str, Any], before_start: BeforeStart | None, scope: HookScope
) -> HookConfig | list[FieldProblem]:
    """The hook with these values, which fit their declaration; or why the hook's type cannot use them."""
    spec = EXECUTORS[type_name].read(values)
    if isinstance(spec, list):
        return spec
    timeout = float(min(values["timeout"], _LONGEST_TIMEOUT))
    name, description, fail_closed = values["name"], values["description"], values["failClosed"]
    observe = values["mode"] == OBSERVE
    return HookConfig(type_name, spec, timeout, name, description, fail_closed, before_start, scope, observe)


_MOST_UNKNOWN: Final = 1000
"""Unknown keys of one file that are compared with the known ones, because a hostile file could contain a million."""

_LONGEST_TIMEOUT: Final = 1e12
"""Thirty years: beyond that an event loop's clock arithmetic has no meaning."""


def _hook_fields(executor: Executor[Any]) -> dict[str, Field]:
    return {**(executor.fields or {}), **HOOK_FIELDS}


_GROUP_FIELDS: Final = {
    event: {"matcher": replace(shape.fields["matcher"], default=None), "sequential": shape.fields["sequential"]}
    for event, shape in GROUPS.items()
}


@cache
def _usual_groups(executors: tuple[tuple[str, Executor[Any]], ...]) -> Any:
    """The type of an event's groups if there is nothing unusual in them, which is so for nearly all events."""
    hooks = [usual_struct(type_name, _hook_fields(executor)) for type_name, executor in executors]
    hook: Any = reduce(or_, hooks)
    members: list[tuple[str, Any, Any]] = [
        ("hooks", GenericAlias(list, hook), msgspec.NODEFAULT),
        ("matcher", str, None),
        ("sequential", bool, False),
    ]
    return GenericAlias(list, msgspec.defstruct("group", members, forbid_unknown_fields=True))


class _Reader:
    def __init__(self, hook_set: HookSet) -> None:
        self._set = hook_set
        self._usual_groups = _usual_groups(tuple(settings_executors().items()))
        self._problems = ProblemList()
        self._unknown_keys = 0

    @property
    def problems(self) -> list[Problem]:
        return self._problems.all()

    @cached_property
    def _events(self) -> dict[str, Member]:
        """The keys under ``hooks`` in the file, with their values: there may be too many to search for each problem."""
        hooks = self._set.document.root.at("hooks") if self._set.document else None
        return {member.key: member for member in hooks.members} if hooks else {}

    def definitions(self) -> list[HookDefinition]:
        found: list[HookDefinition] = []
        for key, groups in self._set.hooks.items():
            if key not in SWITCHES and (event_name := self._event(key)):
                found += self._usual(event_name, groups) or self._carefully(event_name, {key: groups})
        return found

    def _event(self, key: object) -> HookEventName | None:
        try:
            return HookEventName(key)  # type: ignore[arg-type]  # any object may be asked about
        except ValueError:
            self._problems.add(lambda: self._unknown_event(str(key)))
            return None

    def _unknown_event(self, key: str) -> Problem:
        from llxprt_hooks.engine.suggestions import event_fix

        return self._problem(("hooks", key), f"{DISCARDED}: unknown event. {event_fix(key)}", at_key=True)

    def _usual(self, event_name: HookEventName, groups: object) -> list[HookDefinition]:
        """The hooks of an event if ``_carefully`` would find no problem in them: the same, several times as fast."""
        try:
            usual = msgspec.convert(groups, self._usual_groups)
        except ValueError:
            return []
        source, origin = self._set.source, self._set.origin
        before_start, scope = self._set.before_start, self._set.scope
        found: list[HookDefinition] = []
        for group_number, group in enumerate(usual):
            matcher, sequential = group.matcher, group.sequential
            for number, hook in enumerate(group.hooks):
                config = _config(type(hook).__name__, asdict(hook), before_start, scope)
                if isinstance(config, list) or (config.blocks_on_failure and is_invalid(event_name, matcher)):
                    return []
                found.append(
                    HookDefinition(config, event_name, source, origin, group_number, number, matcher, sequential)
                )
        return found

    def _carefully(self, event_name: HookEventName, hooks: Mapping[str, object]) -> list[HookDefinition]:
        """The usable hooks of an event, with a problem for each piece that is not."""
        found: list[HookDefinition] = []
        for group in hook_groups(hooks, self._report):
            self._report_unread_keys(group.path, group.fields, GROUPS[event_name])
            fields, problems = read_fields(_GROUP_FIELDS[event_name], group.fields)
            for problem in problems:
                self._report((*group.path, problem.key), problem.message, group.path)
            read = [(config, entry.number) for entry in group.entries(self._report) if (config := self._hook(entry))]
            matcher, closed = fields["matcher"], any(config.blocks_on_failure for config, _ in read)
            matches_all = closed and self._matches_all(event_name, matcher, group)
            place = event_name, self._set.source, self._set.origin, group.number
            found += [
                HookDefinition(config, *place, number, matcher, fields["sequential"], matches_all)
                for config, number in read
            ]
        return found

    def _hook(self, entry: HookEntry) -> HookConfig | None:
        config, problems = read_hook(entry.hook, self._set.before_start, self._set.scope)
        for problem in problems:
            message = f"{DISCARDED}: {problem.message}" if problem.discards else problem.message
            self._report((*entry.path, problem.key), message, entry.path)
        self._report_unread_keys(entry.path, entry.hook, hook_shape(entry.hook.get("type")))
        return config

    def _report_unread_keys(self, path: Steps, given: Mapping[Any, Any], shape: Shape) -> None:
        """Report unknown keys that were probably meant to have an effect. Other unknown keys are for other programs."""
        for key in given:
            if key in shape.fields or not isinstance(key, str) or self._unknown_keys >= _MOST_UNKNOWN:
                continue
            from llxprt_hooks.engine.suggestions import why_unread

            self._unknown_keys += 1
            if why := why_unread(shape, key, given):
                message = f"`{key}` is ignored: {why}"
                self._problems.add(partial(self._problem, (*path, key), message, path, at_key=True))

    def _matches_all(self, event_name: HookEventName, matcher: str | None, group: HookGroup) -> bool:
        """Whether a group with a ``failClosed`` hook has an invalid matcher, and so is for everything (D-27)."""
        if not is_invalid(event_name, matcher):
            return False
        message = (
            f"`matcher` {matcher!r} is not a valid regular expression; "
            "the group is for every tool, because it has a hook with failClosed"
        )
        self._report((*group.path, "matcher"), message, group.path)
        return True

    def _report(self, path: Steps, message: str, where: Steps | None = None) -> None:
        self._problems.add(lambda: self._problem(path, message, where))

    def _problem(self, path: Steps, message: str, where: Steps | None = None, *, at_key: bool = False) -> Problem:
        """A problem at the value that a path leads to, at its key, or at the nearest value around it."""
        words, document = where_words(where or path), self._set.document
        if document is None:
            return Problem(None, 0, 0, message, where=words, origin=self._set.origin)
        offset = self._offset(path, document.root, at_key=at_key)
        return replace(document.problem_at(offset, message), where=words, origin=self._set.origin)

    def _offset(self, path: Steps, root: Node, *, at_key: bool) -> int:
        _, event, *rest = path
        member = self._events.get(str(event))
        value = member.value if member else root
        nodes = [node for length in range(len(rest) + 1) if (node := value.at(*rest[:length]))]
        members = (
            [member] if not rest else [each for node in nodes[-2:-1] for each in node.members if each.key == rest[-1]]
        )
        keys = [each.key_start for each in members if each]
        return keys[-1] if at_key and keys else nodes[-1].start
