"""Why a program could not be started, in a sentence that a user can act on."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SpawnError(Exception):
    """A program could not be started. The message says why; ``__cause__`` is the error of the system."""

    def __init__(self, message: str, *, started: bool = False) -> None:
        super().__init__(message)
        self.started = started
        """The program was started, but could not be watched, so it was killed."""

    @property
    def is_resource_exhaustion(self) -> bool:
        """Whether a second try may succeed once other processes of ours have ended."""
        return isinstance(self.__cause__, OSError) and self.__cause__.errno in _EXHAUSTION

    @property
    def is_unsupported(self) -> bool:
        """Whether no program at all can be started here, as in an isolated subinterpreter."""
        return isinstance(self.__cause__, RuntimeError) and not self.started


def is_out_of_stack(error: BaseException | None) -> bool:
    """Whether the stack was too small: a hook was not shown, or not completely, what it guards (D-60).

    >>> is_out_of_stack(RecursionError()), is_out_of_stack(OSError())
    (True, False)
    """
    return isinstance(error, RecursionError) or (
        isinstance(error, SpawnError) and isinstance(error.__cause__, RecursionError)
    )


_EXHAUSTION = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

_SYSTEM_REASONS = {
    errno.E2BIG: "its arguments and environment together are larger than the system allows",
    errno.EAGAIN: "the system or the user's process limit allows no further process or thread",
    errno.EMFILE: "this process has too many files open",
    errno.ENFILE: "the system has too many files open",
    errno.ENOMEM: "the system has no memory for another process",
}

_DIRECTORY_REASONS = {
    errno.EACCES: "cannot be entered (permission denied)",
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "is not a directory",
}

_PROGRAM_REASONS = {
    errno.ENOEXEC: "it is neither a program for this system nor a script with an interpreter in its first line (#!…)",
    errno.ENOTDIR: "a part of its path is not a directory",
    errno.ETXTBSY: "the file is open for writing",
}


def explain(
    error: OSError | ValueError | RuntimeError,
    argv: Sequence[str],
    executable: str | None,
    env: Mapping[str, str],
    cwd: str,
) -> str:
    """Return the sentence for an error that was raised when ``argv`` was started."""
    if not argv:
        return "Cannot start a program: the command is empty."
    program = executable or argv[0]
    if isinstance(error, RuntimeError):
        reason = str(error)
    elif isinstance(error, ValueError):
        reason = _invalid_value_reason(error, argv, env, cwd)
    else:
        reason = _system_reason(error, program, cwd)
    return f"Cannot start {program!r}: {reason}."


def _invalid_value_reason(error: ValueError, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> str:
    if any("\0" in argument for argument in argv):
        return "an argument contains a NUL character"
    if "\0" in cwd:
        return f"its working directory {cwd!r} contains a NUL character"
    for name, value in env.items():
        if "\0" in name + value or "=" in name:
            return f"the environment variable {name!r} contains a NUL character, or an equals sign in its name"
    return str(error)


def _system_reason(error: OSError, program: str, cwd: str) -> str:
    code = error.errno or 0
    if code in _SYSTEM_REASONS:
        return _SYSTEM_REASONS[code]
    if error.filename == cwd and not _can_enter(cwd):
        return f"its working directory {cwd!r} {_DIRECTORY_REASONS.get(code, f'cannot be used ({os.strerror(code)})')}"
    return _program_reason(code, program, cwd)


def _program_reason(code: int, program: str, cwd: str) -> str:
    if "/" not in program:
        return f"there is no such program in PATH ({os.strerror(code)})"
    path = Path(cwd, program)
    if code == errno.ENOENT:
        return "the interpreter in its first line does not exist" if path.exists() else "there is no such file"
    if code == errno.EACCES:
        return "it is a directory" if path.is_dir() else "it is not executable (run chmod +x on it)"
    return _PROGRAM_REASONS.get(code, os.strerror(code))


def _can_enter(cwd: str) -> bool:
    return Path(cwd).is_dir() and os.access(cwd, os.X_OK)
