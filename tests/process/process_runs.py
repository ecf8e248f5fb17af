"""What the tests of the process layer share: running something, and looking at what is left of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llxprt_hooks.process.child as child_module
from llxprt_hooks.process import Completed, run_process

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = f"LLXPRT_TEST_RUN={os.getpid()}"
ENV = {"PATH": os.environ["PATH"], **dict([MARK.split("=")])}
"""Every process that a test starts carries the mark in its environment, and so do its children."""

DEADLINE = 20.0
"""Seconds after which something counts as hanging."""


async def run(*argv: str, **options: Any) -> Completed:
    """`run_process` with defaults that suit a test."""
    given: dict[str, Any] = {"stdin": b"", "env": ENV, "cwd": "/", "timeout": DEADLINE, **options}
    return await run_process(argv, **given)


async def bash(script: str, **options: Any) -> Completed:
    return await run("bash", "-c", script, **options)


def in_python(script: str, *, cwd: Path, fresh: bool = False) -> str:
    """Run a script in its own interpreter, for what would disturb this one, and return what it printed.

    It starts processes in the same way as this test, unless nothing may be imported before it (``fresh``).
    """
    launcher = child_module.launch
    same = f"from llxprt_hooks.process import child; from {launcher.__module__} import {launcher.__name__} as launch\n"
    same += "child.launch = launch\n"
    # With -X dev, asyncio warns of callbacks that took over 0.1 s: on a busy machine, any.
    same += "import logging; logging.getLogger('asyncio').setLevel(logging.ERROR)\n"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", script if fresh else same + script],
        cwd=cwd,
        env={**os.environ, **ENV},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def marked() -> list[int]:
    """The living processes that tests have started (none where there is no /proc to look)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if MARK.encode() in variables:
            found.append(int(entry.name))
    return found


async def eventually(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up
        await asyncio.sleep(0.005)


async def written(path: Path) -> str:
    """The content of a file that a process writes when it is ready."""
    await eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().strip()


def lives(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()
