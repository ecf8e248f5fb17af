"""Write to a pipe that may have no reader, without receiving SIGPIPE.

Python ignores SIGPIPE by default, and then a plain ``os.write`` is enough. Command-line programs often restore its
default action, so that ``program | head`` ends silently. In such a program, a child that closes its stdin early would
kill its parent.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys

_F_SETNOSIGPIPE = 73
"""From ``sys/fcntl.h`` on macOS; the fcntl module does not define it."""


def write_without_sigpipe(fd: int, data: memoryview) -> int:
    """Like ``os.write``, but a missing reader is always BrokenPipeError, whatever the disposition of SIGPIPE."""
    if signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN:
        return os.write(fd, data)
    if sys.platform == "darwin":
        # macOS sends SIGPIPE to the process, not to the thread, so blocking it in this thread has no effect.
        fcntl.fcntl(fd, _F_SETNOSIGPIPE, 1)
        return os.write(fd, data)
    return _write_with_sigpipe_blocked(fd, data)


def _write_with_sigpipe_blocked(fd: int, data: memoryview) -> int:
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
