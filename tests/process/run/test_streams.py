"""stdin, stdout and stderr of a process."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.process.run.runs import bash, in_python, run

if TYPE_CHECKING:
    from pathlib import Path

TWO_MB = bytes(range(256)) * 8192


@pytest.mark.requirement("HOOK-061")
async def test_stdin_is_given_and_ends(way: None) -> None:
    completed = await run("cat", stdin=b'{"a": 1}')

    assert completed.stdout == b'{"a": 1}'
    assert completed.exit_code == 0


@pytest.mark.requirement("HOOK-061")
async def test_stdin_that_is_empty_ends_at_once() -> None:
    assert (await run("wc", "-c")).stdout.strip() == b"0"


@pytest.mark.requirement("HOOK-061")
async def test_stdin_larger_than_the_pipe_goes_through_both_ways(way: None) -> None:
    completed = await run("cat", stdin=TWO_MB)

    assert completed.stdout == TWO_MB
    assert not completed.stdout_cut


@pytest.mark.requirement("HOOK-192")
async def test_stdin_that_is_never_read_is_not_an_error(way: None) -> None:
    completed = await bash("echo done; exit 3", stdin=TWO_MB)

    assert (completed.exit_code, completed.stdout, completed.stderr) == (3, b"done\n", b"")


@pytest.mark.requirement("HOOK-192")
async def test_stdin_that_is_closed_early_is_not_an_error_and_costs_no_time() -> None:
    busy = time.process_time()

    completed = await bash("exec 0<&-; sleep 0.4; echo out; echo err >&2", stdin=TWO_MB)

    assert (completed.exit_code, completed.stdout, completed.stderr) == (0, b"out\n", b"err\n")
    assert time.process_time() - busy < 0.1


@pytest.mark.requirement("HOOK-192")
async def test_stdin_that_is_read_in_part_is_not_an_error() -> None:
    completed = await run("head", "-c", "100000", stdin=TWO_MB)

    assert completed.stdout == TWO_MB[:100000]


@pytest.mark.requirement("HOOK-192")
@pytest.mark.parametrize("action", ["signal.SIG_DFL", "lambda *_: print('called')"])
def test_stdin_that_is_unread_does_not_affect_a_caller_that_has_changed_sigpipe(tmp_path: Path, action: str) -> None:
    printed = in_python(
        f"""
import asyncio, os, signal
from llxprt_hooks.process import run_process

signal.signal(signal.SIGPIPE, {action})

async def main():
    for script in "exec 0<&-; sleep 0.05", "exit 0":
        await run_process(["bash", "-c", script], stdin=bytes(2_000_000), env=os.environ, cwd="/", timeout=60)

asyncio.run(main())
assert signal.sigpending() == set()
assert signal.SIGPIPE not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
print("unharmed")
""",
        cwd=tmp_path,
    )

    assert printed == "unharmed\n"


async def test_output_of_both_streams_is_kept_apart(way: None) -> None:
    completed = await bash("printf out; printf err >&2; printf out; printf err >&2")

    assert (completed.stdout, completed.stderr) == (b"outout", b"errerr")


async def test_output_up_to_the_limit_is_whole_and_beyond_it_is_cut() -> None:
    whole = await run("head", "-c", "100000", "/dev/zero", output_limit=100_000)
    cut = await run("head", "-c", "100001", "/dev/zero", output_limit=100_000)

    assert (len(whole.stdout), whole.stdout_cut) == (100_000, False)
    assert (len(cut.stdout), cut.stdout_cut, cut.exit_code) == (100_000, True, 0)


async def test_output_flooding_stderr_is_cut_and_no_reason_to_kill(way: None) -> None:
    completed = await bash("head -c 30M /dev/zero >&2; echo done; exit 2")

    assert (len(completed.stderr), completed.stderr_cut) == (10 * 1024 * 1024, True)
    assert (completed.stdout, completed.stdout_cut, completed.exit_code) == (b"done\n", False, 2)


def test_output_of_a_gibibyte_takes_little_memory(tmp_path: Path) -> None:
    printed = in_python(
        """
import asyncio, os, pathlib, resource, sys
from llxprt_hooks.process import run_process

def peak():
    try:  # ru_maxrss would begin with the size of the process that started this one
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def main():
    def prints(size):
        return run_process(["head", "-c", size, "/dev/zero"], stdin=b"", env=os.environ, cwd="/", timeout=60)
    await prints("1K")
    before = peak()
    completed = await prints("1073741824")
    print(completed.exit_code, completed.stdout_cut, len(completed.stdout), peak() - before)

asyncio.run(main())
""",
        cwd=tmp_path,
    )

    exit_code, cut, kept, grown = printed.split()
    assert (exit_code, cut, kept) == ("0", "True", str(10 * 1024 * 1024))
    assert int(grown) < 32 * 1024 * 1024


async def test_output_in_many_small_pieces_is_whole() -> None:
    completed = await bash("for i in {1..2000}; do echo $i; done")

    assert completed.stdout.split() == [str(i).encode() for i in range(1, 2001)]


async def test_output_that_fills_the_pipe_is_read_after_any_number_of_short_programs(way: None) -> None:
    """Runs on one event loop share what watches their ends, and the moment from which their streams are watched."""

    async def short(pause: float) -> None:
        await asyncio.sleep(pause)
        await run("true")

    for _ in range(5):
        flood = asyncio.create_task(bash("head -c 300000 /dev/zero; sleep 0.02; echo end"))
        await asyncio.gather(*(short(milliseconds / 1000) for milliseconds in range(12)))
        assert len((await flood).stdout) == 300_004


async def test_output_may_go_through_dev_stdout_and_dev_stderr() -> None:
    if not os.path.exists("/dev/stdout"):
        pytest.skip("this system has no /dev/stdout")

    completed = await bash("echo out > /dev/stdout; echo err > /dev/stderr")

    assert (completed.stdout, completed.stderr) == (b"out\n", b"err\n")
