"""What a process runs when it is killed, or forks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from llxprt_hooks.process import watchdog
from llxprt_hooks.process.watchdog import _Watchdog
from tests.process.run.runs import ENV, bash, in_python
from tests.support.processes import lives, pids_in, until, watchdog_shell

PARENT = """
import asyncio, os, sys
from llxprt_hooks.process import run_process, watchdog

async def main():
    script = "echo $$ >> pids; sleep 1000 & echo $! >> pids; trap '' TERM HUP; wait"
    one = lambda: run_process(["bash", "-c", script], stdin=b"", env=os.environ, cwd=os.getcwd(), timeout=1000)
    await run_process(["true"], stdin=b"", env=os.environ, cwd="/", timeout=60)
    await asyncio.gather(one(), one())

{before}
asyncio.run(main()){after}
"""


def parent(folder: Path, *, before: str = "", after: str = "") -> subprocess.Popen[bytes]:
    script = PARENT.format(before=before, after=after)
    return subprocess.Popen([sys.executable, "-c", script], cwd=folder, env={**os.environ, **ENV})


UVLOOP = "import uvloop; asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())"
FORKED = """
import time
from threading import Thread
Thread(target=lambda: (time.sleep(0.5), os.fork() or time.sleep(1000)), daemon=True).start()
"""

DAEMON = """
import threading
kept = [os.dup(0), os.dup(1)]
os.close(0)
os.close(1)
asyncio.run(run_process(["true"], stdin=b"", env=os.environ, cwd="/", timeout=60))
watchdog.start()
while any(each.name == "start the watchdog" for each in threading.enumerate()):
    pass
for fd, copy in enumerate(kept):
    os.dup2(copy, fd)
    os.close(copy)
"""


@pytest.mark.parametrize(
    "before",
    ["", UVLOOP, FORKED, DAEMON],
    ids=["asyncio", "uvloop", "a forked child lives on", "its streams were closed and opened again"],
)
def test_kill_leaves_no_program_and_no_shell(tmp_path: Path, before: str) -> None:
    started = parent(tmp_path, before=before)
    pids = pids_in(tmp_path / "pids", 4)
    shell = watchdog_shell(started.pid)
    if before == FORKED:
        until(lambda: len(_children(started.pid)) > 2)
    children = _children(started.pid)

    started.kill()
    started.wait()

    until(lambda: not any(map(lives, pids)))
    until(lambda: not lives(shell))
    for child in children:
        if lives(child):
            os.kill(child, signal.SIGKILL)  # the forked one


def _children(pid: int) -> list[int]:
    return [int(child) for each in Path(f"/proc/{pid}/task").glob("*/children") for child in each.read_text().split()]


LEAVING = """
import threading, time

def leave():
    while not os.path.exists("go"):
        time.sleep(0.01)
    watchdog.leave_running()
    os._exit(0)

threading.Thread(target=leave).start()
"""


def test_kill_ends_the_shell_too_where_a_program_was_left_running_on_purpose(tmp_path: Path) -> None:
    started = parent(tmp_path, before=LEAVING)
    pids = pids_in(tmp_path / "pids", 4)
    shell = watchdog_shell(started.pid)
    (tmp_path / "go").touch()

    assert started.wait() == 0
    until(lambda: not lives(shell))

    assert all(map(lives, pids))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_kill_spares_a_stranger_who_has_the_number_now() -> None:
    """What was listed with that number had started before; this one started after."""
    stranger = subprocess.Popen(["sleep", "1000"], env=ENV, start_new_session=True)
    listed = subprocess.Popen(["sleep", "1000"], env=ENV, start_new_session=True)
    own = _Watchdog()
    try:
        old, good = own.add(stranger.pid), own.add(listed.pid)
        assert (old, good) == (0, 1)
        assert own._table is not None
        own._table[0:32] = b"%11d%20d\n" % (stranger.pid, 1)
        own.start()
        until(lambda: own._table_fd == -1)
        own.forget()
        assert listed.wait(60) == -signal.SIGKILL
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_kill_needs_no_more_than_the_table_holds() -> None:
    own = _Watchdog()
    slots = [own.add(pid) for pid in range(1, 1030)]

    assert slots == [*range(1024), None, None, None, None, None]
    own.remove(slots[3])
    own.remove(None)
    assert own.add(1) == 3
    own.forget()


async def test_kill_costs_short_programs_no_shell(tmp_path: Path) -> None:
    printed = in_python(
        """
import asyncio, os
from llxprt_hooks.process import run, run_process, watchdog
run._STREAM_WATCH_DELAY = 60  # whatever ends earlier is short
asyncio.run(run_process(["/bin/true"], stdin=b"", env={}, cwd="/", timeout=60))
print(watchdog._started)
""",
        cwd=tmp_path,
    )
    assert printed == "False\n"


async def test_kill_watch_that_cannot_start_does_not_stop_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A user who has too many processes gets no thread. The next program tries again."""
    own = _Watchdog()
    own.add(os.getpid())

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        patch.setattr("llxprt_hooks.process.run.watchdog", own)
        done = await bash("sleep 0.1; exit 3")

    assert done.exit_code == 3
    assert not own._started
    assert "its programs will continue: can't start new thread" in caplog.text
    own.forget()


def test_kill_watch_without_a_table_starts_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be no descriptor left for the first program, and some for the next one."""
    own = _Watchdog()
    with monkeypatch.context() as patch:
        patch.setattr(_Watchdog, "_make_table", lambda self: os.close(-1))
        assert own.add(os.getpid()) is None
    own.start()
    listed = subprocess.Popen(["sleep", "1000"], env=ENV, start_new_session=True)

    own.add(listed.pid)
    own.start()
    until(lambda: own._table_fd == -1)
    own.forget()

    assert listed.wait(60) == -signal.SIGKILL


def test_kill_is_not_prevented_by_descriptors_of_the_shell(tmp_path: Path) -> None:
    """The shell keeps the pipe and the table, and nothing of the process that started it."""
    with (tmp_path / "open").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        started = parent(tmp_path)
        pids_in(tmp_path / "pids", 4)
        shell = watchdog_shell(started.pid)
        kept = [os.readlink(each) for each in Path(f"/proc/{shell}/fd").iterdir()]
        assert os.readlink(f"/proc/{shell}/cwd") == "/"
        started.kill()
        started.wait()

    assert {each.partition(":")[0] for each in kept} <= {"/dev/null", "pipe", "/memfd", "/memfd:llxprt-hooks (deleted)"}


async def test_fork_leaves_programs_to_the_parent(tmp_path: Path) -> None:
    """The child drops its copy of the run: by cancellation, as `asyncio.run` does, and by closing it."""
    task = asyncio.create_task(bash("sleep 0.5; exit 3"))
    await asyncio.sleep(0.1)

    pid = os.fork()
    if pid == 0:
        try:
            task.cancel()
            coroutine = task.get_coro()
            assert coroutine is not None
            try:
                coroutine.throw(asyncio.CancelledError())
            except asyncio.CancelledError:
                os._exit(0)
        finally:
            os._exit(1)
    status = await asyncio.to_thread(os.waitpid, pid, 0)

    assert status == (pid, 0)
    assert (await task).exit_code == 3


def test_fork_gives_the_child_a_watchdog_of_its_own() -> None:
    asyncio.run(bash("sleep 0.1"))
    until(lambda: not any(thread.name == "start the watchdog" for thread in threading.enumerate()))
    assert watchdog._pipe_fd >= 0
    pid = os.fork()
    if pid == 0:
        os._exit(0 if (watchdog._pipe_fd, watchdog._table, watchdog._started) == (-1, None, False) else 1)
    assert os.waitpid(pid, 0)[1] == 0
