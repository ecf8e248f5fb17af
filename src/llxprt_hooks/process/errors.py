"""Why a program could not be started, as a sentence that a user can act on."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SpawnError(Exception):
    """A program could not be started. The message says what failed; ``__cause__`` is what the system said."""

    def __init__(self, message: str, *, started: bool = False) -> None:
        super().__init__(message)
        self.started = started
        """The program itself was started, and ended again because we could not watch over it."""

    @property
    def for_want_of_resources(self) -> bool:
        """Whether it may well succeed once other processes of ours have ended."""
        return isinstance(self.__cause__, OSError) and self.__cause__.errno in _SCARCE


_SCARCE = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

_SYSTEM = {
    errno.E2BIG: "its arguments and environment together are larger than the system allows",
    errno.EAGAIN: "the system or the user's process limit allows no further process or thread",
    errno.EMFILE: "this process has too many files open",
    errno.ENFILE: "the system has too many files open",
    errno.ENOMEM: "the system has no memory for another process",
}

_DIRECTORY = {
    errno.EACCES: "may not be entered (permission denied)",
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "is not a directory",
}

_PROGRAM = {
    errno.ENOEXEC: "it is neither a program for this system nor a script with an interpreter in its first line (#!…)",
    errno.ENOTDIR: "a part of its path is not a directory",
    errno.ETXTBSY: "the file is open for writing",
}


def explain(
    error: OSError | ValueError, argv: Sequence[str], executable: str | None, env: Mapping[str, str], cwd: str
) -> str:
    """The sentence for what was raised when ``argv`` was to be started."""
    if not argv:
        return "Cannot start a program: the command is empty."
    program = executable or argv[0]
    reason = _unfit(error, argv, env, cwd) if isinstance(error, ValueError) else _reason(error, program, cwd)
    return f"Cannot start {program!r}: {reason}."


def _reason(error: OSError, program: str, cwd: str) -> str:
    code = error.errno or 0
    if code in _SYSTEM:
        return _SYSTEM[code]
    if error.filename == cwd and not _enterable(cwd):
        return f"its working directory {cwd!r} {_DIRECTORY.get(code, f'cannot be used ({os.strerror(code)})')}"
    return _fault(code, program, cwd)


def _unfit(error: ValueError, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> str:
    if any("\0" in argument for argument in argv):
        return "an argument has a NUL character, which no argument can have"
    if "\0" in cwd:
        return f"its working directory {cwd!r} has a NUL character, which no path can have"
    for name, value in env.items():
        if "\0" in name + value or "=" in name:
            return f"the environment variable {name!r} has a NUL character, or an equals sign in its name"
    return str(error)


def _fault(code: int, program: str, cwd: str) -> str:
    if "/" not in program:
        return f"there is no such program in PATH ({os.strerror(code)})"
    path = Path(cwd, program)
    if code == errno.ENOENT:
        return "the interpreter in its first line does not exist" if path.exists() else "there is no such file"
    if code == errno.EACCES:
        return "it is a directory" if path.is_dir() else "it is not executable (chmod +x makes it so)"
    return _PROGRAM.get(code, os.strerror(code))


def _enterable(cwd: str) -> bool:
    return Path(cwd).is_dir() and os.access(cwd, os.X_OK)
