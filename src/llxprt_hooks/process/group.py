"""Signal a whole process group, only while its id cannot belong to another group.

The id of a group is the pid of its leader. The kernel reuses a number only when no process, zombies included, has it as
pid, group id or session id. So it is safe to signal a group

* while its leader has not been reaped, whether the leader is running or not; and
* after that, while the group has members.

A run that ends by itself reaps the leader last and sends no signal afterwards.

A run that is terminated must reap the leader first, because ``killpg`` cannot distinguish a zombie leader from a living
group. Then it polls, at least every 0.1 s, until the group has no members. Between the end of the last member and the
next poll the id is free. Pids are allocated sequentially, so reuse within one poll interval would require wrapping the
whole pid space. The same applies where the system cannot wait without reaping, between ``waitpid`` in the waiting
thread and the event loop noticing it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

POLL_MIN, POLL_MAX = 0.001, 0.1
"""Seconds between two polls of a group without a leader. The interval grows: each poll may read all of /proc."""


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to every member. Does nothing if the group has no member that we may signal."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def has_members(group: int) -> bool:
    """Whether a group whose leader has been reaped has living members that we may signal."""
    _reap_orphans(group)
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False  # macOS reports EPERM for a group of zombies
    if not _all_zombies(group):
        return True
    _reap_orphans(group)
    return False


def _reap_orphans(group: int) -> None:
    """Reap members that were reparented to this process: pid 1 of a container, or a subreaper (Linux)."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def _all_zombies(group: int) -> bool:
    """Whether all remaining members are dead, and wait for an init process that reaps late or never.

    On Linux ``killpg`` succeeds for zombies. Without /proc they cannot be distinguished, and count as living.
    """
    if not Path(f"/proc/{os.getpid()}/stat").exists():
        return False
    return all(state in "ZX" for state, its_group in _processes() if its_group == group)


def _processes() -> Iterator[tuple[str, int]]:
    """State and group id of every process."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - there may be thousands, and Path takes four times as long
        if not name.isdecimal():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", errors="replace") as stat:  # noqa: PTH123
            after_name = stat.read().rpartition(")")[2].split()
            yield after_name[0], int(after_name[2])
