"""Events that nobody waits for: session, prompt, compression and notification (HOOK-203)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from llxprt_hooks.events import HookEventName, NotificationType
from llxprt_hooks.triggers.relevance import handler_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llxprt_hooks.agent.tools.tool import Tool
    from llxprt_hooks.config import Config


class BackgroundEvents:
    """Fires events and goes on; what they say has no effect."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._running: set[asyncio.Task[Any]] = set()

    def fire(self, event_name: HookEventName, **fields: Any) -> None:
        """Fire an event with its own fields, if any hook is for it."""
        subject = fields.get(event_name.spec.matched_field)
        handler = handler_for(self._config, event_name, subject)
        if handler is None:
            return
        task = asyncio.get_running_loop().create_task(handler.fire_event(event_name, fields))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def announce_approval(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Fire Notification: a call needs approval."""
        self.fire(
            HookEventName.NOTIFICATION,
            notification_type=NotificationType.TOOL_PERMISSION,
            message=f"{tool.name} needs approval",
            details={"tool_name": tool.name, "tool_input": dict(arguments)},
        )

    async def settle(self, seconds: float) -> int:
        """Give the events still running some time; how many are left then."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        return len(self._running)
