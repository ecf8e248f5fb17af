"""How a run ends its process: timeout, cancellation, a run that is dropped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.process import Completed, run_process
from llxprt_hooks.process import run as run_module
from tests.process.run.runs import bash, bash_until, in_python, marked, run
from tests.support.processes import DEADLINE, eventually, lives, pids_in, until, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

IGNORES_TERM = "trap '' TERM; (sleep 1000; sleep 1000) & echo ready > {ready}; sleep 1000; sleep 1000"
"""And so do its children."""


@pytest.fixture(autouse=True)
def does_not_hang() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < DEADLINE


@pytest.mark.requirement("HOOK-117")
async def test_timeout_sends_sigterm(tmp_path: Path, way: None) -> None:
    completed = await bash_until(tmp_path / "ready", f"echo out; : > {tmp_path}/ready; sleep 1000", timeout=0.2)

    assert (completed.exit_code, completed.signal, completed.timed_out) == (None, "SIGTERM", True)
    assert completed.stdout == b"out\n"


@pytest.mark.requirement("HOOK-117")
async def test_timeout_lets_the_process_tidy_up(tmp_path: Path) -> None:
    script = f"trap 'echo tidy; exit 9' TERM; : > {tmp_path}/ready; sleep 1000 & wait"

    completed = await bash_until(tmp_path / "ready", script, timeout=0.3)

    assert (completed.exit_code, completed.timed_out, completed.stdout) == (9, True, b"tidy\n")


@pytest.mark.requirement("HOOK-118")
async def test_timeout_kills_what_ignores_sigterm_with_its_children(tmp_path: Path, way: None) -> None:
    ready = tmp_path / "ready"

    completed = await bash_until(ready, IGNORES_TERM.format(ready=ready), timeout=0.2, grace=0.1)

    assert (completed.signal, completed.timed_out) == ("SIGKILL", True)
    assert completed.duration >= 290
    assert marked() == []


@pytest.mark.requirement("HOOK-118")
def test_timeout_has_a_grace_of_five_seconds() -> None:
    assert inspect.signature(run_process).parameters["grace"].default == 5.0


async def test_timeout_gives_children_that_outlive_the_leader_their_grace(tmp_path: Path) -> None:
    child = f"trap 'sleep 0.1; echo tidy > {tmp_path}/tidy; exit' TERM; : > {tmp_path}/ready; sleep 1000 & wait"

    completed = await bash_until(tmp_path / "ready", f"({child}) & sleep 1000", timeout=0.2, grace=60)

    assert completed.signal == "SIGTERM"
    assert (tmp_path / "tidy").read_text() == "tidy\n"


async def test_timeout_kills_children_that_outlive_leader_and_grace(tmp_path: Path) -> None:
    script = f"(trap '' TERM; : > {tmp_path}/ready; sleep 1000; sleep 1000) & sleep 1000"

    completed = await bash_until(tmp_path / "ready", script, timeout=0.2, grace=0.1)

    assert (completed.signal, completed.timed_out) == ("SIGTERM", True)
    assert marked() == []


async def test_timeout_is_not_declared_on_a_process_that_ended_while_the_loop_was_busy(
    tmp_path: Path, way: None
) -> None:
    async def block_the_loop() -> None:
        [pid] = pids_in(tmp_path / "pid", 1)
        until(lambda: not lives(pid))
        time.sleep(0.15)

    script = f"echo out; echo $$ > {tmp_path}/pid"
    completed, _ = await asyncio.gather(bash(script, timeout=0.1), block_the_loop())

    assert (completed.exit_code, completed.timed_out, completed.stdout) == (0, False, b"out\n")


async def test_timeout_of_zero_ends_the_process_at_once() -> None:
    assert (await run("sleep", "1000", timeout=0)).timed_out


async def test_timeout_while_the_process_floods_both_streams(tmp_path: Path) -> None:
    more, ready = "head -c 1001 /dev/zero", tmp_path / "ready"

    completed = await bash_until(
        ready, f"{more}; {more} >&2; : > {ready}; yes & yes >&2", timeout=0.2, output_limit=1000
    )

    assert (completed.timed_out, completed.stdout_cut, completed.stderr_cut) == (True, True, True)


def test_timeout_reaps_orphans_that_are_reparented_to_this_process(tmp_path: Path) -> None:
    """Pid 1 of a container has to reap them."""
    if not os.path.exists("/proc/self"):
        pytest.skip("this system has no subreapers")
    printed = in_python(
        """
import asyncio, ctypes, os, threading, time
from llxprt_hooks.process import run_process

PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
started = time.monotonic()
argv = ["bash", "-c", "sleep 1000 & sleep 1000"]
done = asyncio.run(run_process(argv, stdin=b"", env=os.environ, cwd="/", timeout=0.3, grace=30))
assert time.monotonic() - started < 20
for thread in threading.enumerate():
    if thread.name == "start the watchdog":
        thread.join()  # it waits for a process of its own
print(done.signal, done.timed_out, os.waitpid(-1, os.WNOHANG))  # the shell of the watchdog is still there
""",
        cwd=tmp_path,
    )

    assert printed == "SIGTERM True (0, 0)\n"


def test_timeout_does_not_wait_for_an_init_that_reaps_no_orphans(tmp_path: Path) -> None:
    """The outer process inherits the orphans of the inner one and does not reap them."""
    if not os.path.exists("/proc/self"):
        pytest.skip("this system has no subreapers")
    printed = in_python(
        """
import ctypes, subprocess, sys

inner = '''
import asyncio, os, time
from llxprt_hooks.process import run_process

started = time.monotonic()
argv = ["bash", "-c", "sleep 1000 & sleep 1000"]
done = asyncio.run(run_process(argv, stdin=b"", env=os.environ, cwd="/", timeout=0.3, grace=30))
print(done.signal, time.monotonic() - started < 20)
'''
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
subprocess.run([sys.executable, "-c", inner], check=True)
""",
        cwd=tmp_path,
    )

    assert printed == "SIGTERM True\n"


async def test_timeout_gives_up_on_what_it_may_not_signal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(group: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refused)
    monkeypatch.setattr(run_module, "_KILL_TIMEOUT", 0.1)
    with pytest.warns(ResourceWarning, match="still running"):
        completed = await bash(f"echo $$ > {tmp_path}/pid; exec sleep 1000", timeout=0.3, grace=0.1)

    assert (completed.exit_code, completed.signal) == (None, None)
    assert completed.timed_out
    pid = int(await written(tmp_path / "pid"))
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
    await run("true")  # the next spawn reaps it
    assert not lives(pid)


async def test_cancel_ends_the_group_and_propagates(tmp_path: Path, way: None) -> None:
    script = f"trap 'echo tidy > {tmp_path}/tidy; exit' TERM; sleep 1000 & echo ready > {tmp_path}/ready; wait"
    task = asyncio.create_task(bash(script))
    await written(tmp_path / "ready")

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (tmp_path / "tidy").read_text() == "tidy\n"
    assert marked() == []


async def test_cancel_kills_what_ignores_sigterm_when_the_grace_is_over(tmp_path: Path, way: None) -> None:
    task = asyncio.create_task(bash(IGNORES_TERM.format(ready=tmp_path / "ready"), grace=0.1))
    await written(tmp_path / "ready")

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert marked() == []


async def test_cancel_a_second_time_kills_at_once(tmp_path: Path, way: None) -> None:
    task = asyncio.create_task(bash(IGNORES_TERM.format(ready=tmp_path / "ready"), grace=1000))
    await written(tmp_path / "ready")

    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert marked() == []


async def test_cancel_a_second_time_kills_children_that_outlived_the_leader(tmp_path: Path) -> None:
    script = f"(trap '' TERM; echo ready > {tmp_path}/ready; sleep 1000; sleep 1000) & sleep 1000"
    task = asyncio.create_task(bash(script, grace=1000))
    await written(tmp_path / "ready")

    task.cancel()
    await asyncio.sleep(0.1)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert marked() == []


async def test_cancel_during_the_grace_of_a_timeout_does_not_restart_it(tmp_path: Path) -> None:
    terms, go = tmp_path / "terms", tmp_path / "go"
    script = f"trap 'echo term >> {terms}' TERM; until [ -e {go} ]; do sleep 0.05; done"

    async def started(seconds: float) -> asyncio.Task[Completed]:
        task = asyncio.create_task(bash(script, timeout=seconds, grace=DEADLINE))
        await eventually(lambda: terms.exists() or task.done())
        return task if terms.exists() else await started(2 * seconds)  # a busy machine sets the trap late

    task = await started(0.2)
    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    go.touch()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert terms.read_text() == "term\n"
    assert marked() == []


async def test_cancel_while_a_left_behind_child_is_waited_for_ends_that_too(tmp_path: Path) -> None:
    task = asyncio.create_task(bash(f"sleep 1000 & echo $$ > {tmp_path}/leader"))
    leader = int(await written(tmp_path / "leader"))
    await eventually(lambda: os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert marked() == []


async def test_cancel_before_the_first_wait_leaves_nothing() -> None:
    async def cancels_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await run("sleep", "1000")

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(cancels_itself())

    assert marked() == []


async def test_cancel_by_asyncio_timeout_becomes_a_timeout_error() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await run("sleep", "1000")


async def test_cancel_after_any_number_of_turns_of_the_loop(way: None) -> None:
    async def cancelled_after(turns: int) -> None:
        task = asyncio.create_task(bash("echo out; (sleep 0.02; echo late) & cat", stdin=bytes(200_000)))
        for turn in range(turns):
            await asyncio.sleep(0 if turn < 15 else 0.001)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            assert (await task).exit_code == 0

    await asyncio.gather(*(cancelled_after(turns) for turns in range(40)))

    assert marked() == []


async def test_close_of_the_coroutine_kills_the_group(tmp_path: Path, way: None) -> None:
    coroutine = bash(IGNORES_TERM.format(ready=tmp_path / "ready"), stdin=bytes(200_000))
    coroutine.send(None)
    await written(tmp_path / "ready")

    coroutine.close()

    assert marked() == []


def test_close_of_the_loop_kills_the_group(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], way: None
) -> None:
    loop = new_loop()
    reported = []
    loop.set_exception_handler(lambda _, context: reported.append(context["message"]))

    async def leave_it_running() -> None:
        running.append(asyncio.create_task(bash(IGNORES_TERM.format(ready=tmp_path / "ready"), stdin=bytes(200_000))))
        await written(tmp_path / "ready")

    running: list[asyncio.Task[object]] = []
    loop.run_until_complete(leave_it_running())
    loop.close()
    running.clear()
    gc.collect()

    assert reported == ["Task was destroyed but it is pending!"]
    assert marked() == []


def test_close_by_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    printed = in_python(
        f"""
import asyncio, os, pathlib, signal, threading, time
from llxprt_hooks.process import run_process

ready = pathlib.Path({str(tmp_path)!r}, "ready")

def interrupt():
    while not ready.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
argv = ["bash", "-c", f"echo > {{ready}}; sleep 1000"]
try:
    asyncio.run(run_process(argv, stdin=b"", env=os.environ, cwd="/", timeout=60))
except KeyboardInterrupt:
    print("interrupted")
""",
        cwd=tmp_path,
    )

    assert printed == "interrupted\n"
    assert marked() == []
