"""List all files below a folder, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llxprt_hooks.agent.tools.failure import ToolFailure

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace


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
