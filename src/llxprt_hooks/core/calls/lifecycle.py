"""The six fire-and-forget events: session, prompt, compression and notification (HOOK-203).

Each function starts the hooks on the running event loop, or on the background loop if there is none, and returns;
the answers of hooks have no effect. Call ``settle`` before the program ends to give hooks that still run some time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.core.engine.event_handler import event_fields
from llxprt_hooks.core.engine.plan import ExecutionPlan, name_text
from llxprt_hooks.core.engine.session import current_session
from llxprt_hooks.core.protocol.inputs import input_problem
from llxprt_hooks.events import HookEventName, PreCompressTrigger, SessionEndReason, SessionStartSource

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.system import CallerConfig

log = debug_logger("triggers:lifecycle")

_running: WeakKeyDictionary[CallerConfig, set[asyncio.Task[Any]]] = WeakKeyDictionary()
_warned: WeakKeyDictionary[CallerConfig, set[HookEventName]] = WeakKeyDictionary()


def fire_session_start_hook(config: CallerConfig, source: SessionStartSource = SessionStartSource.STARTUP) -> None:
    """Run the SessionStart hooks: a session begins."""
    observe(config, HookEventName.SESSION_START, source=source)


def fire_session_end_hook(config: CallerConfig, reason: SessionEndReason = SessionEndReason.EXIT) -> None:
    """Run the SessionEnd hooks: a session ends."""
    observe(config, HookEventName.SESSION_END, reason=reason)


def fire_before_agent_hook(config: CallerConfig, prompt: str) -> None:
    """Run the BeforeAgent hooks: the agent is about to work on a prompt."""
    observe(config, HookEventName.BEFORE_AGENT, prompt=prompt)


def fire_after_agent_hook(
    config: CallerConfig, prompt: str, prompt_response: str, stop_hook_active: bool = False
) -> None:
    """Run the AfterAgent hooks: the agent is done with a prompt."""
    fields = {"prompt": prompt, "prompt_response": prompt_response, "stop_hook_active": stop_hook_active}
    observe(config, HookEventName.AFTER_AGENT, **fields)


def fire_pre_compress_hook(config: CallerConfig, trigger: PreCompressTrigger) -> None:
    """Run the PreCompress hooks: the conversation is about to be compressed."""
    observe(config, HookEventName.PRE_COMPRESS, trigger=trigger)


def fire_notification_hook(
    config: CallerConfig, notification_type: str, message: str, details: Mapping[str, Any] | None = None
) -> None:
    """Run the Notification hooks: the user is notified or asked something."""
    fields = {"notification_type": notification_type, "message": message, "details": details or {}}
    observe(config, HookEventName.NOTIFICATION, **fields)


def observe(config: CallerConfig, event_name: HookEventName, **fields: Any) -> None:
    """Start the hooks of an event, if there are any, and return without waiting for them."""
    _start(config, event_name, fields, detached=False)


def observe_detached(config: CallerConfig, event_name: HookEventName, **fields: Any) -> None:
    """The same, but the hooks outlive the caller's event loop.

    Functions still run on the caller's loop, if there is one: they may use what belongs to it.
    """
    _start(config, event_name, fields, detached=True)


def _start(config: CallerConfig, event_name: HookEventName, fields: dict[str, Any], *, detached: bool) -> None:
    try:
        spec = event_name.spec
        subject = name_text(fields.get(spec.matched_field)) if spec.matched_field else None
        plan = plan_for(config, event_name, subject)
        if plan is None:
            session_memory.at_event(event_name, fields, (current_session(config) or config).session_id)
            return
        if plan.acts and event_name.spec.if_acting is not None:
            _warn_of_lost_answers(config, event_name)
        if problem := input_problem(event_name, fields):
            log.warning("%s hooks are skipped: %s", event_name, problem)
            return
        translate = partial(event_fields, event_name, fields, config.translator, accept_unmarked=True)
        if loops.runs_here() and not (detached and not plan.in_process):
            _create_task(config, plan, translate)
        else:
            loops.call_soon(_create_task, config, plan, translate)
    except Exception:
        log.warning("%s hooks failed", event_name, exc_info=True)


def _warn_of_lost_answers(config: CallerConfig, event_name: HookEventName) -> None:
    """Say once per configuration that hooks which act at an event cannot do so here (D-46)."""
    warned = _warned.setdefault(config, set())
    if event_name not in warned:
        warned.add(event_name)
        log.warning(
            "%s: what these hooks decide has no effect, because this program does not wait for them", event_name
        )


def _create_task(config: CallerConfig, plan: ExecutionPlan, translate: Callable[[], dict[str, Any]]) -> None:
    task = asyncio.get_running_loop().create_task(plan.fire(translate))
    running = _running.setdefault(config, set())
    running.add(task)
    task.add_done_callback(running.discard)


async def settle(config: CallerConfig, seconds: float = 5.0) -> int:
    """Wait for the events that still run; return how many are left after the timeout.

    These are the events that were started on this event loop, and those on the background loop.
    """
    deadline = time.monotonic() + seconds
    left = await _settle_here(config, seconds) if loops.runs_here() else len(_running_here(config))
    if loops.is_running():
        elsewhere = _settle_here(config, max(0.0, deadline - time.monotonic()))
        left += await (asyncio.to_thread(loops.run, elsewhere) if loops.runs_here() else loops.on_asyncio(elsewhere))
    return left


async def _settle_here(config: CallerConfig, seconds: float) -> int:
    running = _running_here(config)
    if not running:
        return 0
    _, left = await asyncio.wait(running, timeout=seconds)
    return len(left)


def _running_here(config: CallerConfig) -> set[asyncio.Task[Any]]:
    """Return the events that were started on the running loop, if there is one."""
    with suppress(RuntimeError):
        loop = asyncio.get_running_loop()
        return {task for task in tuple(_running.get(config, ())) if task.get_loop() is loop}
    return set()
