"""What the command line's exit status says."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Results are on stdout; progress, warnings and diagnostics on stderr."""

    OK = 0
    """Allowed, or finished; a hook that merely failed allows."""
    FAILED = 1
    """Anything else that failed."""
    BLOCKED = 2
    """Blocked by a hook."""
    STOPPED = 3
    """Stopped by a hook."""
    USAGE = 64
    """Wrong usage."""
    INTERRUPTED = 130
    """Ctrl-C."""
