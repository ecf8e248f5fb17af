"""The hooks of GitHub Copilot CLI, version 1 of its settings, as its reference of October 2026 has them.

An event written as Claude Code writes it (``PreToolUse``) gets that agent's names and its kind of matcher; one written
as ``preToolUse`` gets Copilot's own. A hook before a tool that fails refuses the call, but one that takes too long does
not.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from llxprt_hooks._support.json_codec import decode_text
from llxprt_hooks._support.stamps import timestamp
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
from llxprt_hooks.dialects.replies import BLOCK, Reply, code_words, json_object, text_field, unfinished
from llxprt_hooks.dialects.tools import SHELL, SUBAGENT, Tool, ToolTable
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import DialectFile, ReadFile
from llxprt_hooks.settings.levels import Level, home_folder
from llxprt_hooks.settings.matcher import InvalidMatcher, Matches
from llxprt_hooks.settings.search import searching

if TYPE_CHECKING:
    from llxprt_hooks.dialects.product import Reader, Spoken
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.foreign import Answer

_FOLDER: Final = ".copilot"
_HOOKS_FOLDER: Final = ".github/hooks"
_HOME_VARIABLE: Final = "COPILOT_HOME"
_POLICY: Final = Path("/etc/github-copilot/policy.d")
_SETTINGS: Final = (".github/copilot/settings.local.json", ".github/copilot/settings.json")
_DEFAULT_MILLISECONDS: Final = 30_000
_MAX_CONTEXT: Final = 10_000
_PLAIN: Final = re.compile(r"[A-Za-z0-9_|]*")
_CLAUDE_NAMES: Final[Mapping[str, str]] = {
    "bash": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "ask_user": "AskUserQuestion",
    "update_todo": "TodoWrite",
    "task": "Agent",
}
"""Its tools as events in the other spelling call them; ``Task`` is accepted, too."""
_EVENTS: Final[Mapping[str, tuple[str, Event]]] = {
    "preToolUse": ("PreToolUse", Event(HookEventName.BEFORE_TOOL)),
    "postToolUse": ("PostToolUse", Event(HookEventName.AFTER_TOOL, failed=False)),
    "postToolUseFailure": ("PostToolUseFailure", Event(HookEventName.AFTER_TOOL, failed=True)),
    "subagentStop": (
        "SubagentStop",
        Event(HookEventName.AFTER_TOOL, SUBAGENT.__eq__, tool=SUBAGENT, by_name=False),
    ),
    "userPromptSubmitted": ("UserPromptSubmit", Event(HookEventName.BEFORE_AGENT)),
    "agentStop": ("Stop", Event(HookEventName.AFTER_AGENT)),
    "sessionStart": ("SessionStart", Event(HookEventName.SESSION_START)),
    "sessionEnd": ("SessionEnd", Event(HookEventName.SESSION_END)),
    "preCompact": ("PreCompact", Event(HookEventName.PRE_COMPRESS)),
    "notification": ("Notification", Event(HookEventName.NOTIFICATION)),
}
"""Each with its other spelling."""
_CAMEL: Final = {pascal: camel for camel, (pascal, _) in _EVENTS.items()}
_SILENT: Final = ("userPromptSubmitted", "sessionEnd", "preCompact", "notification")
"""Events at which no output has an effect."""


class Copilot(Product):
    """The dialect of GitHub Copilot CLI."""

    name = "copilot"
    title = "GitHub Copilot CLI 1.0"
    folders = (_HOOKS_FOLDER,)
    events: ClassVar[Mapping[str, Event]] = {
        **{camel: event for camel, (_, event) in _EVENTS.items()},
        **dict(_EVENTS.values()),
    }
    words: ClassVar[Mapping[HookEventName, Mapping[str, str]]] = {
        HookEventName.SESSION_START: {"clear": "new", "compress": "resume"},
        HookEventName.SESSION_END: {
            "exit": "complete",
            "other": "complete",
            "clear": "user_exit",
            "logout": "user_exit",
            "prompt_input_exit": "user_exit",
        },
        HookEventName.NOTIFICATION: {"ToolPermission": "permission_prompt"},
    }
    has_flat_entries = True
    other_events = (
        *("userPromptTransformed", "permissionRequest", "subagentStart", "errorOccurred"),
        *("UserPromptTransformed", "PermissionRequest", "SubagentStart", "ErrorOccurred"),
    )
    default_type = "command"
    elsewhere: ClassVar[Mapping[str, str]] = {"prompt": "prompt", "http": "url"}
    tools = ToolTable(
        {
            SHELL: Tool("bash"),
            "write_file": Tool(
                "create", {"file_path": "path", "absolute_path": "path", "content": "file_text"}, ("path",)
            ),
            "replace": Tool(
                "edit",
                {"file_path": "path", "absolute_path": "path", "old_string": "old_str", "new_string": "new_str"},
                ("path",),
            ),
            "read_file": Tool("view", {"file_path": "path", "absolute_path": "path"}, ("path",)),
            "list_directory": Tool("view", {"dir_path": "path"}, ("path",)),
            "glob": Tool("glob", {"dir_path": "path"}, ("path",)),
            "search_file_content": Tool("grep", {"dir_path": "path", "include": "glob"}, ("path",)),
            "grep_search": Tool("grep", {"dir_path": "path", "include_pattern": "glob"}, ("path",)),
            "web_fetch": Tool("web_fetch"),
            "direct_web_fetch": Tool("web_fetch"),
            "google_web_search": Tool("web_search"),
            "exa_web_search": Tool("web_search"),
            "todo_write": Tool("update_todo"),
            "write_todos": Tool("update_todo"),
            SUBAGENT: Tool("task", {"goal_prompt": "prompt", "subagent_name": "agent_type"}),
        }
    )

    def files(self, project: Path) -> Sequence[DialectFile]:
        own = [*_json_files(project / _HOOKS_FOLDER), *(project / name for name in _SETTINGS)]
        users = user_files(project, _FOLDER, "settings.json", variable=_HOME_VARIABLE)
        mine = [file for each in users for file in _json_files(each.file.parent / "hooks")]
        return [
            *(DialectFile(file, Level.PROJECT) for file in own),
            *(DialectFile(file, Level.USER) for file in mine),
            *users,
            *(DialectFile(file, Level.SYSTEM, is_policy=True) for file in _json_files(_POLICY)),
        ]

    def plugin(self, folder: Path) -> DialectFile:
        file = next((file for file in (folder / "hooks.json",) if file.exists()), folder / "hooks" / "hooks.json")
        variables = dict.fromkeys(("PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"), str(folder))
        variables["COPILOT_PLUGIN_DATA"] = str(home_folder() / _FOLDER / "plugin-data" / folder.name)
        return DialectFile(file, Level.USER, variables, is_plugin=True)

    def read_file(self, document: Document) -> ReadFile:
        off = document.root.at("disableAllHooks")
        is_off = off is not None and off.scalar is True
        if document.file.name.startswith("settings."):
            return ReadFile(written_hooks(document), off=is_off or None)
        return ReadFile({} if is_off else written_hooks(document))  # such a file switches only its own hooks off

    def handler(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | str:
        program, words = command_of(hook, "exec"), hook.get("args")
        command = command_of(hook, "bash", "command")
        if program is not None:
            arguments = words if isinstance(words, list) else []
            command = shlex.join([program, *map(str, arguments)])
        if command is None:
            return NO_COMMAND
        given = hook.get("timeoutSec") if hook.get("timeoutSec") is not None else hook.get("timeout")
        folder = hook.get("cwd")
        return Handler(
            command,
            reader.milliseconds(given, _DEFAULT_MILLISECONDS),
            variables=strings(hook.get("env")),
            folder=folder if isinstance(folder, str) else "",
        )

    def is_closed(self, event: str, hook: Mapping[str, Any]) -> bool:
        return _camel(event) == "preToolUse" and hook.get("type", "command") == "command"

    def match(self, event: str, matcher: str | None) -> Matches:
        if not matcher or (event in _CAMEL and matcher in ("*", "**")):
            return lambda name: True
        if event in _CAMEL and _PLAIN.fullmatch(matcher):
            names = set(matcher.split("|"))
            return lambda name: name in names or bool(names.intersection(_other_names(name)))
        test = searching(f"^(?:{matcher})$")
        if test is None:
            return InvalidMatcher(matcher)
        if event not in _CAMEL:
            return test
        return lambda name: test(_CLAUDE_NAMES.get(name, name))

    def payload(self, spoken: Spoken) -> Mapping[str, Any]:
        camel, is_camel = _camel(spoken.event), spoken.event not in _CAMEL
        own = _OWN_FIELDS[camel](spoken)
        if is_camel:
            base = {"sessionId": spoken.get("session_id"), "timestamp": time.time_ns() // 1_000_000}
            return {**base, "cwd": spoken.directory, **own}
        named = {"hook_event_name": spoken.event, "session_id": spoken.get("session_id"), "timestamp": timestamp()}
        return {**named, "cwd": spoken.directory, **dict(_snake(own))}

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        return {"COPILOT_CLI": "1"}

    def answer(self, spoken: Spoken, ended: Completed) -> Answer:
        event, reply = _camel(spoken.event), Reply(spoken.native)
        if ended.timed_out and event == "preToolUse":  # the one failure that does not refuse the call
            return reply.tell(f"A hook {unfinished(ended)}, so it decided nothing: {spoken.hook.command}").answer()
        if (why := unfinished(ended)) is not None:
            return reply.answer(why)
        stdout, stderr = _without_progress(decode_text(ended.stdout)), decode_text(ended.stderr).strip()
        fields = json_object(stdout) or {}
        if ended.exit_code == 0:
            return self._from_json(spoken, fields)
        if event == "preToolUse":
            reason = text_field(_before(fields), "permissionDecisionReason") if ended.exit_code == BLOCK else ""
            return reply.block(reason or stderr or "Denied by preToolUse hook (hook errored)").answer()
        if ended.exit_code != BLOCK:
            return reply.answer(code_words(ended))
        if event == "postToolUseFailure":
            return reply.context(text_field(fields, "additionalContext") or stdout).answer()
        return reply.tell(stderr).answer()

    def _from_json(self, spoken: Spoken, fields: Mapping[str, Any]) -> Answer:
        event, reply = _camel(spoken.event), Reply(spoken.native)
        if event in _SILENT:
            return reply.answer()
        if event == "preToolUse":
            return _permitted(spoken, reply, _before(fields)).answer()
        if fields.get("decision") == "block" and event in ("agentStop", "subagentStop"):
            reason = text_field(fields, "reason")
            return (reply.context(reason) if event == "subagentStop" else reply.block(reason or "Continue.")).answer()
        changed = fields.get("modifiedResult")
        if event == "postToolUse" and isinstance(changed, Mapping):
            text = changed.get("textResultForLlm", changed.get("text_result_for_llm"))
            if isinstance(text, str):
                reply.replace(text)
        if event == "subagentStop" and isinstance(fields.get("modifiedResponse"), str):
            reply.replace(fields["modifiedResponse"])
        return reply.context(text_field(fields, "additionalContext")[:_MAX_CONTEXT]).answer()


def _permitted(spoken: Spoken, reply: Reply, fields: Mapping[str, Any]) -> Reply:
    decision, reason = fields.get("permissionDecision"), text_field(fields, "permissionDecisionReason")
    if decision == "deny":
        return reply.block(reason or "Denied by preToolUse hook")
    if decision in ("allow", "ask"):
        reply.permit(decision, reason)
    spoken.change(reply, fields.get("modifiedArgs", fields.get("updatedInput")), whole=True)
    return reply


def _before(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer of a hook before a tool; those written for Claude Code have it one level deeper."""
    own = fields.get("hookSpecificOutput")
    return {**own, **fields} if isinstance(own, Mapping) else fields


def _json_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".json")
    except OSError:
        return []


def _camel(event: str) -> str:
    return _CAMEL.get(event, event)


def _other_names(name: str) -> tuple[str, ...]:
    other = _CLAUDE_NAMES.get(name, name)
    return ("Agent", "Task") if other == "Agent" else (other,)


def _without_progress(stdout: str) -> str:
    """What a hook printed, without the lines that only report its progress."""
    lines = [line for line in stdout.splitlines() if (json_object(line) or {}).get("type") != "progress"]
    return "\n".join(lines).strip()


def _snake(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        renamed = _SNAKE.get(name) or re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        if name == "toolName":
            yield renamed, _CLAUDE_NAMES.get(value, value)
        elif name == "toolResult":
            yield renamed, dict(_snake(value))
        elif name != "hook_event_name":
            yield renamed, value


_SNAKE: Final = {"toolArgs": "tool_input", "response": "last_assistant_message"}


def _call(spoken: Spoken) -> dict[str, Any]:
    return {"toolName": spoken.call.name, "toolArgs": spoken.call.arguments}


def _transcript(spoken: Spoken) -> dict[str, Any]:
    return {"transcriptPath": spoken.get("transcript_path")}


_OWN_FIELDS: Final[Mapping[str, Callable[[Spoken], dict[str, Any]]]] = {
    "preToolUse": _call,
    "postToolUse": lambda spoken: {
        **_call(spoken),
        "toolResult": {"resultType": "success", "textResultForLlm": spoken.result},
    },
    "postToolUseFailure": lambda spoken: {**_call(spoken), "error": spoken.error},
    "subagentStop": lambda spoken: {
        **_transcript(spoken),
        "agentId": spoken.get("tool_use_id"),
        "agentType": spoken.agent_type,
        "agentName": spoken.agent_type,
        "response": spoken.result,
        "stopReason": "end_turn",
    },
    "userPromptSubmitted": lambda spoken: {"prompt": spoken.get("prompt")},
    "agentStop": lambda spoken: {
        **_transcript(spoken),
        "stopReason": "end_turn",
        "stop_hook_active": spoken.get("stop_hook_active") is True,
    },
    "sessionStart": lambda spoken: {"source": spoken.word},
    "sessionEnd": lambda spoken: {"reason": spoken.word},
    "preCompact": lambda spoken: {**_transcript(spoken), "trigger": spoken.word, "customInstructions": ""},
    "notification": lambda spoken: {
        "hook_event_name": "Notification",
        "message": spoken.get("message"),
        "notification_type": spoken.word,
    },
}
"""What hooks of an event get besides the fields that all get."""

DIALECT: Final = Copilot()
