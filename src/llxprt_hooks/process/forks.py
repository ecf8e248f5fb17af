"""Make `fork` safe while another thread starts a program or imports a module (D-95).

A forked process has a copy of every descriptor for as long as it lives. With the write end of a program's stdin, the
program waits for the end of its input. With the pipe that tells `subprocess` that a program was started, the event loop
waits. So a fork waits while a program is being started, and gives up the inputs that are still being written.

It also has a copy of every lock, and none of the threads that hold them. A process that was forked while a module was
being imported can never import that module.
"""

from __future__ import annotations

import os
import threading

_PATIENCE = 10.0
"""Seconds that a thread waits for another one, which takes milliseconds to start a program, and a second to import.

It takes forever if a file system hangs, or if the interpreter ends, and the other thread with it.
"""


class _HealingLock:
    """A lock that can be entered again, and is replaced if it is not released in time.

    It is left locked if a signal handler raises an exception just after it was taken, or before it is released.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=_PATIENCE):
            self._lock = threading.RLock()
            self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            return  # it was replaced


class NoFork(_HealingLock):
    """While a thread is in the block, other threads wait before they fork."""

    def __init__(self) -> None:
        super().__init__()
        self._inputs: set[int] = set()

    def add_input(self, fd: int) -> None:
        """Replace this descriptor in forked processes. Called in the block in which it was opened."""
        self._inputs.add(fd)

    def close_input(self, fd: int) -> None:
        with self:
            self._inputs.discard(fd)
            os.close(fd)

    def after_in_child(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            self._lock = threading.RLock()
        if not self._inputs:
            return
        reader, writer = os.pipe()
        for fd in self._inputs:
            os.dup2(writer, fd, inheritable=False)  # not closed: the copy of a run will close it
        for fd in (reader, writer):
            os.close(fd)
        self._inputs.clear()


no_fork = NoFork()
os.register_at_fork(before=no_fork.__enter__, after_in_parent=no_fork.__exit__, after_in_child=no_fork.after_in_child)


class ForkSafeLock(_HealingLock):
    """A lock that is free in every forked process. A signal handler may enter it again in the thread that holds it."""

    def __enter__(self) -> None:
        no_fork.__enter__()
        super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__()
        no_fork.__exit__()
