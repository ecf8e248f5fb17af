"""Reading, writing, changing and listing files."""

from __future__ import annotations

import asyncio
import codecs
from pathlib import Path
from typing import TYPE_CHECKING

from llxprt_hooks.agent.tools.declare import Parameter, declare
from llxprt_hooks.agent.tools.failure import ToolFailure
from llxprt_hooks.agent.tools.tool import ToolKind
from llxprt_hooks.agent.tools.wording import counted, lines_of, one_line, size
from llxprt_hooks.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Entry, Workspace

READ_LIMIT = 2 * 1024 * 1024
"""Bytes of a file that are shown to the model."""

EDIT_LIMIT = 64 * 1024 * 1024
"""Bytes of a file in which text is replaced."""

LIST_LIMIT = 2000
"""Entries of a folder that are shown to the model."""

_FILE_PATH = "Path of the file: from the working directory, or absolute and inside it."


async def _read_file(workspace: Workspace, file_path: str) -> ToolResult:
    place = workspace.locate(file_path)
    data, in_all = await asyncio.to_thread(workspace.read, place, READ_LIMIT)
    name = workspace.name(place)
    text = _decoded(data, name, whole=in_all <= len(data))
    content = text
    if in_all > len(data):
        content += f"\n[Truncated: these are the first {size(READ_LIMIT)} of {size(in_all)}.]"
    shown = f"the first {size(READ_LIMIT)} of {size(in_all)}" if in_all > len(data) else counted(lines_of(text), "line")
    return ToolResult(llm_content=content, return_display=f"read {shown} of {name}")


async def _write_file(workspace: Workspace, file_path: str, content: str) -> ToolResult:
    place = workspace.locate(file_path)
    data = _encoded(content, "content")

    def write() -> bool:
        with workspace.editing:
            return workspace.write(place, data)

    is_new = await asyncio.to_thread(write)
    name, lines = workspace.name(place), counted(lines_of(content), "line")
    return ToolResult(
        llm_content=f"{'Created' if is_new else 'Overwrote'} `{name}` with {lines}.",
        return_display=f"wrote {lines} to {name}" + (" (new)" if is_new else ""),
    )


async def _replace(workspace: Workspace, file_path: str, old_string: str, new_string: str) -> ToolResult:
    place = workspace.locate(file_path)
    if old_string == new_string:
        raise ToolFailure("`old_string` and `new_string` are the same: there is nothing to change.")
    if not old_string:
        return await asyncio.to_thread(_create, workspace, place, new_string)
    return await asyncio.to_thread(_change, workspace, place, old_string, new_string)


def _create(workspace: Workspace, place: Path, content: str) -> ToolResult:
    name, lines = workspace.name(place), counted(lines_of(content), "line")
    with workspace.editing:
        try:
            workspace.write(place, _encoded(content, "new_string"), overwrite=False)
        except ToolFailure as failure:
            raise ToolFailure(f"{failure} An empty `old_string` is for creating a new file.") from failure
    return ToolResult(llm_content=f"Created `{name}` with {lines}.", return_display=f"wrote {lines} to {name} (new)")


def _change(workspace: Workspace, place: Path, old: str, new: str) -> ToolResult:
    name = workspace.name(place)
    with workspace.editing:
        data, in_all = workspace.read(place, EDIT_LIMIT)
        if in_all > len(data):
            raise ToolFailure(f"`{name}` has {size(in_all)}; text can be replaced in up to {size(EDIT_LIMIT)}.")
        text = _decoded(data, name, whole=True)
        at = _only_place(text, old, name)
        workspace.write(place, _encoded(text[:at] + new + text[at + len(old) :], "new_string"))
    line = text.count("\n", 0, at) + 1
    return ToolResult(
        llm_content=f"Replaced the one occurrence of `old_string` in `{name}`, at line {line}.",
        return_display=f"replaced {counted(lines_of(old), 'line')} by {lines_of(new):,} at line {line} of {name}",
    )


def _only_place(text: str, old: str, name: str) -> int:
    first = text.find(old)
    if first < 0:
        hint = " The file's lines end with CRLF." if "\r\n" in text and "\n" in old and "\r\n" not in old else ""
        raise ToolFailure(f"`old_string` occurs 0 times in `{name}`; it has to occur exactly once.{hint}")
    times, at = 1, text.find(old, first + 1)
    while at >= 0:
        times, at = times + 1, text.find(old, at + 1)
    if times > 1:
        raise ToolFailure(
            f"`old_string` occurs {times:,} times in `{name}`; it has to occur exactly once. "
            "More of the text around it makes it unique."
        )
    return first


async def _list_directory(workspace: Workspace, dir_path: str) -> ToolResult:
    place = workspace.locate(dir_path)
    entries = await asyncio.to_thread(workspace.entries, place)
    entries.sort(key=lambda entry: not entry.is_folder)
    lines = [_line(entry) for entry in entries[:LIST_LIMIT]]
    if len(entries) > LIST_LIMIT:
        lines.append(f"[{len(entries) - LIST_LIMIT:,} more are not shown.]")
    name = workspace.name(place)
    return ToolResult(
        llm_content="\n".join(lines) or f"The folder `{name}` is empty.",
        return_display=f"listed {counted(len(entries), 'entry', 'entries')} of {name}",
    )


def _line(entry: Entry) -> str:
    return one_line(entry.name) + ("/" if entry.is_folder else "")


def _decoded(data: bytes, name: str, *, whole: bool) -> str:
    """The text of a file; where only its beginning was read, without a last character that was cut in two."""
    if b"\0" in data:
        raise ToolFailure(f"`{name}` is a binary file, not text.")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError as error:
        raise ToolFailure(f"`{name}` is not UTF-8 text: {error.reason} at byte {error.start:,}.") from error


def _encoded(text: str, parameter: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailure(
            f"`{parameter}` cannot be written as UTF-8: it has half a surrogate pair at character {error.start:,}."
        ) from error


READ_FILE = declare(
    name="read_file",
    kind=ToolKind.READ,
    description=f"Reads a UTF-8 text file. Of a file larger than {size(READ_LIMIT)} it gives the beginning.",
    parameters=(Parameter("file_path", _FILE_PATH),),
    function=_read_file,
)

WRITE_FILE = declare(
    name="write_file",
    kind=ToolKind.EDIT,
    description="Writes a text file, new or in place of what it had before. Creates the folders it needs.",
    parameters=(
        Parameter("file_path", _FILE_PATH),
        Parameter("content", "The whole text of the file, with its line ends."),
    ),
    function=_write_file,
)

REPLACE = declare(
    name="replace",
    kind=ToolKind.EDIT,
    description=(
        "Replaces one piece of text in a file. The old text has to occur in it exactly once, so give enough of what "
        "stands around it. With an empty old text it creates a new file."
    ),
    parameters=(
        Parameter("file_path", _FILE_PATH),
        Parameter("old_string", "The text to replace, exactly as it is in the file: white space and line ends too."),
        Parameter("new_string", "The text to put in its place."),
    ),
    function=_replace,
)

LIST_DIRECTORY = declare(
    name="list_directory",
    kind=ToolKind.READ,
    description="Lists what a folder has, hidden files too: folders first, with a slash at their end, then files.",
    parameters=(
        Parameter("dir_path", "Path of the folder: from the working directory (`.`), or absolute and inside it."),
    ),
    function=_list_directory,
)
