"""Checks shell syntax without running anything."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from llxprt_hooks.process.shell.command_line import absolute_search_path, shell_arguments

_TIMEOUT: Final = 10.0
_PREAMBLE: Final = re.compile(r"^[^\n]*?: (?:-c: )?(?:line )?(\d+): (?:Syntax error: |syntax error: )?")


@lru_cache(maxsize=4096)
def command_error(command: str) -> str | None:
    """Return why the shell that runs hooks cannot parse a command; None if it can.

    >>> command_error("echo done; fi")
    "syntax error near unexpected token `fi'"
    """
    shell, *arguments = shell_arguments(command)
    return _syntax_error([shell, "-n", *arguments])


@lru_cache(maxsize=4096)
def script_error(shell: str, script: Path) -> str | None:
    """Return why a shell cannot parse a script, with the line; None if it can."""
    return _syntax_error([shell, "-n", "--", str(script)])


@lru_cache(maxsize=4096)
def is_shell_word(name: str) -> bool:
    """Return whether a command's name is a keyword or builtin of the shell."""
    shell = shell_arguments("")[0]
    answer = _run([shell, "-c", 'command -V "$1"', shell, name])
    return answer is not None and answer.returncode == 0


def _syntax_error(arguments: Sequence[str]) -> str | None:
    answer = _run(arguments)
    if answer is None or answer.returncode == 0:
        return None
    first = answer.stderr.decode(errors="replace").partition("\n")[0]
    line = _PREAMBLE.match(first)
    return f"{first[line.end() :]} in line {line[1]}" if line and line[1] != "1" else _PREAMBLE.sub("", first)


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes] | None:
    # Without the user's environment: bash would run the file in BASH_ENV, and messages must be in English.
    environment = {"PATH": absolute_search_path(), "LC_ALL": "C"}
    try:
        return subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_TIMEOUT, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
