"""Reap processes outside of a run: one that must be killed right after its start, one that could not be killed."""

from __future__ import annotations

import os
import signal
import time
import warnings
from contextlib import suppress

from llxprt_hooks.process.group import POLL_MIN, signal_group

_KILL_TIMEOUT = 1.0
"""Seconds for a killed process to end; normally instantaneous."""

_abandoned: list[int] = []
"""Processes that could not be killed. The next spawn reaps those that have ended since."""


def kill_and_reap(pid: int) -> None:
    """Kill a process group and reap its leader; abandon it if it cannot be killed."""
    signal_group(pid, signal.SIGKILL)
    deadline = time.monotonic() + _KILL_TIMEOUT
    while is_running(pid):
        if time.monotonic() >= deadline:
            abandon(pid)
            return
        time.sleep(POLL_MIN)


def abandon(pid: int) -> None:
    """Give up on a process that is still running, with a ResourceWarning."""
    _abandoned.append(pid)
    with suppress(ResourceWarning):  # where warnings are errors
        warnings.warn(f"process {pid} could not be ended and is still running", ResourceWarning, stacklevel=2)


def reap_abandoned() -> None:
    """Reap abandoned processes that have ended."""
    for pid in list(_abandoned):
        if not is_running(pid):
            with suppress(ValueError):  # another thread removed it
                _abandoned.remove(pid)


def is_running(pid: int) -> bool:
    """Whether a child is running. Reaps it if it is not."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False
