"""Failures above the engine: they allow, unless a planned hook has ``failClosed`` (D-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.protocol.exit_codes import fail_closed_block

if TYPE_CHECKING:
    from llxprt_hooks.engine.event_handler import HookEventHandler
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.protocol.outputs import DefaultHookOutput


def output_after_failure(
    handler: HookEventHandler | None, event_name: HookEventName, error: Exception, subject: str | None = None
) -> DefaultHookOutput | None:
    """Return a block if a planned hook has ``failClosed``; otherwise None, and the agent continues."""
    try:
        if handler is None or not handler.fails_closed(event_name, subject):
            return None
    except Exception:
        return None
    what = f"hook processing failed: {str(error) or type(error).__name__}"
    return create_specific_hook_output(event_name, fail_closed_block(what).to_dict())
