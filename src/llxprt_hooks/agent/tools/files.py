"""Tools that read, write, edit and list files."""

from __future__ import annotations

import asyncio
import codecs
from pathlib import Path
from typing import TYPE_CHECKING

from llxprt_hooks.agent.tools.messages import ToolFailure, counted, escape_name, lines_of, size
from llxprt_hooks.agent.tools.tool import ToolKind, declare
from llxprt_hooks.core.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace

READ_LIMIT = 2 * 1024 * 1024
"""Maximum bytes of a file that are shown to the model."""

EDIT_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a file in which text can be replaced."""

LIST_LIMIT = 2000
"""Maximum entries of a folder that are shown to the model."""

_FILE_PATH = "Path of the file, relative to the working directory or absolute, and inside it."


@declare(
    ToolKind.READ,
    f"Reads a UTF-8 text file. Returns only the first {size(READ_LIMIT)} of a larger file.",
    file_path=_FILE_PATH,
)
async def read_file(workspace: Workspace, file_path: str) -> ToolResult:
    place = workspace.locate(file_path)
    data, total = await asyncio.to_thread(workspace.read, place, READ_LIMIT)
    name = workspace.name(place)
    text = _decoded(data, name, whole=total <= len(data))
    shown = counted(lines_of(text), "line")
    if total > len(data):
        shown = f"the first {size(READ_LIMIT)} of {size(total)}"
        text += f"\n[Truncated: these are {shown}.]"
    return ToolResult(llm_content=text, return_display=f"read {shown} of {name}")


@declare(
    ToolKind.EDIT,
    "Creates or overwrites a text file. Creates missing folders.",
    writes="file_path",
    file_path=_FILE_PATH,
    content="The complete text of the file, including line endings.",
)
async def write_file(workspace: Workspace, file_path: str, content: str) -> ToolResult:
    return await asyncio.to_thread(_write, workspace, workspace.locate(file_path), content)


def _write(workspace: Workspace, place: Path, content: str, *, overwrite: bool = True) -> ToolResult:
    with workspace.editing:
        is_new = workspace.write(place, content.encode(), overwrite=overwrite)
    name, lines = workspace.name(place), counted(lines_of(content), "line")
    return ToolResult(
        llm_content=f"{'Created' if is_new else 'Overwrote'} `{name}` with {lines}.",
        return_display=f"wrote {lines} to {name}" + (" (new)" if is_new else ""),
    )


@declare(
    ToolKind.EDIT,
    "Replaces text in a file. The old text must occur exactly once, so include enough of the surrounding text. "
    "With an empty old text, creates a new file.",
    writes="file_path",
    file_path=_FILE_PATH,
    old_string="The text to replace, exactly as in the file, including whitespace and line endings.",
    new_string="The replacement text.",
)
async def replace(workspace: Workspace, file_path: str, old_string: str, new_string: str) -> ToolResult:
    place = workspace.locate(file_path)
    if old_string == new_string:
        raise ToolFailure("`old_string` and `new_string` are the same, so there is nothing to change.")
    if not old_string:
        return await asyncio.to_thread(_create, workspace, place, new_string)
    return await asyncio.to_thread(_change, workspace, place, old_string, new_string)


def _create(workspace: Workspace, place: Path, content: str) -> ToolResult:
    try:
        return _write(workspace, place, content, overwrite=False)
    except ToolFailure as failure:
        raise ToolFailure(f"{failure} Use an empty `old_string` only to create a new file.") from failure


def _change(workspace: Workspace, place: Path, old: str, new: str) -> ToolResult:
    name = workspace.name(place)
    with workspace.editing:
        data, total = workspace.read(place, EDIT_LIMIT)
        if total > len(data):
            raise ToolFailure(f"`{name}` has {size(total)}, but text can be replaced only in up to {size(EDIT_LIMIT)}.")
        text = _decoded(data, name, whole=True)
        at = _only_occurrence(text, old, name)
        workspace.write(place, (text[:at] + new + text[at + len(old) :]).encode())
    line = text.count("\n", 0, at) + 1
    return ToolResult(
        llm_content=f"Replaced the one occurrence of `old_string` in `{name}`, at line {line}.",
        return_display=f"replaced {counted(lines_of(old), 'line')} with {lines_of(new):,} at line {line} of {name}",
    )


def _only_occurrence(text: str, old: str, name: str) -> int:
    first = text.find(old)
    if first < 0:
        hint = " The file's lines end with CRLF." if "\r\n" in text and "\n" in old and "\r\n" not in old else ""
        raise ToolFailure(f"`old_string` occurs 0 times in `{name}`; it must occur exactly once.{hint}")
    times, at = 1, text.find(old, first + 1)
    while at >= 0:
        times, at = times + 1, text.find(old, at + 1)
    if times > 1:
        raise ToolFailure(
            f"`old_string` occurs {times:,} times in `{name}`; it must occur exactly once. "
            "Include more of the surrounding text to make it unique."
        )
    return first


@declare(
    ToolKind.READ,
    "Lists a folder, including hidden files: folders first, with a trailing slash, then files.",
    dir_path="Path of the folder, relative to the working directory or absolute, and inside it.",
)
async def list_directory(workspace: Workspace, dir_path: str) -> ToolResult:
    place = workspace.locate(dir_path)
    entries = await asyncio.to_thread(workspace.entries, place)
    entries.sort(key=lambda entry: not entry.is_folder)
    lines = [escape_name(entry.name) + ("/" if entry.is_folder else "") for entry in entries[:LIST_LIMIT]]
    if len(entries) > LIST_LIMIT:
        lines.append(f"[{len(entries) - LIST_LIMIT:,} more entries not shown.]")
    name = workspace.name(place)
    return ToolResult(
        llm_content="\n".join(lines) or f"The folder `{name}` is empty.",
        return_display=f"listed {counted(len(entries), 'entry', 'entries')} of {name}",
    )


def _decoded(data: bytes, name: str, *, whole: bool) -> str:
    """Decode a file. If only its beginning was read, drop an incomplete last character."""
    if b"\0" in data:
        raise ToolFailure(f"`{name}` is a binary file, not text.")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError as error:
        raise ToolFailure(f"`{name}` is not UTF-8 text: {error.reason} at byte {error.start:,}.") from error
