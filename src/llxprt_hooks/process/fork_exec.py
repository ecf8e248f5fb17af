"""The system call, faster: the C function behind `subprocess.Popen`, without Popen's Python code.

``bench/launchers.py`` measures the gain. `launch` calls the function as Popen does: vfork, all other descriptors
closed, every step of the child in C. In addition it encodes an unchanged environment only once, does not wait for a
copy of the error pipe in a process that another thread forked, and does not lose the pid if a signal handler raises.

The function is private to CPython, and its signature changes: 3.14 dropped the last parameter. So the signature is
probed when this module is imported. If there is any doubt, `launch` is the one of `llxprt_hooks.process.launch`.
To remove this module, delete it and import ``launch`` from there in ``child.py``.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
from contextlib import suppress
from itertools import starmap
from typing import TYPE_CHECKING, Any

from llxprt_hooks.process.launch import launch as launch_with_popen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from llxprt_hooks.process.launch import Streams

_SIGNATURES = (23, 22)
"""Known numbers of parameters: CPython 3.11 to 3.13, and 3.14. The 23rd is whether vfork may be used."""

_MAX_MESSAGE = 50_000
"""Bytes of an error message from the child; the same limit as in Popen."""

_EXEC_TIMEOUT = 0.2
"""Seconds to wait for the error pipe to close; normally instantaneous."""

_last_encoded: tuple[dict[str, str], list[bytes]] = {}, []


def launch_with_fork_exec(
    argv: Sequence[str], executable: str, streams: Streams, env: Mapping[str, str], cwd: str, started: list[int]
) -> None:
    """Do what `llxprt_hooks.process.launch.launch` does."""
    sys.audit("subprocess.Popen", executable, argv, cwd, env)
    candidates, variables = _candidates(executable, env), _encoded(env)
    error_reader, error_writer = _error_pipe()
    try:
        try:
            arguments = _arguments(argv, candidates, cwd, variables, streams, error_reader, error_writer)
            # extend() and starmap() are C: no signal handler can run between the start and the append.
            started.extend(starmap(_fork_exec, (arguments[:_parameters],)))
        finally:
            os.close(error_writer)
        message = _read_message(error_reader)
    finally:
        os.close(error_reader)
    if message:
        with suppress(ChildProcessError):
            os.waitpid(started.pop(), 0)
        raise _error(message, executable, cwd)


def _arguments(
    argv: Sequence[str],
    candidates: tuple[bytes, ...],
    cwd: str,
    env: list[bytes],
    streams: Streams,
    error_reader: int,
    error_writer: int,
) -> tuple[Any, ...]:
    stdin, stdout, stderr = streams
    return (
        argv,
        candidates,
        True,  # close_fds
        (error_writer,),  # pass_fds; it is closed on exec
        cwd,
        env,
        stdin,
        -1,
        -1,
        stdout,
        -1,
        stderr,
        error_reader,
        error_writer,
        True,  # restore_signals: default actions for SIGPIPE and SIGXFSZ
        True,  # call_setsid
        -1,  # pgid_to_set
        None,  # gid
        None,  # extra_groups
        None,  # uid
        -1,  # child_umask
        None,  # preexec_fn
        getattr(subprocess, "_USE_VFORK", True),
    )


def _read_message(error_reader: int) -> bytes:
    """Return why the program could not be started; empty if it runs.

    The write end is closed on exec. If another thread forked in that moment, its child has a copy of the write end and
    may keep it open for any time. So a child that has not reported an error within the timeout has started.
    """
    os.set_blocking(error_reader, False)
    message = b""
    while True:
        try:
            part = os.read(error_reader, _MAX_MESSAGE)
        except BlockingIOError:
            poll = select.poll()
            poll.register(error_reader, select.POLLIN)
            if poll.poll(_EXEC_TIMEOUT * 1000):
                continue
            return message
        if not part:
            return message
        message += part


def _candidates(executable: str, env: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the files to try: one for each entry of PATH if the executable is a bare name."""
    if "/" in executable:
        return (os.fsencode(executable),)
    return tuple(os.fsencode(os.path.join(folder, executable)) for folder in os.get_exec_path(env))  # noqa: PTH118


def _encoded(env: Mapping[str, str]) -> list[bytes]:
    """Encode the environment. Most hooks of a session get the same one, and comparing is ten times cheaper."""
    global _last_encoded
    last, encoded = _last_encoded
    if env != last:
        last = dict(env)
        if any("=" in name for name in last):
            raise ValueError("illegal environment variable name")
        encoded = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in last.items()]
        _last_encoded = last, encoded
    return encoded


def _error_pipe() -> tuple[int, int]:
    """Make the pipe on which the child reports why it failed. Its write end must not be one of the child's 0 to 2."""
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
    """Decode ``b"OSError:<errno in hex>:<step>"``; the step is ``noexec:chdir`` or similar if it failed before exec."""
    _, number, step = (message + b"::").split(b":", 2)
    code = int(number or b"0", 16)
    return OSError(code, os.strerror(code), cwd if step.startswith(b"noexec") else executable)


def _probe(fork_exec: Callable[..., int] | None) -> int | None:
    """Return how many parameters the function has; None if it is missing or unknown.

    The probe is a call with two invalid values: an argument with a NUL character and an error pipe of -1. A function
    with the expected parameters rejects the values with ValueError, before it forks. Any other rejects the call.
    """
    if fork_exec is None or sys.implementation.name != "cpython":
        return None
    arguments = _arguments(["\0"], (), "", [], (-1, -1, -1), -1, -1)
    for count in _SIGNATURES:
        try:
            fork_exec(*arguments[:count])
        except ValueError:
            return count
        except Exception:  # noqa: S112 - TypeError: not this signature
            continue
    return None


_fork_exec: Any = getattr(subprocess, "_fork_exec", None)
_parameters = _probe(_fork_exec)

launch = launch_with_popen if _parameters is None else launch_with_fork_exec
