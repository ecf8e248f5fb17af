"""The system call that starts a program in its own session, on three descriptors."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

from llxprt_hooks.process.shell.environment import Environment, encoded_entries

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
    if not _start_directly(program, started):
        _Process(program, started)


def _start_directly(program: Program, started: list[int]) -> bool:
    """Start a program as `subprocess` does, without what Popen works out before that (D-51).

    Returns False if nothing runs, for whatever reason: then Popen tries, and raises the right error.
    """
    argv, executable, (stdin, stdout, stderr), env, cwd, passed = program
    if _fork_exec is None or "/" not in executable:
        return False
    count = len(started)
    try:
        entries = env.entries if isinstance(env, Environment) else encoded_entries(env)
        sys.audit("subprocess.Popen", executable, argv, cwd, env)
        reader, writer = os.pipe()
        try:
            try:
                if writer < 3:  # it would become one of the program's streams
                    return False
                arguments = (
                    *(tuple(argv), (os.fsencode(executable),), True, tuple(sorted((*passed, writer))), cwd, entries),
                    *(stdin, -1, -1, stdout, -1, stderr, reader, writer, True, True, -1, None, None, None, -1, None),
                    *_USE_VFORK,
                )
                # No signal handler can run, and raise, between the start and the append.
                started.extend(starmap(_fork_exec, (arguments,)))
            finally:
                os.close(writer)
            is_running = not os.read(reader, 1)  # otherwise the error that the new process met
        finally:
            os.close(reader)
    except Exception:
        if len(started) > count:
            raise
        return False
    if not is_running:
        with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored
            os.waitpid(started.pop(), 0)
    return is_running


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
        except (OSError, ValueError):  # Popen has reaped the process, if there was one
            raise
        except BaseException:  # a signal handler raised, when the program may have been started already
            if (pid := getattr(self, "pid", None)) is not None:
                self._hand_over(pid, started)
            raise
        self._hand_over(self.pid, started)

    def _hand_over(self, pid: int, started: list[int]) -> None:
        started.append(pid)
        self.returncode = 0  # otherwise Popen would warn that it is still running, and reap it itself
