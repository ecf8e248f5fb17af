"""Waiting for other processes, and whether they live."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

DEADLINE = 180.0
"""Seconds after which something counts as hanging, also on a machine with ten times as much work as cores."""


def run_python(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    seconds: float = DEADLINE,
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end. If it takes too long, the test fails with what each thread of it was doing."""
    command = [sys.executable, "-X", "faulthandler", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        return subprocess.CompletedProcess(command, *finished(process, stdin, seconds))


def finished(process: subprocess.Popen[bytes], stdin: str = "", seconds: float = DEADLINE) -> tuple[int, str, str]:
    """Wait for the end of a process: its status, and what it printed. If it takes too long, the test fails."""
    try:
        stdout, stderr = process.communicate(stdin.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        pytest.fail(where_it_hangs(process), pytrace=False)
    return process.returncode, stdout.decode(), stderr.decode()


def where_it_hangs(process: subprocess.Popen[bytes]) -> str:
    """End a process that takes too long. Returns what it printed, with its stacks, and which processes can print."""
    status = process.poll()
    what = "did not end in time" if status is None else f"ended with status {status}, but its output did not"
    holders = [f"{each.name} {_command_line(each)!r}" for each in _holders(process)]
    process.send_signal(signal.SIGABRT)  # faulthandler prints the stacks
    try:
        printed = process.communicate(timeout=5 if status is None else 0)
    except subprocess.TimeoutExpired as error:
        process.kill()
        printed = error.stdout or b"", error.stderr or b""
    stdout, stderr = (each.decode(errors="replace") for each in printed)
    parts = [f"{process.args!r} {what}", "-- has its output open", *holders, "-- stdout", stdout, "-- stderr", stderr]
    return "\n".join(parts)


def _holders(process: subprocess.Popen[bytes]) -> list[Path]:
    """The processes that have a standard output of a process open, itself among them."""
    pipes = {_target(Path(f"/proc/self/fd/{each.fileno()}")) for each in (process.stdout, process.stderr) if each}
    others = [each for each in Path("/proc").glob("[0-9]*") if each.name != str(os.getpid())]
    return [each for each in others if pipes & {_target(fd) for fd in _descriptors(each)}]


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is bound to happen."""
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.01)


@contextmanager
def handled(number: signal.Signals, handler: Callable[[], object]) -> Iterator[None]:
    """Call a function in the main thread when a signal arrives."""
    previous = signal.signal(number, lambda *_: handler())
    try:
        yield
    finally:
        signal.signal(number, previous)


@contextmanager
def at_most_until_the_deadline() -> Iterator[None]:
    """Raise ``TimeoutError`` in the main thread if it hangs in the block."""

    def give_up() -> None:
        raise TimeoutError

    with handled(signal.SIGALRM, give_up):
        signal.alarm(int(DEADLINE))
        try:
            yield
        finally:
            signal.alarm(0)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait, as a coroutine, for something that is bound to happen."""
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        await asyncio.sleep(0.005)


async def written(path: Path) -> str:
    """The content of a file that a process writes, in one line, when it is ready."""
    await eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().strip()


def pids_in(file: Path, count: int) -> list[int]:
    """The process ids that a script writes to a file; waits for them."""
    until(lambda: file.exists() and len(file.read_text().split()) == count)
    return [int(pid) for pid in file.read_text().split()]


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        state, threads = fields[0], int(fields[17])
        return state != "Z" or threads > 1  # its first thread may end before the others
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists() and _state(pid) not in ("", "Z")


def end(*pids: int) -> None:
    """Kill processes that a test let live."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _state(pid: int) -> str:
    """Where there is no /proc."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()[:1]


def watchdog_shell(pid: int) -> int:
    """The shell that waits for the end of a process, to kill what it runs; waits for it to be there."""
    found: list[int] = []

    def look() -> bool:
        pipes = {_target(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
        shells = [each for each in Path("/proc").glob("[0-9]*") if b"exec 3<&0 4<&1" in _command_line(each)]
        found[:] = [int(each.name) for each in shells if _target(each / "fd" / "3") in pipes]
        return found != []

    until(look)
    return found[0]


def has_open(part_of_path: str, cwd: Path) -> int:
    """How many processes in a folder have a file open whose path contains a text."""
    inside = [each for each in Path("/proc").glob("[0-9]*") if _target(each / "cwd") == str(cwd)]
    return sum(any(part_of_path in (_target(fd) or "") for fd in _descriptors(each)) for each in inside)


def _descriptors(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:
        return []


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def _target(link: Path) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None
