"""Programs run where a tool forbids blocking calls on the event loop, as ``langgraph dev`` does."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockingError, blockbuster_ctx

from llxprt_hooks.process import SpawnError
from llxprt_hooks.process.blocking import blocking_is_forbidden, call_blocking
from tests.process.run.runs import bash, marked, run
from tests.support.processes import eventually, until


@pytest.fixture
def strict() -> Iterator[None]:
    with blockbuster_ctx():
        yield


async def test_blocking_is_forbidden_here(strict: None) -> None:
    with pytest.raises(BlockingError):
        os.stat("/")
    assert blocking_is_forbidden()


def test_blocking_is_allowed_elsewhere() -> None:
    assert not blocking_is_forbidden()


@pytest.mark.usefixtures("way")
async def test_blocking_calls_do_not_prevent_a_run(strict: None) -> None:
    completed = await bash("cat; echo err >&2; exit 3", stdin=bytes(2_000_000))

    assert (completed.exit_code, len(completed.stdout), completed.stderr) == (3, 2_000_000, b"err\n")


async def test_blocking_calls_do_not_prevent_many_runs_at_once(strict: None) -> None:
    done = await asyncio.gather(*(bash(f"exit {number}") for number in range(50)))

    assert [completed.exit_code for completed in done] == list(range(50))


@pytest.mark.usefixtures("way")
async def test_blocking_calls_do_not_prevent_a_timeout(tmp_path: Path, strict: None) -> None:
    script = f"trap '' TERM; : > {tmp_path}/ready; sleep 1000 & sleep 1000"
    timeout, completed = 0.2, None
    while not await asyncio.to_thread((tmp_path / "ready").exists):
        completed = await bash(script, timeout=timeout, grace=0.2)
        timeout *= 2  # for a machine that was too busy

    assert completed is not None

    assert (completed.timed_out, completed.signal) == (True, "SIGKILL")


async def test_blocking_calls_do_not_prevent_the_reason_why_a_program_cannot_be_started(strict: None) -> None:
    with pytest.raises(SpawnError, match="there is no such file"):
        await run("/no/such/program")


async def test_blocking_calls_do_not_prevent_an_end_by_a_second_cancellation(tmp_path: Path, strict: None) -> None:
    # It gets all of its input, more than a pipe holds, when the thread that starts it is done.
    script = f"trap '' TERM; head -c 200000 > /dev/null; : > {tmp_path}/ready; sleep 1000 & sleep 1000"
    task = asyncio.create_task(bash(script, stdin=bytes(200_000)))
    await asyncio.to_thread(until, (tmp_path / "ready").exists)
    task.cancel()
    await asyncio.sleep(0.1)
    assert not task.done()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_blocking_start_that_is_cancelled_leaves_nothing_running(strict: None) -> None:
    """The thread that starts the program cannot be interrupted."""
    begun, over = threading.Event(), threading.Event()

    def slow() -> bytes:
        begun.set()
        time.sleep(0.3)
        over.set()
        return b""

    task = asyncio.create_task(bash("sleep 1000", stdin=slow))
    await eventually(begun.is_set)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(until, lambda: over.is_set() and marked() == [])


async def test_blocking_calls_are_made_in_a_thread(strict: None) -> None:
    def failing() -> None:
        raise OSError("as it would be here")

    assert call_blocking(threading.current_thread) is not threading.current_thread()
    with pytest.raises(OSError, match="as it would be here"):
        call_blocking(failing)
