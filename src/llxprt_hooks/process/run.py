"""One run of a program, from its start to its end, on the running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol
from weakref import WeakValueDictionary

import msgspec

from llxprt_hooks.process.blocking import call_blocking
from llxprt_hooks.process.child import Child, spawn
from llxprt_hooks.process.errors import SpawnError
from llxprt_hooks.process.exit_watch import has_ended
from llxprt_hooks.process.group import POLL_MAX, POLL_MIN, has_members, signal_group
from llxprt_hooks.process.watchdog import watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from llxprt_hooks.process.pipes import Drain, Feed

_STREAM_WATCH_DELAY = 0.005
"""Seconds before stdout and stderr are registered with the event loop.

Registration dominates the cost of a short program, and most programs end earlier: their output waits in the pipes. A
program that fills a pipe before that is delayed by this much, once.
"""

_DRAIN_TIMEOUT = 0.1
"""Seconds to wait for the streams to end after the process has ended."""

_KILL_TIMEOUT = 1.0
"""Seconds to wait for a killed group to end. Normally instantaneous; a longer wait would not help."""


class Completed(msgspec.Struct, frozen=True):
    """The result of a run.

    If both ``exit_code`` and ``signal`` are None, how the process ended is unknown: SIGCHLD is ignored in this process,
    other code reaped its children, or the process could not be killed.
    """

    exit_code: int | None = None
    signal: str | None = None
    """The signal that ended the process: ``SIGKILL``, or ``SIG35`` for one without a name."""
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_cut: bool = False
    """The process wrote more than the limit."""
    stderr_cut: bool = False
    timed_out_after: float | None = None
    """The timeout in milliseconds, if it was reached."""
    duration: float = 0.0
    """Milliseconds."""
    warm: bool = False
    """A waiting interpreter ran it."""
    ahead: bool = False
    """It was started ahead, and waited for its input."""

    @property
    def timed_out(self) -> bool:
        return self.timed_out_after is not None


async def run_process(
    argv: Sequence[str],
    *,
    executable: str | None = None,
    stdin: bytes | Callable[[], bytes],
    env: Mapping[str, str],
    cwd: str,
    timeout: float,  # noqa: ASYNC109 - the process has to be ended, not the waiting for it
    output_limit: int = 10 * 1024 * 1024,
    grace: float = 5.0,
) -> Completed:
    """Run a program to its end.

    Args:
        argv: The program and its arguments.
        executable: The file to run instead of ``argv[0]``. A bare name is looked up in the PATH of ``env``.
        stdin: The input, or a function that returns it. The function is called after the program was started, so
            that a large input is made while the program loads.
        env: The whole environment.
        cwd: The working directory.
        timeout: Seconds until the process group gets SIGTERM.
        output_limit: The number of bytes to keep of each stream.
        grace: Seconds from SIGTERM to SIGKILL.

    Raises:
        SpawnError: The program could not be started.

    >>> asyncio.run(run_process(["/bin/cat"], stdin=b"hello", env={}, cwd="/", timeout=60)).stdout
    b'hello'
    """
    start = partial(spawn, argv, executable=executable, stdin=stdin, env=env, cwd=cwd, output_limit=output_limit)
    return await run_child(start, timeout=timeout, grace=grace)


async def run_child(
    start: Callable[[], Child | Offer],
    *,
    timeout: float,  # noqa: ASYNC109 - as above
    grace: float = 5.0,
) -> Completed:
    """Run a program to its end, like `run_process`, with a function that starts it.

    The function may read the file system. If the event loop forbids that, it is called in a thread. It may return an
    offer to a waiting interpreter instead, which may refuse it.
    """
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    begun = call_blocking(start)
    child = begun if isinstance(begun, Child) else await _accepted(loop, begun, grace)
    run = _Run(loop, child, grace)
    try:
        run.connect()
        timed_out = await run.wait(timeout)
    except asyncio.CancelledError:
        await run.terminate()
        raise
    finally:
        run.close()
    return _completed(child, run.exit_code, timed_out_after=timeout * 1000 if timed_out else None, started=started)


async def _accepted(loop: asyncio.AbstractEventLoop, offer: Offer, grace: float) -> Child:
    """Return the program that a waiting interpreter runs, or if none does, one that was started instead."""
    try:
        await _answered(loop, offer)
    except asyncio.CancelledError:
        await _terminate_accepted(loop, offer, grace)
        raise
    except BaseException:
        offer.withdraw()
        raise
    return offer.accepted() or call_blocking(offer.otherwise)


async def _answered(loop: asyncio.AbstractEventLoop, offer: Offer) -> None:
    answer, owner = loop.create_future(), os.getpid()
    loop.add_reader(offer.fd, _resolve, answer)
    timer = loop.call_later(offer.seconds, _resolve, answer)
    try:
        await answer
    finally:
        timer.cancel()
        if os.getpid() == owner and not loop.is_closed():  # a forked process shares the selector
            loop.remove_reader(offer.fd)


async def _terminate_accepted(loop: asyncio.AbstractEventLoop, offer: Offer, grace: float) -> None:
    """End a program that was accepted when the run was cancelled, in the same way as one that was known to run."""
    with contextlib.suppress(SpawnError):  # accepted in this moment, and killed
        child = offer.accepted()
        if child is not None:
            run = _Run(loop, child, grace)
            try:
                run.connect()
                await run.terminate()
            finally:
                run.close()


class Offer(Protocol):
    """A program that something else may run for us. It runs at most once."""

    fd: int
    """Readable when there is an answer."""
    seconds: ClassVar[float]
    """How long to wait for it."""
    otherwise: Callable[[], Child]
    """Starts the program if the offer is not accepted."""

    def accepted(self) -> Child | None:
        """Return the program that runs; None if it is not accepted, and never will be."""

    def withdraw(self) -> object:
        """Make sure that it does not run on."""


class _Run:
    """The state of one run, between the callbacks of its event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, child: Child, grace: float) -> None:
        self._loop = loop
        self._exits: _Exits | _ExitReaders | None = None
        self._child = child
        self._grace = grace
        self._ended = False
        self._reaped = False
        self._must_kill = True  # if the run is dropped now
        self._owner = os.getpid()
        self._kill_at: float | None = None
        self._waiting: tuple[Callable[[], bool], asyncio.Future[None]] | None = None
        self._watched: set[int] = set()  # descriptors registered with add_reader
        self.exit_code: int | None = None

    def connect(self) -> None:
        """Register the end of the process and its stdin with the event loop."""
        self._exits = _exits_of(self._loop)
        self._exits.add(self._child.watch.fd, self._on_exit)
        if self._child.feed is not None:
            self._loop.add_writer(self._child.feed.fd, self._on_writable, self._child.feed)

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109
        """Wait for the process to end; terminate it at the timeout. Returns whether it timed out."""
        deadline = self._loop.time() + timeout
        ended = await self._wait_for(self._has_ended, timeout if timeout < _STREAM_WATCH_DELAY else None)
        if not ended:
            watchdog.start()
            self._watch_streams()
            ended = await self._wait_for(self._has_ended, deadline - self._loop.time())
        if not ended:
            await self.terminate()
        self._child.stdout.catch_up()
        self._child.stderr.catch_up()
        if not self._is_drained():
            self._watch_streams()
            await self._wait_for(self._is_drained, _DRAIN_TIMEOUT)
        self._reap()
        self._must_kill = False
        return not ended

    async def terminate(self) -> None:
        """Send SIGTERM to the group, and SIGKILL after the grace period. A second call continues the first."""
        if self._is_forked_copy():
            return
        self._watch_streams()
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace
            signal_group(self._child.pid, signal.SIGTERM)
        if not await self._wait_until_gone(self._kill_at):
            signal_group(self._child.pid, signal.SIGKILL)
            await self._wait_until_gone(time.monotonic() + _KILL_TIMEOUT)
        self._must_kill = False

    def close(self) -> None:
        """Release everything. Does not wait on the event loop, which may be closed."""
        if self._is_forked_copy():
            self._child.close_descriptors()
            return
        try:
            self._disconnect()
        finally:
            self._exits = None  # a traceback may keep this run, and would keep the descriptor
            if self._must_kill:
                self._kill()
            self._child.close()

    def _is_forked_copy(self) -> bool:
        """Whether this process was forked while the program ran: the program and the selector are the parent's."""
        return os.getpid() != self._owner

    async def _wait_for(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        """Wait until the condition holds, for so many seconds; with None, for as long as a short program may take."""
        waiter = self._loop.create_future()
        self._waiting = condition, waiter
        timer = None
        if seconds is None:
            assert self._exits is not None
            self._exits.resolve_soon(waiter)
        else:
            timer = self._loop.call_later(seconds, _resolve, waiter)
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiting = None
        return condition()

    async def _wait_until_gone(self, deadline: float) -> bool:
        if not self._ended and not await self._wait_for(self._has_ended, deadline - time.monotonic()):
            return False
        self._reap()
        pause = POLL_MIN
        while call_blocking(partial(has_members, self._child.pid)):
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, POLL_MAX)
        return True

    def _kill(self) -> None:
        deadline = time.monotonic() + _KILL_TIMEOUT
        signal_group(self._child.pid, signal.SIGKILL)
        self._ended = has_ended(self._child.watch, _KILL_TIMEOUT)
        self._reap()
        while self._ended and call_blocking(partial(has_members, self._child.pid)) and time.monotonic() < deadline:
            call_blocking(partial(time.sleep, POLL_MIN))

    def _reap(self) -> None:
        if self._ended and not self._reaped:
            self._reaped = True
            self.exit_code = self._child.reap()

    def _has_ended(self) -> bool:
        self._ended = self._ended or has_ended(self._child.watch)
        return self._ended

    def _is_drained(self) -> bool:
        return self._child.stdout.at_end and self._child.stderr.at_end

    def _watch_streams(self) -> None:
        for drain in (self._child.stdout, self._child.stderr):
            if not drain.at_end and drain.fd not in self._watched:
                self._loop.add_reader(drain.fd, self._on_readable, drain)
                self._watched.add(drain.fd)

    def _on_exit(self) -> None:
        self._ended = True
        self._wake()

    def _on_readable(self, drain: Drain) -> None:
        drain.read()
        if drain.at_end:
            self._watched.discard(drain.fd)
            self._loop.remove_reader(drain.fd)
            self._wake()

    def _on_writable(self, feed: Feed) -> None:
        if feed.push():
            self._loop.remove_writer(feed.fd)
            self._child.close_stdin()

    def _wake(self) -> None:
        if self._waiting is not None:
            condition, waiter = self._waiting
            if condition():
                _resolve(waiter)

    def _disconnect(self) -> None:
        if self._loop.is_closed():
            return  # closing the loop unregistered everything
        if self._exits is not None:
            self._exits.remove(self._child.watch.fd)
        for fd in self._watched:
            self._loop.remove_reader(fd)
        if self._child.feed is not None:
            self._loop.remove_writer(self._child.feed.fd)


class _Exits:
    """The ends that runs on one event loop wait for.

    Registering each with the loop would cost a tenth of what a small program takes, so all share one registration, and
    one timer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._soon: deque[tuple[float, asyncio.Future[None]]] = deque()
        """When to resolve which waiter; the first has a timer."""
        self._epoll = select.epoll()
        loop.add_reader(self._epoll.fileno(), self._dispatch)

    def add(self, fd: int, callback: Callable[[], None]) -> None:
        """Call a function once, when the descriptor is readable."""
        self._callbacks[fd] = callback
        self._epoll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)

    def remove(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def resolve_soon(self, waiter: asyncio.Future[None]) -> None:
        """Resolve a waiter after ``_STREAM_WATCH_DELAY``."""
        when = self._loop.time() + _STREAM_WATCH_DELAY
        self._soon.append((when, waiter))
        if len(self._soon) == 1:
            self._loop.call_at(when, self._resolve_due)

    def _dispatch(self) -> None:
        for fd, _ in self._epoll.poll(0):
            if (callback := self._callbacks.pop(fd, None)) is not None:
                callback()

    def _resolve_due(self) -> None:
        now, soon = self._loop.time(), self._soon
        while soon and (soon[0][1].done() or soon[0][0] <= now):
            _resolve(soon.popleft()[1])
        if soon:
            self._loop.call_at(soon[0][0], self._resolve_due)


class _ExitReaders:
    """The same for loops that have no use for it, such as uvloop's, and for systems without epoll."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def add(self, fd: int, callback: Callable[[], None]) -> None:
        self._loop.add_reader(fd, self._call, fd, callback)

    def remove(self, fd: int) -> None:
        self._loop.remove_reader(fd)

    def resolve_soon(self, waiter: asyncio.Future[None]) -> None:
        self._loop.call_later(_STREAM_WATCH_DELAY, _resolve, waiter)

    def _call(self, fd: int, callback: Callable[[], None]) -> None:
        self.remove(fd)
        callback()


_exits: WeakValueDictionary[int, _Exits] = WeakValueDictionary()
"""Those of each event loop, by its id. The loop keeps them, with their registration, until it is closed."""


def _exits_of(loop: asyncio.AbstractEventLoop) -> _Exits | _ExitReaders:
    if not isinstance(loop, asyncio.SelectorEventLoop) or not hasattr(select, "epoll"):
        return _ExitReaders(loop)
    exits = _exits.get(id(loop))
    if exits is None:
        exits = _exits[id(loop)] = _Exits(loop)
    return exits


os.register_at_fork(after_in_child=_exits.clear)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _completed(child: Child, status: int | None, *, timed_out_after: float | None, started: float) -> Completed:
    signalled = status is not None and status < 0
    return Completed(
        exit_code=None if signalled else status,
        signal=_signal_name(-status) if status is not None and signalled else None,
        stdout=child.stdout.kept,
        stderr=child.stderr.kept,
        stdout_cut=child.stdout.cut,
        stderr_cut=child.stderr.cut,
        timed_out_after=timed_out_after,
        duration=(time.monotonic() - started) * 1000,
        warm=child.warm,
        ahead=child.ahead,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
