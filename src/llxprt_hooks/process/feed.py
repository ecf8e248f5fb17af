"""What a process reads: bytes, then end of file."""

from __future__ import annotations

import contextlib
import fcntl

from llxprt_hooks.process.sigpipe import write_quietly

_USUAL_ROOM = 64 * 1024
"""What a pipe takes unless it is asked to take more."""

_MOST_ROOM = 1024 * 1024
"""What any user may ask for (Linux, unless an administrator changed it)."""


class Feed:
    """The writing end of a process's stdin and what is still to be written to it."""

    __slots__ = ("_rest", "fd")

    def __init__(self, fd: int, data: bytes) -> None:
        self.fd = fd
        self._rest = memoryview(data)
        if len(data) > _USUAL_ROOM:
            _make_room(fd, len(data))

    def push(self) -> bool:
        """Write what the pipe takes at once; true when nothing is left to write, or nobody to read it."""
        if not self._rest:
            return True
        try:
            self._rest = self._rest[write_quietly(self.fd, self._rest) :]
        except BlockingIOError:
            return False
        except OSError:
            return True  # HOOK-192: not to read one's input is no error
        return not self._rest


def _make_room(fd: int, size: int) -> None:
    """Let the pipe take more at once: each turn of writer and reader costs more than the bytes that it moves."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # the user has many large pipes already
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, min(size, _MOST_ROOM))
