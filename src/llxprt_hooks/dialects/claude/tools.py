"""Claude Code's tools and ours, both ways: names, arguments and results.

A tool that writes files and has no counterpart is shown as Edit or Write, with an absolute ``file_path`` and once for
each file, so that no guard for files is walked around. Any other tool keeps its own name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from llxprt_hooks.dialects.patches import PatchedFile, patched_files

Fields = Mapping[str, Any]


class Tool(NamedTuple):
    """How one of our tools is shown."""

    name: str
    arguments: Mapping[str, str] = {}
    """Our arguments that have another name there; the first of ours is the one that a changed argument becomes."""
    paths: tuple[str, ...] = ()
    """Arguments, under their name there, that are absolute paths."""
    show: Callable[[Fields], Fields] | None = None
    """Arguments that are there under no name of ours, from ours."""
    is_view: bool = False
    """Whether it is shown as another tool, so that other changes than of ``arguments`` cannot be applied."""
    other_names: tuple[str, ...] = ()
    """Names that matchers may also use."""


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
    patch = next(
        (text for key in ("patch", "patch_content", "input", "diff") if isinstance(text := given.get(key), str)), ""
    )
    return {"old_string": "", "new_string": patch, "replace_all": False}


def _fetched(given: Fields) -> Fields:
    found = _ADDRESS.search(str(given.get("prompt", "")))
    return {"url": found[0]} if found and "url" not in given else {}


def _timed(given: Fields) -> Fields:
    seconds = given.get("timeout_seconds")
    return {"timeout": round(seconds * 1000)} if isinstance(seconds, int | float) else {}


TOOLS: Final[Mapping[str, Tool]] = {
    "run_shell_command": Tool("Bash", {"is_background": "run_in_background"}, show=_timed),
    "write_file": Tool("Write", _FILE, ("file_path",)),
    "replace": Tool("Edit", _FILE, ("file_path",), show=_edit, other_names=("MultiEdit",)),
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

OURS: Final[Mapping[str, str]] = {
    **{
        name: ours
        for ours, tool in reversed(list(TOOLS.items()))
        if not tool.is_view
        for name in (*tool.other_names, tool.name)
    }
}
"""Claude Code's tools by name, and the first of ours for each."""


class UnusableChangeError(ValueError):
    """A hook changed an argument that the tool does not have."""


def shown_names(tool_name: str) -> tuple[str, ...]:
    """The names under which matchers find one of our tools."""
    tool = TOOLS.get(tool_name)
    return (tool_name,) if tool is None else (tool.name, *tool.other_names)


class Shown(NamedTuple):
    """A call as the script is told of it."""

    name: str
    arguments: dict[str, Any]
    is_part: bool = False
    """Whether the call has other parts, so that this one cannot be changed."""


def shown_call(tool_name: str, given: object, directory: str) -> Shown:
    """A call under its name there."""
    return Shown(shown_names(tool_name)[0], _shown_input(tool_name, given, directory))


def shown_parts(tool_name: str, given: object, directory: str) -> list[list[Shown]]:
    """The calls that a patch is there, one for each file: a new file could be written, or edited. Empty for others."""
    if tool_name != "apply_patch" or not isinstance(given, Mapping):
        return []
    whole = shown_call(tool_name, given, directory)
    files: dict[str, PatchedFile] = {}
    for each in patched_files(given):
        files.setdefault(_absolute(each.path, directory), each)
    is_part, parts = len(files) > 1, []
    for path, file in files.items():
        text = {"new_string": file.text} if is_part else {}
        edit = Shown(whole.name, {**whole.arguments, "file_path": path, **text}, is_part)
        write = Shown("Write", {"file_path": path, "content": file.content}, is_part)
        parts.append([write, edit] if file.is_new else [edit])
    return parts or [[whole]]


def _shown_input(tool_name: str, given: object, directory: str) -> dict[str, Any]:
    """Our arguments under their names there, with absolute paths."""
    fields = given if isinstance(given, Mapping) else {}
    tool = TOOLS.get(tool_name)
    if tool is None:
        return dict(fields)
    shown: dict[str, Any] = {}
    for name, value in {**fields, **(tool.show(fields) if tool.show else {})}.items():
        theirs = tool.arguments.get(name, name)
        shown[theirs] = _absolute(value, directory) if theirs in tool.paths else value
    return {**({"file_path": ""} if "file_path" in tool.paths and "file_path" not in shown else {}), **shown}


def own_input(tool_name: str, given: object, updated: Fields, shown: Shown) -> dict[str, Any]:
    """The arguments that a hook left, under our names. Those that it did not change stay as they were written.

    Raises ``UnusableChangeError`` if a change cannot be applied to the tool that runs.
    """
    fields = given if isinstance(given, Mapping) else {}
    tool = TOOLS.get(tool_name)
    if tool is None:
        return dict(updated)
    own: dict[str, Any] = dict(fields) if tool.is_view else {}
    made_up = {} if tool.show is None else tool.show(fields)
    for theirs, value in updated.items():
        ours = next((name for name in fields if tool.arguments.get(name, name) == theirs), None)
        if theirs in shown.arguments and shown.arguments[theirs] == value:
            if ours is not None:
                own[ours] = fields[ours]
            continue
        if shown.is_part:
            raise UnusableChangeError(f"`{theirs}` cannot be changed for one file of a patch over several")
        if ours is None:
            ours = next((name for name, other in tool.arguments.items() if other == theirs), theirs)
            if tool.is_view or theirs in made_up:
                ours, value = _special(tool_name, theirs, value)
        own[ours] = value
    return own


def _special(tool_name: str, theirs: str, value: Any) -> tuple[str, Any]:
    """A changed argument that was made up from others."""
    if tool_name == "run_shell_command" and theirs == "timeout" and isinstance(value, int | float):
        return "timeout_seconds", value / 1000
    if theirs == "replace_all" and tool_name == "replace":
        return "allow_multiple", value
    raise UnusableChangeError(f"`{theirs}` cannot be changed for the tool {tool_name}")


def own_call(theirs: str, arguments: Fields | None) -> tuple[str, Fields | None]:
    """A call in Claude Code's names, in ours."""
    ours = OURS.get(theirs)
    if ours is None or arguments is None:
        return ours or theirs, arguments
    back = {other: name for name, other in reversed(list(TOOLS[ours].arguments.items()))}
    given = {back.get(name, name): value for name, value in arguments.items() if name != "replace_all"}
    if arguments.get("replace_all") is True:
        given["allow_multiple"] = True
    return ours, given


def _absolute(value: Any, directory: str) -> Any:
    return os.path.normpath(os.path.join(directory, value)) if isinstance(value, str) and value else value  # noqa: PTH118


# Results.

_REPORT: Final = re.compile(r"(?:stdout:\n(?P<stdout>.*?)\n)?(?:stderr:\n(?P<stderr>.*?)\n)?\[[^\n]*\]\Z", re.DOTALL)
"""How our own agent's shell tool reports a command to the model."""


def text_of(response: Fields) -> str:
    """The text of a result, as the model gets it."""
    content = response.get("llmContent")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part) for part in content)
    return "" if content is None else str(content)


def failure_of(tool_name: str, response: Fields) -> str | None:
    """Why a call failed, as the product words it; None if it did not."""
    metadata = response.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, Mapping) else None
    if "Bash" in shown_names(tool_name) and isinstance(code, int) and code != 0:
        streams = _streams(text_of(response))
        return "\n".join([f"Exit code {code}", *filter(None, (streams["stdout"], streams["stderr"]))])
    error = response.get("error")
    if error is None:
        return None
    message = error.get("message") if isinstance(error, Mapping) else error
    return str(message or text_of(response))


def shown_response(tool_name: str, shown: Shown, response: Fields, duration_ms: int) -> Any:
    """The result of a call in the product's shape; of a tool of an MCP server, its blocks of text."""
    text = text_of(response)
    shape = _SHAPES.get(shown.name)
    if shape is not None:
        return shape(shown.arguments, text, duration_ms)
    return [{"type": "text", "text": text}] if tool_name.startswith("mcp__") else {"result": text}


def _streams(text: str) -> dict[str, str]:
    report = _REPORT.fullmatch(text)
    found = {"stdout": text, "stderr": ""} if report is None else report.groupdict()
    return {name: value or "" for name, value in found.items()}


def _bash(arguments: Fields, text: str, duration_ms: int) -> Any:
    return {**_streams(text), "interrupted": False, "isImage": False, "noOutputExpected": False}


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


def _names(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _glob(arguments: Fields, text: str, duration_ms: int) -> Any:
    names = _names(text)
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
