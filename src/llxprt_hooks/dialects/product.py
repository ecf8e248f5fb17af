"""What the dialects of other agents share: one hook, and how its settings are read.

A dialect is a subclass of ``Product`` with its tables, its payloads, and what answers mean.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from msgspec import structs

from llxprt_hooks._support.json_codec import decode_text
from llxprt_hooks._support.text import closest
from llxprt_hooks.dialects.replies import BLOCK, BLOCKED, Reply
from llxprt_hooks.dialects.tools import Shown, UnusableChangeError, failure_of, text_of
from llxprt_hooks.settings.definitions import (
    MAX_UNKNOWN,
    HookConfig,
    HookDefinition,
    HookScope,
    ProblemReader,
    read_hook,
)
from llxprt_hooks.settings.foreign import Dialect, DialectFile, NativeCall, ReadFile
from llxprt_hooks.settings.hook_entries import (
    DISCARDED,
    HookGroup,
    Steps,
    WrittenHooks,
    event_groups,
    where_words,
)
from llxprt_hooks.settings.jsonc import Kind, Node, node_of
from llxprt_hooks.settings.levels import Level, home_folder, is_inside
from llxprt_hooks.settings.matcher import InvalidMatcher, Matches, is_for_all
from llxprt_hooks.settings.search import searching
from llxprt_hooks.settings.shape import found_words

if TYPE_CHECKING:
    from llxprt_hooks.dialects.tools import ToolTable
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.definitions import HookSet
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.foreign import Answer, Situation
    from llxprt_hooks.settings.problem import Problem

NO_COMMAND: Final = "it has no command"
_MAX_MILLISECONDS: Final = 1e12
_MODES: Final[Mapping[str, str]] = {"auto_edit": "acceptEdits", "yolo": "bypassPermissions"}
_FAILED: Final = {"llmContent": "it failed", "returnDisplay": "", "metadata": {}, "error": {"message": "it failed"}}


def any_tool(tool_name: str) -> bool:
    return True


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
    is_question: bool = False
    """Whether it is the question whether a call may run, which a person would be asked."""


class Handler(NamedTuple):
    """A hook as the settings of another agent define it."""

    command: str
    milliseconds: float
    name: str | None = None
    background: bool = False
    variables: Mapping[str, str] = {}
    folder: str = ""
    rule: str | None = None
    """What else than the matcher decides which calls it is for."""
    fields: Mapping[str, Any] | None = None
    """What it runs, as our own settings define it; None: the command."""


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
    def permission_mode(self) -> str:
        """The program's approval mode, in Claude Code's words, which others use, too."""
        return _MODES.get(self.situation.approval_mode, "default")

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
    """Whether a failure blocks."""
    rule: str | None = None
    """What else than the matcher decides which calls it is for."""
    is_remote: bool = False
    """Whether its answer is the body of a response, instead of the streams of a process."""
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
            return (self,) if self.rule is None else ()
        if row is not None and not row.by_name and not self.product.is_for(self, hook_input):
            return ()
        tool, directory, tools = (
            str(hook_input.get("tool_name", "")),
            str(hook_input.get("cwd", "")),
            self.product.tools,
        )
        found = tools.calls(tool, hook_input.get("tool_input"), directory)
        first = found[0][0]
        # Matchers have been compared with the names of the tool; those of a part may be others.
        is_compared = len(found) == len(found[0]) == 1 and (
            first.is_part or tools.names_of(first.name) == tools.names(tool)
        )
        has_names = self.event and row and row.by_name and not is_compared
        by_name = self.product.match(event, self.matcher) if has_names else any_tool
        chosen = (next((way for way in ways if any(map(by_name, tools.names_of(way.name)))), None) for ways in found)
        return [
            self._replace(call=call, number=number)
            for number, call in enumerate(chosen)
            if call is not None and self.product.holds(self, call, directory)
        ]

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


class Product(Dialect):
    """The dialect of another agent."""

    name: ClassVar[str]
    title: ClassVar[str]
    folders: ClassVar[Sequence[str]] = ()
    events: ClassVar[Mapping[str, Event]]
    """Its events that exist here, those that hooks in native settings get first."""
    other_events: ClassVar[Sequence[str]] = ()
    """Its events that do not happen here."""
    absent: ClassVar[Sequence[str]] = ()
    """Keys among the events that are not events."""
    words: ClassVar[Mapping[HookEventName, Mapping[str, str]]] = {}
    """Our values that have another name there."""
    tools: ClassVar[ToolTable]
    has_groups: ClassVar[bool] = True
    """Whether hooks are in groups, below a key ``hooks``."""
    has_flat_entries: ClassVar[bool] = False
    """Whether hooks may be directly below the event."""
    has_sequences: ClassVar[bool] = False
    """Whether a group may let its hooks run one after another."""
    types: ClassVar[Sequence[str]] = ("command",)
    """The types of hooks that run here."""
    default_type: ClassVar[str | None] = None
    """The type of a hook that has none."""
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """The types that need the product, each with the field that describes such a hook."""
    plain: ClassVar[re.Pattern[str] | None] = None
    """The letters of matchers that are lists of names."""
    group_keys: ClassVar[Sequence[str]] = ()
    hook_keys: ClassVar[Sequence[str]] = ()
    """The keys that are read. One that resembles them is probably misspelled; it ignores all others, and so do we."""

    @abstractmethod
    def handler(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | str:
        """A hook of the settings, of one of the ``types``; or why it cannot be used."""

    @abstractmethod
    def payload(self, spoken: Spoken) -> Mapping[str, Any]:
        """What hooks get."""

    @abstractmethod
    def answer(self, spoken: Spoken, ended: Completed) -> Answer:
        """What the end of a hook's process means."""

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        """The variables that all hooks get."""
        return {}

    def is_closed(self, event: str, hook: Mapping[str, Any]) -> bool:
        """Whether a failure of the hook blocks."""
        return False

    def holds(self, hook: ProductHook, call: Shown, directory: str) -> bool:
        """Whether the rule of a hook is for a call."""
        return True

    def match(self, event: str, matcher: str | None) -> Matches:
        """The test of a matcher: names that are compared exactly, or a regular expression that is searched."""
        if matcher is None or is_for_all(matcher.strip()):
            return any_tool
        if self.plain is not None and self.plain.fullmatch(matcher):
            return {name.strip() for name in re.split(r"[|,]", matcher)}.__contains__
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

    # What the engine and the settings ask.

    @classmethod
    def agent(cls) -> str:
        """The name of the agent, without its version."""
        return cls.title.rpartition(" ")[0]

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
        return list(reader.definitions()), reader.problems

    def speaking(self, config: HookConfig) -> HookConfig:
        return structs.replace(config, acts=True, foreign=ProductHook(self, config.command))

    def native_call(self, event: str, tool: str | None, arguments: Mapping[str, Any] | None) -> NativeCall | None:
        row = self.events.get(event)
        if row is None:
            return None
        name, given = (row.tool, arguments) if tool is None else self.tools.own_call(tool, arguments)
        fields = {"tool_response": _FAILED} if row.failed else {}
        return NativeCall(row.native, name, given, fields, row.is_question)


class Reader(ProblemReader):
    """Reads a ``hooks`` object. A part that cannot be used is reported and left out; the others count."""

    def __init__(self, product: Product, hook_set: HookSet) -> None:
        super().__init__(hook_set)
        self._product = product
        self._at: tuple[int, Steps] = (0, ())

    def definitions(self) -> Iterator[HookDefinition]:
        for event, member in self.node.fields.items():
            if event in self._product.absent:
                continue
            if event not in self._product.events:
                self.report_at(member.key_start, ("hooks", event), self._unknown_event(event))
                continue
            for group in event_groups(event, member.value, self.report_at):
                yield from self._group(group)

    def _unknown_event(self, event: str) -> str:
        product = self._product
        if event in product.other_events:
            return f"this event of {product.agent()} does not happen here, so its hooks never run"
        self.unknown_keys += 1
        names = sorted((*product.events, *product.other_events), key=lambda each: each[:1] == event[:1])
        meant = closest(event, names) if self.unknown_keys <= MAX_UNKNOWN else None
        fix = f"Did you mean `{meant}`?" if meant else f"Known: {', '.join(product.events)}."
        return f"{DISCARDED}: unknown event. {fix}"

    def _group(self, group: HookGroup) -> Iterator[HookDefinition]:
        product, hooks = self._product, group.node.at("hooks")
        if product.has_groups and (hooks is not None or not product.has_flat_entries):
            self._report_misspelled(group.node, group.path, product.group_keys)
            for entry in group.entries(self.report_at):
                yield from self._entry(group, entry.node, entry.path, entry.number)
        else:
            yield from self._entry(group, group.node, group.path, 0)

    def _entry(self, group: HookGroup, node: Node, path: Steps, number: int) -> Iterator[HookDefinition]:
        product, self._at, hook = self._product, (node.start, path), node.to_value()
        self._report_misspelled(node, path, product.hook_keys)
        is_closed = product.is_closed(group.event, hook)
        read = self._read(group.event, hook, is_closed)
        if read is None:
            return
        handler, config = read
        matcher, own, sequential = group.matcher, node.at("matcher"), group.node.at("sequential")
        if matcher is None and own is not None and isinstance(own.scalar, str):
            matcher = own.scalar
        event = product.events[group.event]
        if event.native.spec.matched_field and isinstance(product.match(group.event, matcher), InvalidMatcher):
            self.report(f"`matcher` {matcher!r} is not a valid regular expression, so this hook never runs")
        foreign = ProductHook(
            product,
            handler.command,
            group.event,
            matcher,
            handler.background,
            {**self.set.variables, **handler.variables},
            handler.folder,
            f"{self.set.origin}:{where_words(path)}",
            is_closed,
            handler.rule,
            is_remote=config.type == "http",
        )
        yield HookDefinition(
            structs.replace(
                config, acts=True, fail_closed=is_closed, answers_question=event.is_question, foreign=foreign
            ),
            event.native,
            self.set.source,
            self.set.origin,
            group.number,
            number,
            matcher,
            product.has_sequences and sequential is not None and sequential.scalar is True,
            matching=partial(product.matching, group.event),
            path=path,
        )

    def _read(self, event: str, hook: Mapping[str, Any], is_closed: bool) -> tuple[Handler, HookConfig] | None:
        product, kind = self._product, hook.get("type", self._product.default_type)
        if isinstance(kind, str) and kind in product.elsewhere:
            effect = "blocks" if is_closed else "the call goes ahead"
            self.report(f"hooks of type {kind} run only in {product.agent()}: it counts as failed, and {effect}")
            handler = Handler(f"{kind}: {hook.get(product.elsewhere[kind]) or ''}", 0)
            scope = self.set.scope
            return handler, HookConfig("unsupported", handler.command, before_start=self.set.before_start, scope=scope)
        if kind not in product.types:
            names = ", ".join(f'"{name}"' for name in (*product.types, *product.elsewhere))
            given = found_words(node_of(hook).at("type"))
            self.report(f"{DISCARDED}: `type` must be {'one of ' if ',' in names else ''}{names}, found {given}")
            return None
        found = product.handler(event, hook, self)
        if isinstance(found, str):
            self.report(f"{DISCARDED}: {found}")
            return None
        fields = found.fields or {"type": "command", "command": found.command}
        written = {**fields, "timeout": found.milliseconds, "name": found.name}
        config, problems = read_hook(written, self.set.before_start, self.set.scope)
        for problem in problems:
            self.report(f"{DISCARDED}: {problem.message}" if problem.discards else problem.message)
        return None if config is None else (found, config)

    def milliseconds(self, given: object, default: float, unit: float = 1000) -> float:
        """A time limit in milliseconds; ``unit`` is how many of them one is there."""
        if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
            return min(given * unit, _MAX_MILLISECONDS)
        if given is not None:
            self.report(f"the timeout is ignored: expected a number above 0, found {found_words(node_of(given))}")
        return default

    @property
    def file_folder(self) -> str:
        """The folder of the file, if it is not the project's."""
        return "" if self.set.scope is HookScope.PROJECT or not self.set.origin else str(Path(self.set.origin).parent)

    def report(self, message: str) -> None:
        """Report something about the hook that is being read."""
        self.report_at(*self._at, message)

    def _report_misspelled(self, node: Node, path: Steps, known: Sequence[str]) -> None:
        for key, member in node.fields.items() if known else ():
            if key in known or self.unknown_keys >= MAX_UNKNOWN:
                continue
            self.unknown_keys += 1
            if meant := closest(key, (each for each in known if each not in node.fields)):
                self.report_at(member.key_start, path, f"`{key}` is ignored: did you mean `{meant}`?")


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
