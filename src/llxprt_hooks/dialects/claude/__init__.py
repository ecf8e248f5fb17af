"""The hooks of Claude Code, as version 2.1.285 runs them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from llxprt_hooks._support.text import closest
from llxprt_hooks.dialects.claude.answers import BLOCKING_EVENTS
from llxprt_hooks.dialects.claude.hook import EVENTS, PERMISSION_REQUEST, ClaudeHook
from llxprt_hooks.dialects.claude.rules import matching
from llxprt_hooks.dialects.claude.tools import own_call
from llxprt_hooks.settings.definitions import HookConfig, HookDefinition, read_hook
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
    from llxprt_hooks.settings.definitions import HookSet
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
        asked = event == PERMISSION_REQUEST
        return NativeCall(ours, "task" if event == "SubagentStop" else name, given, fields, asked)


def _gaps(root: Node) -> Iterator[tuple[int, str]]:
    """What a settings file has that takes no effect here."""
    permissions = root.at("permissions")
    rules = [
        key for key in ("deny", "ask") if permissions is not None and (list_ := permissions.at(key)) and list_.items
    ]
    if permissions is not None and rules:
        names = ", ".join(f"permissions.{key}" for key in rules)
        yield permissions.start, f"{names}: only the hooks of this file are used, so these rules protect nothing here"
    if node := root.at("allowedHttpHookUrls"):
        yield node.start, "`allowedHttpHookUrls` counts for the hooks of this file only"
    if node := root.at("httpHookAllowedEnvVars"):
        yield node.start, "`httpHookAllowedEnvVars` has no effect here: a hook's own `allowedEnvVars` decides"


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
                self._report(member.key_start, ("hooks", event), _unknown_event(event))
                continue
            for group in event_groups(event, member.value, self._report):
                yield from self._group(group)

    def _group(self, group: HookGroup) -> Iterator[HookDefinition]:
        event_name, matcher = EVENTS[group.event], group.matcher
        self._report_misspelled(group.node, group.path, _GROUP_KEYS)
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
        self._report_misspelled(entry.node, entry.path, _HOOK_KEYS)
        hook, config = entry.hook, self._config(entry)
        if config is None:
            return None
        background = hook.get("async") is True or hook.get("asyncRewake") is True
        closed = hook.get("onFailure") == "block" and entry.event in _CLOSED_EVENTS and not background
        rule = hook.get("if")
        foreign = ClaudeHook(
            config.command,
            entry.event,
            matcher or "",
            rule if isinstance(rule, str) else None,
            background,
            self._set.variables,
            origin=self._set.variables.get("CLAUDE_PLUGIN_ROOT", ""),
            is_remote=config.type == "http",
        )
        asks = entry.event == PERMISSION_REQUEST
        return structs.replace(config, acts=True, fail_closed=closed, answers_question=asks, foreign=foreign)

    def _config(self, entry: HookEntry) -> HookConfig | None:
        """What a hook runs, in the form of our own type for it; None if it cannot be used."""
        hook, kind = entry.hook, entry.hook.get("type")
        if kind in _ELSEWHERE:
            gap = f"hooks of type {kind} run only in Claude Code: it counts as failed, and the call goes ahead"
            self._report(entry.node.start, entry.path, gap)
            what = f"{kind}: {hook.get(_ELSEWHERE[kind]) or ''}"
            return HookConfig("unsupported", what, before_start=self._set.before_start, scope=self._set.scope)
        written = self._native(entry)
        if isinstance(written, str):
            self._report(entry.node.start, entry.path, f"{DISCARDED}: {written}")
            return None
        written |= {"type": kind, "timeout": self._milliseconds(entry)}
        config, problems = read_hook(written, self._set.before_start, self._set.scope)
        for problem in problems:
            self._report(entry.node.start, entry.path, problem.message)
        return config

    def _native(self, entry: HookEntry) -> dict[str, Any] | str:
        """The fields of our own type for a hook, or why there are none."""
        hook, kind = entry.hook, entry.hook.get("type")
        if kind == "command":
            command = _command_line(hook)
            found = found_words(entry.node.at("command"))
            return f"`command` must be a command line, found {found}" if command is None else {"command": command}
        if kind == "http":
            given = {key: hook[key] for key in ("url", "headers", "allowedEnvVars", "allowInsecure") if key in hook}
            return self._refused_url(hook.get("url")) or given
        names = ", ".join(f'"{name}"' for name in ("command", "http", *_ELSEWHERE))
        return f"`type` must be one of {names}, found {found_words(entry.node.at('type'))}"

    def _refused_url(self, url: object) -> str | None:
        """Why the file's own list of URLs does not allow one."""
        allowed = self._document.root.at("allowedHttpHookUrls") if self._document else None
        patterns = allowed.to_value() if allowed is not None else None
        if not isinstance(patterns, list) or any(fnmatchcase(str(url), str(each)) for each in patterns):
            return None
        return "`allowedHttpHookUrls` does not allow its URL"

    def _milliseconds(self, entry: HookEntry) -> float:
        seconds = entry.hook.get("timeout")
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
            return min(seconds * 1000, _MAX_MILLISECONDS)
        if seconds is not None:
            found = found_words(entry.node.at("timeout"))
            self._report(entry.node.start, entry.path, f"`timeout` is ignored: expected seconds above 0, found {found}")
        return _DEFAULT_SECONDS.get(entry.event, _USUAL_SECONDS) * 1000

    def _report_misspelled(self, node: Node, path: Steps, known: tuple[str, ...]) -> None:
        """Report keys that are probably misspelled; the product ignores all others, and so do we."""
        for key, member in node.fields.items():
            if key not in known and (meant := closest(key, (each for each in known if each not in node.fields))):
                self._report(member.key_start, path, f"`{key}` is ignored: did you mean `{meant}`?")

    def _report(self, offset: int, path: Steps, message: str) -> None:
        problem = self._document.problem_at(offset, message) if self._document else Problem(None, 0, 0, message)
        self.problems.append(replace(problem, where=where_words(path), origin=self._set.origin))


_GROUP_KEYS: Final = ("matcher", "hooks")
_HOOK_KEYS: Final = (
    *("type", "command", "args", "if", "timeout", "async", "asyncRewake", "onFailure", "once", "shell"),
    *("statusMessage", "url", "headers", "allowedEnvVars", "allowInsecure", "prompt", "model", "server", "tool"),
    "input",
)
_OTHER_EVENTS: Final = (
    *("PermissionDenied", "PostToolBatch", "UserPromptExpansion", "Setup", "SubagentStart", "StopFailure"),
    *("PostCompact", "ConfigChange", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded"),
    *("TaskCreated", "TaskCompleted", "TeammateIdle", "WorktreeCreate", "WorktreeRemove", "Elicitation"),
    *("ElicitationResult", "PreModelSwitch", "PostModelSwitch", "MessageDisplay"),
)
"""The product's events that do not happen here."""


def _unknown_event(name: str) -> str:
    if name in _OTHER_EVENTS:
        return "this event of Claude Code does not happen here, so its hooks never run"
    meant = closest(name, (*EVENTS, *_OTHER_EVENTS))
    return f"{DISCARDED}: unknown event. " + (f"Did you mean `{meant}`?" if meant else f"Known: {', '.join(EVENTS)}.")


_ELSEWHERE: Final = {"prompt": "prompt", "agent": "prompt", "mcp_tool": "tool"}
"""The types that need a model or a connection of the product, each with the field that describes such a hook."""
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
