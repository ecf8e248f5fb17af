"""One asyncio loop in a background thread, for callers that have none: synchronous code, and other async libraries.

The thread is started on first use and ended at exit; a forked process starts its own. Whatever runs on the loop sees
the caller's context variables. A synchronous caller waits, and Ctrl-C ends the hooks before it is raised.

Hooks and asynchronous tools share the loop. None of them can end it: what calls ``sys.exit``, stops the loop or cancels
all tasks ends itself, and at worst the current calls, which then raise an exception.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

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
    raise RuntimeError("a synchronous call cannot wait for something of an event loop")


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


def is_running() -> bool:
    """Whether the background loop was started in this process."""
    return _shared is not None


def runs_here() -> bool:
    """Whether the caller is a task of asyncio, so that hooks can run on its loop."""
    return isinstance(_current_task(), asyncio.Future)


class _Portal:
    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self.loop = self._runner.get_loop()
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="llxprt-hooks", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], depth: int) -> T:
        end = _signal()
        call = _Call(self.loop, coroutine, end.send, depth)
        try:
            call.start()
            end.wait()
        except BaseException:  # Ctrl-C, or what another signal handler raised
            call.cancel()
            if not call.ended:  # otherwise the signal may have been received already
                end.wait()
            self.loop.call_soon_threadsafe(end.close)  # the loop may still be sending it
            raise
        end.close()
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


class _Signal(Protocol):
    """Sent once by one thread, while another one waits for it."""

    def send(self) -> object: ...
    def wait(self) -> object: ...
    def close(self) -> None: ...


def _signal() -> _Signal:
    """Return the cheapest signal that there is here: a lock may take three times as many context switches (D-89)."""
    lock = threading.Lock()
    if type(lock).__module__ == "_thread" and hasattr(os, "eventfd"):  # gevent's threads are one thread of the system
        with suppress(OSError):  # no descriptor left
            return _EventSignal()
    return _LockSignal(lock)


class _EventSignal:
    """Sends and waits without holding the interpreter's lock, so that a thread that wakes up can continue at once."""

    __slots__ = ("_fd", "_owner")

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._fd = os.eventfd(0, os.EFD_CLOEXEC)

    def send(self) -> None:
        if os.getpid() == self._owner:  # a hook may have forked, and it is the parent that waits
            os.eventfd_write(self._fd, 1)

    def wait(self) -> None:
        while True:
            with suppress(InterruptedError):  # a signal handler ran, and raised nothing
                os.eventfd_read(self._fd)
                return

    def close(self) -> None:
        os.close(self._fd)


class _LockSignal:
    """For systems without eventfd, and where a thread is not one of the system's."""

    __slots__ = ("send", "wait")

    def __init__(self, lock: threading.Lock) -> None:
        lock.acquire()
        self.send, self.wait = lock.release, lock.acquire

    def close(self) -> None: ...


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
