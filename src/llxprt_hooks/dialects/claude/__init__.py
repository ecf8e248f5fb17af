"""The hooks of Claude Code, as version 2.1.285 runs them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from llxprt_hooks.dialects.claude.answers import BLOCKING_EVENTS
from llxprt_hooks.dialects.claude.hook import EVENTS, ClaudeHook
from llxprt_hooks.dialects.claude.rules import matching
from llxprt_hooks.dialects.claude.tools import own_call
from llxprt_hooks.settings.definitions import HookDefinition, read_hook
from llxprt_hooks.settings.foreign import DialectFile, NativeCall, ReadFile
from llxprt_hooks.settings.hook_entries import (
    DISCARDED,
    HookEntry,
    HookGroup,
    Steps,
    WrittenHooks,
    event_groups,
    hooks_node,
    where_words,
)
from llxprt_hooks.settings.jsonc import Kind, Node
from llxprt_hooks.settings.levels import Level, home_folder, is_inside
from llxprt_hooks.settings.problem import Problem, first_problems
from llxprt_hooks.settings.shape import found_words

if TYPE_CHECKING:
    from llxprt_hooks.settings.definitions import HookConfig, HookSet
    from llxprt_hooks.settings.document import Document

_FOLDER: Final = ".claude"
_CONFIG_VARIABLE: Final = "CLAUDE_CONFIG_DIR"
_PLACEHOLDER: Final = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA)\}")
_DEFAULT_SECONDS: Final[Mapping[str, float]] = {"UserPromptSubmit": 30, "SessionEnd": 60}
"""Of other events, 600. A SessionEnd hook without a time gets the longest that the product grants."""
_USUAL_SECONDS: Final = 600
_MAX_MILLISECONDS: Final = 1e12


class Claude:
    """The dialect of Claude Code."""

    title: Final = "Claude Code 2.1.285"
    folders: Final = ()

    def files(self, project: Path) -> Sequence[DialectFile]:
        own = [
            DialectFile(project / _FOLDER / name, Level.PROJECT) for name in ("settings.local.json", "settings.json")
        ]
        given = os.environ.get(_CONFIG_VARIABLE)
        home = Path(given) if given and Path(given).is_absolute() else home_folder() / _FOLDER
        users = [] if is_inside(home.parent, project) else [DialectFile(home / "settings.json", Level.USER)]
        return [*own, *users]

    def plugin(self, folder: Path) -> DialectFile:
        data = home_folder() / _FOLDER / "plugins" / "data" / folder.name
        variables = {"CLAUDE_PLUGIN_ROOT": str(folder), "CLAUDE_PLUGIN_DATA": str(data)}
        return DialectFile(folder / "hooks" / "hooks.json", Level.USER, variables, is_plugin=True)

    def read_file(self, document: Document) -> ReadFile:
        root = document.root
        hooks, env, off = root.at("hooks"), root.at("env"), root.at("disableAllHooks")
        variables = env.to_value() if env is not None and env.kind is Kind.OBJECT else {}
        empty = Node(Kind.OBJECT, 0, 0)
        return ReadFile(
            WrittenHooks(document, hooks if hooks is not None and hooks.kind is Kind.OBJECT else empty),
            {name: value for name, value in variables.items() if isinstance(value, str)},
            off.scalar if off is not None and isinstance(off.scalar, bool) else None,
            tuple(_gaps(root)),
        )

    def read_definitions(self, hook_set: HookSet) -> tuple[list[HookDefinition], list[Problem]]:
        reader = _Reader(hook_set)
        return list(reader.definitions()), first_problems(reader.problems)

    def speaking(self, config: HookConfig) -> HookConfig:
        return structs.replace(config, acts=True, foreign=ClaudeHook(config.command))

    def native_call(self, event: str, tool: str | None, arguments: Mapping[str, Any] | None) -> NativeCall | None:
        ours = EVENTS.get(event)
        if ours is None:
            return None
        name, given = (None, arguments) if tool is None else own_call(tool, arguments)
        failed = {"llmContent": "it failed", "returnDisplay": "", "metadata": {}, "error": {"message": "it failed"}}
        fields = {"tool_response": failed} if event == "PostToolUseFailure" else {}
        return NativeCall(ours, "task" if event == "SubagentStop" else name, given, fields)


def _gaps(root: Node) -> Iterator[tuple[int, str]]:
    """What a settings file has that takes no effect here."""
    permissions = root.at("permissions")
    rules = [
        key
        for key in ("deny", "ask", "allow")
        if permissions is not None and (list_ := permissions.at(key)) and list_.items
    ]
    if permissions is not None and rules:
        names = ", ".join(f"permissions.{key}" for key in rules)
        yield permissions.start, f"{names}: only the hooks of this file are used, so these rules protect nothing here"
    for key in ("allowedHttpHookUrls", "httpHookAllowedEnvVars"):
        if node := root.at(key):
            yield node.start, f"`{key}` has no effect here, because hooks of type http do not run"


class _Reader:
    """Reads a ``hooks`` object. A part that cannot be used is reported and left out; the others count."""

    def __init__(self, hook_set: HookSet) -> None:
        hooks = hook_set.hooks
        self._set = hook_set
        self._node = hooks_node(hooks)
        self._document = hooks.document if isinstance(hooks, WrittenHooks) else None
        self.problems: list[Problem] = []

    def definitions(self) -> Iterator[HookDefinition]:
        for event, member in self._node.fields.items():
            if event not in EVENTS:
                self._report(member.key_start, ("hooks", event), f"{DISCARDED}: there is no such event here")
                continue
            for group in event_groups(event, member.value, self._report):
                yield from self._group(group)

    def _group(self, group: HookGroup) -> Iterator[HookDefinition]:
        event_name, matcher = EVENTS[group.event], group.matcher
        for entry in group.entries(self._report):
            config = self._hook(entry, matcher)
            if config is not None:
                yield HookDefinition(
                    config,
                    event_name,
                    self._set.source,
                    self._set.origin,
                    group.number,
                    entry.number,
                    None if group.event == "SubagentStop" else matcher,
                    matching=matching,
                    path=entry.path,
                )

    def _hook(self, entry: HookEntry, matcher: str | None) -> HookConfig | None:
        hook = entry.hook
        if hook.get("type") in ("prompt", "agent", "http", "mcp_tool"):
            why = f"hooks of type {hook['type']} do not run here; its product lets calls go ahead if such a hook fails"
            self._report(entry.node.start, entry.path, f"{DISCARDED}: {why}")
            return None
        command = _command_line(hook)
        if hook.get("type") != "command" or command is None:
            expected = f'`type` must be "command", found {found_words(entry.node.at("type"))}'
            if hook.get("type") == "command":
                expected = f"`command` must be a command line, found {found_words(entry.node.at('command'))}"
            self._report(entry.node.start, entry.path, f"{DISCARDED}: {expected}")
            return None
        written = {"type": "command", "command": command, "timeout": self._milliseconds(entry)}
        config, problems = read_hook(written, self._set.before_start, self._set.scope)
        for problem in problems:
            self._report(entry.node.start, entry.path, problem.message)
        if config is None:
            return None
        background = hook.get("async") is True or hook.get("asyncRewake") is True
        closed = hook.get("onFailure") == "block" and entry.event in _CLOSED_EVENTS and not background
        rule = hook.get("if")
        foreign = ClaudeHook(
            command,
            entry.event,
            matcher or "",
            rule if isinstance(rule, str) else None,
            background,
            self._set.variables,
            origin=self._set.variables.get("CLAUDE_PLUGIN_ROOT", ""),
        )
        return structs.replace(config, acts=True, fail_closed=closed, foreign=foreign)

    def _milliseconds(self, entry: HookEntry) -> float:
        seconds = entry.hook.get("timeout")
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
            return min(seconds * 1000, _MAX_MILLISECONDS)
        if seconds is not None:
            found = found_words(entry.node.at("timeout"))
            self._report(entry.node.start, entry.path, f"`timeout` is ignored: expected seconds above 0, found {found}")
        return _DEFAULT_SECONDS.get(entry.event, _USUAL_SECONDS) * 1000

    def _report(self, offset: int, path: Steps, message: str) -> None:
        problem = self._document.problem_at(offset, message) if self._document else Problem(None, 0, 0, message)
        self.problems.append(replace(problem, where=where_words(path), origin=self._set.origin))


_CLOSED_EVENTS: Final = tuple(event for event in BLOCKING_EVENTS if event not in ("Stop", "SubagentStop"))


def _command_line(hook: Mapping[str, Any]) -> str | None:
    """The command line of a hook; of one with ``args``, which needs no shell, the same words in quotes."""
    command, arguments = hook.get("command"), hook.get("args")
    if not isinstance(command, str) or not command.strip():
        return None
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        return command
    return " ".join(map(_quoted, (command, *arguments)))


def _quoted(word: str) -> str:
    pieces = _PLACEHOLDER.split(word)
    quoted = (
        f'"${{{piece}}}"' if number % 2 else shlex.quote(piece) if piece else "" for number, piece in enumerate(pieces)
    )
    return "".join(quoted) or "''"


DIALECT: Final = Claude()
