"""Hook definitions: from the ``hooks`` object of a settings file to frozen entries, with a problem for each bad piece.

What a definition may contain is declared in ``schema``, and by each hook type in ``core.executors``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any, Final

import msgspec

from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import DIALECTS, NATIVE, Dialect, ForeignHook, UnknownDialectError
from llxprt_hooks.settings.hook_entries import (
    DISCARDED,
    SWITCHES,
    HookEntry,
    HookGroup,
    Steps,
    WrittenHooks,
    event_groups,
    hooks_node,
    where_words,
)
from llxprt_hooks.settings.jsonc import Kind, Member, Node, node_of
from llxprt_hooks.settings.matcher import InvalidMatcher, Matches, compile_matcher, is_invalid
from llxprt_hooks.settings.problem import MAX_PROBLEMS, Problem, first_problems
from llxprt_hooks.settings.schema import (
    DEFAULT_TIMEOUT,
    ENFORCE,
    GROUPS,
    HOOK_FIELDS,
    OBSERVE,
    SENTENCES,
    WHOLE,
    AnyExecutor,
    executors,
    hook_shape,
    settings_executor,
    settings_executors,
)
from llxprt_hooks.settings.shape import Field, FieldProblem, Shape, found_words, read_fields


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


class HookScope(StrEnum):
    """Who a hook belongs to. That decides which environment it gets, and who can switch it off."""

    PROJECT = "project"
    """The project, or the program that created the configuration."""
    USER = "user"
    """The user, the system or an extension. It also runs in projects that nobody approved (D-35)."""
    MANAGED = "managed"
    """The administrator. No other level affects it (D-36)."""


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
    """A failure of this hook counts as its explicit block; without it, the call goes ahead (HOOK-110)."""
    before_start: BeforeStart | None = None
    """Called before every start; what it returns keeps the hook from running (D-28)."""
    scope: HookScope = HookScope.PROJECT
    observe: bool = False
    """It runs and is logged with what it would have decided, and changes nothing (D-80)."""
    acts: bool = False
    """Callers wait for it in every event that it can affect, and honor more of its answers (D-46)."""
    answers_question: bool = False
    """It runs only where a person would be asked about a call, and may answer in that person's place (D-156)."""
    foreign: ForeignHook | None = None
    """What translates for a hook that speaks another dialect (D-144)."""
    sentences: bool = False
    """It gets the text of a streamed answer at the end of each sentence (D-151)."""

    @property
    def dialect(self) -> str:
        """The name of the language that the hook speaks."""
        return NATIVE if self.foreign is None else self.foreign.dialect

    @property
    def blocks_on_failure(self) -> bool:
        """Whether its failure blocks: a hook that only observes blocks nothing."""
        return self.fail_closed and not self.observe

    @property
    def mode(self) -> str:
        """The mode, as settings have it."""
        return OBSERVE if self.observe else ENFORCE

    @property
    def stream(self) -> str:
        """What it gets of a streamed answer, as settings have it."""
        return SENTENCES if self.sentences else WHOLE

    @property
    def executor(self) -> AnyExecutor:
        return executors()[self.type]

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
        key = f"{self.type}:{self.executor.key(self.spec) or self.name}"
        return key if self.foreign is None else f"{self.foreign.key}:{key}"


@dataclass(frozen=True, slots=True)
class HookSet:
    """A ``hooks`` object, and where it comes from."""

    hooks: Mapping[str, Any]
    """Of a file, ``WrittenHooks``, which give problems a line and a column."""
    source: ConfigSource = ConfigSource.PROJECT
    origin: str = ""
    """The file or extension; empty for hooks that a program passed in."""
    scope: HookScope = HookScope.PROJECT
    disabled: tuple[str, ...] = ()
    """Those that their own files disable. Other lists do not affect managed hooks."""
    before_start: BeforeStart | None = field(default=None, repr=False, compare=False)
    """Called before every start of one of these hooks."""
    dialect: str = NATIVE
    """The dialect that the object is written in."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that these hooks get, if the dialect has any for them."""
    warm: bool = False
    """Whether these hooks are warm unless they say otherwise (D-167)."""
    acts: bool = False
    """Whether these hooks act, whatever the configuration's profile is (D-46)."""


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
    matching: Callable[[HookEventName, str | None], Matches] = compile_matcher
    """How the matcher is compared: by the rules of the dialect that the settings are written in."""
    path: Steps = ()
    """The way to the entry in its file, if that is not the native one."""

    @property
    def has_invalid_matcher(self) -> bool:
        """Whether the matcher is not a valid regular expression, so that the hook is for almost nothing."""
        return not self.matches_all and isinstance(self.matching(self.event_name, self.matcher), InvalidMatcher)

    @property
    def where(self) -> str:
        """The path of the entry in its file, for example ``hooks.BeforeTool[0].hooks[1]``."""
        if self.group_number is None:
            return f"hooks.on({self.event_name.value!r})"
        return where_words(self.path or ("hooks", self.event_name, self.group_number, "hooks", self.number))


def read_definitions(hook_set: HookSet) -> tuple[list[HookDefinition], list[Problem]]:
    """All usable hooks of a ``hooks`` object, in order, and what is wrong with the others."""
    if hook_set.dialect != NATIVE:
        definitions, problems = dialect_of(hook_set.dialect).read_definitions(hook_set)
    else:
        reader = _DefinitionReader(hook_set)
        definitions, problems = reader.definitions(), reader.problems
    return [_warmed(each) for each in definitions] if hook_set.warm else definitions, problems


def _warmed(definition: HookDefinition) -> HookDefinition:
    config = definition.config
    warm = msgspec.structs.replace(config, spec=config.executor.warmed(config.spec))
    return msgspec.structs.replace(definition, config=warm)


def dialect_of(name: str) -> Dialect:
    """The language of another agent. Raises ``UnknownDialectError``."""
    if name not in DIALECTS:
        raise UnknownDialectError(name)
    found: Dialect = import_module(DIALECTS[name]).DIALECT
    return found


def known_dialects(names: Iterable[str]) -> tuple[str, ...]:
    """The dialects that are not our own, each once. Raises ``UnknownDialectError``."""
    if isinstance(names, str):
        raise TypeError(f"`dialects` must be a list of names, found {names!r:.80}")
    found = tuple(name for name in dict.fromkeys(names) if name != NATIVE)
    for name in found:
        dialect_of(name)
    return found


def read_hook(
    hook: Node | Mapping[str, Any], before_start: BeforeStart | None = None, scope: HookScope = HookScope.PROJECT
) -> tuple[HookConfig | None, list[FieldProblem]]:
    """A hook as it is written in settings; None where it cannot be used, with the reasons."""
    given = node_of(hook)
    node = given.at("type")
    executor = settings_executor(node.scalar) if node else None
    if node is None or executor is None:
        names = " or ".join(f'"{name}"' for name in settings_executors())
        return None, [FieldProblem("type", f"`type` must be {names}, found {found_words(node)}", discards=True)]
    values, problems = read_fields(_hook_fields(executor), given)
    spec = [problem for problem in problems if problem.discards] or executor.read(values)
    if isinstance(spec, list):
        return None, spec
    timeout = float(min(values["timeout"], _MAX_TIMEOUT))
    name, description, fail_closed = values["name"], values["description"], values["failClosed"]
    observe = values["mode"] == OBSERVE
    config = HookConfig(str(node.scalar), spec, timeout, name, description, fail_closed, before_start, scope, observe,
                        sentences=values["stream"] == SENTENCES)  # fmt: skip
    return config, problems


MAX_UNKNOWN: Final = 1000
"""Unknown keys of one file that are compared with the known ones, because a hostile file could contain a million."""

_MAX_TIMEOUT: Final = 1e12
"""Thirty years: beyond that an event loop's clock arithmetic has no meaning."""


@cache
def _hook_fields(executor: AnyExecutor) -> dict[str, Field]:
    return {**(executor.fields or {}), **HOOK_FIELDS}


_GROUP_FIELDS: Final = {
    event: {
        "matcher": replace(shape.fields["matcher"], default=None),
        "sequential": shape.fields["sequential"],
        "dialect": shape.fields["dialect"],
    }
    for event, shape in GROUPS.items()
}


class ProblemReader:
    """Reads a ``hooks`` object and keeps what is wrong with it, with the place in the file."""

    def __init__(self, hook_set: HookSet) -> None:
        hooks = hook_set.hooks
        self.set = hook_set
        self.node = hooks_node(hooks)
        self.document = hooks.document if isinstance(hooks, WrittenHooks) else None
        self.unknown_keys = 0
        """How many keys have been compared with the known ones; at most ``MAX_UNKNOWN`` are."""
        self._problems: list[Problem] = []

    @property
    def problems(self) -> list[Problem]:
        return first_problems(self._problems)

    def report_at(self, offset: int, path: Steps, message: str) -> None:
        problem = self.document.problem_at(offset, message) if self.document else Problem(None, 0, 0, message)
        self._problems.append(replace(problem, where=where_words(path), origin=self.set.origin))


class _DefinitionReader(ProblemReader):
    def definitions(self) -> list[HookDefinition]:
        found: list[HookDefinition] = []
        if self.node.kind is not Kind.OBJECT:
            words = f"expected an object with event names, found {found_words(self.node)}"
            self.report_at(self.node.start, ("hooks",), f"{DISCARDED}: {words}")
        for key, member in self.node.fields.items():
            if key in SWITCHES:
                continue
            if key not in _EVENTS:
                self._report_unknown_event(member)
                continue
            for group in event_groups(key, member.value, self.report_at):
                found += self._group(HookEventName(key), group)
        return found

    def _report_unknown_event(self, member: Member) -> None:
        from llxprt_hooks.settings.did_you_mean import event_fix

        fix = event_fix(member.key) if len(self._problems) < MAX_PROBLEMS else ""  # others are only counted
        self.report_at(member.key_start, ("hooks", member.key), f"{DISCARDED}: unknown event. {fix}")

    def _group(self, event_name: HookEventName, group: HookGroup) -> Iterator[HookDefinition]:
        """The usable hooks of a group, with a problem for each piece that is not."""
        fields, problems = read_fields(_GROUP_FIELDS[event_name], group.node)
        for problem in problems:
            self.report_at((group.node.at(problem.key) or group.node).start, group.path, problem.message)
        declared = GROUPS[event_name]
        self._report_unread_keys(group.node, group.path, declared.fields, lambda: declared)
        read = [(config, entry.number) for entry in group.entries(self.report_at) if (config := self._hook(entry))]
        if any(problem.key == "dialect" for problem in problems):
            return  # nobody knows what these hooks expect, or what their answers mean
        if fields["dialect"] != NATIVE:
            speaking = dialect_of(fields["dialect"]).speaking
            read = [(speaking(config), number) for config, number in read]
        matcher, closed = fields["matcher"], any(config.blocks_on_failure for config, _ in read)
        matches_all = closed and self._matches_all(event_name, matcher, group)
        place = event_name, self.set.source, self.set.origin, group.number
        for config, number in read:
            yield HookDefinition(config, *place, number, matcher, fields["sequential"], matches_all)

    def _hook(self, entry: HookEntry) -> HookConfig | None:
        config, problems = read_hook(entry.node, self.set.before_start, self.set.scope)
        for problem in problems:
            message = f"{DISCARDED}: {problem.message}" if problem.discards else problem.message
            self.report_at((entry.node.at(problem.key) or entry.node).start, entry.path, message)
        known = {"type", *_hook_fields(config.executor)} if config else ()
        self._report_unread_keys(entry.node, entry.path, known, lambda: hook_shape(entry.hook.get("type")))
        return config

    def _report_unread_keys(self, node: Node, path: Steps, known: Collection[str], shape: Callable[[], Shape]) -> None:
        """Report unknown keys that were probably meant to have an effect. Other unknown keys are for other programs."""
        members = node.fields
        for key, member in members.items():
            if key in known or self.unknown_keys >= MAX_UNKNOWN:
                continue
            from llxprt_hooks.settings.did_you_mean import why_unread

            self.unknown_keys += 1
            if why := why_unread(shape(), key, members):
                self.report_at(member.key_start, path, f"`{key}` is ignored: {why}")

    def _matches_all(self, event_name: HookEventName, matcher: str | None, group: HookGroup) -> bool:
        """Whether a group with a ``failClosed`` hook has an invalid matcher, and so is for everything (D-27)."""
        if not is_invalid(event_name, matcher):
            return False
        message = (
            f"`matcher` {matcher!r} is not a valid regular expression; "
            "the group is for every tool, because it has a hook with failClosed"
        )
        self.report_at(group.node.fields["matcher"].value.start, group.path, message)
        return True


_EVENTS: Final = frozenset(HookEventName)
