"""One run, from start to end, on the running event loop."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks.process.exit_watch import has_ended
from llxprt_hooks.process.group import LOOK_FIRST, LOOK_LAST, has_members, signal_group
from llxprt_hooks.process.spawn import Child, spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from llxprt_hooks.process.drain import Drain
    from llxprt_hooks.process.feed import Feed

_SHORT = 0.005
"""Seconds for which a program's streams are left alone: what it writes waits in the pipes.

To watch them costs the event loop more than all else. A program that ends within that time, and many do, needs it not;
one that fills a pipe waits that long, once.
"""

_LEFT_BEHIND = 0.1
"""Seconds for the streams to end after the process has."""

_KILLED = 1.0
"""Seconds for a killed group to be gone. More will not help: what is left is out of our hands."""


@dataclass(frozen=True, slots=True)
class Completed:
    """What became of a process."""

    exit_code: int | None
    """None when a signal ended it or its status was lost."""
    signal: str | None
    """The signal that ended it: ``SIGKILL``, or ``SIG35`` where it has no name."""
    stdout: bytes
    stderr: bytes
    stdout_cut: bool
    """More came than the limit."""
    stderr_cut: bool
    timed_out: bool
    duration: float
    """Milliseconds."""
    status_lost: bool
    """How it ended cannot be told: SIGCHLD is ignored in this process, or somebody else collected its children."""


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
    """Run a program to its end; ``timeout`` and ``grace`` are in seconds.

    The program is ``executable``, or else the first of ``argv``, looked up in the PATH of ``env``. ``stdin`` may be
    what makes its input: it is called once the program has been started, so that a large one is made while it loads.

    >>> asyncio.run(run_process(["/bin/cat"], stdin=b"hello", env={}, cwd="/", timeout=60)).stdout
    b'hello'
    """
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    child = spawn(argv, executable=executable, stdin=stdin, env=env, cwd=cwd, output_limit=output_limit)
    run = _Run(loop, child, grace)
    try:
        run.connect()
        timed_out = await run.finish(timeout)
    except asyncio.CancelledError:
        await run.bring_to_end()
        raise
    finally:
        run.close()
    return _completed(child, run.exit_code, timed_out=timed_out, started=started)


class _Run:
    """The state of one run between the callbacks of its event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, child: Child, grace: float) -> None:
        self._loop = loop
        self._child = child
        self._grace = grace
        self._ended = False
        self._collected = False
        self._over = False  # nothing is left that would have to be killed
        self._kill_at: float | None = None
        self._waiting: tuple[Callable[[], bool], asyncio.Future[None]] | None = None
        self._watched: set[int] = set()  # descriptors that the event loop waits on for us to read
        self.exit_code: int | None = None

    def connect(self) -> None:
        """Have the event loop call us when there is something to collect or to write."""
        self._watch(self._child.watch.fd, self._notice_end)
        if self._child.feed is not None:
            self._loop.add_writer(self._child.feed.fd, self._write, self._child.feed)

    async def finish(self, timeout: float) -> bool:  # noqa: ASYNC109
        """Wait for the end, or bring it about when the time is over; whether that was so."""
        short = min(timeout, _SHORT)
        ended = await self._until(self._has_ended, short)
        if not ended:
            self._watch_streams()
            ended = await self._until(self._has_ended, timeout - short)
        if not ended:
            await self.bring_to_end()
        self._child.stdout.catch_up()
        self._child.stderr.catch_up()
        if not self._is_drained():
            self._watch_streams()
            await self._until(self._is_drained, _LEFT_BEHIND)
        self._collect()
        self._over = True
        return not ended

    async def bring_to_end(self) -> None:
        """SIGTERM to the group, SIGKILL when the grace is over. Interrupted and called again, it goes on from there."""
        self._watch_streams()
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace
            signal_group(self._child.pid, signal.SIGTERM)
        if not await self._until_gone(self._kill_at):
            signal_group(self._child.pid, signal.SIGKILL)
            await self._until_gone(time.monotonic() + _KILLED)
        self._over = True

    def close(self) -> None:
        """Leave nothing behind, without another wait on the event loop, which may be gone."""
        try:
            self._disconnect()
        finally:
            if not self._over:
                self._kill()
            self._child.close()

    async def _until(self, reached: Callable[[], bool], seconds: float) -> bool:
        if reached():
            return True
        waiter = self._loop.create_future()
        self._waiting = reached, waiter
        timer = self._loop.call_later(seconds, _resolve, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiting = None
        return reached()

    async def _until_gone(self, deadline: float) -> bool:
        if not await self._until(self._has_ended, deadline - time.monotonic()):
            return False
        self._collect()
        pause = LOOK_FIRST
        while has_members(self._child.pid):
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, LOOK_LAST)
        return True

    def _kill(self) -> None:
        deadline = time.monotonic() + _KILLED
        signal_group(self._child.pid, signal.SIGKILL)
        self._ended = has_ended(self._child.watch, _KILLED)
        self._collect()
        while self._ended and has_members(self._child.pid) and time.monotonic() < deadline:
            time.sleep(LOOK_FIRST)

    def _collect(self) -> None:
        if self._ended and not self._collected:
            self._collected = True
            self.exit_code = self._child.collect()

    def _has_ended(self) -> bool:
        self._ended = self._ended or has_ended(self._child.watch)
        return self._ended

    def _is_drained(self) -> bool:
        return self._child.stdout.at_end and self._child.stderr.at_end

    def _watch(self, fd: int, callback: Callable[..., None], *arguments: Drain) -> None:
        self._loop.add_reader(fd, callback, *arguments)
        self._watched.add(fd)

    def _watch_streams(self) -> None:
        for drain in (self._child.stdout, self._child.stderr):
            if not drain.at_end and drain.fd not in self._watched:
                self._watch(drain.fd, self._read, drain)

    def _unwatch(self, fd: int) -> None:
        self._watched.discard(fd)
        self._loop.remove_reader(fd)

    def _notice_end(self) -> None:
        self._unwatch(self._child.watch.fd)
        self._ended = True
        self._wake()

    def _read(self, drain: Drain) -> None:
        drain.read()
        if drain.at_end:
            self._unwatch(drain.fd)
            self._wake()

    def _write(self, feed: Feed) -> None:
        if feed.push():
            self._loop.remove_writer(feed.fd)
            self._child.close_stdin()

    def _wake(self) -> None:
        if self._waiting is not None:
            reached, waiter = self._waiting
            if reached():
                _resolve(waiter)

    def _disconnect(self) -> None:
        if self._loop.is_closed():
            return  # and has let go of them itself
        for fd in self._watched:
            self._loop.remove_reader(fd)
        if self._child.feed is not None:
            self._loop.remove_writer(self._child.feed.fd)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _completed(child: Child, status: int | None, *, timed_out: bool, started: float) -> Completed:
    signalled = status is not None and status < 0
    return Completed(
        exit_code=None if signalled else status,
        signal=_signal_name(-status) if status is not None and signalled else None,
        stdout=child.stdout.kept,
        stderr=child.stderr.kept,
        stdout_cut=child.stdout.cut,
        stderr_cut=child.stderr.cut,
        timed_out=timed_out,
        duration=(time.monotonic() - started) * 1000,
        status_lost=status is None,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
