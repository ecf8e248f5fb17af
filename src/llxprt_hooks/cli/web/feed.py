"""Follows the log for any number of pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from llxprt_hooks.commands.inspect.suspicious_hooks import SuspiciousHook, find_failing_hooks, find_silent_hooks
from llxprt_hooks.commands.inspect.timeline import Timeline, TimelineEvent
from llxprt_hooks.commands.list import Inventory, take_inventory
from llxprt_hooks.commands.log import POLL, LogFilter, LogReader

if TYPE_CHECKING:
    from llxprt_hooks.fleet.audit.record import Record

_MAX_WAITING = 100
"""How many batches a page may lag behind; a slower page has to reconnect."""

_INVENTORY_AGE = 5.0
"""Seconds after which a project's settings are read again."""

_MAX_PROJECTS = 20
"""How many projects are checked for findings, latest first."""


class LogFeed:
    """The timeline of the log, and the pages that want to know of changes."""

    def __init__(self, project: str, read: Callable[[], list[Record]] | None = None) -> None:
        """``read`` returns the records that are new since the last call; by default, those of the local log."""
        self.project = project
        self.timeline = Timeline()
        self._read = read or LogReader(where=LogFilter(answers=True), events=True).read
        self._pages: set[asyncio.Queue[list[TimelineEvent] | None]] = set()
        self._inventories: dict[str, tuple[float, Inventory | None]] = {}

    def read(self) -> None:
        """Read what was added to the log, and tell the pages."""
        changed = self.timeline.add(self._read())
        if changed:
            self._tell(changed)

    async def follow(self, ends: Callable[[], bool]) -> None:
        """Read the log again and again. In the end, pages are told that there is no more."""
        while not ends():
            self.read()
            await asyncio.sleep(POLL)
        self._tell(None)

    @contextmanager
    def page(self) -> Iterator[asyncio.Queue[list[TimelineEvent] | None]]:
        """A queue of changed events; None is the end."""
        queue: asyncio.Queue[list[TimelineEvent] | None] = asyncio.Queue()
        self._pages.add(queue)
        try:
            yield queue
        finally:
            self._pages.discard(queue)

    def projects(self) -> list[str]:
        """The existing project folders: the one the inspector was started for, then those in the log."""
        found = {self.project: None}
        for event in reversed(list(self.timeline.events.values())):
            if len(found) >= _MAX_PROJECTS:
                break
            if event.project:
                found.setdefault(event.project)
        return [project for project in found if Path(project).is_dir()]

    def findings(self, project: str = "") -> list[SuspiciousHook]:
        """Hooks that never fired or always fail, in one project or in all."""
        events = list(self.timeline.events.values())
        projects = [each for each in self.projects() if not project or each == project]
        failing = [finding for finding in find_failing_hooks(events) if not project or finding.project == project]
        silent = [
            finding
            for each in projects
            if (inventory := self._inventory(each)) is not None
            for finding in find_silent_hooks(each, inventory, events)
        ]
        return [*failing, *silent]

    def hook_count(self) -> int:
        """How many hooks are configured where the inspector was started."""
        inventory = self._inventory(self.project)
        return len(inventory.items) if inventory else 0

    def _inventory(self, project: str) -> Inventory | None:
        read, inventory = self._inventories.get(project, (float("-inf"), None))
        if time.monotonic() - read > _INVENTORY_AGE:
            try:
                inventory = take_inventory(project)
            except OSError:
                inventory = None
            self._inventories[project] = time.monotonic(), inventory
        return inventory

    def _tell(self, news: list[TimelineEvent] | None) -> None:
        for queue in self._pages:
            if queue.qsize() < _MAX_WAITING:
                queue.put_nowait(news)
            elif news is not None:  # the page reads too slowly; it connects again later
                queue.put_nowait(None)
