"""Signals to a whole process group, and when its number may be used.

A group bears the number of its leader's pid. The kernel gives a number out anew only when no process, zombies included,
has it as its pid, its group or its session. So the number is safe to signal

* as long as the leader has not been collected, whether it still runs or not; and
* after that, as long as the group has members.

A run that ends by itself collects the leader last and signals nobody afterwards. One that is brought to its end has to
collect the leader first, because a zombie leader cannot be told from a living group; from then on it looks every now
and then, a tenth of a second apart at most, whether the group still has members. Between the death of the last one and
the next look the number is free, but numbers are given out in turn: for a stranger to have it, all others would have
to be used up in that time. The same holds for the moment between a waiter thread's ``waitpid`` and our learning of it,
where the system cannot wait without collecting.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_FIRST, LOOK_LAST = 0.001, 0.1
"""Seconds between two looks at a group that has lost its leader; a look at all processes is not free."""


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to every member; nobody there, or nobody we may signal, is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def has_members(group: int) -> bool:
    """Whether a group whose leader has been collected has living members that can be signalled."""
    _collect_orphans(group)
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False  # macOS says EPERM of a group of zombies
    if not _all_zombies(group):
        return True
    _collect_orphans(group)
    return False


def _collect_orphans(group: int) -> None:
    # Where this process is the one that inherits orphans (pid 1 of a container, a subreaper), nobody else would.
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def _all_zombies(group: int) -> bool:
    """Whether those that killpg finds are dead, and only wait for an init that collects late or never.

    Linux lets them be signalled. Where there is no /proc of our own to look them up, they count as living.
    """
    if not Path(f"/proc/{os.getpid()}/stat").exists():
        return False
    return all(state in "ZX" for state, its_group in _processes() if its_group == group)


def _processes() -> Iterator[tuple[str, int]]:
    """State and group of every process there is."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - there may be thousands, and Path takes four times as long
        if not name.isdecimal():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", errors="replace") as stat:  # noqa: PTH123
            after_name = stat.read().rpartition(")")[2].split()
            yield after_name[0], int(after_name[2])
