"""One asyncio loop in a background thread, for callers that have none: synchronous code, and other async libraries.

The thread is started on first use and ended at exit; a forked process starts its own. Whatever runs on the loop sees
the caller's context variables. A synchronous caller waits, and Ctrl-C ends the hooks before it is raised.

Hooks and asynchronous tools share the loop. None of them can end it: what calls ``sys.exit``, stops the loop or cancels
all tasks ends itself, and at worst the current calls, which then raise an exception.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from llxprt_hooks._support.awaitables import resolve

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

EXIT_TIMEOUT = 5.0
"""Seconds that events which nobody waits for get at exit."""

_MAX_DEPTH = 8
"""Synchronous calls from within hooks that run on the loop, one inside the other."""


async def on_asyncio(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that needs asyncio.

    Where the caller runs on asyncio, that is all. In trio, the task waits for the background loop. Any other caller,
    above all a synchronous one (see ``drive``), blocks its thread until the background loop is done.
    """
    task = _current_task()
    if task is None or task is getattr(_thread, "driving", None):
        return run(coroutine)
    if isinstance(task, asyncio.Future):
        return await coroutine
    return await _from_trio(coroutine)


async def resolved_here(outcome: Awaitable[T] | T) -> T:
    """Await what a function of the program returned, if need be, where the program's own coroutines run."""
    task = _current_task()
    if task is None or task is getattr(_thread, "driving", None):
        return run(resolve(outcome)) if inspect.isawaitable(outcome) else outcome
    return await resolve(outcome)


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in this thread, for a synchronous caller that may itself be called from a loop.

    The coroutine may wait for nothing but ``on_asyncio``, which blocks here.
    """
    outer = getattr(_thread, "driving", None)
    _thread.driving = _current_task()
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        _thread.driving = outer
    coroutine.close()
    raise RuntimeError("hooks.sync can't await an object that belongs to an event loop: use the async method instead")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and wait for its result. Works in any thread, also inside a loop."""
    depth = _depth.get()
    if depth == 0:
        return _portal().run(coroutine, 1)
    if depth >= _MAX_DEPTH:
        coroutine.close()
        raise RecursionError(f"hooks called each other synchronously, {_MAX_DEPTH} levels deep")
    # The loop is busy with the hook that is calling. It gets a loop of its own, for this one call.
    nested = _Portal()
    try:
        return nested.run(coroutine, depth + 1)
    finally:
        nested.close(0)


def call_soon(function: Callable[..., object], *arguments: Any) -> None:
    """Call a function on the background loop, in a copy of the caller's context, and return at once."""
    _portal().loop.call_soon_threadsafe(function, *arguments)


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the background loop, in a copy of the caller's context, and return its future result."""
    return asyncio.run_coroutine_threadsafe(coroutine, _portal().loop)


def is_running() -> bool:
    """Whether the background loop was started in this process."""
    return _shared is not None


def runs_here() -> bool:
    """Whether hooks can run on the caller's own loop: it is a task of asyncio, and not a synchronous call in one."""
    task = _current_task()
    return isinstance(task, asyncio.Future) and task is not getattr(_thread, "driving", None)


class _Portal:
    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self.loop = self._runner.get_loop()
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="llxprt-hooks", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], depth: int) -> T:
        end = threading.Lock()  # released when the call has ended
        end.acquire()
        call = _Call(self.loop, coroutine, end.release, depth)
        try:
            call.start()
            end.acquire()
        except BaseException:  # Ctrl-C, or what another signal handler raised
            call.cancel()
            if not call.ended:  # otherwise it may have been acquired already
                end.acquire()
            raise
        return call.result()

    def close(self, seconds: float) -> None:
        """Give what still runs some time, then cancel it, and end the thread."""
        _Call(self.loop, self._finish(seconds), lambda: None, 1).start()
        self._thread.join(seconds + EXIT_TIMEOUT + 2)

    async def _finish(self, seconds: float) -> None:
        if running := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(running, timeout=seconds)
        self._is_closing = True
        self.loop.stop()

    def _serve(self) -> None:
        with self._runner:
            while not self._is_closing:
                with suppress(SystemExit, KeyboardInterrupt):  # from a task, whose caller gets it too
                    self.loop.run_forever()


class _Call(Generic[T]):
    """A coroutine on its way to another thread's loop, and its result."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T],
        on_end: Callable[[], object],
        depth: int,
    ) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._on_end = on_end
        self._depth = depth
        self._task: asyncio.Task[T] | None = None
        self.ended = False

    def start(self) -> None:
        self._loop.call_soon_threadsafe(self._begin)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def result(self) -> T:
        assert self._task is not None, "the call has not ended"
        return self._task.result()

    def _begin(self) -> None:
        _depth.set(self._depth)  # in a copy of the caller's context, which the task gets too
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is None:  # interrupted before it was started
            self._coroutine.close()
            self._end()
        else:
            self._task.cancel()

    def _end(self, _: object = None) -> None:
        self.ended = True
        self._on_end()


async def _from_trio(coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for the background loop in a trio task. If the task is cancelled, the hooks are ended first."""
    if _depth.get():
        return run(coroutine)
    trio = sys.modules["trio"]
    token, ended = trio.lowlevel.current_trio_token(), trio.Event()

    def notify() -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(ended.set)

    call = _Call(_portal().loop, coroutine, notify, 1)
    call.start()
    try:
        await ended.wait()
    except BaseException:
        call.cancel()
        with trio.CancelScope(shield=True):
            await ended.wait()
        raise
    return call.result()


def _current_task() -> object | None:
    """Return the task that is running: asyncio's, or trio's; None in code that no task runs."""
    # trio notes here whose task is running: also as a guest of asyncio, or when an asyncio task started it.
    sniffio = sys.modules.get("sniffio")
    in_trio = sniffio is not None and sniffio.thread_local.name == "trio"
    try:
        return sys.modules["trio"].lowlevel.current_task() if in_trio else asyncio.current_task()
    except RuntimeError:  # nothing is running
        return None


def _portal() -> _Portal:
    global _shared
    with _lock:
        if _shared is None:
            portal = _Portal()
            if _shared is None:
                _shared = portal
            else:  # a signal handler has called hooks meanwhile
                portal.close(0)
        return _shared


def _close_shared() -> None:
    global _shared
    portal, _shared = _shared, None
    if portal is not None:
        portal.close(EXIT_TIMEOUT)


def _forget_after_fork() -> None:
    """A forked process has the loop but not its thread. Closing the loop would unregister the parent's descriptors."""
    global _shared, _lock
    _inherited.append(_shared)
    _shared, _lock = None, threading.RLock()


_thread = threading.local()
_depth: ContextVar[int] = ContextVar("llxprt_hooks_portal_depth", default=0)
_shared: _Portal | None = None
_lock = threading.RLock()  # a signal handler may interrupt the thread that holds it
_inherited: list[_Portal | None] = []
atexit.register(_close_shared)
os.register_at_fork(after_in_child=_forget_after_fork)


# Objects that belong to one event loop each, such as connections. They are closed when their loop ends.


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
