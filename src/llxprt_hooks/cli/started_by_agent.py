"""Keeps an agent from changing its own hooks: the commands that change or approve hooks refuse to run below one.

This is not a sandbox. A process of the same user can leave its parents behind and clear its environment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import click

from llxprt_hooks.settings.environment import AGENT_VARIABLE

_MAX_PARENTS: Final = 100
_PROC: Final = Path("/proc")
_PS_PROGRAM: Final = "/bin/ps"
_SHELL_SCRIPT: Final = re.compile(r"\S*sh -\w*c ")


def sign_of_agent() -> str | None:
    """Return why this process seems to have been started by an agent; None if it was not."""
    if os.environ.get(AGENT_VARIABLE, "") not in ("", "0"):
        return f"{AGENT_VARIABLE} is set"
    agent = agent_among_parents()
    return f"process {agent} is an agent" if agent else None


def refuse_below_agent(what: str = "changed", do: str = "Change or approve") -> None:
    """Fail if this process was started by an agent. The message is about what was not done, and how to do it."""
    if (found := sign_of_agent()) is None:
        return
    command = click.get_current_context().info_name
    raise click.ClickException(
        f"nothing was {what}, because `{command}` refuses to run for an agent ({found}). {do} hooks "
        "yourself, in a terminal of your own."
    )


def agent_among_parents() -> int | None:
    """Return the process id of an agent that started this process, directly or not."""
    return next((pid for pid, arguments in _parents() if _is_agent(arguments)), None)


def _is_agent(arguments: Sequence[str]) -> bool:
    """Whether a command line is ``llxprt-hooks run`` or ``python -m llxprt_hooks run``, whatever starts it.

    A script of a shell (``sh -c "llxprt-hooks run"``) is a single argument, and not an agent itself.
    """
    names = [re.sub(r"/__main__\.py$", "", argument).rpartition("/")[2] for argument in arguments]
    words = [name for name in names if not name.startswith("-")]
    return any(one in ("llxprt-hooks", "llxprt_hooks") and two == "run" for one, two in pairwise(words))


def _parents() -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the id and the command line of the parent process, its parent, and so on."""
    pid = os.getppid()
    for _ in range(_MAX_PARENTS):
        try:
            parent, arguments = _of_proc(pid) if sys.platform == "linux" else _of_ps(pid)
        except (OSError, ValueError, subprocess.SubprocessError):
            return  # it has ended, or it is hidden
        yield pid, arguments
        if parent <= 1:
            return
        pid = parent


def _of_proc(pid: int) -> tuple[int, Sequence[str]]:
    folder = _PROC / str(pid)
    arguments = os.fsdecode((folder / "cmdline").read_bytes()).split("\0")
    # The second field is a name in parentheses, which can contain anything.
    fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[1]), arguments


def _of_ps(pid: int) -> tuple[int, Sequence[str]]:
    """The same where there is no /proc, as on macOS. Arguments are split at spaces; shell scripts are skipped."""
    command = [_PS_PROGRAM, "-ww", "-o", "ppid=,command=", "-p", str(pid)]
    listed = subprocess.run(command, capture_output=True, check=True, timeout=10)
    parent, _, line = os.fsdecode(listed.stdout).strip().partition(" ")
    return int(parent), [] if _SHELL_SCRIPT.match(line) else line.split()
