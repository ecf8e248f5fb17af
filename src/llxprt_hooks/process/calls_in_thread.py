"""Calls that are made in a thread, in order, where the event loop forbids them and nobody needs the result."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_PENDING = 1000
"""Calls that may wait for the thread."""


class CallsInThread:
    """Calls functions in one thread. At its end, the interpreter waits for the rest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start()

    def _start(self) -> None:
        # Not a semaphore: waiting for one is a call that may be forbidden here.
        room: SimpleQueue[None] = SimpleQueue()
        for _ in range(MOST_PENDING):
            room.put(None)
        self._room, self._thread = room, ThreadPoolExecutor(1, self._name)
        self._pid = os.getpid()  # last: until then, other threads of a forked process come here, too

    def call(self, function: Callable[[], None], *, wait: bool) -> bool:
        """Call a function soon. If too many are pending, ``wait``, even on an event loop, or return false."""
        if self._pid != os.getpid():  # a forked process does not have the thread
            self._start()
        room = self._room
        try:
            room.get(block=wait)
        except Empty:
            return False
        self._thread.submit(function).add_done_callback(lambda _: room.put(None))
        return True

    def finish(self) -> None:
        """Wait until all functions were called."""
        if self._pid == os.getpid():
            thread = self._thread
            self._start()  # first, for calls of other threads
            thread.shutdown()
