"""The private folder of each session, in which hooks keep what they want to know at the session's later events.

All hooks of a session have the same one, in every process of this user. It is outside of the project, so that no
checkout can fill it, and its name is a digest, so that no session id can choose another place.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.events import HookEventName, SessionStartSource
from llxprt_hooks.process import call_blocking
from llxprt_hooks.process.shell.environment import process_environment
from llxprt_hooks.settings.levels import user_folder
from llxprt_hooks.settings.ownership import folder_writers

log = debug_logger("session")

VARIABLE: Final = "LLXPRT_SESSION_DIR"
ENV_FILE: Final = "environment.sh"
"""The file in it to which SessionStart hooks of some dialects write variables for the agent's shell."""
TRANSCRIPT: Final = "transcript.jsonl"
"""The file in it with the conversation, for hooks of some dialects. It may have begun when SessionStart hooks run."""

_LIFETIME: Final = 7 * 24 * 3600
"""Seconds without an event after which a session's folder is removed."""
_CLEANING: Final = 24 * 3600
"""Seconds between two searches for such folders."""
_TOUCHING: Final = 3600
"""Seconds between two changes of a folder's time, which shows that its session still has events."""
_MAX_USED: Final = 10_000
"""How many folders a process remembers to have used. One that it has forgotten stays when its session ends, until it is
old."""

_BOUNDARIES: Final = (HookEventName.SESSION_START, HookEventName.SESSION_END)
_ANEW: Final = (SessionStartSource.STARTUP, SessionStartSource.CLEAR)

_used: dict[str, float] = {}
"""The folders that hooks of this process have had, and when each was last touched."""
_cleaned = -math.inf
"""When this process last removed old folders."""
_begun: dict[str, float] = {}
"""When sessions began whose hooks have not had a folder yet. What is older in it is of an earlier session."""
_resumed: set[str] = set()
"""The sessions that may have begun earlier, whatever their SessionStart says."""
_other_root: ContextVar[Path | None] = ContextVar("llxprt_hooks_session_root", default=None)


def folder_of(session_id: str) -> str:
    """Return the folder of a session, which may not exist."""
    return _folder(_other_root.get(), process_environment().get("HOME"), session_id)


@lru_cache(maxsize=1024)
def _folder(root: Path | None, home: str | None, session_id: str) -> str:
    """Where the folder of a session is; without another root, it depends on the variable HOME."""
    root = root or user_folder() / "sessions"
    return str(root / hashlib.sha256(session_id.encode(errors="surrogatepass")).hexdigest()[:32])


def open_folder(session_id: str) -> str | None:
    """Return the folder of a session, created if need be; None if that is impossible or others could write there."""
    folder = folder_of(session_id)
    now = time.monotonic()
    if now - _used.get(folder, -math.inf) < _TOUCHING and os.path.isdir(folder):  # noqa: PTH112  # called before every hook
        return folder
    began = _begun.pop(session_id, None)
    is_left = False
    try:
        try:
            os.mkdir(folder, 0o700)  # noqa: PTH102
        except FileExistsError:
            is_left = began is not None and os.lstat(folder).st_mtime < began
            os.utime(folder)
        except FileNotFoundError:
            root = os.path.dirname(folder)  # noqa: PTH120
            os.makedirs(root, 0o700, exist_ok=True)  # noqa: PTH103
            with suppress(FileExistsError):  # another thread was faster
                os.mkdir(folder, 0o700)  # noqa: PTH102
    except OSError as error:
        log.debug("the session has no folder: %s", error)
        return None
    if folder not in _used:
        if objection := folder_writers(Path(folder, "any file")):
            _warn(objection)
            return None
        if is_left:
            _empty(Path(folder))
        _remove_old_at_times(Path(folder).parent)
    _remember(_used, folder, now)
    return folder


def _remember(known: dict[str, float], key: str, value: float) -> None:
    known.pop(key, None)
    known[key] = value
    while len(known) > _MAX_USED:
        known.pop(next(iter(known)), None)


@cache
def _warn(objection: str) -> None:
    log.warning("hooks have no folder for their session, because %s", objection)


def keep_at_start(session_id: str) -> None:
    """Keep what the next SessionStart of this session finds: another process may have begun the conversation."""
    _resumed.add(session_id)


def at_event(event_name: HookEventName, fields: Mapping[str, Any], session_id: object) -> None:
    """Remove what is in the folder of a session that starts again, or the folder of one that has ended.

    A session that is resumed or compressed keeps it. No file is touched before hooks run.
    """
    if event_name in _BOUNDARIES:
        starts = event_name is HookEventName.SESSION_START
        call_blocking(partial(_at_boundary, str(session_id), starts, fields.get("source")))


def _at_boundary(known: str, starts: bool, source: object) -> None:
    if starts and (known in _resumed or source not in _ANEW):
        _resumed.discard(known)
        return
    folder = folder_of(known) if _used else ""
    if folder not in _used:
        _begun.pop(known, None)
        if starts:
            _remember(_begun, known, time.time())
    elif starts:  # the folder stays: another thread may be writing the first line of the transcript
        _empty(Path(folder))
    else:
        _used.pop(folder, None)
        shutil.rmtree(folder, ignore_errors=True)


def _empty(folder: Path) -> None:
    """Remove all but the transcript."""
    with suppress(OSError):
        for each in folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            elif each.name != TRANSCRIPT:
                each.unlink()


def _remove_old_at_times(root: Path) -> None:
    global _cleaned
    if time.monotonic() - _cleaned > _CLEANING:
        _cleaned = time.monotonic()
        remove_old(root)


def remove_old(root: Path) -> None:
    """Remove the folders of sessions that have had no event for a week."""
    with suppress(OSError):
        for folder in root.iterdir():
            if time.time() - folder.stat(follow_symlinks=False).st_mtime > _LIFETIME:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_below(root: Path) -> Iterator[None]:
    """Keep the folders of sessions somewhere else, for tests of hooks."""
    token = _other_root.set(root)
    try:
        yield
    finally:
        _other_root.reset(token)
