"""A limit on the processes that run at once, over all event loops and threads of this process.

A run that finds no free slot waits for any other to end. So does one that cannot be started for lack of descriptors,
processes or memory, as long as another run will give some back.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.process.errors import SpawnError

log = debug_logger("process")

T = TypeVar("T")

_DESCRIPTORS_PER_RUN = 8
"""Descriptors to count on for each run: four for as long as it lasts, more while it starts."""


class ProcessSlots:
    """At most ``limit`` runs at once; fewer if this process may open few descriptors."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._forget()

    async def run(self, start: Callable[[], Awaitable[T]]) -> T:
        """Start something when there is a slot for it, and wait for its end. It may be started more than once."""
        if os.getpid() != self._pid:
            self._forget()
        if not self._take():
            await self._wait_for_slot()
        while True:
            try:
                result = await start()
            except SpawnError as error:
                waiter = self._give_back_or_wait(error)
                if waiter is None:
                    raise
            except BaseException:
                self._give_back()
                raise
            else:
                self._give_back()
                return result
            await self._granted(waiter)

    def _forget(self) -> None:
        """Start with all slots free. In a forked child, those that were taken are the parent's."""
        # Reentrant: while it is held, the garbage collector may close a dropped run, which gives its slot back.
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._free = min(self._limit, _descriptor_limit())
        self._running = 0
        self._waiting: deque[_Waiter] = deque()

    def _take(self) -> bool:
        with self._lock:
            if self._free <= 0 or self._waiting:
                return False
            self._free -= 1
            self._running += 1
            return True

    async def _wait_for_slot(self) -> None:
        with self._lock:
            if self._take():
                return
            waiter = _Waiter()
            self._waiting.append(waiter)
        await self._granted(waiter)

    async def _granted(self, waiter: _Waiter) -> None:
        try:
            await waiter.future
        except BaseException:
            with self._lock:
                if waiter.granted:
                    self._give_back()
                elif waiter in self._waiting:
                    self._waiting.remove(waiter)
            raise

    def _give_back(self) -> None:
        """Give the slot to the run that has waited longest."""
        with self._lock:
            while self._waiting:
                if self._waiting.popleft().grant():
                    return
            self._free += 1
            self._running -= 1

    def _give_back_or_wait(self, error: SpawnError) -> _Waiter | None:
        """After a failed start: give the slot back, or keep its place until another run has ended."""
        with self._lock:
            if not error.is_resource_exhaustion or error.started or self._running == 1:
                self._give_back()
                return None
            self._free += 1
            self._running -= 1
            waiter = _Waiter()
            self._waiting.appendleft(waiter)
        log.debug("waiting for another program to end: %s", error)
        return waiter


class _Waiter:
    """A run that waits on its own event loop, which may be in another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future = self._loop.create_future()
        self.granted = False

    def grant(self) -> bool:
        """Let it continue; false if its event loop is closed."""
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            return False
        self.granted = True
        return True

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


def _descriptor_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(1, soft // _DESCRIPTORS_PER_RUN)
