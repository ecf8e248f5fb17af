"""The hooks of Cursor, as its documentation of September 2026 and cursor-agent 2026.09.28 have them.

Besides a general event before and after each tool, it has events for commands, MCP tools and files, so that one call of
ours may be several events there. A hook that fails lets the call go ahead unless it has ``failClosed``, but an answer
about a permission that is not JSON blocks.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from llxprt_hooks._support.json_codec import decode_text
from llxprt_hooks.dialects.product import NO_COMMAND, Event, Handler, Product, command_of, user_files
from llxprt_hooks.dialects.replies import BLOCK, BLOCKED, Reply, code_words, json_object, text_field, unfinished
from llxprt_hooks.dialects.tools import SHELL, SUBAGENT, WRITE, WRITERS, Tool, ToolTable
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import DialectFile
from llxprt_hooks.settings.levels import Level
from llxprt_hooks.settings.matcher import MCP_PREFIX

if TYPE_CHECKING:
    from llxprt_hooks.dialects.product import ProductHook, Reader, Spoken
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.foreign import Answer

_FOLDER: Final = ".cursor"
_VERSION: Final = "2026.09.28"
_SYSTEM: Final = Path("/etc/cursor/hooks.json")
_DEFAULT_MILLISECONDS: Final = 60_000
_MAX_CONTENT: Final = 1024 * 1024
"""Bytes of a file that a hook gets before the file is read."""
_READ: Final = "read_file"
_MCP_SAMPLE: Final = "mcp__server__tool"
_FILE: Final = {"absolute_path": "file_path", "path": "file_path"}
_PERMISSION: Final = ("preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "subagentStart")
_ASKS: Final = ("beforeShellExecution", "beforeMCPExecution")
"""Where ``ask`` has an effect."""
_CAN_BLOCK: Final = (*_PERMISSION, "beforeSubmitPrompt")
_OBSERVING: Final = ("afterAgentResponse", "afterShellExecution", "afterMCPExecution", "afterFileEdit", "sessionEnd")


def _is_mcp(tool_name: str) -> bool:
    return tool_name.startswith(MCP_PREFIX)


def _own_name(tool_name: str) -> str:
    return tool_name.removeprefix(MCP_PREFIX).partition("__")[2] if _is_mcp(tool_name) else tool_name


def _mcp_name(tool_name: str) -> str:
    return f"MCP:{_own_name(tool_name)}" if _is_mcp(tool_name) else tool_name


class Cursor(Product):
    """The dialect of Cursor."""

    name = "cursor"
    title = f"Cursor {_VERSION}"
    events: ClassVar[Mapping[str, Event]] = {
        "preToolUse": Event(HookEventName.BEFORE_TOOL),
        "beforeShellExecution": Event(HookEventName.BEFORE_TOOL, SHELL.__eq__, tool=SHELL, by_name=False),
        "beforeMCPExecution": Event(HookEventName.BEFORE_TOOL, _is_mcp, tool=_MCP_SAMPLE),
        "beforeReadFile": Event(HookEventName.BEFORE_TOOL, _READ.__eq__, tool=_READ),
        "subagentStart": Event(HookEventName.BEFORE_TOOL, SUBAGENT.__eq__, tool=SUBAGENT, by_name=False),
        "postToolUse": Event(HookEventName.AFTER_TOOL, failed=False),
        "postToolUseFailure": Event(HookEventName.AFTER_TOOL, failed=True),
        "afterShellExecution": Event(HookEventName.AFTER_TOOL, SHELL.__eq__, tool=SHELL, by_name=False),
        "afterMCPExecution": Event(HookEventName.AFTER_TOOL, _is_mcp, failed=False, tool=_MCP_SAMPLE),
        "afterFileEdit": Event(HookEventName.AFTER_TOOL, WRITERS.__contains__, failed=False, tool=WRITE),
        "subagentStop": Event(HookEventName.AFTER_TOOL, SUBAGENT.__eq__, tool=SUBAGENT, by_name=False),
        "beforeSubmitPrompt": Event(HookEventName.BEFORE_AGENT),
        "stop": Event(HookEventName.AFTER_AGENT),
        "afterAgentResponse": Event(HookEventName.AFTER_AGENT),
        "sessionStart": Event(HookEventName.SESSION_START),
        "sessionEnd": Event(HookEventName.SESSION_END),
        "preCompact": Event(HookEventName.PRE_COMPRESS),
    }
    words: ClassVar[Mapping[HookEventName, Mapping[str, str]]] = {
        HookEventName.SESSION_END: {"exit": "completed", "prompt_input_exit": "user_close", "logout": "user_close"},
    }
    has_groups = False
    has_flat_entries = True
    other_events = ("beforeTabFileRead", "afterTabFileEdit", "afterAgentThought", "workspaceOpen")
    default_type = "command"
    elsewhere: ClassVar[Mapping[str, str]] = {"prompt": "prompt"}
    tools = ToolTable(
        {
            SHELL: Tool("Shell", {"dir_path": "working_directory", "directory": "working_directory"}),
            WRITE: Tool("Write", _FILE, ("file_path",)),
            "replace": Tool("Write", _FILE, ("file_path",)),
            _READ: Tool("Read", _FILE, ("file_path",)),
            "search_file_content": Tool("Grep", {"dir_path": "path", "include": "glob"}, ("path",)),
            "grep_search": Tool("Grep", {"dir_path": "path", "include_pattern": "glob"}, ("path",)),
            SUBAGENT: Tool("Task", {"goal_prompt": "prompt", "subagent_name": "subagent_type"}),
        },
        mcp=_mcp_name,
    )

    def files(self, project: Path) -> Sequence[DialectFile]:
        return [
            DialectFile(project / _FOLDER / "hooks.json", Level.PROJECT),
            *user_files(project, _FOLDER, "hooks.json"),
            DialectFile(_SYSTEM, Level.SYSTEM),
        ]

    def plugin(self, folder: Path) -> DialectFile:
        variables = {"CURSOR_PLUGIN_ROOT": str(folder)}
        return DialectFile(folder / "hooks" / "hooks.json", Level.USER, variables, is_plugin=True)

    def gaps(self, document: Document) -> Iterator[tuple[int, str]]:
        version = document.root.at("version")
        if version is None or version.scalar != 1:
            start = document.root.start if version is None else version.start
            yield start, '`version` should be 1: its product does not use the file without `"version": 1`'

    def handler(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | str:
        command = command_of(hook, "command")
        milliseconds = reader.milliseconds(hook.get("timeout"), _DEFAULT_MILLISECONDS)
        if isinstance(hook.get("loop_limit"), int):
            reader.report("`loop_limit` has no effect here: `hooksConfig.maxContinuations` is for all hooks")
        if command is None:
            return NO_COMMAND
        return Handler(command, milliseconds, folder=reader.file_folder)

    def is_closed(self, event: str, hook: Mapping[str, Any]) -> bool:
        return hook.get("failClosed") is True

    def is_for(self, hook: ProductHook, hook_input: Mapping[str, Any]) -> bool:
        if hook.event in ("subagentStart", "subagentStop"):
            return super().is_for(hook, hook_input)
        given = hook_input.get("tool_input")
        command = given.get("command") if isinstance(given, Mapping) else ""
        return self.match(hook.event or "", hook.matcher)(str(command))

    def payload(self, spoken: Spoken) -> Mapping[str, Any]:
        session = spoken.get("session_id")
        return {
            "conversation_id": session,
            "generation_id": session,
            "model": "",
            "model_id": "",
            "model_params": [],
            "hook_event_name": spoken.event,
            "cursor_version": _VERSION,
            "workspace_roots": [spoken.directory],
            "user_email": None,
            "transcript_path": spoken.get("transcript_path") or None,
            "session_id": session,
            **_OWN_FIELDS[spoken.event](spoken),
        }

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        roots = payload.get("workspace_roots") or [""]
        return {
            "CURSOR_PROJECT_DIR": str(roots[0]),
            "CURSOR_VERSION": _VERSION,
            "CURSOR_TRANSCRIPT_PATH": str(payload.get("transcript_path") or ""),
        }

    def answer(self, spoken: Spoken, ended: Completed) -> Answer:
        reply = Reply(spoken.native)
        if (why := unfinished(ended)) is not None:
            return reply.answer(why)
        stdout, stderr = decode_text(ended.stdout).strip(), decode_text(ended.stderr).strip()
        fields = json_object(stdout)
        if ended.exit_code == BLOCK:
            reason = text_field(fields or {}, *_MESSAGES) or stderr or BLOCKED
            return (reply.block(reason) if spoken.event in _CAN_BLOCK else reply.tell(stderr)).answer()
        if ended.exit_code != 0:
            return reply.answer(code_words(ended))
        if fields is not None:
            return self._from_json(spoken, fields)
        if stdout and spoken.event in _PERMISSION:
            return reply.block("The hook printed something that is not JSON, so the call is refused.").answer()
        if stdout or (spoken.hook.is_closed and spoken.event in _CAN_BLOCK):
            return reply.answer("printed no JSON")
        return reply.answer()

    def _from_json(self, spoken: Spoken, fields: Mapping[str, Any]) -> Answer:
        event, reply = spoken.event, Reply(spoken.native)
        if event in _OBSERVING:
            return reply.answer()
        permission, to_user = fields.get("permission"), text_field(fields, *_TO_USER)
        if event in _PERMISSION:
            if permission == "deny":
                return reply.block(text_field(fields, *_MESSAGES) or BLOCKED).tell(to_user).answer()
            if permission == "ask" and event in _ASKS:
                reply.permit("ask", text_field(fields, *_MESSAGES))
            if event == "preToolUse":
                spoken.change(reply, fields.get("updated_input"), whole=True)
        elif event == "beforeSubmitPrompt" and fields.get("continue") is False:
            return reply.block(to_user or BLOCKED).answer()
        elif event == "stop" and (followup := text_field(fields, "followup_message")):
            return reply.block(followup).answer()
        elif event == "subagentStop":
            reply.context(fields.get("followup_message"))
        changed = fields.get("updated_mcp_tool_output")
        if event == "postToolUse" and changed is not None and _is_mcp(spoken.tool_name):
            reply.replace(changed if isinstance(changed, str) else json.dumps(changed, ensure_ascii=False))
        return reply.context(fields.get("additional_context")).tell(to_user).answer()


_MESSAGES: Final = ("agent_message", "agentMessage", "user_message", "userMessage")
"""Why a call is refused. Before version 2, names were in camel case."""
_TO_USER: Final = ("user_message", "userMessage")


def _call(spoken: Spoken) -> dict[str, Any]:
    return {"tool_name": spoken.call.name, "tool_input": spoken.call.arguments}


def _call_id(spoken: Spoken) -> dict[str, Any]:
    return {"tool_use_id": spoken.get("tool_use_id"), "cwd": spoken.directory}


def _shell(spoken: Spoken) -> dict[str, Any]:
    folder = spoken.call.arguments.get("working_directory") or spoken.directory
    return {"command": spoken.call.arguments.get("command", ""), "cwd": folder, "sandbox": False}


def _mcp(spoken: Spoken) -> dict[str, Any]:
    return {"tool_name": _own_name(spoken.tool_name), "tool_input": json.dumps(spoken.call.arguments)}


def _read(spoken: Spoken) -> dict[str, Any]:
    path = str(spoken.call.arguments.get("file_path", ""))
    return {"file_path": path, "content": _content(path), "attachments": []}


def _content(path: str) -> str:
    """The beginning of a file; empty for anything else. A named pipe must not hold the agent."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
            is_file = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            return decode_text(opened.read(_MAX_CONTENT)) if is_file else ""
    except (OSError, ValueError):
        return ""


def _edits(spoken: Spoken) -> dict[str, Any]:
    given = spoken.call.arguments
    new = given.get("new_string", given.get("content", ""))
    edits = [{"old_string": given.get("old_string", ""), "new_string": new}]
    return {"file_path": given.get("file_path", ""), "edits": edits}


def _failure(spoken: Spoken) -> dict[str, Any]:
    failure = {"error_message": spoken.error, "failure_type": "error", "duration": spoken.milliseconds}
    return {**_call(spoken), **_call_id(spoken), **failure, "is_interrupt": False}


def _output(spoken: Spoken) -> dict[str, Any]:
    output = {"tool_output": json.dumps(spoken.result), "duration": spoken.milliseconds}
    return {**_call(spoken), **output, **_call_id(spoken)}


def _after_shell(spoken: Spoken) -> dict[str, Any]:
    command = spoken.call.arguments.get("command", "")
    output = spoken.error or spoken.result
    return {"command": command, "output": output, "duration": spoken.milliseconds, "sandbox": False}


def _subagent(spoken: Spoken) -> dict[str, Any]:
    return {"subagent_type": spoken.agent_type, "task": spoken.call.arguments.get("prompt", "")}


_OWN_FIELDS: Final[Mapping[str, Callable[[Spoken], dict[str, Any]]]] = {
    "preToolUse": lambda spoken: {**_call(spoken), **_call_id(spoken)},
    "beforeShellExecution": _shell,
    "beforeMCPExecution": _mcp,
    "beforeReadFile": _read,
    "subagentStart": _subagent,
    "postToolUse": _output,
    "postToolUseFailure": _failure,
    "afterShellExecution": _after_shell,
    "afterMCPExecution": lambda spoken: {
        **_mcp(spoken),
        "result_json": json.dumps(spoken.result),
        "duration": spoken.milliseconds,
    },
    "afterFileEdit": _edits,
    "subagentStop": lambda spoken: {
        **_subagent(spoken),
        "status": "error" if spoken.error else "completed",
        "summary": spoken.result,
        "duration_ms": spoken.milliseconds,
        "loop_count": 0,
    },
    "beforeSubmitPrompt": lambda spoken: {"prompt": spoken.get("prompt"), "attachments": []},
    "stop": lambda spoken: {"status": "completed", "loop_count": int(spoken.get("stop_hook_active") is True)},
    "afterAgentResponse": lambda spoken: {"text": spoken.get("prompt_response")},
    "sessionStart": lambda spoken: {"is_background_agent": False, "composer_mode": "agent"},
    "sessionEnd": lambda spoken: {"reason": spoken.word, "duration_ms": 0, "is_background_agent": False},
    "preCompact": lambda spoken: {"trigger": spoken.word},
}
"""What hooks of an event get besides the fields that all get."""

DIALECT: Final = Cursor()
