"""What a process reads: bytes, then end of file."""

from __future__ import annotations

from llxprt_hooks.process.sigpipe import write_quietly


class Feed:
    """The writing end of a process's stdin and what is still to be written to it."""

    __slots__ = ("_rest", "fd")

    def __init__(self, fd: int, data: bytes) -> None:
        self.fd = fd
        self._rest = memoryview(data)

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
