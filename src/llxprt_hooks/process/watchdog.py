"""Kills the programs that run when this process is killed.

A process that is ended with SIGKILL cannot end its children, and PR_SET_PDEATHSIG is not available to `subprocess`. So
a table in shared memory lists the process groups that run, and a small shell waits for the end of a pipe that only this
process holds. When the pipe ends, the shell kills the groups that are still in the table.

Listing a program takes two writes to memory. The shell is started, in a thread, when a program runs for longer than a
few milliseconds; most never do. It keeps no descriptor, directory or terminal of this process, and it is not a child of
it. A forked process has a table and a shell of its own.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import subprocess
import tempfile
import threading
import time

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.process.forks import no_fork

log = debug_logger("process")

_SLOTS = 1024
"""Programs that can be listed at once. Others run without being listed."""

_NOT_STARTED = "if this process is killed, its programs will continue: %s"

_WIDTH = 32
_UNUSED = b".".ljust(_WIDTH - 1) + b"\n"
_FREE = b" " * (_WIDTH - 1) + b"\n"

# stdin is the pipe, stdout the table. A line of the table is a group and the time when it was listed, in clock ticks
# since boot. A process with the number of the group that started later is a stranger: the number was used again.
_SCRIPT = r"""
exec 3<&0 4<&1 </dev/null >/dev/null
{
    while read -r line <&3; do :; done
    while read -r group listed <&4; do
        [ "$group" = . ] && break
        [ -n "$group" ] || continue
        if read -r line <"/proc/$group/stat"; then
            set -- ${line##*) }
            [ "${20}" -le "$listed" ] || continue
        fi
        kill -s KILL -- "-$group"
    done
} &
"""


class _Watchdog:
    """The table, and the shell that reads it when this process has ended."""

    _started: bool

    def __init__(self) -> None:
        self._reset()

    def add(self, group: int) -> int | None:
        """List a process group; the result is for `remove`."""
        try:
            table = self._table or self._make_table()
            slot = self._free.pop()
        except (OSError, IndexError):
            return None
        table[slot * _WIDTH : (slot + 1) * _WIDTH] = b"%11d%20d\n" % (group, _clock_ticks())
        return slot

    def remove(self, slot: int | None) -> None:
        if slot is not None and self._table is not None:
            self._table[slot * _WIDTH : (slot + 1) * _WIDTH] = _FREE
            self._free.append(slot)

    def start(self) -> None:
        """Start the shell in a thread, once."""
        if self._started or self._table is None:  # a table that could not be made may be made for the next program
            return
        self._started = True
        try:
            threading.Thread(target=self._start_shell, name="start the watchdog", daemon=True).start()
        except RuntimeError as error:  # too many processes of this user; the next program may find fewer
            self._started = False
            log.warning(_NOT_STARTED, error)

    def leave_running(self) -> None:
        """Empty the table: what runs now outlives this process."""
        if self._table is not None:
            self._table[:] = _UNUSED * _SLOTS

    def forget(self) -> None:
        """Close what a forked process has inherited. The programs are its parent's."""
        for fd in (self._table_fd, self._pipe_fd):
            if fd >= 0:
                os.close(fd)
        self._reset()

    def _reset(self) -> None:
        self._table: mmap.mmap | None = None
        self._table_fd = self._pipe_fd = -1
        self._free: list[int] = []
        self._started = False
        self._lock = threading.Lock()

    def _make_table(self) -> mmap.mmap:
        with self._lock:
            if self._table is None:
                fd = _above_streams(_anonymous_file())
                os.truncate(fd, _SLOTS * _WIDTH)
                table = mmap.mmap(fd, _SLOTS * _WIDTH)
                table[:] = _UNUSED * _SLOTS
                self._free = list(reversed(range(_SLOTS)))
                self._table_fd, self._table = fd, table
            return self._table

    def _start_shell(self) -> None:
        reader = -1
        try:
            with no_fork:  # which would keep the pipe open after this process has ended
                reader, writer = os.pipe()
                self._pipe_fd = _above_streams(writer)
                shell = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT],
                    stdin=reader,
                    stdout=self._table_fd,
                    stderr=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            if status := shell.wait():
                raise subprocess.CalledProcessError(status, shell.args)
            os.close(self._table_fd)
            self._table_fd = -1
        except (OSError, subprocess.SubprocessError) as error:
            log.warning(_NOT_STARTED, error)
        finally:
            if reader >= 0:
                os.close(reader)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("llxprt-hooks")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _above_streams(fd: int) -> int:
    """Move a descriptor that is kept: a daemon replaces its closed standard streams, and it may have their numbers."""
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _clock_ticks() -> int:
    """The time since boot, in the unit of /proc, rounded up."""
    return int(time.clock_gettime(_CLOCK) * _TICKS) + 1


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_TICKS = os.sysconf("SC_CLK_TCK")

watchdog = _Watchdog()
os.register_at_fork(after_in_child=watchdog.forget)
