"""What a process writes: kept up to a limit, read to the end."""

from __future__ import annotations

import os
from io import BytesIO

_CHUNK = 64 * 1024
_MOST_IN_A_PIPE = 1024 * 1024
"""What a pipe can hold at the utmost (Linux: the limit for ordinary users; it is 64 KiB unless somebody asks)."""


class Drain:
    """The reading end of a process's stdout or stderr."""

    __slots__ = ("_kept", "_room", "at_end", "cut", "fd")

    def __init__(self, fd: int, limit: int) -> None:
        self.fd = fd
        self.at_end = False
        self.cut = False
        self._kept = BytesIO()  # grows by doubling and hands over its bytes uncopied
        self._room = limit

    @property
    def kept(self) -> bytes:
        return self._kept.getvalue()

    def read(self) -> int:
        """Read once, without waiting; how many bytes came."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self.at_end = True
        self._keep(data)
        return len(data)

    def catch_up(self) -> None:
        """Read all that a process which has ended can have left in the pipe.

        No more than that: a child that it left behind may be writing without end.
        """
        left = _MOST_IN_A_PIPE
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
