"""How commands end."""

from __future__ import annotations

import os
import resource
import signal
from enum import IntEnum
from typing import Self


class ExitStatus(IntEnum):
    """Exit status of a command. Results go to stdout; progress, warnings and diagnostics go to stderr."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        status = int.__new__(cls, value)
        status._value_ = value
        status.meaning = meaning
        return status

    OK = 0, "Allowed, or finished. If a hook fails, the call goes ahead."
    FAILED = 1, "A file can't be read or written, the model doesn't respond, a check failed, or you answered \"no\"."
    BLOCKED = 2, "Blocked by a hook, in `fire` and `run`."
    STOPPED = 3, 'Stopped by a hook (`"continue": false`), in `fire` and `run`.'
    USAGE = 64, "Wrong usage: the command, option, event, folder or recipe does not exist."
    INTERRUPTED = 130, "Interrupted with Ctrl-C."
    READER_LEFT = 141, "Whatever reads standard output has exited, as in `| head`."
    """128 + SIGPIPE, as shells report it."""


def status_of_failed_start(error: OSError) -> int:
    """Return the exit status for a program that cannot be started, as shells have it."""
    return 127 if isinstance(error, FileNotFoundError) else 126


def ended_like(status: int) -> int:
    """Return the exit status of a program that ended; if a signal ended it, end by the same, without a core dump."""
    if status >= 0:
        return status
    number = -status
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
