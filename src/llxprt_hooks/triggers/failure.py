"""Failures above the engine: they allow, unless a planned hook has ``failClosed`` (D-27) or no hook can run (D-60)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from llxprt_hooks.engine.results import error_text
from llxprt_hooks.engine.schema import OBSERVE
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.process import is_out_of_stack
from llxprt_hooks.protocol.exit_codes import cannot_run_block, fail_closed_block
from llxprt_hooks.settings.hook_groups import hook_entries

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.engine.event_handler import HookEventHandler
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.protocol.outputs import DefaultHookOutput


def output_after_failure(
    config: Config,
    handler: HookEventHandler | None,
    event_name: HookEventName,
    error: Exception,
    subject: str | None = None,
) -> DefaultHookOutput | None:
    """Return a block if the stack is too small for hooks, or a planned hook has ``failClosed``; otherwise None.

    With None the agent continues.
    """
    what = f"hook processing failed: {error_text(error)}"
    if is_out_of_stack(error):
        block = cannot_run_block(what)
    elif _must_not_fail(config, handler, event_name, subject):
        block = fail_closed_block(what)
    else:
        return None
    return create_specific_hook_output(event_name, block.to_dict())


def _must_not_fail(
    config: Config, handler: HookEventHandler | None, event_name: HookEventName, subject: str | None
) -> bool:
    if handler is not None:
        with suppress(Exception):  # then planning has failed, too
            return handler.fails_closed(event_name, subject)
    try:
        return _is_configured(config, event_name)
    except Exception:  # the configuration itself cannot be read
        return False


def _is_configured(config: Config, event_name: HookEventName) -> bool:
    """Whether any hook of the event has ``failClosed``, read without the engine, which has failed."""
    functions = (hook for hook in config.function_hooks if hook.event_name == event_name)
    if any(hook.config.fail_closed for hook in functions):
        return True
    entries = (entry for hook_set in config.hook_sets for entry in hook_entries(hook_set.hooks))
    hooks = (entry.hook for entry in entries if entry.event == event_name)
    return any(hook.get("failClosed") is True and hook.get("mode") != OBSERVE for hook in hooks)
