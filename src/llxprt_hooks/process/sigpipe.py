"""Writing to a pipe that nobody may be reading any more, without a SIGPIPE.

Python ignores SIGPIPE, and then there is nothing to do. Command-line programs like to give it back its default action,
so that ``program | head`` ends silently; then a process that closes its stdin early would kill its caller.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys

_F_SETNOSIGPIPE = 73
"""From macOS's ``sys/fcntl.h``; Python has no name for it."""


def write_quietly(fd: int, data: memoryview) -> int:
    """``os.write`` that raises BrokenPipeError at most, whatever the program made of SIGPIPE."""
    if signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN:
        return os.write(fd, data)
    if sys.platform == "darwin":
        # There the signal goes to the process, and blocking it in one thread would not do.
        fcntl.fcntl(fd, _F_SETNOSIGPIPE, 1)
        return os.write(fd, data)
    return _write_blocked(fd, data)


def _write_blocked(fd: int, data: memoryview) -> int:
    already_pending = signal.SIGPIPE in signal.sigpending()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        return os.write(fd, data)
    except BrokenPipeError:
        if not already_pending:
            signal.sigwait({signal.SIGPIPE})
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
