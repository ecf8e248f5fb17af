"""Recognize a command that starts a Python script, so that a waiting interpreter can run it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from llxprt_hooks.process.shell.direct_exec import candidates, is_executable
from llxprt_hooks.process.warm import PythonStart

if TYPE_CHECKING:
    from llxprt_hooks.process.shell.direct_exec import DirectCommand
    from llxprt_hooks.process.shell.environment import Environment

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_FLAGS = re.compile("-[IEsSuBP]+")
_MAX_SHEBANG = 255

_HARMLESS_VARIABLES = frozenset(
    """
    PYTHON PYTHONBREAKPOINT PYTHONCOERCECLOCALE PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING
    PYTHONNOUSERSITE PYTHONSAFEPATH PYTHONUNBUFFERED PYTHONUTF8 PYTHONWARNINGS
    """.split()  # noqa: SIM905
)
"""Variables of Python that make no difference to a waiting interpreter. ``PYTHON`` is one of make and node-gyp.

Others print or measure at start or end. With PYTHONPATH, a waiting interpreter could import a module of a project.
"""

_FOLDERS = frozenset(("HOME", "PYTHONHOME", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE"))
"""The same, if they have an absolute path. Another depends on the directory in which the interpreter starts."""


def python_start(command: DirectCommand, environment: Environment, directory: str) -> PythonStart | None:
    """Return the start of Python that a command is, or None if it is anything else or has unusual options.

    The interpreter has an absolute path: a waiting one is not started in the directory of the script.
    """
    start = _start_of(command, environment, directory)
    if start is None:
        return None
    is_read = not any("I" in flag or "E" in flag for flag in start.flags)
    return start if all(_is_harmless(*variable, is_read) for variable in environment.of_python.items()) else None


def _start_of(command: DirectCommand, environment: Mapping[str, str], directory: str) -> PythonStart | None:
    program = os.path.basename(command.executable)  # noqa: PTH119
    if _PYTHON.fullmatch(program):
        return _start(command.executable, command.arguments)
    shebang = _shebang(os.path.join(directory, command.executable))  # noqa: PTH118
    if not shebang:
        return None
    interpreter, arguments = shebang[0], (*shebang, command.executable, *command.arguments[1:])
    if os.path.basename(interpreter) == "env" and len(shebang) == 2:  # noqa: PTH119
        found = next(filter(is_executable, candidates(shebang[1], environment.get("PATH"))), "")
        return _start(found, arguments[1:]) if _PYTHON.fullmatch(shebang[1]) else None
    return _start(interpreter, arguments) if _PYTHON.fullmatch(os.path.basename(interpreter)) else None  # noqa: PTH119


def _is_harmless(name: str, value: str, is_read: bool) -> bool:
    """Whether a waiting interpreter behaves like a fresh one with a variable; ``is_read``: those of Python count."""
    if not value or (name.startswith("PYTHON") and not is_read):
        return True
    if name in _FOLDERS:
        return value.startswith("/")
    return not name.startswith("PYTHON") or name in _HARMLESS_VARIABLES


def _start(executable: str, argv: Sequence[str]) -> PythonStart | None:
    flags = 0
    while flags + 1 < len(argv) and _FLAGS.fullmatch(argv[flags + 1]):
        flags += 1
    script = argv[flags + 1] if flags + 1 < len(argv) else "-"
    if script.startswith("-") or not os.path.isabs(executable) or not _is_binary(executable):  # noqa: PTH117
        return None
    return PythonStart(executable, tuple(argv), tuple(argv[1 : flags + 1]))


def _is_binary(executable: str) -> bool:
    """Whether a file is a program; a script, as pyenv has it, may choose the interpreter by the directory."""
    try:
        found = os.stat(executable)  # noqa: PTH116
        return _has_no_shebang(executable, found.st_ino, found.st_mtime_ns)
    except OSError:
        return False


@lru_cache(maxsize=64)
def _has_no_shebang(file: str, inode: int, changed: int) -> bool:
    with open(file, "rb") as opened:  # noqa: PTH123
        return opened.read(2) != b"#!"


def _shebang(file: str) -> Sequence[str]:
    """The interpreter in the first line and its one argument, as the kernel reads them."""
    try:
        found = os.stat(file)  # noqa: PTH116
        return _read_shebang(file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=256)
def _read_shebang(file: str, *_version: int) -> Sequence[str]:
    with open(file, "rb") as opened:  # noqa: PTH123
        line = opened.read(_MAX_SHEBANG + 1).partition(b"\n")[0]
    if not line.startswith(b"#!") or len(line) > _MAX_SHEBANG:
        return ()
    return tuple(os.fsdecode(line[2:].strip(b" \t")).split(None, 1))
