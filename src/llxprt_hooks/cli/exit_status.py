"""The exit statuses of the command line."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit status of a command. Results go to stdout; progress, warnings and diagnostics go to stderr."""

    OK = 0
    """Allowed or finished. A hook that only failed counts as allowed."""
    FAILED = 1
    """Any other failure."""
    BLOCKED = 2
    """Blocked by a hook."""
    STOPPED = 3
    """Stopped by a hook."""
    USAGE = 64
    """Wrong usage."""
    INTERRUPTED = 130
    """Ctrl-C."""
    READER_LEFT = 141
    """The reader of standard output closed it, as in ``| head``: 128 + SIGPIPE, as shells report it."""
