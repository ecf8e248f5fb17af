"""Our ends of a process's pipes: what it reads and what it writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Callable
from io import BytesIO

_DEFAULT_PIPE_SIZE = 64 * 1024

_MAX_PIPE_SIZE = 1024 * 1024
"""The largest pipe that an unprivileged Linux user can ask for (``/proc/sys/fs/pipe-max-size``, unless changed)."""

_CHUNK_SIZE = 64 * 1024

_F_SETNOSIGPIPE = 73
"""From ``sys/fcntl.h`` on macOS; the fcntl module does not define it."""


class Feed:
    """The write end of a process's stdin, and the bytes that are still to be written."""

    __slots__ = ("_rest", "fd")

    def __init__(self, fd: int, data: bytes) -> None:
        self.fd = fd
        self._rest = memoryview(data)
        if len(data) > _DEFAULT_PIPE_SIZE:
            _enlarge_pipe(fd, len(data))

    def push(self) -> bool:
        """Write as much as the pipe accepts without blocking.

        Returns True when the pipe can be closed: everything is written, or the process closed its end.
        """
        if not self._rest:
            return True
        try:
            self._rest = self._rest[write_without_sigpipe(self.fd, self._rest) :]
        except BlockingIOError:
            return False
        except OSError:
            return True  # HOOK-192: a hook does not have to read its input
        return not self._rest


class Drain:
    """The read end of a process's stdout or stderr, and the bytes read so far, up to a limit."""

    __slots__ = ("_kept", "_room", "at_end", "cut", "fd")

    def __init__(self, fd: int, limit: int) -> None:
        self.fd = fd
        self.at_end = False
        self.cut = False
        self._kept = BytesIO()  # grows by doubling; getvalue() does not copy
        self._room = limit

    @property
    def kept(self) -> bytes:
        return self._kept.getvalue()

    def read(self) -> int:
        """Read once without blocking, and return the number of bytes read."""
        try:
            data = os.read(self.fd, _CHUNK_SIZE)
        except BlockingIOError:
            return 0
        if data:
            self._keep(data)
        else:
            self.at_end = True
        return len(data)

    def catch_up(self) -> None:
        """Read everything that a process which has ended can have left in the pipe.

        Stops after the largest possible pipe: a child that the process left behind may write forever.
        """
        left = _MAX_PIPE_SIZE
        while left > 0 and not self.at_end:
            count = self.read()
            if count == 0:
                return
            left -= count

    def _keep(self, data: bytes) -> None:
        if len(data) > self._room:
            self.cut = True
            data = data[: self._room]
        self._kept.write(data)
        self._room -= len(data)


def _enlarge_pipe(fd: int, size: int) -> None:
    """Let the pipe accept more at once: switching between writer and reader costs more than copying the bytes."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # EPERM: the user's pipes exceed pipe-user-pages-soft
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, min(size, _MAX_PIPE_SIZE))


def write_without_sigpipe(fd: int, data: memoryview) -> int:
    """Like ``os.write``, but a missing reader is always BrokenPipeError, whatever the disposition of SIGPIPE.

    Python ignores SIGPIPE by default, and then a plain ``os.write`` is enough. Command-line programs often restore its
    default action, so that ``program | head`` ends silently. In such a program, a child that closes its stdin early
    would kill its parent.
    """
    if is_ignored(signal.SIGPIPE):
        return os.write(fd, data)
    if sys.platform == "darwin":
        # macOS sends SIGPIPE to the process, not to the thread, so blocking it in this thread has no effect.
        fcntl.fcntl(fd, _F_SETNOSIGPIPE, 1)
        return os.write(fd, data)
    return _write_with_sigpipe_blocked(fd, data)


def is_ignored(number: int) -> bool:
    """Whether this process ignores a signal."""
    return _handler_of(number) == signal.SIG_IGN


# Before every start: what `signal.getsignal` wraps takes a tenth of its time, because it makes no enumeration member.
_handler_of: Callable[[int], object]
try:
    import _signal  # type: ignore[import-not-found]

    _handler_of = _signal.getsignal
except (ImportError, AttributeError):  # it is not public
    _handler_of = signal.getsignal


def _write_with_sigpipe_blocked(fd: int, data: memoryview) -> int:
    already_pending = signal.SIGPIPE in signal.sigpending()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        return os.write(fd, data)
    except BrokenPipeError:
        if not already_pending:
            signal.sigwait({signal.SIGPIPE})
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
