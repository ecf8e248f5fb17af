"""How a proxy ends: like the program that it started."""

from __future__ import annotations

import os
import resource
import signal


def status_of_failed_start(error: OSError) -> int:
    """Return the exit status for a program that cannot be started, as shells have it."""
    return 127 if isinstance(error, FileNotFoundError) else 126


def end_by_signal(number: int) -> int:
    """End this process by a signal, as the program ended, but without a core dump of its own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
