"""Our side of the zygotes: which one runs a script, and a ``Child`` for a script that one accepted."""

from __future__ import annotations

import array
import atexit
import contextlib
import os
import resource
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

from llxprt_hooks.logger import debug_logger
from llxprt_hooks.process.child import Child
from llxprt_hooks.process.errors import SpawnError
from llxprt_hooks.process.group import signal_group
from llxprt_hooks.process.launch import launch
from llxprt_hooks.process.pipes import Drain, Feed
from llxprt_hooks.process.reap import is_running
from llxprt_hooks.process.warm.zygote import REASONS, STALE
from llxprt_hooks.process.watchdog import watchdog

log = debug_logger("process")

_FOLDER = str(Path(__file__).parent)
_LENGTH = struct.Struct("!I")
_STATUS = struct.Struct("!ci")

_MAX_ZYGOTES = 4
"""Each keeps some 15 MB. The one that was not used for the longest time makes room for another."""

_MAX_CRASHES = 3
"""A zygote that ended this often without being asked to is not started again."""

_SEND_TIMEOUT = 2.0
"""Seconds for a zygote to read the rest of a request that does not fit into the socket's buffer."""

_SEND_BUFFER = 256 * 1024

_NO_SIGPIPE = getattr(socket, "MSG_NOSIGNAL", 0)

_START_VARIABLES = ("HOME", "LANG", "LANGUAGE", "TZ", "PATH", "__PYVENV_LAUNCHER__")
_START_PREFIXES = ("PYTHON", "LC_", "LD_", "DYLD_", "MALLOC_", "GLIBC_", "OPENSSL_")
"""Variables that an interpreter, or a library it loads, reads when it starts."""

_HIGHEST_DESCRIPTOR = 900
"""An offer takes about ten more descriptors."""

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))

_INHERITED = (b"Umask", b"Uid", b"Gid", b"Groups", b"SigBlk", b"SigIgn", b"Cap", b"NoNewPrivs", b"Seccomp", b"Cpus_al")
"""Lines of /proc/self/status about what a process has from its parent."""


class PythonStart(NamedTuple):
    """A start of Python: ``argv`` is the interpreter's, from its name through flags and script to the arguments."""

    executable: str
    argv: tuple[str, ...]
    flags: tuple[str, ...]


class ZygotePool:
    """The zygotes of one process. After a fork, the child process starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._zygotes: dict[object, _Zygote] = {}
        self._crashes: dict[object, int] = {}
        self._leaving: list[int] = []
        self.patience = 0.0
        """Seconds to wait for a zygote that is starting. A program that fires one event has no next time."""

    def offer(
        self,
        start: PythonStart,
        *,
        stdin: bytes | Callable[[], bytes],
        env: Mapping[str, str],
        cwd: str,
        output_limit: int,
        otherwise: Callable[[], Child],
    ) -> Offer | None:
        """Offer a script to a zygote, which may refuse it. None: there is no zygote for it; start it in the usual way.

        A zygote that does not run yet is started for the next time.
        """
        if env.get("PYTHONPATH") or not _has_low_descriptors():
            return None  # a module there could be imported by the zygote itself; `select` takes only low descriptors
        variables = _start_variables(env)
        key = (start.executable, start.argv[0], start.flags, variables, _inherited_state())
        zygote = self._zygote(key, start, dict(variables))  # of other variables a later hook must not see anything
        if zygote is None or not zygote.is_ready(self.patience):
            log.debug("`%s` runs cold: its zygote is not ready", start.argv[-1])
            return None
        try:
            return zygote.offer(start.argv, stdin, env, cwd, output_limit, otherwise, partial(self._retire, key))
        except OSError as error:
            log.debug("`%s` runs cold: %s", " ".join(start.argv), error)
            return None

    def close(self) -> None:
        """End all zygotes, when the scripts that they run have ended. They are reaped by a later call."""
        for key in list(self._zygotes):
            self._retire(key)
        self._leaving = [pid for pid in self._leaving if is_running(pid)]

    def _retire(self, key: object) -> None:
        with self._lock:
            if key in self._zygotes:
                self._discard(key)

    def _discard(self, key: object) -> None:
        zygote = self._zygotes.pop(key)
        zygote.close()
        self._leaving.append(zygote.pid)

    def _zygote(self, key: object, start: PythonStart, env: Mapping[str, str]) -> _Zygote | None:
        with self._lock:
            if self._owner != os.getpid():  # the connections are the parent's
                self._owner = os.getpid()
                self._zygotes, self._crashes, self._leaving = {}, {}, []
            zygote = self._zygotes.get(key)
            if zygote is not None and not zygote.has_ended():
                self._zygotes[key] = self._zygotes.pop(key)  # the last of them is the one that was used last
                return zygote
            if zygote is not None:
                self._crashes[key] = self._crashes.get(key, 0) + (not zygote.was_idle)
                self._discard(key)
            self._leaving = [pid for pid in self._leaving if is_running(pid)]
            if self._crashes.get(key, 0) >= _MAX_CRASHES:
                return None
            while len(self._zygotes) >= _MAX_ZYGOTES:
                self._discard(next(iter(self._zygotes)))
            try:
                zygote = self._zygotes[key] = _Zygote(start, env)
            except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: an isolated subinterpreter
                log.debug("no zygote for %s: %s", start.executable, error)
                return None
            return zygote


class _Zygote:
    """A connection to a running zygote."""

    def __init__(self, start: PythonStart, env: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._ready = False
        self._broken = False
        self.was_idle = False
        """It ended because there was nothing to do."""
        self._environment: tuple[Mapping[str, str], bytes] = {}, b""
        started: list[int] = []
        with contextlib.ExitStack() as stack:
            ours, theirs = socket.socketpair()
            stack.callback(theirs.close)
            on_error = stack.enter_context(contextlib.ExitStack())
            on_error.callback(ours.close)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            ours.setblocking(False)
            streams = []
            for own in (0, 1, 1):  # pipes, as hooks have them: the interpreter looks at them when it starts
                ends = os.pipe()
                streams.append(ends[own])
                for fd in ends:
                    stack.callback(os.close, fd)
            number = theirs.fileno()
            argv = (start.argv[0], *start.flags, "./zygote.py", str(number), str(os.getpid()))
            launch(argv, start.executable, (streams[0], streams[1], streams[2]), env, _FOLDER, started, number)
            on_error.pop_all()
        self._control = ours
        self.pid = started[0]

    def is_ready(self, patience: float) -> bool:
        """Whether it can take scripts, after waiting for that for some seconds."""
        if not self._ready and not self._broken:
            select.select([self._control], [], [], patience)
            with contextlib.suppress(BlockingIOError):
                self._ready = self._received(0) == b"R"
                self._broken = not self._ready
        return self._ready and not self._broken

    def has_ended(self) -> bool:
        if self._ready and not self._broken:
            with contextlib.suppress(BlockingIOError):
                self.was_idle = self._received(socket.MSG_PEEK) == b"I"
                self._broken = True  # it says nothing else
        return self._broken

    def _received(self, flags: int) -> bytes:
        try:
            return self._control.recv(1, flags)
        except ConnectionError:
            return b""

    def close(self) -> None:
        """Ask for no more scripts. It ends when those that it runs have ended."""
        self._control.close()

    def offer(
        self,
        argv: tuple[str, ...],
        stdin: bytes | Callable[[], bytes],
        env: Mapping[str, str],
        cwd: str,
        output_limit: int,
        otherwise: Callable[[], Child],
        retire: Callable[[], None],
    ) -> Offer:
        """Send a script. Raises OSError if that is not possible."""
        request = _request(argv, self._environment_block(env), cwd)
        payload = stdin if isinstance(stdin, bytes) else stdin()
        opened: list[int] = []
        with contextlib.ExitStack() as on_error:
            status, their_status = socket.socketpair()
            on_error.callback(status.close)
            on_error.callback(lambda: _close(opened))
            with their_status:
                for _ in range(3):
                    opened.extend(os.pipe())
                their_stdin, our_stdin, our_stdout, their_stdout, our_stderr, their_stderr = opened
                for fd in (our_stdin, our_stdout, our_stderr):
                    os.set_blocking(fd, False)
                status.setblocking(False)
                with self._lock:
                    self._send(request, [their_stdin, their_stdout, their_stderr, their_status.fileno()])
            on_error.callback(_withdraw, status)
            opened = [our_stdin, our_stdout, our_stderr]
            _close([their_stdin, their_stdout, their_stderr])
            feed = Feed(our_stdin, payload)
            drains = Drain(our_stdout, output_limit), Drain(our_stderr, output_limit)
            offer = Offer(status, feed, drains, feed.push(), otherwise, retire)
            on_error.pop_all()
        return offer

    def _environment_block(self, env: Mapping[str, str]) -> bytes:
        known, block = self._environment
        if known is not env:
            block = b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items())
            self._environment = env, block
        return block

    def _send(self, request: bytes, fds: list[int]) -> None:
        """Send a request. A connection that took only a part of one cannot be used again."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        sent = self._control.sendmsg([request], ancillary, _NO_SIGPIPE)
        try:
            while sent < len(request):
                if not select.select([], [self._control], [], _SEND_TIMEOUT)[1]:
                    raise TimeoutError("the zygote does not read its requests")
                sent += self._control.send(request[sent:], _NO_SIGPIPE)
        except OSError:
            self._broken = True
            raise


class Offer:
    """A script that was sent to a zygote. Nothing of it has run before the zygote accepts it."""

    seconds: ClassVar[float] = 2.0
    """How long to wait for an answer; normally it takes less than a millisecond."""

    def __init__(
        self,
        status: socket.socket,
        feed: Feed,
        drains: tuple[Drain, Drain],
        all_written: bool,
        otherwise: Callable[[], Child],
        retire: Callable[[], None],
    ) -> None:
        self._status = status
        self._feed = feed
        self._drains = drains
        self._all_written = all_written
        self._retire = retire
        self.fd = status.fileno()
        """Readable when there is an answer."""
        self.otherwise = otherwise
        """Starts the script in the usual way, if it is not accepted."""

    def accepted(self) -> Child | None:
        """Return the script that runs, or None if it is not accepted; then it never will be.

        Raises ``SpawnError`` if it was accepted too late: it may have done something before it was killed.
        """
        kind, value = _message(self._status)
        if kind == b"A":
            watch = StatusWatch(self._status, value)
            child = Child(value, self._feed, *self._drains, watch, watchdog.add(value), warm=True)
            if self._all_written:
                child.close_stdin()
            return child
        log.debug("a script runs cold: %s", REASONS[value] if kind == b"R" else "the zygote does not answer")
        if kind == b"R" and value == STALE:
            self._retire()
        if self.withdraw():
            raise SpawnError("the script was started too late, and killed.", started=True)
        return None

    def withdraw(self) -> bool:
        """Make sure that the script does not run on. Returns whether it had been accepted."""
        was_accepted = _withdraw(self._status)
        self._status.close()
        _close([self._feed.fd, *(drain.fd for drain in self._drains)])
        return was_accepted


class StatusWatch:
    """Waits for the end of a script: its zygote writes the wait status to a socket."""

    __slots__ = ("_pid", "_socket", "fd")

    def __init__(self, status: socket.socket, pid: int) -> None:
        self._socket = status
        self._pid = pid
        self.fd = status.fileno()

    def reap(self) -> int | None:
        """Return the wait status, and let the zygote reap the process. None if the zygote ended before the script."""
        kind, status = _message(self._socket)
        if kind == b"E":
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            return status
        signal_group(self._pid, signal.SIGKILL)  # nothing would notice its end
        return None

    def close(self) -> None:
        self._socket.close()


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _withdraw(status: socket.socket) -> bool:
    """Make sure that a script is not accepted any more. If it has been in the last moment, kill it and return True."""
    with contextlib.suppress(OSError):
        status.shutdown(socket.SHUT_RD)
    kind, pid = _message(status)
    if kind == b"A":
        signal_group(pid, signal.SIGKILL)
    return kind == b"A"


def _message(status: socket.socket) -> tuple[bytes, int]:
    try:
        message = status.recv(_STATUS.size)
    except OSError:
        return b"", 0
    if len(message) < _STATUS.size:
        return b"", 0
    kind, value = _STATUS.unpack(message)
    return kind, int(value)


def _request(argv: tuple[str, ...], environment: bytes, cwd: str) -> bytes:
    parts = (b"\0".join(map(os.fsencode, argv)), environment, os.fsencode(cwd))
    body = b"".join(_LENGTH.pack(len(part)) + part for part in parts)
    return _LENGTH.pack(len(body)) + body


def _start_variables(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(item for item in env.items() if item[0] in _START_VARIABLES or item[0].startswith(_START_PREFIXES))


def _has_low_descriptors() -> bool:
    """Whether new descriptors are far enough below the number from which on `select` raises."""
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return False
    os.close(descriptor)
    return descriptor < _HIGHEST_DESCRIPTOR


def _inherited_state() -> object:
    """What a process inherits besides environment and descriptors, and a zygote has from when it was started."""
    return tuple(map(resource.getrlimit, _LIMITS)), os.getpriority(os.PRIO_PROCESS, 0), _kernel_state()


def _kernel_state() -> object:
    try:
        with open("/proc/thread-self/status", "rb") as status:  # noqa: PTH123
            return tuple(line for line in status if line.startswith(_INHERITED))
    except OSError:  # not Linux. The file mode mask cannot be read there without a change that other threads notice.
        ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
        return tuple(signal.pthread_sigmask(signal.SIG_BLOCK, ())), tuple(ignored), os.getuid(), os.getgroups()


zygotes = ZygotePool()
"""Those of this process: configurations share them."""
atexit.register(zygotes.close)
