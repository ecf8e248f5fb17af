"""Asking a shell about text, without running any of it."""

from __future__ import annotations

import os
import re
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from llxprt_hooks.shell.command_line import shell_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_PATIENCE: Final = 10.0
_PREAMBLE: Final = re.compile(r"^[^\n]*?: (?:-c: )?(?:line )?(\d+): (?:Syntax error: |syntax error: )?")


@lru_cache(maxsize=4096)
def command_error(command: str) -> str | None:
    """Why the shell that runs hooks cannot read a command; None where it can.

    >>> command_error("echo done; fi")
    "syntax error near unexpected token `fi'"
    """
    shell, *arguments = shell_arguments(command)
    return _complaint([shell, "-n", *arguments])


@lru_cache(maxsize=4096)
def script_error(shell: str, script: Path) -> str | None:
    """Why a shell cannot read a script, with the line; None where it can."""
    return _complaint([shell, "-n", "--", str(script)])


@lru_cache(maxsize=4096)
def is_word_of_the_shell(name: str) -> bool:
    """Whether the shell has a meaning of its own for a command's name: a keyword or a builtin."""
    shell = shell_arguments("")[0]
    answer = _ask([shell, "-c", 'command -V "$1"', shell, name])
    return answer is not None and answer.returncode == 0


def _complaint(arguments: Sequence[str]) -> str | None:
    answer = _ask(arguments)
    if answer is None or answer.returncode == 0:
        return None
    first = answer.stderr.decode(errors="replace").partition("\n")[0]
    line = _PREAMBLE.match(first)
    return f"{first[line.end() :]} in line {line[1]}" if line and line[1] != "1" else _PREAMBLE.sub("", first)


def _ask(arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes] | None:
    # Nothing of the user's environment: BASH_ENV names a file that bash would run, and messages are to be in English.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        return subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_PATIENCE, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
