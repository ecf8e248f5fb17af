"""The hooks of Claude Code, as version 2.1.285 runs them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from llxprt_hooks.dialects.claude.answers import BLOCKING_EVENTS, read
from llxprt_hooks.dialects.claude.payload import payload
from llxprt_hooks.dialects.claude.rules import holds
from llxprt_hooks.dialects.claude.tools import TOOLS
from llxprt_hooks.dialects.product import (
    NO_COMMAND,
    Event,
    Handler,
    Product,
    command_of,
    strings,
    user_files,
    written_hooks,
)
from llxprt_hooks.dialects.tools import SUBAGENT, Shown
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import DialectFile, ReadFile
from llxprt_hooks.settings.levels import Level, home_folder

if TYPE_CHECKING:
    from llxprt_hooks.dialects.product import ProductHook, Reader, Spoken
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.foreign import Answer

_FOLDER: Final = ".claude"
_PLACEHOLDER: Final = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA)\}")
_DEFAULT_SECONDS: Final[Mapping[str, float]] = {"UserPromptSubmit": 30, "SessionEnd": 60}
"""Of other events, 600. A SessionEnd hook without a time gets the longest that the product grants."""
_USUAL_SECONDS: Final = 600
_CLOSED_EVENTS: Final = tuple(event for event in BLOCKING_EVENTS if event not in ("Stop", "SubagentStop"))
_HTTP_KEYS: Final = ("url", "headers", "allowedEnvVars", "allowInsecure")


class Claude(Product):
    """The dialect of Claude Code."""

    name = "claude"
    title = "Claude Code 2.1.285"
    events: ClassVar[Mapping[str, Event]] = {
        "PreToolUse": Event(HookEventName.BEFORE_TOOL),
        "PostToolUse": Event(HookEventName.AFTER_TOOL, failed=False),
        "PostToolUseFailure": Event(HookEventName.AFTER_TOOL, failed=True),
        "UserPromptSubmit": Event(HookEventName.BEFORE_AGENT),
        "Stop": Event(HookEventName.AFTER_AGENT),
        "SubagentStop": Event(HookEventName.AFTER_TOOL, SUBAGENT.__eq__, tool=SUBAGENT, by_name=False),
        "SessionStart": Event(HookEventName.SESSION_START),
        "SessionEnd": Event(HookEventName.SESSION_END),
        "PreCompact": Event(HookEventName.PRE_COMPRESS),
        "Notification": Event(HookEventName.NOTIFICATION),
        "PermissionRequest": Event(HookEventName.BEFORE_TOOL, is_question=True),
    }
    other_events = (
        *("PermissionDenied", "PostToolBatch", "UserPromptExpansion", "Setup", "SubagentStart", "StopFailure"),
        *("PostCompact", "ConfigChange", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded"),
        *("TaskCreated", "TaskCompleted", "TeammateIdle", "WorktreeCreate", "WorktreeRemove", "Elicitation"),
        *("ElicitationResult", "PreModelSwitch", "PostModelSwitch", "MessageDisplay"),
    )
    words: ClassVar[Mapping[HookEventName, Mapping[str, str]]] = {
        HookEventName.SESSION_START: {"compress": "compact"},
        HookEventName.SESSION_END: {"exit": "other"},
        HookEventName.NOTIFICATION: {"ToolPermission": "permission_prompt"},
    }
    tools = TOOLS
    plain = re.compile(r"[A-Za-z0-9_ ,|-]*")
    types = ("command", "http")
    elsewhere: ClassVar[Mapping[str, str]] = {"prompt": "prompt", "agent": "prompt", "mcp_tool": "tool"}
    group_keys = ("matcher", "hooks")
    hook_keys = (
        *("type", "command", "args", "if", "timeout", "async", "asyncRewake", "onFailure", "once", "shell"),
        *("statusMessage", *_HTTP_KEYS, "prompt", "model", "server", "tool", "input"),
    )

    def files(self, project: Path) -> Sequence[DialectFile]:
        own = [
            DialectFile(project / _FOLDER / name, Level.PROJECT) for name in ("settings.local.json", "settings.json")
        ]
        return [*own, *user_files(project, _FOLDER, "settings.json", variable="CLAUDE_CONFIG_DIR")]

    def plugin(self, folder: Path) -> DialectFile:
        data = home_folder() / _FOLDER / "plugins" / "data" / folder.name
        variables = {"CLAUDE_PLUGIN_ROOT": str(folder), "CLAUDE_PLUGIN_DATA": str(data)}
        return DialectFile(folder / "hooks" / "hooks.json", Level.USER, variables, is_plugin=True)

    def read_file(self, document: Document) -> ReadFile:
        env, off = document.root.at("env"), document.root.at("disableAllHooks")
        variables = strings(env.to_value()) if env is not None else {}
        is_off = off.scalar if off is not None and isinstance(off.scalar, bool) else None
        return ReadFile(written_hooks(document), variables, is_off, tuple(self.gaps(document)))

    def gaps(self, document: Document) -> Iterator[tuple[int, str]]:
        read, rules = document.root.at, []
        for key in ("deny", "ask"):
            rules += [f"permissions.{key}"] if (node := read("permissions", key)) and node.items else []
        if (permissions := read("permissions")) and rules:
            names = ", ".join(rules)
            why = "only the hooks of this file are used, so these rules protect nothing here"
            yield permissions.start, f"{names}: {why}"
        if node := read("allowedHttpHookUrls"):
            yield node.start, "`allowedHttpHookUrls` counts for the hooks of this file only"
        if node := read("httpHookAllowedEnvVars"):
            yield node.start, "`httpHookAllowedEnvVars` has no effect here: a hook's own `allowedEnvVars` decides"

    def handler(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | str:
        is_http, rule = hook.get("type") == "http", hook.get("if")
        if is_http and not _is_allowed(hook.get("url"), reader.document):
            return "`allowedHttpHookUrls` does not allow its URL"
        command = str(hook.get("url")) if is_http else _command_line(hook)
        if command is None:
            return NO_COMMAND
        return Handler(
            command,
            reader.milliseconds(hook.get("timeout"), _DEFAULT_SECONDS.get(event, _USUAL_SECONDS) * 1000),
            background=_is_background(hook),
            rule=rule if isinstance(rule, str) else None,
            fields={"type": "http", **{key: hook[key] for key in _HTTP_KEYS if key in hook}} if is_http else None,
        )

    def is_closed(self, event: str, hook: Mapping[str, Any]) -> bool:
        return hook.get("onFailure") == "block" and event in _CLOSED_EVENTS and not _is_background(hook)

    def holds(self, hook: ProductHook, call: Shown, directory: str) -> bool:
        return hook.rule is None or holds(hook.rule, call.name, call.arguments, directory)

    def key(self, hook: ProductHook) -> str:
        plugin = hook.variables.get("CLAUDE_PLUGIN_ROOT", "")
        return f"{self.name}:{hook.event}:{hook.matcher or ''}:{hook.rule}:{plugin}"

    def payload(self, spoken: Spoken) -> Mapping[str, Any]:
        return payload(spoken)

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        return {
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": "sdk-cli",
            "CLAUDE_CODE_SESSION_ID": str(payload["session_id"]),
            "CLAUDE_CODE_CHILD_SESSION": "1",
            "CLAUDE_PID": str(os.getpid()),
        }

    def answer(self, spoken: Spoken, ended: Completed) -> Answer:
        return read(spoken, ended)


def _is_background(hook: Mapping[str, Any]) -> bool:
    return hook.get("async") is True or hook.get("asyncRewake") is True


def _is_allowed(url: object, document: Document | None) -> bool:
    """Whether the file's own list of URLs, if it has one, allows one."""
    allowed = document.root.at("allowedHttpHookUrls") if document else None
    patterns = allowed.to_value() if allowed is not None else None
    return not isinstance(patterns, list) or any(fnmatchcase(str(url), str(each)) for each in patterns)


def _command_line(hook: Mapping[str, Any]) -> str | None:
    """The command line of a hook; of one with ``args``, which needs no shell, the same words in quotes."""
    command, arguments = command_of(hook, "command"), hook.get("args")
    if command is None or not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        return command
    return " ".join(map(_quoted, (command, *arguments)))


def _quoted(word: str) -> str:
    pieces = _PLACEHOLDER.split(word)
    quoted = (
        f'"${{{piece}}}"' if number % 2 else shlex.quote(piece) if piece else "" for number, piece in enumerate(pieces)
    )
    return "".join(quoted) or "''"


DIALECT: Final = Claude()
