"""Tools that find files by name and by content."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from llxprt_hooks.agent.tools.glob_pattern import GlobPattern, alternatives, split_at_wildcard
from llxprt_hooks.agent.tools.messages import ToolFailure, counted, escape_name, size
from llxprt_hooks.agent.tools.tool import ToolKind, declare
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.process import Completed, SpawnError, run_process

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace

TIME_LIMIT = 20.0
"""Seconds."""

FILE_LIMIT = 1000
"""Maximum files that `glob` shows to the model."""

MATCH_LIMIT = 200
"""Maximum matches that `search_file_content` shows to the model."""

MAX_FILE = 10 * 1024 * 1024
"""Bytes; larger files are not searched."""

_PROGRAM = str(Path(__file__).with_name("line_search.py"))

T = TypeVar("T")


class Deadline:
    """A time limit for a thread. The thread has to check it regularly."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def expire(self) -> None:
        """Make the thread stop at its next check."""
        self._until = 0.0


def walk(
    workspace: Workspace, start: Path, enter: Callable[[tuple[str, ...]], bool], deadline: Deadline
) -> Iterator[Path]:
    """List the files below a place until the deadline; ``enter`` gets a folder's path relative to the place.

    Links to files count as files. Links to folders are not followed, so the walk always ends. Unreadable folders are
    skipped.
    """
    pending: list[tuple[str, ...]] = [()]
    while pending and deadline.left():
        names = pending.pop()
        folder = start.joinpath(*names)
        try:
            entries = workspace.entries(folder)
        except ToolFailure:
            continue
        for entry in entries:
            if entry.is_file:
                yield folder / entry.name
        folders = [(*names, entry.name) for entry in entries if entry.is_folder and not entry.is_link]
        pending.extend(inner for inner in reversed(folders) if enter(inner))


@declare(
    ToolKind.READ,
    "Finds files whose path matches a pattern, most recently modified first. "
    "Skips hidden folders such as .git unless the pattern names them.",
    pattern="Pattern for paths relative to the working directory, such as `src/**/*.py`: `*`, `?` and `[…]` within "
    "a name, `**` for any number of folders, `{a,b}` for alternatives.",
)
async def glob(workspace: Workspace, pattern: str) -> ToolResult:
    searches = [_start_and_pattern(workspace, alternative) for alternative in alternatives(pattern)]
    deadline = Deadline(TIME_LIMIT)
    found = await _in_thread(lambda: sorted(set(_matching(workspace, searches, deadline)), key=_newest_first), deadline)
    lines = [workspace.name(place) for place in found[:FILE_LIMIT]] or [f"No file matches `{escape_name(pattern)}`."]
    if len(found) > FILE_LIMIT:
        lines.append(f"[{counted(len(found) - FILE_LIMIT, 'more file')} not shown.]")
    if not deadline.left():
        lines.append(_incomplete())
    return ToolResult(llm_content="\n".join(lines), return_display=f"found {counted(len(found), 'file')}")


def _start_and_pattern(workspace: Workspace, pattern: str) -> tuple[Path, GlobPattern]:
    folder, names = split_at_wildcard(pattern)
    if not names:
        raise ToolFailure("`pattern` contains no file name. Example: `src/**/*.py`.")
    if ".." in names:
        raise ToolFailure(f"`{pattern}` has a `..` after a wildcard or at the end, which is not supported.")
    return workspace.locate(folder), GlobPattern(names)


def _matching(workspace: Workspace, searches: list[tuple[Path, GlobPattern]], deadline: Deadline) -> Iterator[Path]:
    for start, pattern in searches:
        for place in walk(workspace, start, pattern.leads_into, deadline):
            if pattern.matches(place.relative_to(start).parts):
                yield place


def _newest_first(place: Path) -> tuple[int, Path]:
    try:
        return -place.lstat().st_mtime_ns, place
    except OSError:
        return 0, place  # deleted in the meantime


@declare(
    ToolKind.READ,
    "Searches all text files below a folder. Returns one line `path:line: text` per matching line. "
    f"Skips hidden folders such as .git, binary files, and files larger than {size(MAX_FILE)}.",
    pattern="Regular expression in Python syntax. Case-sensitive, unless it starts with (?i).",
    dir_path="The folder to search. Default: the working directory.",
)
async def search_file_content(workspace: Workspace, pattern: str, dir_path: str = ".") -> ToolResult:
    start = workspace.folder(dir_path)
    deadline = Deadline(TIME_LIMIT)
    files = await _in_thread(
        lambda: list(walk(workspace, start, lambda folders: not folders[-1].startswith("."), deadline)), deadline
    )
    found = await _search_lines(workspace, pattern, files, deadline)
    where = f"{counted(len(files), 'file')} of {workspace.name(start)}"
    if not found.complete and not found.matches:
        raise ToolFailure(f"Nothing was found in {where} within {TIME_LIMIT:g} s. {_ADVICE}")
    lines = [f"{workspace.name(files[at])}:{number}: {text}" for at, number, text in found.matches]
    lines = lines or [f"No line matches `{escape_name(pattern)}` in {where}."]
    if found.total > len(found.matches):
        more = counted(found.total - len(found.matches), "more match", "more matches")
        lines.append(f"[{more} not shown. {_ADVICE}]")
    if found.too_large:
        lines.append(f"[{counted(found.too_large, 'file')} larger than {size(MAX_FILE)} not searched.]")
    if not found.complete:
        lines.append(_incomplete())
    return ToolResult(
        llm_content="\n".join(lines), return_display=f"found {counted(found.total, 'match', 'matches')} in {where}"
    )


@dataclass(frozen=True, slots=True)
class _Found:
    matches: list[tuple[int, int, str]]
    """Index of the file, number of the line, text."""
    total: int
    too_large: int
    complete: bool


async def _search_lines(workspace: Workspace, pattern: str, files: list[Path], deadline: Deadline) -> _Found:
    walked_all = bool(deadline.left())
    request = {
        "pattern": pattern,
        "files": [str(file.relative_to(workspace.root)) for file in files],
        "limit": MATCH_LIMIT,
        "largest": MAX_FILE,
    }
    try:
        completed = await run_process(
            [sys.executable, "-I", "-S", "-W", "ignore", _PROGRAM],
            stdin=json.dumps(request).encode(),
            env=workspace.environment(),
            cwd=str(workspace.root),
            timeout=deadline.left(),
        )
    except SpawnError as error:
        raise ToolFailure(str(error)) from error
    return _parse_output(completed, walked_all=walked_all)


def _parse_output(completed: Completed, *, walked_all: bool) -> _Found:
    messages = [json.loads(line) for line in completed.stdout.splitlines(keepends=True) if line.endswith(b"\n")]
    matches = [(at, number, text) for kind, at, number, text in (m for m in messages if m[0] == "match")]
    match messages[-1:]:
        case [["invalid", why]]:
            raise ToolFailure(f"`pattern` is not a valid regular expression: {why}.")
        case [["end", total, too_large]]:
            return _Found(matches, total, too_large, complete=walked_all)
    if not completed.timed_out:
        last_line = completed.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ToolFailure(f"The search failed before it was complete. {last_line}".strip())
    return _Found(matches, len(matches), 0, complete=False)


_ADVICE = "Use a narrower pattern or dir_path."


def _incomplete() -> str:
    return f"[Stopped after {TIME_LIMIT:g} s: there may be more. {_ADVICE}]"


async def _in_thread(function: Callable[[], T], deadline: Deadline) -> T:
    """Run a function that checks the deadline in a thread. Cancellation expires the deadline."""
    try:
        return await asyncio.to_thread(function)
    except asyncio.CancelledError:
        deadline.expire()
        raise
