"""What the tests of the process layer share: running something, and looking at what is left of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from llxprt_hooks.process import Completed, run_process
from tests.support.processes import DEADLINE, run_python

MARK = f"LLXPRT_TEST_RUN={os.getpid()}"
ENV = {"PATH": os.environ["PATH"], **dict([MARK.split("=")])}
"""Every process that a test starts carries the mark in its environment, and so do its children."""


async def run(*argv: str, **options: Any) -> Completed:
    """`run_process` with defaults that suit a test."""
    given: dict[str, Any] = {"stdin": b"", "env": ENV, "cwd": "/", "timeout": DEADLINE, **options}
    return await run_process(argv, **given)


async def bash(script: str, **options: Any) -> Completed:
    return await run("bash", "-c", script, **options)


async def bash_until(ready: Path, script: str, *, timeout: float, **options: Any) -> Completed:  # noqa: ASYNC109
    """Run a script that makes a file and then outlasts its timeout. A machine too busy for that gets more time."""
    while True:
        completed = await bash(script, timeout=timeout, **options)
        if ready.exists() or timeout > DEADLINE:
            return completed
        timeout *= 2


def in_python(script: str, *, cwd: Path) -> str:
    """Run a script in its own interpreter, for what would disturb this one, and return what it printed."""
    # With -X dev, asyncio warns of callbacks that took over 0.1 s: on a busy machine, any.
    quiet = "import logging; logging.getLogger('asyncio').setLevel(logging.ERROR)\n"
    done = run_python("-X", "dev", "-W", "error", "-c", quiet + script, cwd=cwd, env={**os.environ, **ENV})
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
