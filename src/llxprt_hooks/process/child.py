"""A started process with our ends of its pipes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from typing import Final, NamedTuple

from llxprt_hooks.process.errors import SpawnError, explain
from llxprt_hooks.process.exit_watch import ExitWatch, abandon, kill_and_reap, reap_abandoned, watch_exit
from llxprt_hooks.process.forks import no_fork
from llxprt_hooks.process.pipes import Drain, Feed, is_ignored
from llxprt_hooks.process.shell.environment import Environment, encoded_entries
from llxprt_hooks.process.watchdog import watchdog


class Child:
    """A started process, the pipes to its standard streams, and the watch for its end."""

    __slots__ = ("_guard", "_listed", "_reaped", "ahead", "feed", "pid", "stderr", "stdout", "warm", "watch")

    def __init__(
        self,
        pid: int,
        feed: Feed | None,
        stdout: Drain,
        stderr: Drain,
        watch: ExitWatch,
        listed: int | None,
        *,
        warm: bool = False,
        guard: int | None = None,
    ) -> None:
        self.pid = pid
        self.warm = warm
        self.ahead = False
        """It was started before there was anything for it to do."""
        self._guard = guard
        self._listed = listed
        if feed is not None:
            no_fork.add_input(feed.fd)
        self.feed = feed
        self.stdout = stdout
        self.stderr = stderr
        self.watch = watch
        self._reaped = False

    def begin(self, stdin: bytes) -> Child:
        """Give its input to a program that was started without."""
        assert self.feed is not None
        self._unguard()
        self.ahead = True
        self.feed = Feed(self.feed.fd, stdin)
        if self.feed.push():
            self.close_stdin()
        return self

    def reap(self) -> int | None:
        """Reap the process, which has ended, and return its exit code.

        The exit code is negative if a signal ended the process, and None if other code reaped it.
        """
        status = self.watch.reap()
        self._reaped = True
        return None if status is None else os.waitstatus_to_exitcode(status)

    def close_stdin(self) -> None:
        if self.feed is not None:
            no_fork.close_input(self.feed.fd)
            self.feed = None

    def close(self) -> None:
        """Release everything. The process has ended, or could not be ended."""
        self.close_descriptors()
        watchdog.remove(self._listed)
        if not self._reaped:
            abandon(self.pid)

    def close_descriptors(self) -> None:
        self.close_stdin()
        if self._guard is not None:
            os.close(self._guard)
        os.close(self.stdout.fd)
        os.close(self.stderr.fd)
        self.watch.close()

    def _unguard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            _let_end(guard)
            os.close(guard)


_HELD: Final = ("/bin/sh", "-c", 'read -r _; exec "$@"', "sh")
"""Starts a program once it can read a line. Where SIGCHLD is ignored, the system forgets how a process ended as soon as
it has, unless it is watched by then. A shell reads a line byte by byte, so that the program gets all that follows."""


def spawn(
    argv: Sequence[str],
    *,
    executable: str | None = None,
    stdin: bytes | Callable[[], bytes] | None,
    env: Mapping[str, str],
    cwd: str,
    output_limit: int,
) -> Child:
    """Start a program, and write to its stdin what fits into the pipe, while the program loads.

    With None for ``stdin`` it waits for its input until `Child.begin`. If its input ends before that, because this
    process was killed, it is killed.

    Raises `SpawnError` if the program cannot be started, or cannot be watched; nothing is left running then.
    """
    reap_abandoned()
    with no_fork:
        opened: list[int] = []
        started: list[int] = []
        listed: int | None = None
        watch: ExitWatch | None = None
        try:
            for _ in range(3):
                opened += os.pipe()
            their_stdin, our_stdin, our_stdout, their_stdout, our_stderr, their_stderr = opened
            if not argv:
                raise ValueError("an empty argv")
            held = stdin is not None and is_ignored(signal.SIGCHLD)
            if held:
                argv, executable = (*_HELD, executable or argv[0], *argv[1:]), _HELD[0]
            streams = their_stdin, their_stdout, their_stderr
            start_program(Program(argv, executable or argv[0], streams, env, cwd), started)
            listed = watchdog.add(started[0])
            if held:
                watch = watch_exit(started[0])
            # The program may wait for its input already: everything else comes after that.
            os.set_blocking(our_stdin, False)
            all_written, guard = False, None
            if stdin is None:
                _kill_at_end(their_stdin, started[0])
                feed, guard = Feed(our_stdin, b""), their_stdin
            else:
                data = stdin if isinstance(stdin, bytes) else stdin()
                feed = Feed(our_stdin, b"\n" + data if held else data)
                all_written = feed.push()
            given_up = [their_stdout, their_stderr, *([their_stdin] if guard is None else [])]
            for fd in [*given_up, our_stdin] if all_written else given_up:
                opened.remove(fd)
                os.close(fd)
            os.set_blocking(our_stdout, False)
            os.set_blocking(our_stderr, False)
            drains = Drain(our_stdout, output_limit), Drain(our_stderr, output_limit)
            watch = watch or watch_exit(started[0])
            child = Child(started[0], None if all_written else feed, *drains, watch, listed, guard=guard)
        except BaseException as error:
            for fd in opened:
                os.close(fd)
            if watch is not None:
                watch.close()
            for pid in started:
                kill_and_reap(pid)
            watchdog.remove(listed)
            if isinstance(error, OSError | ValueError | RuntimeError):
                raise SpawnError(explain(error, argv, executable, env, cwd), started=bool(started)) from error
            raise
        return child


CAN_WAIT: Final = hasattr(fcntl, "F_SETSIG")
"""Whether a program can be started without its input: the system must be able to kill it at the end of a pipe."""
_ON, _OFF = struct.pack("i", 1), struct.pack("i", 0)


def _kill_at_end(stdin: int, group: int) -> None:
    """Let the kernel kill a group at the end of its stdin, before any of its processes can see that end.

    A program whose input ends because we were killed would decide about an empty one. The signal belongs to the end of
    the pipe that the program has, of which ``stdin`` is a copy; Linux sends it while it holds the lock of the pipe.
    """
    fcntl.fcntl(stdin, fcntl.F_SETOWN, -group)
    fcntl.fcntl(stdin, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.ioctl(stdin, termios.FIOASYNC, _ON)  # and not F_SETFL: the program may change the other flags


def _let_end(stdin: int) -> None:
    fcntl.ioctl(stdin, termios.FIOASYNC, _OFF)
    fcntl.fcntl(stdin, fcntl.F_SETSIG, 0)
    fcntl.fcntl(stdin, fcntl.F_SETOWN, 0)


# The system call that starts a program in its own session, on three descriptors.

_fork_exec: Callable[..., int] | None
try:
    import _posixsubprocess

    _fork_exec = _posixsubprocess.fork_exec
except (ImportError, AttributeError):  # it is not public
    _fork_exec = None


class Program(NamedTuple):
    """What is started, on which descriptors. Those that are ``passed`` keep their numbers."""

    argv: Sequence[str]
    executable: str
    streams: tuple[int, int, int]
    env: Mapping[str, str]
    cwd: str
    passed: tuple[int, ...] = ()


def start_program(program: Program, started: list[int]) -> None:
    """Start a program. The caller reaps it.

    The pid is appended to ``started``, so that the caller can kill the process whatever is raised afterwards. Raises
    OSError or ValueError if the program cannot be started. The ``filename`` of an OSError is ``cwd`` if that is the
    problem, otherwise the executable.
    """
    argv, executable, (stdin, stdout, stderr), env, cwd, passed = program
    count, is_running = len(started), False
    try:  # as `subprocess` does it, without what Popen works out before that (D-51)
        if _fork_exec is not None and "/" in executable:
            entries = env.entries if isinstance(env, Environment) else encoded_entries(env)
            sys.audit("subprocess.Popen", executable, argv, cwd, env)
            reader, writer = os.pipe()
            try:
                try:
                    if writer > 2:  # otherwise it would become one of the program's streams
                        arguments = (
                            *(tuple(argv), (os.fsencode(executable),), True, tuple(sorted((*passed, writer)))),
                            *(cwd, entries, stdin, -1, -1, stdout, -1, stderr, reader, writer),
                            *(True, True, -1, None, None, None, -1, None, *_USE_VFORK),
                        )
                        # No signal handler can run, and raise, between the start and the append.
                        started.extend(starmap(_fork_exec, (arguments,)))
                finally:
                    os.close(writer)
                is_running = len(started) > count and not os.read(reader, 1)  # it would be an error that it met
            finally:
                os.close(reader)
    except (OSError, TypeError, ValueError):  # and nothing that a signal handler may raise before the start
        if len(started) > count:
            raise
    if is_running:
        return
    if len(started) > count:
        with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored
            os.waitpid(started.pop(), 0)
    _Process(program, started)  # nothing runs: Popen may know how to start it, or raises the right error


# With vfork, the cost of a start does not depend on the memory of this process.
_USE_VFORK = (True,) if sys.version_info < (3, 14) else ()


class _Process(subprocess.Popen[bytes]):
    """The same with the documented interface. It reaps only what it could not start."""

    def __init__(self, program: Program, started: list[int]) -> None:
        stdin, stdout, stderr = program.streams
        try:
            super().__init__(
                program.argv,
                executable=program.executable,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=program.env,
                cwd=program.cwd,
                start_new_session=True,
                pass_fds=program.passed,
            )
        except BaseException:  # perhaps of a signal handler, when the program may have been started already
            if (pid := getattr(self, "pid", None)) is not None and self.returncode is None:  # Popen has not reaped it
                self._hand_over(pid, started)
            raise
        self._hand_over(self.pid, started)

    def _hand_over(self, pid: int, started: list[int]) -> None:
        started.append(pid)
        self.returncode = 0  # otherwise Popen would warn that it is still running, and reap it itself
