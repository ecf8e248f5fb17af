"""Starting a program with pipes of our own on its three standard streams."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from llxprt_hooks.process.drain import Drain
from llxprt_hooks.process.errors import SpawnError, explain
from llxprt_hooks.process.exit_watch import ExitWatch, watch_exit
from llxprt_hooks.process.feed import Feed
from llxprt_hooks.process.start import abandon, end, start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Child:
    """A started process and our ends of what connects us with it."""

    __slots__ = ("_collected", "feed", "pid", "stderr", "stdout", "watch")

    def __init__(self, pid: int, feed: Feed | None, stdout: Drain, stderr: Drain, watch: ExitWatch) -> None:
        self.pid = pid
        self.feed = feed
        self.stdout = stdout
        self.stderr = stderr
        self.watch = watch
        self._collected = False

    def collect(self) -> int | None:
        """The exit code of the ended process (below zero: the signal that ended it), None when it was lost."""
        status = self.watch.collect()
        self._collected = True
        return None if status is None else os.waitstatus_to_exitcode(status)

    def close_stdin(self) -> None:
        if self.feed is not None:
            os.close(self.feed.fd)
            self.feed = None

    def close(self) -> None:
        self.close_stdin()
        os.close(self.stdout.fd)
        os.close(self.stderr.fd)
        self.watch.close()
        if not self._collected:
            abandon(self.pid)


def spawn(
    argv: Sequence[str],
    *,
    executable: str | None = None,
    stdin: bytes | Callable[[], bytes],
    env: Mapping[str, str],
    cwd: str,
    output_limit: int,
) -> Child:
    """Start a program and write to it what its stdin takes at once, while it loads."""
    opened: list[int] = []
    started: list[int] = []
    try:
        their_stdin, our_stdin = _pipe(opened)
        our_stdout, their_stdout = _pipe(opened)
        our_stderr, their_stderr = _pipe(opened)
        if not argv:
            raise ValueError("an empty argv")
        pid = start(argv, executable or argv[0], (their_stdin, their_stdout, their_stderr), env, cwd, started)
        for fd in (their_stdin, their_stdout, their_stderr):
            opened.remove(fd)
            os.close(fd)
        for fd in (our_stdin, our_stdout, our_stderr):
            os.set_blocking(fd, False)
        feed = Feed(our_stdin, stdin if isinstance(stdin, bytes) else stdin())
        all_fed = feed.push()
        watch = watch_exit(pid)
        child = Child(pid, feed, Drain(our_stdout, output_limit), Drain(our_stderr, output_limit), watch)
    except BaseException as error:
        _undo(opened, started)
        if isinstance(error, OSError | ValueError):
            raise SpawnError(explain(error, argv, executable, env, cwd), started=bool(started)) from error
        raise
    if all_fed:
        child.close_stdin()
    return child


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened.extend(ends)
    return ends


def _undo(opened: list[int], started: list[int]) -> None:
    for fd in opened:
        os.close(fd)
    for pid in started:
        end(pid)
