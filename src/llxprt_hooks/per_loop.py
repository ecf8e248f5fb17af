"""Objects that belong to one event loop each, such as connections. They are closed when their loop ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable
from contextlib import suppress
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


class PerLoop(Generic[Key, T]):
    """One object per event loop and key, opened when it is first asked for. Loops may run in several threads.

    They are closed when the loop shuts down its asynchronous generators, as ``asyncio.run`` does.
    """

    def __init__(self, open_: Callable[[Key], Coroutine[Any, Any, T]], close: Callable[[T], Awaitable[object]]) -> None:
        self._open = open_
        self._close = close
        self._loops: dict[asyncio.AbstractEventLoop, _Opened[Key, T]] = {}

    async def get(self, key: Key) -> T:
        """Return the object, opened if needed. If that fails, the next call tries again."""
        opened = self._loops.get(asyncio.get_running_loop()) or await self._new_loop()
        opening = opened.tasks.get(key)
        if opening is None:
            opening = opened.tasks[key] = asyncio.ensure_future(self._open(key))
            opening.add_done_callback(lambda done: opened.forget_failure(key, done))
        if opening.done():
            return opening.result()
        return await asyncio.shield(opening)  # others may wait for it, too

    def forget(self, key: Key) -> None:
        """Open the object again when it is next asked for on this loop. The caller has closed it."""
        if (opened := self._loops.get(asyncio.get_running_loop())) is not None:
            opened.tasks.pop(key, None)

    async def _new_loop(self) -> _Opened[Key, T]:
        for loop in list(self._loops):
            if loop.is_closed():
                self._loops.pop(loop, None)
        opened = self._loops[asyncio.get_running_loop()] = _Opened()
        opened.until_end = self._until_end(opened)
        await anext(opened.until_end)
        return opened

    async def _until_end(self, opened: _Opened[Key, T]) -> AsyncGenerator[None]:
        loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loops.pop(loop, None)
            for opening in list(opened.tasks.values()):
                opening.cancel()  # has no effect on one that is done
                with suppress(Exception, asyncio.CancelledError):
                    await self._close(await opening)


class _Opened(Generic[Key, T]):
    """What has been opened on one loop, or is being opened."""

    def __init__(self) -> None:
        self.tasks: dict[Key, asyncio.Future[T]] = {}
        self.until_end: AsyncGenerator[None] | None = None

    def forget_failure(self, key: Key, done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.tasks.pop(key, None)
