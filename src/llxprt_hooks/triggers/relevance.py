"""The fast path: whether any hook is for an event, settled by look-ups alone (HOOK-010 to 013)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.engine.event_handler import HookEventHandler
    from llxprt_hooks.events import HookEventName


def handler_for(config: Config, event_name: HookEventName, subject: str | None = None) -> HookEventHandler | None:
    """The event handler, if there is a hook for the event; the hook system is initialized when first asked."""
    system = config.get_hook_system()
    if system is None:
        return None
    handler = system.ready_event_handler()
    return handler if handler.has_hooks_for(event_name, subject) else None
