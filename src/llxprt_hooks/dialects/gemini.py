"""The hooks of Gemini CLI, as version 0.61 runs them. Its page describes exit codes otherwise.

Its protocol is the one that ours comes from, so events and payloads are the same. JSON counts whatever the exit code
is, on stdout or, if that is empty, on stderr. Without JSON, every exit code above 1 blocks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from llxprt_hooks._support.json_codec import decode_text, read_json_text
from llxprt_hooks.dialects.product import (
    NO_COMMAND,
    Event,
    Handler,
    Product,
    ProductHook,
    command_of,
    strings,
    user_files,
    written_hooks,
)
from llxprt_hooks.dialects.replies import Reply, code_words, unfinished
from llxprt_hooks.dialects.tools import Tool, ToolTable
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import DialectFile, ReadFile
from llxprt_hooks.settings.hook_entries import SWITCHES
from llxprt_hooks.settings.levels import Level
from llxprt_hooks.settings.matcher import MCP_PREFIX, InvalidMatcher, Matches, compile_matcher

if TYPE_CHECKING:
    from llxprt_hooks.dialects.product import Reader, Spoken
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.foreign import Answer

_FOLDER: Final = ".gemini"
_SYSTEM: Final = Path("/etc/gemini-cli/settings.json")
_SYSTEM_VARIABLE: Final = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
_DEFAULT_MILLISECONDS: Final = 60_000
_FILE: Final = {"file_path": "file_path", "absolute_path": "file_path"}
_FIELDS: Final = ("decision", "reason", "continue", "stopReason", "suppressOutput")
_BASE: Final = ("session_id", "transcript_path", "cwd", "hook_event_name", "timestamp")
_HIDDEN: Final = ("tool_use_id", "duration_ms")
"""What our hooks get and its own do not."""
_RESPONSE: Final = ("llmContent", "returnDisplay", "error")
_NATIVE_ONLY: Final = ("tool_response",)
"""Fields of ours that mean nothing there."""


def _mcp_name(tool_name: str) -> str:
    """The name of a tool of an MCP server there: one underscore instead of two."""
    if not tool_name.startswith(MCP_PREFIX):
        return tool_name
    return "_".join(("mcp", *tool_name.removeprefix(MCP_PREFIX).split("__", 1)))


def _lines(given: Mapping[str, Any]) -> Mapping[str, Any]:
    offset, limit = given.get("offset"), given.get("limit")
    start = offset if isinstance(offset, int) else 0
    shown = {"start_line": start + 1} if isinstance(offset, int) else {}
    return {**shown, **({"end_line": start + limit} if isinstance(limit, int) else {})}


class Gemini(Product):
    """The dialect of Gemini CLI."""

    name = "gemini"
    title = "Gemini CLI 0.61"
    events: ClassVar[Mapping[str, Event]] = {event.value: Event(event) for event in HookEventName}
    absent = SWITCHES
    has_sequences = True
    tools = ToolTable(
        {
            "run_shell_command": Tool("run_shell_command"),
            "write_file": Tool("write_file", _FILE, ("file_path",)),
            "replace": Tool("replace", _FILE, ("file_path",)),
            "read_file": Tool("read_file", _FILE, ("file_path",), show=_lines),
            "list_directory": Tool("list_directory", {"path": "dir_path"}, ("dir_path",)),
            "glob": Tool("glob", {"path": "dir_path"}, ("dir_path",)),
            "grep_search": Tool("grep_search", {"path": "dir_path"}, ("dir_path",)),
            "search_file_content": Tool(
                "grep_search", {"path": "dir_path", "include": "include_pattern"}, ("dir_path",)
            ),
            "direct_web_fetch": Tool("web_fetch", {"url": "prompt"}),
            "exa_web_search": Tool("google_web_search"),
            "todo_write": Tool("write_todos"),
        },
        mcp=_mcp_name,
    )

    def files(self, project: Path) -> Sequence[DialectFile]:
        given = os.environ.get(_SYSTEM_VARIABLE)
        return [
            DialectFile(project / _FOLDER / "settings.json", Level.PROJECT),
            *user_files(project, _FOLDER, "settings.json"),
            DialectFile(Path(given) if given and Path(given).is_absolute() else _SYSTEM, Level.SYSTEM),
        ]

    def plugin(self, folder: Path) -> DialectFile:
        variables = {"extensionPath": str(folder)}  # commands have it as `${extensionPath}`
        return DialectFile(folder / "hooks" / "hooks.json", Level.USER, variables, is_plugin=True)

    def read_file(self, document: Document) -> ReadFile:
        read = document.root.at
        enabled = next((node for key in ("hooksConfig", "hooks") if (node := read(key, "enabled"))), None)
        disabled = next((node for key in ("hooksConfig", "hooks") if (node := read(key, "disabled"))), None)
        names = [node.scalar for node in (disabled.items if disabled else ()) if isinstance(node.scalar, str)]
        off = not enabled.scalar if enabled is not None and isinstance(enabled.scalar, bool) else None
        return ReadFile(written_hooks(document), off=off, disabled=names)

    def handler(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | str:
        command, name = command_of(hook, "command"), hook.get("name")
        milliseconds = reader.milliseconds(hook.get("timeout"), _DEFAULT_MILLISECONDS, unit=1)
        variables = strings(hook.get("env"))
        own_name = name if isinstance(name, str) and name else None
        return NO_COMMAND if command is None else Handler(command, milliseconds, own_name, variables=variables)

    def match(self, event: str, matcher: str | None) -> Matches:
        test = compile_matcher(HookEventName(event), matcher)
        return InvalidMatcher(matcher or "") if isinstance(test, InvalidMatcher) else test

    def key(self, hook: ProductHook) -> str:
        return f"{self.name}:{hook.event}"

    def payload(self, spoken: Spoken) -> Mapping[str, Any]:
        given = {name: spoken.get(name) for name in _BASE}
        given |= {name: value for name, value in spoken.hook_input.items() if name not in _HIDDEN}
        if not spoken.native.spec.is_about_tool:
            return given
        given |= {"tool_name": spoken.call.name, "tool_input": spoken.call.arguments}
        if spoken.native is HookEventName.AFTER_TOOL:
            response = spoken.response
            given["tool_response"] = {name: response[name] for name in _RESPONSE if name in response}
        if not spoken.tool_name.startswith(MCP_PREFIX):
            return given
        server, _, tool = spoken.tool_name.removeprefix(MCP_PREFIX).partition("__")
        return {**given, "mcp_context": {"server_name": server, "tool_name": tool}}

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        return {"GEMINI_SESSION_ID": str(payload.get("session_id", "")), "GEMINI_CWD": str(payload.get("cwd", ""))}

    def answer(self, spoken: Spoken, ended: Completed) -> Answer:
        reply = Reply(spoken.native)
        if (why := unfinished(ended)) is not None:
            return reply.answer(why)
        text = decode_text(ended.stdout).strip() or decode_text(ended.stderr).strip()
        if not text:
            return reply.answer(None if ended.exit_code == 0 else code_words(ended))
        try:
            value = read_json_text(text)
            value = read_json_text(value) if isinstance(value, str) else value
        except ValueError:
            return self._plain(reply, text, ended)
        return self._from_json(spoken, value) if isinstance(value, dict) else reply.answer()

    def _plain(self, reply: Reply, text: str, ended: Completed) -> Answer:
        if ended.exit_code == 0:
            return reply.tell(text).answer()
        if ended.exit_code == 1 or ended.exit_code is None:
            return reply.tell(f"Warning: {text}").answer()
        return reply.block(text).answer()

    def _from_json(self, spoken: Spoken, value: Mapping[str, Any]) -> Answer:
        reply = Reply(spoken.native).tell(value.get("systemMessage"))
        given = value.get("hookSpecificOutput")
        specific = (
            {name: each for name, each in given.items() if name not in _NATIVE_ONLY} if isinstance(given, dict) else {}
        )
        if spoken.native is HookEventName.BEFORE_TOOL:
            spoken.change(reply, specific.pop("tool_input", None), whole=False)
        if "tailToolCallRequest" in specific:
            reply.tell("A hook asked for another tool call (`tailToolCallRequest`), which is not made here.")
        answer = reply.answer()
        own = answer.fields or {}
        fields = {**{name: value[name] for name in _FIELDS if name in value}, **own}
        if specific := {**specific, **own.get("hookSpecificOutput", {})}:
            fields["hookSpecificOutput"] = specific
        return answer._replace(fields=fields or None)


DIALECT: Final = Gemini()
