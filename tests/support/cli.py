"""The command line, run in this process or as a process of its own."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import pexpect

from llxprt_hooks.cli.main import run_command_line
from llxprt_hooks.commands.list import take_inventory
from llxprt_hooks.process.ahead import ahead
from llxprt_hooks.process.warm import zygotes
from tests.support import preloaded
from tests.support.processes import DEADLINE, finished
from tests.support.project import APPROVED, SCRIPTS, Project

COMMAND = str(SCRIPTS / "llxprt-hooks")

ESCAPE = "\x1b"


@dataclass(frozen=True)
class Run:
    """A run of the command that has ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What ``--json`` printed: one document, and nothing else."""
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.split("\n")[:-1]]

    def sentence(self) -> str:
        """The one line on stderr of a run that failed."""
        [line] = self.stderr.splitlines()
        assert line.startswith(("llxprt-hooks: ", "Error: ")), line
        assert line.isprintable(), line
        assert len(line) < 1000, line
        return line


Call: TypeAlias = Callable[..., Run]
"""Runs the command and gives the result."""


class CliProject(Project):
    """A project in which the command is run."""

    def run(self, *arguments: str, stdin: str = "", approved: bool = True, **environment: str) -> Run:
        """Run the installed command in the project, whose hooks are approved for it unless ``approved`` says no."""
        env = self.environment(**{**(APPROVED if approved else {}), **environment})
        return run(*arguments, cwd=self.root, env=env, stdin=stdin)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the installed command in the project, whose hooks are approved for it."""
        env = self.environment(**{**APPROVED, **environment})
        return preloaded.start([COMMAND, *arguments], cwd=self.root, env=env, stdin=subprocess.DEVNULL)

    def terminal(self, command: str, *, columns: int = 100, **environment: str) -> pexpect.spawn[str]:
        """A shell command line in a pseudo-terminal; ``llxprt-hooks`` is on the path."""
        return pexpect.spawn(
            "/bin/sh",
            ["-c", command],
            cwd=str(self.root),
            env=self.environment(**{"TERM": "xterm-256color", **environment}),
            dimensions=(50, columns),
            encoding="utf-8",
            timeout=DEADLINE,
        )

    def screen(self, command: str, *, columns: int = 100, **environment: str) -> tuple[str, int]:
        """All that a command line in a pseudo-terminal prints, with the hooks approved, and its exit status."""
        return ended(self.terminal(command, columns=columns, **APPROVED, **environment))

    def enabled(self, name: str) -> bool:
        """Whether the hooks of that name are switched on, in an approved project."""
        with self.inside(**APPROVED):
            items = [item for item in take_inventory(str(self.root)).items if item.name == name]
        assert items
        return all(item.enabled for item in items)


def run(*arguments: str, cwd: Path, env: Mapping[str, str], stdin: str = "") -> Run:
    """Run the installed command."""
    with preloaded.start([COMMAND, *arguments], cwd=cwd, env=env) as process:
        return Run(*finished(process, stdin))


def ended(child: pexpect.spawn[str]) -> tuple[str, int]:
    """Wait for the end of a program in a pseudo-terminal: the rest of what it printed, and its exit status."""
    child.expect(pexpect.EOF)
    child.close()
    assert child.before is not None
    assert child.exitstatus is not None
    return child.before, child.exitstatus


def call(*arguments: str, stdin: bytes = b"") -> Run:
    """Run the command in this process, which is quick enough for tables; what it raises fails the test."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with as_alone(), redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
        status = run_command_line(arguments)
    return Run(status, _written(out), _written(err))


@contextmanager
def as_alone() -> Iterator[None]:
    """Logging, warnings, stdout and patience as in a process of the command's own, and afterwards as they were."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers[:] = []
    stdout = os.dup(1)
    try:
        with (
            warnings.catch_warnings(),
            patch.object(zygotes, "patience", zygotes.patience),
            patch.object(ahead, "patience", ahead.patience),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        root.handlers[:] = handlers
        root.setLevel(level)


def _written(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
