"""The fast path: whether an event has any hooks, decided by dictionary lookups (HOOK-010 to 013)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.events import HookEventName
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.protocol.inputs import name_text

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.engine.event_handler import HookEventHandler

BEFORE_TOOL, AFTER_TOOL = HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL

log = debug_logger("triggers")


def handler_for(config: Config, event_name: HookEventName, subject: str | None = None) -> HookEventHandler | None:
    """Return the event handler if the event has a hook, otherwise None. Initializes the hook system on first use."""
    system = config.get_hook_system()
    if system is None:
        return None
    handler = system.ready_event_handler()
    return handler if handler.has_hooks_for(event_name, subject) else None


def is_hooked(config: Config, tool_name: str) -> bool:
    """Whether a call of a tool has any hook; also true if that cannot be found out: the triggers handle failures."""
    try:
        system = config.get_hook_system()
        if system is None:
            return False
        handler, name = system.ready_event_handler(), name_text(tool_name)
        return handler.has_hooks_for(BEFORE_TOOL, name) or handler.has_hooks_for(AFTER_TOOL, name)
    except Exception:
        return True


def enforces(config: Config, event_name: HookEventName) -> bool:
    """Whether any hook would run for an event, and not only to observe."""
    handler = handler_for(config, event_name) if has_hooks_for(config, event_name) else None
    return handler is not None and handler.enforces(event_name)


def has_hooks_for(config: Config, event_name: HookEventName, subject: str | None = None) -> bool:
    """Whether any hook would run for an event; ``subject`` is what its matchers are matched against."""
    try:
        return handler_for(config, event_name, subject) is not None
    except Exception:
        log.warning("%s: looking up the hooks failed; they are skipped", event_name, exc_info=True)
        return False
