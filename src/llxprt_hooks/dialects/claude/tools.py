"""Claude Code's tools and ours, both ways: names, arguments and results.

A tool that writes files and has no counterpart is shown as Edit or Write, with an absolute ``file_path`` and once for
each file, so that no guard for files is walked around. Any other tool keeps its own name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from llxprt_hooks.dialects.patches import PatchedFile, patch_key, patched_files
from llxprt_hooks.dialects.tools import EDIT, SHELL, Fields, Shown, Tool, ToolTable, absolute, streams_of, text_of

_FILE: Final = {"file_path": "file_path", "absolute_path": "file_path"}
_FOLDER: Final = {"dir_path": "path", "path": "path"}
_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>)]+")


def _edit(given: Fields) -> Fields:
    """The flag of Edit, from the two ways in which ours say that every occurrence is meant."""
    expected = given.get("expected_replacements")
    several = isinstance(expected, int | float) and expected > 1
    return {"replace_all": several or given.get("allow_multiple") is True}


def _inserted(given: Fields) -> Fields:
    return {"old_string": "", "new_string": str(given.get("content", "")), "replace_all": False}


def _patched(given: Fields) -> Fields:
    key = patch_key(given)
    return {"old_string": "", "new_string": given[key] if key else "", "replace_all": False}


def _fetched(given: Fields) -> Fields:
    found = _ADDRESS.search(str(given.get("prompt", "")))
    return {"url": found[0]} if found and "url" not in given else {}


def _timed(given: Fields) -> Fields:
    seconds = given.get("timeout_seconds")
    return {"timeout": round(seconds * 1000)} if isinstance(seconds, int | float) else {}


def _in_seconds(milliseconds: Any) -> tuple[str, Any]:
    return "timeout_seconds", milliseconds / 1000


def _of_all(several: Any) -> tuple[str, Any]:
    return "allow_multiple", several


_TOOLS: Final[Mapping[str, Tool]] = {
    SHELL: Tool("Bash", {"is_background": "run_in_background"}, show=_timed, back={"timeout": _in_seconds}),
    "write_file": Tool("Write", _FILE, ("file_path",)),
    EDIT: Tool("Edit", _FILE, ("file_path",), show=_edit, back={"replace_all": _of_all}, other_names=("MultiEdit",)),
    "read_file": Tool("Read", _FILE, ("file_path",)),
    "glob": Tool("Glob", _FOLDER, ("path",)),
    "search_file_content": Tool("Grep", {**_FOLDER, "include": "glob"}, ("path",)),
    "grep_search": Tool("Grep", {**_FOLDER, "include_pattern": "glob", "include": "glob"}, ("path",)),
    "list_directory": Tool("LS", _FOLDER, ("path",)),
    "web_fetch": Tool("WebFetch", show=_fetched),
    "direct_web_fetch": Tool("WebFetch", show=lambda given: {} if "prompt" in given else {"prompt": ""}),
    "google_web_search": Tool("WebSearch"),
    "exa_web_search": Tool("WebSearch"),
    "task": Tool("Agent", {"goal_prompt": "prompt", "subagent_name": "subagent_type"}, other_names=("Task",)),
    "todo_write": Tool("TodoWrite"),
    "write_todos": Tool("TodoWrite"),
    "ask_user": Tool("AskUserQuestion"),
    "exit_plan_mode": Tool("ExitPlanMode"),
    "activate_skill": Tool("Skill"),
    "insert_at_line": Tool("Edit", {**_FILE, "content": "new_string"}, ("file_path",), show=_inserted, is_view=True),
    "delete_line_range": Tool("Edit", _FILE, ("file_path",), show=_inserted, is_view=True),
    "ast_edit": Tool("Edit", _FILE, ("file_path",), show=_edit, is_view=True),
    "apply_patch": Tool(
        "Edit",
        {**_FILE, "patch": "new_string", "patch_content": "new_string"},
        ("file_path",),
        show=_patched,
        is_view=True,
        other_names=("Write",),
    ),
}
"""Our tools by name."""


class ClaudeTools(ToolTable):
    """The product's tools. A patch is a call for each of its files: a new one could be written, or edited."""

    def calls(self, tool_name: str, given: object, directory: str) -> list[list[Shown]]:
        whole = self.shown(tool_name, given, directory)
        if tool_name != "apply_patch" or not isinstance(given, Mapping):
            return [[whole]]
        files: dict[str, PatchedFile] = {}
        for each in patched_files(given):
            files.setdefault(absolute(each.path, directory), each)
        is_part, parts = len(files) > 1, []
        for path, file in files.items():
            text = {"new_string": file.text} if is_part else {}
            edit = Shown(whole.name, {**whole.arguments, "file_path": path, **text}, is_part)
            write = Shown("Write", {"file_path": path, "content": file.content}, is_part)
            parts.append([write, edit] if file.is_new else [edit])
        return parts or [[whole]]


TOOLS: Final = ClaudeTools(_TOOLS, viewed=())

# Results.


def shown_response(tool_name: str, shown: Shown, response: Fields, duration_ms: int) -> Any:
    """The result of a call in the product's shape; of a tool of an MCP server, its blocks of text."""
    text = text_of(response)
    shape = _SHAPES.get(shown.name)
    if shape is not None:
        return shape(shown.arguments, text, duration_ms)
    return [{"type": "text", "text": text}] if tool_name.startswith("mcp__") else {"result": text}


def _bash(arguments: Fields, text: str, duration_ms: int) -> Any:
    return {**streams_of(text), "interrupted": False, "isImage": False, "noOutputExpected": False}


def _write(arguments: Fields, text: str, duration_ms: int) -> Any:
    written = {"type": "create", "filePath": arguments.get("file_path", ""), "content": arguments.get("content", "")}
    return {**written, "structuredPatch": [], "originalFile": None, "userModified": False}


def _edited(arguments: Fields, text: str, duration_ms: int) -> Any:
    old, new = str(arguments.get("old_string", "")), str(arguments.get("new_string", ""))
    lines = [*(f"-{line}" for line in old.splitlines()), *(f"+{line}" for line in new.splitlines())]
    hunk = {"oldStart": 1, "oldLines": len(old.splitlines()), "newStart": 1, "newLines": len(new.splitlines())}
    return {
        "filePath": arguments.get("file_path", ""),
        "oldString": old,
        "newString": new,
        "originalFile": None,
        "structuredPatch": [{**hunk, "lines": lines}],
        "userModified": False,
        "replaceAll": arguments.get("replace_all") is True,
    }


def _read(arguments: Fields, text: str, duration_ms: int) -> Any:
    offset, count = arguments.get("offset"), len(text.splitlines())
    start = offset if isinstance(offset, int) and offset > 0 else 1
    lines = {"numLines": count, "startLine": start, "totalLines": count}
    return {"type": "text", "file": {"filePath": arguments.get("file_path", ""), "content": text, **lines}}


def _glob(arguments: Fields, text: str, duration_ms: int) -> Any:
    names = [line.strip() for line in text.splitlines() if line.strip()]
    return {"filenames": names, "durationMs": duration_ms, "numFiles": len(names), "truncated": False}


def _grep(arguments: Fields, text: str, duration_ms: int) -> Any:
    return {"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": len(text.splitlines())}


def _web_fetch(arguments: Fields, text: str, duration_ms: int) -> Any:
    answer = {"bytes": len(text.encode(errors="replace")), "code": 200, "codeText": "OK", "result": text}
    return {**answer, "durationMs": duration_ms, "url": arguments.get("url", "")}


def _web_search(arguments: Fields, text: str, duration_ms: int) -> Any:
    return {"query": arguments.get("query", ""), "results": [text], "durationSeconds": duration_ms / 1000}


def _agent(arguments: Fields, text: str, duration_ms: int) -> Any:
    return {"status": "completed", "content": [{"type": "text", "text": text}], "totalDurationMs": duration_ms}


_SHAPES: Final[Mapping[str, Callable[[Fields, str, int], Any]]] = {
    "Bash": _bash,
    "Write": _write,
    "Edit": _edited,
    "Read": _read,
    "Glob": _glob,
    "Grep": _grep,
    "WebFetch": _web_fetch,
    "WebSearch": _web_search,
    "Agent": _agent,
}
