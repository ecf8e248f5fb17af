"""Pipes that carry lines between two programs."""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

_CHUNK: Final = 1 << 16


class LinePipe:
    """Lines to one side. Each is written as a whole, also if several writers share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._later: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None

    def write(self, line: bytes) -> None:
        """Write a line, and wait until the other side has room for it."""
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]

    def close(self) -> None:
        with self._lock:
            # The number stays taken: a late write must not reach another file.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._descriptor)

    def write_later(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """Write a line in another thread, after those that were given before; ``then`` is called when it is written."""
        self._do_later(lambda: self.write(line))
        if then is not None:
            self._do_later(then)

    def close_later(self) -> None:
        self._do_later(self.close)

    def flush(self, seconds: float) -> None:
        """Wait for the lines that are still to be written."""
        if self._writer is not None:
            self._later.put(None)
            self._writer.join(seconds)

    def _do_later(self, action: Callable[[], None]) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._work, name="mcp-writer", daemon=True)
            self._writer.start()
        self._later.put(action)

    def _work(self) -> None:
        while (action := self._later.get()) is not None:
            with suppress(OSError):  # nobody reads any more; the threads that read notice it
                action()


def read_lines(descriptor: int, limit: float = math.inf) -> Iterator[bytes | None]:
    """Yield complete lines with their ends; at the end of the input, also an incomplete one.

    A line of more than ``limit`` bytes is dropped as it arrives; None is in its place. Some programs end a line at a
    carriage return too, and would find another message behind it, so one inside of a line becomes a space.
    """
    parts: list[bytes] = []
    size = 0.0
    while data := _read(descriptor):
        start = 0
        while start < len(data):
            end = data.find(b"\n", start) + 1 or len(data)
            part, start = data[start:end], end
            size += len(part)
            if size <= limit:
                parts.append(part)
            else:
                parts.clear()
            if part.endswith(b"\n"):
                yield _one_line(b"".join(parts)) if size <= limit else None
                parts.clear()
                size = 0.0
    if size:
        yield _one_line(b"".join(parts)) if size <= limit else None


def _one_line(line: bytes) -> bytes:
    end = len(line) - 2 if line.endswith(b"\r\n") else len(line)
    return line if line.find(b"\r", 0, end) < 0 else line[:end].replace(b"\r", b" ") + line[end:]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that was closed
        return b""
