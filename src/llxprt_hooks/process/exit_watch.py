"""Wait for the end of a process, and reap it.

An ``ExitWatch`` has a file descriptor that becomes readable at the end, for any event loop.

On Linux 5.3 and newer a pidfd is exactly that. Elsewhere a thread waits for the process and writes to a pipe. Neither
reaps the process before `ExitWatch.reap` is called, provided the system can wait without reaping (``waitid`` with
``WNOWAIT``; Python on macOS has it since 3.13).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
import threading
import time
import warnings
from typing import Protocol

from llxprt_hooks.process.blocking import call_blocking
from llxprt_hooks.process.group import POLL_MIN, signal_group
from llxprt_hooks.process.pipes import write_without_sigpipe

# The ioctl PIDFD_GET_INFO of <linux/pidfd.h>. Its argument is a struct of 64 bytes: it starts with a bit mask of the
# requested fields, which the kernel replaces by the fields it filled in, and ends with the wait status.
_PIDFD_INFO_SIZE = 64
_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_GET_INFO = (3 << 30) | (_PIDFD_INFO_SIZE << 16) | (0xFF << 8) | 11


class ExitWatch(Protocol):
    fd: int
    """Readable once the process has ended."""

    def reap(self) -> int | None:
        """Reap the process, which has ended, and return its wait status; None if other code reaped it."""

    def close(self) -> None:
        """Close the descriptor."""


def watch_exit(pid: int) -> ExitWatch:
    """Watch a child of this process."""
    try:
        return PidfdWatch(pid)
    except (AttributeError, OSError):
        # There is no pidfd_open on this system. ENOSYS, EPERM: the kernel is too old, or a sandbox forbids it. ESRCH:
        # the process is already gone, because SIGCHLD is ignored.
        return ThreadWatch(pid)


def has_ended(watch: ExitWatch, seconds: float = 0.0) -> bool:
    """Whether the process has ended. Blocks the calling thread for up to ``seconds`` while it has not."""
    return is_ready(watch.fd, select.POLLIN, seconds)


def is_ready(fd: int, events: int, seconds: float) -> bool:
    """Whether a descriptor is ready, after waiting for it; unlike ``select``, also with one above 1023."""
    poll = select.poll()
    poll.register(fd, events)
    return bool(poll.poll(seconds * 1000))


class PidfdWatch:
    __slots__ = ("_pid", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.fd = os.pidfd_open(pid)

    def reap(self) -> int | None:
        status = _wait_status(self._pid)
        return self._status_from_pidfd() if status is None else status

    def close(self) -> None:
        os.close(self.fd)

    def _status_from_pidfd(self) -> int | None:
        """The status of a process that other code reaped. Linux 6.15 and newer keep it with the pidfd."""
        info = bytearray(_PIDFD_INFO_SIZE)
        struct.pack_into("=Q", info, 0, _PIDFD_INFO_EXIT)
        try:
            fcntl.ioctl(self.fd, _PIDFD_GET_INFO, info)
        except OSError:
            return None
        filled: int = struct.unpack_from("=Q", info, 0)[0]
        status: int = struct.unpack_from("=i", info, _PIDFD_INFO_SIZE - 4)[0]
        return status if filled & _PIDFD_INFO_EXIT else None


class ThreadWatch:
    __slots__ = ("_pid", "_reaped", "_status", "_thread", "_writer", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None
        self._reaped = False
        self.fd, self._writer = os.pipe()
        self._thread = threading.Thread(target=self._wait, name=f"wait for {pid}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            os.close(self.fd)
            os.close(self._writer)
            raise OSError(errno.EAGAIN, str(error)) from error

    def reap(self) -> int | None:
        call_blocking(self._thread.join)  # it is about to end: its last act made `fd` readable
        return self._status if self._reaped else _wait_status(self._pid)

    def close(self) -> None:
        os.close(self.fd)

    def _wait(self) -> None:
        try:
            self._wait_for_end()
        finally:
            # Closing it is not enough: a process that was forked meanwhile has it open, too.
            with contextlib.suppress(OSError):  # nobody waits any more
                write_without_sigpipe(self._writer, memoryview(b"."))
            os.close(self._writer)

    def _wait_for_end(self) -> None:
        if not hasattr(os, "waitid"):
            self._status = _wait_status(self._pid)
            self._reaped = True
            return
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)


def _wait_status(pid: int) -> int | None:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return None


# Processes outside of a run: one that must be killed right after its start, one that could not be killed.

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
    with contextlib.suppress(ResourceWarning):  # where warnings are errors
        warnings.warn(f"process {pid} could not be ended and is still running", ResourceWarning, stacklevel=2)


def reap_abandoned() -> None:
    for pid in list(_abandoned):
        if not is_running(pid):
            with contextlib.suppress(ValueError):  # another thread removed it
                _abandoned.remove(pid)


def is_running(pid: int) -> bool:
    """Whether a child is running. Reaps it if it is not."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False
