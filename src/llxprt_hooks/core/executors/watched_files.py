"""The files that a command runs, and whether they are what they were when its process was started ahead (D-167)."""

from __future__ import annotations

import os
import re
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings.trust.covered_files import CoveredFiles

if TYPE_CHECKING:
    from llxprt_hooks.process.ahead import Start

_BREAKS: Final = re.compile(r"[\s;|&\"'()<>=]+")
_MAX_KNOWN: Final = 256


class WatchedFiles:
    """What an approval of this command would cover, and what it names outside of the project."""

    def __init__(self, command: str, start: Start, project: str) -> None:
        text = command if start.cwd == project else f"cd {shlex.quote(start.cwd)} && {command}"
        self._covered = CoveredFiles([text], Path(project))
        self._others = {path: _signature(path) for path in _named(command, start)}

    def change(self) -> str | None:
        """Return what has changed, as a sentence without its period."""
        changed = [path for path, seen in self._others.items() if _signature(path) != seen] or self._covered.changes()
        return f"{changed[0]} has changed since it was started" if changed else None


class FilesOfCommands:
    """Those of a configuration's commands. Reading them again after every start would take longer than the start."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], WatchedFiles] = {}
        self._lock = threading.Lock()

    def of(self, command: str, start: Start, project: str) -> WatchedFiles:
        with self._lock:
            known = self._known.pop((command, start.cwd), None)
            if known is None or known.change() is not None:
                known = WatchedFiles(command, start, project)
            self._known[command, start.cwd] = known
            if len(self._known) > _MAX_KNOWN:
                del self._known[next(iter(self._known))]
            return known


def _named(command: str, start: Start) -> set[str]:
    """The absolute paths in a command, and the program."""
    words = {os.path.expanduser(os.path.expandvars(word)) for word in _BREAKS.split(command)}  # noqa: PTH111
    words.update(start.argv[1:])
    return {word for word in (*words, start.executable or start.argv[0]) if word.startswith("/") and "\0" not in word}


def _signature(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # called before every start
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
