"""How commands end."""

from __future__ import annotations

import os
import resource
import signal
from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit status of a command. Results go to stdout; progress, warnings and diagnostics go to stderr."""

    OK = 0
    """Allowed or finished. A hook that only failed counts as allowed."""
    FAILED = 1
    """Any other failure."""
    BLOCKED = 2
    STOPPED = 3
    USAGE = 64
    INTERRUPTED = 130
    """Ctrl-C."""
    READER_LEFT = 141
    """The reader of standard output closed it, as in ``| head``: 128 + SIGPIPE, as shells report it."""


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
