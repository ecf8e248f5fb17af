"""How a process ends by itself, and what is reported."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.process import run as run_module
from llxprt_hooks.process.pipes import Drain
from tests.process.run.runs import bash, in_python, marked, run
from tests.support.processes import DEADLINE, eventually, lives, written

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("code", [0, 1, 2, 126, 127, 128, 255])
async def test_status_has_the_exit_code(code: int) -> None:
    completed = await bash(f"exit {code}")

    assert (completed.exit_code, completed.signal) == (code, None)
    assert not completed.timed_out
    assert 0 < completed.duration < DEADLINE * 1000


async def test_status_is_the_same_however_the_end_is_noticed(way: None) -> None:
    assert (await bash("exit 7")).exit_code == 7
    assert (await bash("kill -KILL $$")).signal == "SIGKILL"


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "ABRT", "HUP", "INT", "PIPE", "USR1", "ALRM"])
async def test_status_has_the_signal(name: str) -> None:
    completed = await bash(f"ulimit -c 0; printf half; kill -{name} $$")

    assert (completed.exit_code, completed.signal) == (None, f"SIG{name}")
    assert completed.stdout == b"half"


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="this system has no realtime signals")
async def test_status_has_the_number_of_a_signal_without_a_name() -> None:
    number = signal.SIGRTMIN + 1

    assert (await bash(f"kill -{number} $$")).signal == f"SIG{number}"


@pytest.mark.parametrize("lacking", ["", "pidfd_open", "pidfd_open waitid"])
def test_status_that_the_system_discarded_is_never_success(tmp_path: Path, lacking: str) -> None:
    """It is lost, except on kernels that keep it with the pidfd."""
    printed = in_python(
        f"""
import asyncio, os, signal
from llxprt_hooks.process import run_process

for name in {lacking!r}.split():
    delattr(os, name)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

async def main():
    for script in "sleep 0.1; exit 7", "sleep 0.2; echo out":
        done = await run_process(["bash", "-c", script], stdin=b"", env=os.environ, cwd="/", timeout=60)
        print(done.exit_code, done.signal, done.timed_out, done.stdout)
    done = await run_process(["sleep", "1000"], stdin=b"", env=os.environ, cwd="/", timeout=0.2)
    print(done.exit_code, done.signal, done.timed_out)

asyncio.run(main())
""",
        cwd=tmp_path,
    )

    lost = ["None None False b''", "None None False b'out\\n'", "None None True"]
    kept = ["7 None False b''", "0 None False b'out\\n'", "None SIGTERM True"]
    assert printed.splitlines() in ([lost] if lacking else [lost, kept])


def test_where_sigchld_is_ignored_the_status_of_a_short_program_is_kept_if_that_of_a_long_one_is(
    tmp_path: Path,
) -> None:
    printed = in_python(
        """
import asyncio, os, signal
from llxprt_hooks.process import run_process

signal.signal(signal.SIGCHLD, signal.SIG_IGN)

async def main():
    long = await run_process(["sh", "-c", "sleep 0.2; exit 2"], stdin=b"", env=os.environ, cwd="/", timeout=60)
    short = ["sh", "-c", "exit 2"]
    run = [run_process(short, stdin=b"x", env=os.environ, cwd="/", timeout=60) for _ in range(60)]
    print({(await each).exit_code for each in run} == {long.exit_code})
    echo = await run_process(["cat"], stdin=b"first\\n\\nlast", env=os.environ, cwd="/", timeout=60)
    print(echo.stdout)

asyncio.run(main())
""",
        cwd=tmp_path,
    )

    assert printed.splitlines() == ["True", "b'first\\n\\nlast'"]


@pytest.mark.parametrize("way", ["pidfd", "thread"], indirect=True)
async def test_status_that_other_code_reaped_is_never_success(way: None) -> None:
    """It is lost, except on kernels that keep it with the pidfd."""

    async def reap_everything() -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)  # noqa: ASYNC222 - it has to come first

    completed, _ = await asyncio.gather(bash("sleep 0.1; exit 7"), reap_everything())

    assert completed.signal is None
    assert completed.exit_code in (None, 7)


async def test_end_comes_with_the_process_though_a_child_holds_its_streams(tmp_path: Path, way: None) -> None:
    script = f"(sleep 1000 & echo $! > {tmp_path}/pid); echo done"

    completed = await bash(script)

    left_behind = int(await written(tmp_path / "pid"))
    try:
        assert (completed.exit_code, completed.stdout) == (0, b"done\n")
        assert lives(left_behind)
    finally:
        os.kill(left_behind, signal.SIGKILL)
        await eventually(lambda: not lives(left_behind))


async def test_end_leaves_a_daemon_alive(tmp_path: Path) -> None:
    script = f'python3 -c \'import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); \
open("{tmp_path}/pid", "w").write(str(os.getpid()) + chr(10)); time.sleep(1000)\'; echo done'

    completed = await bash(script)

    daemon = int(await written(tmp_path / "pid"))
    try:
        assert (completed.exit_code, completed.stdout) == (0, b"done\n")
        assert lives(daemon)
    finally:
        os.kill(daemon, signal.SIGKILL)
        await eventually(lambda: not lives(daemon))


async def test_end_is_not_delayed_by_a_child_that_never_stops_writing(tmp_path: Path) -> None:
    completed = await bash(f"yes & echo $! > {tmp_path}/pid")

    flooding = int(await written(tmp_path / "pid"))
    assert completed.exit_code == 0
    await eventually(lambda: not lives(flooding))  # of SIGPIPE: the pipe has no reader any more


def test_end_leaves_a_stream_that_never_runs_dry() -> None:
    source = os.open("/dev/zero", os.O_RDONLY)
    drain = Drain(source, limit=10)

    drain.catch_up()

    os.close(source)
    assert (drain.kept, drain.cut, drain.at_end) == (bytes(10), True, False)


async def test_end_waits_a_moment_for_what_a_child_still_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_DRAIN_TIMEOUT", DEADLINE)
    completed = await bash("(sleep 0.01; echo late) & echo early")

    assert completed.stdout == b"early\nlate\n"


async def test_end_is_awaited_when_both_streams_are_closed_long_before(way: None) -> None:
    completed = await bash("echo out; exec >&- 2>&-; sleep 0.1; exit 5")

    assert (completed.exit_code, completed.stdout) == (5, b"out\n")


async def test_end_is_awaited_without_keeping_the_loop_busy() -> None:
    busy = time.process_time()

    await bash("exec >&- 2>&-; sleep 0.4")

    assert time.process_time() - busy < 0.1


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="this system has pipes of one size only")
async def test_end_loses_nothing_that_is_in_a_large_pipe_however_slow_the_loop() -> None:
    fills_the_pipe = """
import fcntl, os
size = fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1024 * 1024)
os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "0.5")  # holds the pipe, so that there is no end of file to wait for
os.write(1, bytes(size))
"""
    running = asyncio.create_task(run("python3", "-c", fills_the_pipe))

    while not running.done():
        time.sleep(0.06)
        await asyncio.sleep(0)

    assert len(running.result().stdout) == 1024 * 1024
    await eventually(lambda: marked() == [])


async def test_end_takes_any_length_of_time_as_a_timeout() -> None:
    for timeout in (float("inf"), 1e300, 1e12):
        assert (await run("true", timeout=timeout)).exit_code == 0
