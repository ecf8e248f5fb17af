"""Noticing that a process has ended: a descriptor that turns readable then, for any event loop to wait on.

Two ways to have one. A pidfd is exactly that, where the kernel has it (Linux 5.3). Elsewhere a thread waits for the
process and closes the writing end of a pipe. Neither collects the process before `ExitWatch.collect` is called, where
the system can wait without collecting (``waitid``; not on macOS before Python 3.13).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import struct
import threading
from typing import Protocol

# PIDFD_GET_INFO of <linux/pidfd.h>: a struct of 64 bytes that begins with a mask of what is wanted, or was given, and
# ends with the wait status.
_INFO_SIZE = 64
_INFO_EXIT = 1 << 3
_GET_INFO = (3 << 30) | (_INFO_SIZE << 16) | (0xFF << 8) | 11


class ExitWatch(Protocol):
    """The watch over one process."""

    fd: int

    def collect(self) -> int | None:
        """The wait status of the process, which has ended; None when somebody else took it."""

    def close(self) -> None:
        """Give the descriptor back."""


def watch_exit(pid: int) -> ExitWatch:
    """A watch over a child of this process."""
    if hasattr(os, "pidfd_open"):
        # ENOSYS, EPERM: the kernel or a sandbox has none. ESRCH: the process has gone already, SIGCHLD is ignored.
        with contextlib.suppress(OSError):
            return PidfdWatch(pid)
    return ThreadWatch(pid)


def has_ended(watch: ExitWatch, seconds: float = 0.0) -> bool:
    """Whether the process has ended, or does within that time, for which the calling thread waits."""
    poll = select.poll()
    poll.register(watch.fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class PidfdWatch:
    """The kernel watches."""

    __slots__ = ("_pid", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.fd = os.pidfd_open(pid)

    def collect(self) -> int | None:
        status = _wait_status(self._pid)
        return self._kept_status() if status is None else status

    def close(self) -> None:
        os.close(self.fd)

    def _kept_status(self) -> int | None:
        """The status that somebody else collected: newer kernels (Linux 6.15) keep it with the pidfd."""
        info = bytearray(_INFO_SIZE)
        struct.pack_into("=Q", info, 0, _INFO_EXIT)
        try:
            fcntl.ioctl(self.fd, _GET_INFO, info)
        except OSError:
            return None
        given: int = struct.unpack_from("=Q", info, 0)[0]
        status: int = struct.unpack_from("=i", info, _INFO_SIZE - 4)[0]
        return status if given & _INFO_EXIT else None


class ThreadWatch:
    """A thread watches."""

    __slots__ = ("_collected", "_pid", "_status", "_thread", "_writer", "fd")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None
        self._collected = False
        self.fd, self._writer = os.pipe()
        self._thread = threading.Thread(target=self._wait, name=f"wait for {pid}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            os.close(self.fd)
            os.close(self._writer)
            raise OSError(errno.EAGAIN, str(error)) from error

    def collect(self) -> int | None:
        self._thread.join()
        return self._status if self._collected else _wait_status(self._pid)

    def close(self) -> None:
        os.close(self.fd)

    def _wait(self) -> None:
        try:
            self._wait_for_end()
        finally:
            os.close(self._writer)

    def _wait_for_end(self) -> None:
        if not hasattr(os, "waitid"):
            self._status = _wait_status(self._pid)
            self._collected = True
            return
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)


def _wait_status(pid: int) -> int | None:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return None
