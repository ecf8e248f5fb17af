"""Programs that are started before there is anything for them to do, and wait at their standard input.

A program that was started ahead is a `Child` whose input comes later: same pipes, own session and process group, same
timeout, kill and output limit from then on. At most one waits for each key. It is used once, and only if it is what a
fresh start would be now: same environment, same limits and rights, still running, and nothing written yet.

A thread starts them, so that nobody waits for that; it ends when none is left. If this process is killed, the kernel
kills those that wait (see `child`). A forked process starts its own.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import resource
import select
import signal
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.process.child import CAN_WAIT, Child, spawn
from llxprt_hooks.process.errors import SpawnError
from llxprt_hooks.process.exit_watch import has_ended
from llxprt_hooks.process.forks import no_fork
from llxprt_hooks.process.group import signal_group
from llxprt_hooks.process.pipes import is_ignored
from llxprt_hooks.process.warm.pool import inherited_state

log = debug_logger("process")

_LIFETIME = 60.0
"""Seconds for which a program waits for its input."""

_PAUSE = 0.002
"""Seconds after a run before the next program is started. An event that comes at once would have to share the machine
with that start, and gain nothing."""

_LOOK_SECONDS = 1.0
"""How often the thread looks for programs that have ended."""

_MAX_WAITING = 32
_DESCRIPTORS = 64
"""One may wait for so many descriptors that this process may open. Each takes five."""

_MAX_WASTED = 3
_REST_SECONDS = 60.0
"""After so many in a row that could not be used, none is started for that key for a while."""

_MAX_REMEMBERED = 256
"""Keys whose waste is remembered."""

_KILL_TIMEOUT = 1.0
"""Seconds for killed programs to end."""


class Start(NamedTuple):
    """What a program is started with."""

    argv: tuple[str, ...]
    executable: str | None
    env: Mapping[str, str]
    cwd: str
    output_limit: int


class Prepared(NamedTuple):
    """A program to start, and a function that returns why it is not what would be started now, if so."""

    start: Start
    stale: Callable[[], str | None]


class _Waiting(NamedTuple):
    child: Child
    prepared: Prepared
    state: object
    until: float


class AheadPool:
    """The waiting programs of one process."""

    def __init__(self) -> None:
        self.patience = 0.0
        """Seconds that `wait` gives a program to reach its input. A program that fires one event has no next time."""
        self._forget()

    def _forget(self) -> None:
        self._waiting: dict[Hashable, _Waiting] = {}
        self._wanted: dict[Hashable, tuple[float, Callable[[], Prepared | None]]] = {}  # when to start it, and how
        self._wasted: dict[Hashable, tuple[int, float]] = {}  # how many in a row, and when the last
        self._leaving: list[Child] = []
        self._starting = False
        self._thread: threading.Thread | None = None
        # Reentrant: the garbage collector or a signal handler may call us while it is held.
        self._changed = threading.Condition(threading.RLock())

    def forget(self) -> None:
        """In a forked process: the programs are the parent's, and another thread of it may have held the lock."""
        for child in (*(each.child for each in self._waiting.values()), *self._leaving):
            with contextlib.suppress(OSError):
                child.close_descriptors()
        self._forget()

    def waits_for(self, key: Hashable) -> bool:
        """Whether a program waits for this key."""
        return key in self._waiting

    def take(self, key: Hashable, start: Start) -> Child | None:
        """Return the program that waits for this key, for `Child.begin`; None if none does, or none that fits."""
        with self._changed:
            self._wanted.pop(key, None)  # it would take time from the one that is started instead
            waiting = self._waiting.pop(key, None)
        if waiting is None:
            return None
        why = _unusable(waiting, start)
        if why is None:
            self._wasted.pop(key, None)
            return waiting.child
        self._drop(key, waiting, why)
        return None

    def prepare(self, key: Hashable, prepared: Callable[[], Prepared | None]) -> None:
        """Start a program soon, unless one waits for this key. The function is called in another thread."""
        with self._changed:
            if not CAN_WAIT or key in self._waiting or self._rests(key):
                return
            self._wanted[key] = time.monotonic() + _PAUSE, prepared
            self._ensure_thread()
            self._changed.notify()

    def start_now(self, key: Hashable, prepare: Callable[[], Prepared | None]) -> None:
        """Start a program and give it time to reach its input."""
        give_up = time.monotonic() + _KILL_TIMEOUT
        with self._changed:
            self._wanted.pop(key, None)
            while self._starting and time.monotonic() < give_up:
                self._changed.wait(_PAUSE)
        self._start(key, prepare)
        if (waiting := self._waiting.get(key)) is not None:
            _has_acted(waiting.child, self.patience)

    def give_way(self) -> bool:
        """End all programs that wait, because something needs what they have. Returns whether there were any."""
        with self._changed:
            had_any = bool(self._waiting or self._leaving)
        self.close()
        return had_any

    def close(self) -> None:
        """End all programs that wait."""
        deadline = time.monotonic() + _KILL_TIMEOUT
        with self._changed:
            self._wanted.clear()
            while self._starting and time.monotonic() < deadline:
                self._changed.wait(0.01)
            self._end(list(self._waiting))
            self._changed.notify()
        while not self._reap() and time.monotonic() < deadline:
            time.sleep(0.001)

    def _ensure_thread(self) -> None:
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._work, name="llxprt-hooks ahead", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # too many threads, or an interpreter that may have none
            self._thread = None
            self._wanted.clear()
            log.debug("nothing is started ahead: %s", error)

    def _work(self) -> None:
        changed = self._changed
        while True:
            with changed:
                if changed is not self._changed:
                    return  # this is a forked process
                if not (self._wanted or self._waiting or self._leaving):
                    self._thread = None
                    return
                changed.wait(self._idle_seconds())
                now = time.monotonic()
                due = [(key, self._wanted.pop(key)[1]) for key, (when, _) in list(self._wanted.items()) if when <= now]
            for key, prepared in due:
                self._start(key, prepared)
            self._look()

    def _idle_seconds(self) -> float:
        first = min((when for when, _ in self._wanted.values()), default=math.inf)
        return max(0.0, min(first - time.monotonic(), _LOOK_SECONDS))

    def _start(self, key: Hashable, prepare: Callable[[], Prepared | None]) -> None:
        with self._changed:
            if self._starting or key in self._waiting or len(self._waiting) >= _room():
                return
            self._starting = True
        try:
            if not is_ignored(signal.SIGCHLD) and (prepared := prepare()) is not None:
                argv, executable, env, cwd, limit = prepared.start
                state = inherited_state()
                with no_fork:  # a process that is forked now would keep descriptors that nobody knows yet
                    child = spawn(argv, executable=executable, stdin=None, env=env, cwd=cwd, output_limit=limit)
                    waiting = _Waiting(child, prepared, state, time.monotonic() + _LIFETIME)
                    with self._changed:
                        self._waiting[key] = waiting
        except SpawnError as error:
            log.debug("not started ahead: %s", error)
        except Exception:
            log.debug("not started ahead", exc_info=True)
        with self._changed:
            self._starting = False
            self._changed.notify_all()

    def _look(self) -> None:
        """End programs that have waited too long, or have not waited."""
        now = time.monotonic()
        with self._changed:
            for key, waiting in list(self._waiting.items()):
                if _has_acted(waiting.child):
                    self._waste(key)
                elif waiting.until > now:
                    continue
                self._end([key])
        self._reap()

    def _drop(self, key: Hashable, waiting: _Waiting, why: str) -> None:
        log.debug("`%s` was started ahead and is not used: %s", " ".join(waiting.prepared.start.argv), why)
        with self._changed:
            self._waste(key)
            self._leaving.append(waiting.child)
            signal_group(waiting.child.pid, signal.SIGKILL)
            self._ensure_thread()
            self._changed.notify()

    def _end(self, keys: list[Hashable]) -> None:
        for key in keys:
            if (waiting := self._waiting.pop(key, None)) is not None:
                signal_group(waiting.child.pid, signal.SIGKILL)
                self._leaving.append(waiting.child)

    def _reap(self) -> bool:
        """Release what has ended. Returns whether there is nothing more to wait for."""
        with self._changed:
            ended = [child for child in self._leaving if has_ended(child.watch)]
            self._leaving = [child for child in self._leaving if child not in ended]
            is_done = not self._leaving
        for child in ended:  # without the lock: this waits for those that fork, who may wait for the lock
            child.reap()
            child.close()
        return is_done

    def _waste(self, key: Hashable) -> None:
        count = self._wasted.pop(key, (0, 0.0))[0] + 1
        self._wasted[key] = count, time.monotonic()
        if len(self._wasted) > _MAX_REMEMBERED:
            del self._wasted[next(iter(self._wasted))]

    def _rests(self, key: Hashable) -> bool:
        count, last = self._wasted.get(key, (0, 0.0))
        return count >= _MAX_WASTED and last + _REST_SECONDS > time.monotonic()


def _unusable(waiting: _Waiting, start: Start) -> str | None:
    """Why a program is not what would be started now, if so."""
    if waiting.prepared.start[:2] != start[:2] or waiting.prepared.start[3:] != start[3:]:
        return "the command means another program now"
    if waiting.prepared.start.env is not start.env and waiting.prepared.start.env != start.env:
        return "its environment is another one now"
    if _has_acted(waiting.child):
        return "it has ended, or written something, before it got its input"
    if waiting.state != inherited_state():
        return "this process has other limits or rights now"
    try:
        return waiting.prepared.stale()
    except Exception as error:
        return f"its files cannot be compared: {error}"


def _has_acted(child: Child, seconds: float = 0.0) -> bool:
    """Whether it has ended, or written to its output, or closed it, after waiting for that."""
    poll = select.poll()
    for fd in (child.watch.fd, child.stdout.fd, child.stderr.fd):
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _room() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_WAITING if soft == resource.RLIM_INFINITY else min(_MAX_WAITING, soft // _DESCRIPTORS)


ahead = AheadPool()
"""Those of this process: configurations share them."""
atexit.register(ahead.close)
os.register_at_fork(after_in_child=ahead.forget)
