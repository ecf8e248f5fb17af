"""What the dialects of other agents share: one hook, and how its settings are read.

A dialect is a subclass of ``Product`` with its tables, its payloads, and what answers mean.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from msgspec import structs

from llxprt_hooks._support.json_codec import decode_text
from llxprt_hooks.dialects.replies import BLOCK, BLOCKED, Reply
from llxprt_hooks.dialects.tools import SUBAGENT, Shown, UnusableChangeError, failure_of, text_of
from llxprt_hooks.settings.definitions import HookDefinition, HookScope, read_hook
from llxprt_hooks.settings.foreign import DialectFile, NativeCall, ReadFile
from llxprt_hooks.settings.hook_entries import (
    DISCARDED,
    HookGroup,
    Steps,
    WrittenHooks,
    event_groups,
    hooks_node,
    where_words,
)
from llxprt_hooks.settings.jsonc import Kind, Node
from llxprt_hooks.settings.levels import Level, home_folder, is_inside
from llxprt_hooks.settings.matcher import InvalidMatcher, Matches, is_for_all
from llxprt_hooks.settings.problem import Problem, first_problems
from llxprt_hooks.settings.search import searching
from llxprt_hooks.settings.shape import found_words

if TYPE_CHECKING:
    from llxprt_hooks.dialects.tools import ToolTable
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.definitions import HookConfig, HookSet
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.foreign import Answer, Situation

_MAX_MILLISECONDS: Final = 1e12
_FAILED: Final = {"llmContent": "it failed", "returnDisplay": "", "metadata": {}, "error": {"message": "it failed"}}


def any_tool(tool_name: str) -> bool:
    return True


def is_subagent(tool_name: str) -> bool:
    return tool_name == SUBAGENT


class Event(NamedTuple):
    """An event of another agent, and when it happens here."""

    native: HookEventName
    is_for: Callable[[str], bool] = any_tool
    """Which of our tools it is about."""
    failed: bool | None = None
    """Whether it is for calls that failed, or only for others; None: for both."""
    tool: str | None = None
    """One of our tools that it is about, to try it."""
    by_name: bool = True
    """Whether matchers are compared with the name of the tool."""


class Handler(NamedTuple):
    """A hook as the settings of another agent define it."""

    command: str
    milliseconds: float
    name: str | None = None
    is_closed: bool = False
    """Whether a failure blocks."""
    background: bool = False
    variables: Mapping[str, str] = {}
    folder: str = ""


class Spoken(NamedTuple):
    """An event, as hooks of another agent are told of it."""

    event: str
    native: HookEventName
    hook_input: Mapping[str, Any]
    situation: Situation
    call: Shown
    """The call that it is about; one without a name if it is about none."""
    hook: ProductHook

    def get(self, name: str, default: Any = "") -> Any:
        return self.hook_input.get(name, default)

    @property
    def tool_name(self) -> str:
        return str(self.get("tool_name"))

    @property
    def directory(self) -> str:
        return str(self.get("cwd") or self.situation.directory)

    @property
    def response(self) -> Mapping[str, Any]:
        return _response(self.hook_input)

    @property
    def result(self) -> str:
        """The text of the tool's result."""
        return text_of(self.response)

    @property
    def error(self) -> str:
        return failure_of(self.tool_name, self.response) or ""

    @property
    def milliseconds(self) -> int:
        duration = self.get("duration_ms", 0)
        return duration if isinstance(duration, int) else 0

    @property
    def agent_type(self) -> str:
        return _agent_type(self.hook_input)

    @property
    def word(self) -> Any:
        """The source, reason and the like of the event, in the agent's words."""
        value = self.get(self.native.spec.matched_field)
        return self.hook.product.words.get(self.native, {}).get(str(value), value)

    def change(self, reply: Reply, arguments: object, *, whole: bool) -> None:
        """Let a hook change the call; refuse the call if that cannot be done."""
        if not isinstance(arguments, Mapping):
            return
        try:
            own = self.hook.product.own_input(self, arguments)
        except UnusableChangeError as error:
            reply.block(f"the hook changed the call in a way that cannot be applied here: {error}")
        else:
            reply.change(own, whole=whole)


class ProductHook(NamedTuple):
    """One hook of another agent."""

    product: Product
    command: str
    """As it is written."""
    event: str | None = None
    """The event of the settings; None if they are native, and so is their event."""
    matcher: str | None = None
    background: bool = False
    variables: Mapping[str, str] = {}
    folder: str = ""
    place: str = ""
    """Where it is written."""
    is_closed: bool = False
    call: Shown | None = None
    """The call that it is for, as it is told."""
    number: int = 0
    """Which of the calls that one of ours is there."""

    @property
    def dialect(self) -> str:
        return self.product.name

    @property
    def key(self) -> str:
        return self.product.key(self)

    @property
    def view(self) -> str:
        return f"{self.dialect}:{self.event}:{self.call.name if self.call else ''}:{self.number}"

    def runs_for(self, event_name: HookEventName, hook_input: Mapping[str, Any]) -> Sequence[ProductHook]:
        event = self.event or self.product.event_of(event_name, hook_input)
        row = self.product.events.get(event)
        if row is not None and not _is_now(row, hook_input):
            return ()
        if not event_name.spec.is_about_tool:
            return (self,)
        if row is not None and not row.by_name and not self.product.is_for(self, hook_input):
            return ()
        tool, directory = str(hook_input.get("tool_name", "")), str(hook_input.get("cwd", ""))
        found = self.product.tools.calls(tool, hook_input.get("tool_input"), directory)
        if len(found) == len(found[0]) == 1:  # its name has been compared with the matcher
            return (self._replace(call=found[0][0]),)
        by_name = self.product.match(event, self.matcher) if self.event and row and row.by_name else any_tool
        chosen = (
            next((way for way in ways if any(map(by_name, self.product.tools.names_of(way.name)))), None)
            for ways in found
        )
        return [self._replace(call=call, number=number) for number, call in enumerate(chosen) if call is not None]

    def _spoken(self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation) -> Spoken:
        event = self.event or self.product.event_of(event_name, hook_input)
        return Spoken(event, event_name, hook_input, situation, self.call or Shown("", {}), self)

    def payload(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation
    ) -> Mapping[str, Any]:
        spoken = self._spoken(event_name, hook_input, situation)
        return self.product.payload(spoken) if spoken.event in self.product.events else hook_input

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        return {**self.product.environment(payload), **self.variables}

    def read(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation, ended: Completed
    ) -> Answer:
        spoken = self._spoken(event_name, hook_input, situation)
        if spoken.event in self.product.events:
            return self.product.answer(spoken, ended)
        reply = Reply(event_name)  # in native settings, for an event that the agent does not have
        if ended.exit_code == BLOCK:
            reply.block(decode_text(ended.stderr).strip() or BLOCKED)
        return reply.answer()


def _is_now(row: Event, hook_input: Mapping[str, Any]) -> bool:
    tool = str(hook_input.get("tool_name", ""))
    if not row.is_for(tool):
        return False
    return row.failed is None or row.failed is (failure_of(tool, _response(hook_input)) is not None)


def _response(hook_input: Mapping[str, Any]) -> Mapping[str, Any]:
    response = hook_input.get("tool_response")
    return response if isinstance(response, Mapping) else {}


def _agent_type(hook_input: Mapping[str, Any]) -> str:
    given = hook_input.get("tool_input")
    kind = given.get("subagent_name") if isinstance(given, Mapping) else None
    return str(kind or "general-purpose")


class Product(ABC):
    """The dialect of another agent."""

    name: ClassVar[str]
    title: ClassVar[str]
    folders: ClassVar[Sequence[str]] = ()
    events: ClassVar[Mapping[str, Event]]
    """Its events that exist here, those that hooks in native settings get first."""
    absent: ClassVar[Sequence[str]] = ()
    """Keys among the events that are not events."""
    words: ClassVar[Mapping[HookEventName, Mapping[str, str]]] = {}
    """Our values that have another name there."""
    tools: ClassVar[ToolTable]
    has_groups: ClassVar[bool] = True
    """Whether hooks are in groups, below a key ``hooks``."""
    has_flat_entries: ClassVar[bool] = False
    """Whether hooks may be directly below the event."""
    default_type: ClassVar[str | None] = None
    """The type of a hook that has none."""

    @abstractmethod
    def files(self, project: Path) -> Sequence[DialectFile]: ...

    @abstractmethod
    def plugin(self, folder: Path) -> DialectFile: ...

    @abstractmethod
    def handler(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | None:
        """A hook of the settings, whose type is ``command``; None if it has no command."""

    @abstractmethod
    def payload(self, spoken: Spoken) -> Mapping[str, Any]:
        """What hooks get."""

    @abstractmethod
    def answer(self, spoken: Spoken, ended: Completed) -> Answer:
        """What the end of a hook's process means."""

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        """The variables that all hooks get."""
        return {}

    def match(self, event: str, matcher: str | None) -> Matches:
        """The test of a matcher: a regular expression that is searched."""
        if is_for_all(matcher) or matcher is None:
            return any_tool
        return searching(matcher) or InvalidMatcher(matcher)

    def is_for(self, hook: ProductHook, hook_input: Mapping[str, Any]) -> bool:
        """Whether a hook is for a call, of an event whose matchers are compared with something else than the tool."""
        return self.match(hook.event or "", hook.matcher)(_agent_type(hook_input))

    def key(self, hook: ProductHook) -> str:
        """What tells hooks with the same command apart: here, where they are written."""
        return f"{self.name}:{hook.place}"

    def own_input(self, spoken: Spoken, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Changed arguments in our names. Raises ``UnusableChangeError``."""
        return self.tools.own_input(spoken.tool_name, spoken.get("tool_input"), changed, spoken.call)

    def stand_in(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | None:
        """What takes the place of a hook of a type that cannot run here: one that fails, if its failure blocks."""
        return None

    # What the engine and the settings ask.

    def event_of(self, event_name: HookEventName, hook_input: Mapping[str, Any]) -> str:
        """The agent's name of a native event; ours if it has none."""
        names = (name for name, row in self.events.items() if row.native is event_name and _is_now(row, hook_input))
        return next(names, event_name.value)

    def matching(self, event: str, event_name: HookEventName, matcher: str | None) -> Matches:
        """The test whether a hook is for one of our tools, or for a value."""
        row, test = self.events[event], self.match(event, matcher)
        if isinstance(test, InvalidMatcher):
            return test
        if not event_name.spec.is_about_tool:
            words = self.words.get(event_name, {})
            return lambda subject: test(words.get(subject, subject))
        if not row.by_name:
            return row.is_for
        return lambda subject: row.is_for(subject) and any(map(test, self.tools.names(subject)))

    def read_file(self, document: Document) -> ReadFile:
        return ReadFile(written_hooks(document), gaps=tuple(self.gaps(document)))

    def gaps(self, document: Document) -> Iterator[tuple[int, str]]:
        """What a file has that takes no effect here."""
        return iter(())

    def read_definitions(self, hook_set: HookSet) -> tuple[list[HookDefinition], list[Problem]]:
        reader = Reader(self, hook_set)
        return list(reader.definitions()), first_problems(reader.problems)

    def speaking(self, config: HookConfig) -> HookConfig:
        return structs.replace(config, acts=True, foreign=ProductHook(self, config.command))

    def native_call(self, event: str, tool: str | None, arguments: Mapping[str, Any] | None) -> NativeCall | None:
        row = self.events.get(event)
        if row is None:
            return None
        name, given = (row.tool, arguments) if tool is None else self.tools.own_call(tool, arguments)
        return NativeCall(row.native, name, given, {"tool_response": _FAILED} if row.failed else {})


class Reader:
    """Reads a ``hooks`` object. A part that cannot be used is reported and left out; the others count."""

    def __init__(self, product: Product, hook_set: HookSet) -> None:
        hooks = hook_set.hooks
        self._product = product
        self.set = hook_set
        self._node = hooks_node(hooks)
        self._document = hooks.document if isinstance(hooks, WrittenHooks) else None
        self._at: tuple[int, Steps] = (0, ())
        self.problems: list[Problem] = []

    def definitions(self) -> Iterator[HookDefinition]:
        for event, member in self._node.fields.items():
            if event in self._product.absent:
                continue
            if event not in self._product.events:
                self._report(member.key_start, ("hooks", event), f"{DISCARDED}: there is no such event here")
                continue
            for group in event_groups(event, member.value, self._report):
                yield from self._group(group)

    def _group(self, group: HookGroup) -> Iterator[HookDefinition]:
        product, hooks = self._product, group.node.at("hooks")
        sequential = group.node.at("sequential")
        is_sequential = sequential is not None and sequential.scalar is True
        if product.has_groups and (hooks is not None or not product.has_flat_entries):
            for entry in group.entries(self._report):
                yield from self._entry(group, entry.node, entry.path, entry.number, is_sequential)
        else:
            yield from self._entry(group, group.node, group.path, 0, is_sequential)

    def _entry(
        self, group: HookGroup, node: Node, path: Steps, number: int, is_sequential: bool
    ) -> Iterator[HookDefinition]:
        product, self._at = self._product, (node.start, path)
        handler = self._handler(group.event, node.to_value())
        if handler is None:
            return
        written = {"type": "command", "command": handler.command, "timeout": handler.milliseconds, "name": handler.name}
        config, problems = read_hook(written, self.set.before_start, self.set.scope)
        for problem in problems:
            self.report(problem.message)
        if config is None:
            return
        matcher, own = group.matcher, node.at("matcher")
        if matcher is None and own is not None and isinstance(own.scalar, str):
            matcher = own.scalar
        foreign = ProductHook(
            product,
            handler.command,
            group.event,
            matcher,
            handler.background,
            {**self.set.variables, **handler.variables},
            handler.folder,
            f"{self.set.origin}:{where_words(path)}",
            handler.is_closed,
        )
        yield HookDefinition(
            structs.replace(config, acts=True, fail_closed=handler.is_closed, foreign=foreign),
            product.events[group.event].native,
            self.set.source,
            self.set.origin,
            group.number,
            number,
            matcher,
            is_sequential,
            matching=partial(product.matching, group.event),
            path=path,
        )

    def _handler(self, event: str, hook: Mapping[str, Any]) -> Handler | None:
        kind = hook.get("type", self._product.default_type)
        if kind != "command":
            stand_in = self._product.stand_in(event, hook, self)
            why = f"hooks of type {kind} do not run here" if isinstance(kind, str) else '`type` must be "command"'
            self.report(f"{DISCARDED}: {why}" if stand_in is None else f"it fails and blocks: {why}")
            return stand_in
        handler = self._product.handler(event, hook, self)
        if handler is None:
            self.report(f"{DISCARDED}: it has no command")
        return handler

    def milliseconds(self, given: object, default: float, unit: float = 1000) -> float:
        """A time limit in milliseconds; ``unit`` is how many of them one is there."""
        if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
            return min(given * unit, _MAX_MILLISECONDS)
        if given is not None:
            self.report(f"the timeout is ignored: expected a number above 0, found {found_words(_node(given))}")
        return default

    @property
    def file_folder(self) -> str:
        """The folder of the file, if it is not the project's."""
        return "" if self.set.scope is HookScope.PROJECT or not self.set.origin else str(Path(self.set.origin).parent)

    def report(self, message: str) -> None:
        """Report something about the hook that is being read."""
        self._report(*self._at, message)

    def _report(self, offset: int, path: Steps, message: str) -> None:
        problem = self._document.problem_at(offset, message) if self._document else Problem(None, 0, 0, message)
        self.problems.append(replace(problem, where=where_words(path), origin=self.set.origin))


def _node(value: object) -> Node:
    from llxprt_hooks.settings.jsonc import node_of

    return node_of(value)


def written_hooks(document: Document) -> WrittenHooks:
    """The ``hooks`` object of a file; an empty one if it has none."""
    hooks = document.root.at("hooks")
    return WrittenHooks(document, hooks if hooks is not None and hooks.kind is Kind.OBJECT else NO_HOOKS)


NO_HOOKS: Final = Node(Kind.OBJECT, 0, 0)


def user_files(project: Path, folder: str, *names: str, variable: str = "") -> list[DialectFile]:
    """The user's files in a folder of the home directory, or in the one that a variable names.

    There are none if that folder is in the project, which could bring it.
    """
    given = os.environ.get(variable) if variable else None
    home = Path(given) if given and Path(given).is_absolute() else home_folder() / folder
    return [] if is_inside(home.parent, project) else [DialectFile(home / name, Level.USER) for name in names]


def strings(value: object) -> dict[str, str]:
    """The fields of an object that are text."""
    return {name: each for name, each in value.items() if isinstance(each, str)} if isinstance(value, Mapping) else {}


def command_of(hook: Mapping[str, Any], *names: str) -> str | None:
    """The first of these fields that is a command line."""
    return next((line for name in names if isinstance(line := hook.get(name), str) and line.strip()), None)
