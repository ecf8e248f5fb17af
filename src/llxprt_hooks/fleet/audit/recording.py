"""Switches the recording of payloads on while a person watches, also in agents that already run.

The inspector holds a lock on a file beside the log. An agent tests it when it writes a record: that takes microseconds,
and happens only where a hook ran. Nobody holds the lock after the inspector has ended, however it ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from llxprt_hooks.settings import exclusive_lock, make_private_folder
from llxprt_hooks.settings.atomic import is_locked
from llxprt_hooks.settings.levels import inspectors_folder

_LOCKED = "recording"

_PATIENCE = 1.0
"""Seconds to wait for the lock, which agents hold for a moment when they test it."""


def is_recording(folder: Path | str) -> bool:
    """Whether payloads are wanted in the log of this folder."""
    return is_locked(f"{folder}/{_LOCKED}")


def is_watched() -> bool:
    """Whether an inspector is open: then events are also recorded when they start."""
    try:
        with os.scandir(_inspectors(os.environ.get("HOME"))) as found:
            return any(found)
    except OSError:
        return False


@lru_cache(maxsize=8)
def _inspectors(home: str | None) -> str:
    """Return the folder, which depends on the variable HOME."""
    return str(inspectors_folder())


@contextmanager
def recording(folder: Path) -> Iterator[None]:
    """Have payloads recorded meanwhile. Raises ``TimeoutError`` if another process does so already."""
    make_private_folder(folder)
    with exclusive_lock(folder / _LOCKED, timeout=_PATIENCE):
        yield
