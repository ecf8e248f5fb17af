"""The fast path: whether any hook is for an event, settled by lookups alone (HOOK-010 to 013)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.logger import debug_logger

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.engine.event_handler import HookEventHandler
    from llxprt_hooks.events import HookEventName

log = debug_logger("triggers")


def handler_for(config: Config, event_name: HookEventName, subject: str | None = None) -> HookEventHandler | None:
    """The event handler, if there is a hook for the event; the hook system is initialized when first asked."""
    system = config.get_hook_system()
    if system is None:
        return None
    handler = system.ready_event_handler()
    return handler if handler.has_hooks_for(event_name, subject) else None


def has_hooks_for(config: Config, event_name: HookEventName, subject: str | None = None) -> bool:
    """Whether any hook would run for an event; ``subject`` is what its matchers are matched against."""
    try:
        return handler_for(config, event_name, subject) is not None
    except Exception:
        log.warning("%s: the hooks cannot be looked up", event_name, exc_info=True)
        return False
