"""Every test of the process layer runs on each event loop, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
import uvloop

from tests.process.run.runs import bash, marked
from tests.support import preloaded
from tests.support.processes import DEADLINE, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

WAYS = {
    "pidfd": (),
    "thread": ("pidfd_open",),
    "thread without waitid": ("pidfd_open", "waitid"),
}
"""The ways to wait for the end of a process, by what the system lacks."""


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return LOOPS


@pytest.fixture(params=list(LOOPS))
def new_loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    return LOOPS[request.param]


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs once with each way of waiting for the end."""
    for name in WAYS[request.param]:
        monkeypatch.delattr(os, name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _what_stays_open_is_open() -> None:
    """uvloop opens descriptors that it never closes. The watchdog keeps two, and starts its shell once."""
    uvloop.new_event_loop().close()
    asyncio.run(bash("sleep 0.1"))
    until(lambda: not any(thread.name == "start the watchdog" for thread in threading.enumerate()))


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """``clean``: no descriptor, no thread, no zombie, no process is left by any of these tests."""
    preloaded.end_server()
    before = _descriptors(), threading.enumerate()
    yield
    give_up = time.monotonic() + DEADLINE  # what was just killed may still be ending, and so may threads
    while (left := marked()) and time.monotonic() < give_up:
        time.sleep(0.01)
    for pid in left:
        os.kill(pid, signal.SIGKILL)  # this test fails, but not all that follow
    assert left == []
    # Threads of an earlier test may end meanwhile, or have a file open for a moment.
    while not set(threading.enumerate()) <= set(before[1]) and time.monotonic() < give_up:
        time.sleep(0.01)
    assert set(threading.enumerate()) <= set(before[1])
    while not _descriptors() <= before[0] and time.monotonic() < give_up:  # earlier tests' servers may close theirs
        time.sleep(0.01)
    assert _descriptors() <= before[0]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def _descriptors() -> set[tuple[str, str]]:
    """What is open, and what it leads to: another one may have the same number later.

    Running programs opens no connection. Those that servers and clients of earlier tests open meanwhile are theirs.
    """
    found = set()
    for name in os.listdir("/dev/fd"):
        try:
            leads_to = os.readlink(f"/dev/fd/{name}")
            if not (leads_to.startswith("socket:") and _is_connection(int(name))):
                found.add((name, leads_to))
        except FileNotFoundError:  # that of the listing itself
            continue
        except OSError:  # not a link on this system
            found.add((name, ""))
    return found


def _is_connection(descriptor: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            return copy.family in (socket.AF_INET, socket.AF_INET6)
    except OSError:  # it has been closed meanwhile
        return True
