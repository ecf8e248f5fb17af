"""Forked processes that live on while their parent runs programs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llxprt_hooks.process import forks
from llxprt_hooks.process.forks import NoFork
from tests.process.run.runs import bash, in_python
from tests.support.processes import end

FORK_IN_A_THREAD = """
import asyncio, os, signal, threading, warnings
from llxprt_hooks.process import child, run_process

warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
start_program, starting, forked, pids = child.start_program, threading.Event(), threading.Event(), []

def fork():
    starting.wait()
    pids.append(os.fork())
    if not pids[0]:
        signal.pause()
    forked.set()

def launch_slowly(*arguments):
    starting.set()
    forked.wait(0.5)
    start_program(*arguments)

child.start_program = launch_slowly
thread = threading.Thread(target=fork)
thread.start()
done = asyncio.run(run_process(["cat"], stdin=b"all of it", env=os.environ, cwd="/", timeout=60))
thread.join()
os.kill(pids[0], signal.SIGKILL)
os.waitpid(pids[0], 0)
print(done.stdout, done.timed_out)
"""


@contextmanager
def forked() -> Iterator[None]:
    """Fork a process that lives on in the block."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.pause()
        finally:
            os._exit(1)
    try:
        yield
    finally:
        end(pid)
        os.waitpid(pid, 0)


def test_fork_in_another_thread_does_not_keep_the_input_of_a_program_that_starts(tmp_path: Path) -> None:
    assert in_python(FORK_IN_A_THREAD, cwd=tmp_path) == "b'all of it' False\n"


async def test_fork_does_not_keep_the_input_of_a_program_that_reads(tmp_path: Path) -> None:
    size = 4 * 1024 * 1024  # more than any pipe takes
    running = asyncio.create_task(
        bash(f"until [ -e {tmp_path}/forked ]; do sleep 0.01; done; wc -c", stdin=b"." * size, timeout=60)
    )
    await asyncio.sleep(0)
    with forked():
        (tmp_path / "forked").touch()
        done = await running

    assert (done.timed_out, done.stdout.strip()) == (False, b"%d" % size)


@pytest.mark.usefixtures("way")
async def test_fork_does_not_hide_the_end_of_a_program(tmp_path: Path) -> None:
    running = asyncio.create_task(
        bash(f"until [ -e {tmp_path}/forked ]; do sleep 0.01; done; exit 3", timeout=60, grace=0.1)
    )
    await asyncio.sleep(0)
    with forked():
        (tmp_path / "forked").touch()
        done = await running

    assert (done.timed_out, done.exit_code) == (False, 3)


def test_fork_does_not_wait_for_a_thread_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the start of a program: at the end of the interpreter, the other thread may be gone."""
    monkeypatch.setattr(forks, "_PATIENCE", 0.01)
    no_fork, entered, leave = NoFork(), threading.Event(), threading.Event()

    def hang() -> None:
        with no_fork:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hang)
    thread.start()
    entered.wait()
    with no_fork:
        pass
    monkeypatch.setattr(forks, "_PATIENCE", 1000)
    with no_fork:
        pass  # only the first waits: a signal handler that raised may have left it locked for good
    before = no_fork._lock
    no_fork.after_in_child()  # as in a forked process, which does not have the thread
    with no_fork:
        assert no_fork._lock is not before
    no_fork._lock = before
    leave.set()
    thread.join()
