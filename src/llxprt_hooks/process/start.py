"""Starting a program on three descriptors: the system call itself, and two ways to it.

`subprocess.Popen` does all that is wanted here and much that is not, in Python, before the program can start: 3 to 5 %
of the time of a small hook. So where its C function is known it is called as Popen calls it: vfork, no descriptor but
the three left open, every step of the child in C. The function is Popen's own affair and may change with any release
of Python: on one that has not been tried, Popen has its way.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from itertools import starmap
from typing import TYPE_CHECKING

from llxprt_hooks.process.group import signal_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Streams = tuple[int, int, int]
    Way = Callable[[Sequence[str], str, Streams, Mapping[str, str], str, list[int]], None]

_TRIED = {(3, 11), (3, 12), (3, 13)}
"""Releases of CPython whose C function is known to take what it is given here."""

_MOST_OF_A_MESSAGE = 50_000

_HEARD_OF = 0.2
_PATIENCE = 1.0
"""Seconds for a program to start, and for one that was killed to end: what takes no time, unless something is amiss."""

_LOOK = 0.001

_abandoned: list[int] = []
"""Processes that could not be ended, for the next start to collect if they have ended since."""


def start(
    argv: Sequence[str], executable: str, streams: Streams, env: Mapping[str, str], cwd: str, started: list[int]
) -> int:
    """The pid of the started program, which is the caller's to collect; OSError or ValueError where it cannot be.

    The pid is in ``started`` as soon as there is one, whatever is raised afterwards, by a signal handler say. An
    OSError's ``filename`` is ``cwd`` if that could not be entered, the executable otherwise.
    """
    _collect_abandoned()
    _way(argv, executable, streams, env, cwd, started)
    return started[0]


def end(pid: int) -> None:
    """Kill a started program and collect it, or abandon it where it cannot be killed."""
    signal_group(pid, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE
    while True:
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() < deadline:
                    time.sleep(_LOOK)
                    continue
                abandon(pid)
        return


def abandon(pid: int) -> None:
    """Give up a process that has not ended."""
    _abandoned.append(pid)
    with suppress(ResourceWarning):  # where warnings are errors
        warnings.warn(f"process {pid} could not be ended and is still running", ResourceWarning, stacklevel=2)


def _collect_abandoned() -> None:
    for pid in list(_abandoned):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        with suppress(ValueError):  # another thread was quicker
            _abandoned.remove(pid)


def start_with_popen(
    argv: Sequence[str], executable: str, streams: Streams, env: Mapping[str, str], cwd: str, started: list[int]
) -> None:
    """By the documented way."""
    stdin, stdout, stderr = streams
    # No preexec_fn: with one, Python could not use vfork, which costs the same however large this process is.
    popen = subprocess.Popen(
        argv,
        executable=executable,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        close_fds=True,
        start_new_session=True,
    )
    popen.returncode = 0  # or it would warn of a process that nobody waits for
    started.append(popen.pid)


def start_with_fork_exec(
    argv: Sequence[str], executable: str, streams: Streams, env: Mapping[str, str], cwd: str, started: list[int]
) -> None:
    """By the C function alone."""
    from _posixsubprocess import fork_exec

    sys.audit("subprocess.Popen", executable, argv, cwd, env)
    stdin, stdout, stderr = streams
    files, variables = _files(executable, env), _encoded(env)
    failure, told = _error_pipe()
    try:
        try:
            arguments = (
                argv,
                files,
                True,  # close all descriptors
                (told,),  # but this
                cwd,
                variables,
                stdin,
                -1,
                -1,
                stdout,
                -1,
                stderr,
                failure,
                told,
                True,  # SIGPIPE and the like have their default action
                True,  # a session of its own
                -1,
                None,
                None,
                None,
                -1,
                None,
                getattr(subprocess, "_USE_VFORK", True),
            )
            started.extend(starmap(fork_exec, (arguments,)))  # all of it in C, where no signal handler comes between
        finally:
            os.close(told)
        message = _message(failure)
    finally:
        os.close(failure)
    if message:
        with suppress(ChildProcessError):
            os.waitpid(started.pop(), 0)
        raise _error(message, executable, cwd)


def _message(failure: int) -> bytes:
    """Why the program could not be started; empty as soon as it runs.

    The other end of the pipe is closed then, unless another thread forked at that very moment: its child has a copy,
    for as long as it likes. Nobody waits for that; a program that is not heard of has started.
    """
    os.set_blocking(failure, False)
    message = b""
    while True:
        try:
            part = os.read(failure, _MOST_OF_A_MESSAGE)
        except BlockingIOError:
            poll = select.poll()
            poll.register(failure, select.POLLIN)
            if poll.poll(_HEARD_OF * 1000):
                continue
            return message
        if not part:
            return message
        message += part


def _files(executable: str, env: Mapping[str, str]) -> tuple[bytes, ...]:
    """The files to try, as many as the search path has folders where the executable is a bare name."""
    if "/" in executable:
        return (os.fsencode(executable),)
    return tuple(os.fsencode(os.path.join(folder, executable)) for folder in os.get_exec_path(env))  # noqa: PTH118


def _encoded(env: Mapping[str, str]) -> list[bytes]:
    """Hooks of a session mostly get the same environment, and to compare it costs a tenth of encoding it."""
    global _last_encoded
    last, encoded = _last_encoded
    if env != last:
        last = dict(env)
        if any("=" in name for name in last):
            raise ValueError("illegal environment variable name")
        encoded = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in last.items()]
        _last_encoded = last, encoded
    return encoded


_last_encoded: tuple[dict[str, str], list[bytes]] = {}, []


def _error_pipe() -> tuple[int, int]:
    """A pipe on which the child tells why it failed; its writing end must not be where the child's streams will be."""
    reader, writer = os.pipe()
    if writer > 2:
        return reader, writer
    try:
        return reader, fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, 3)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)


def _error(message: bytes, executable: str, cwd: str) -> OSError:
    """What the child told: the name of an exception, an error number in hexadecimal, and how far it had come."""
    _, number, progress = (message + b"::").split(b":", 2)
    code = int(number or b"0", 16)
    return OSError(code, os.strerror(code), cwd if progress.startswith(b"noexec") else executable)


def knows_fork_exec() -> bool:
    """Whether this Python's C function is one that was tried."""
    return sys.implementation.name == "cpython" and sys.version_info[:2] in _TRIED


_way: Way = start_with_fork_exec if knows_fork_exec() else start_with_popen
