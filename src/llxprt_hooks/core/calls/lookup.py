"""The fast path: which hooks an event has, by dictionary lookups (HOOK-010 to 013). Nothing here raises."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine.plan import BrokenPlan, ExecutionPlan, name_text
from llxprt_hooks.events import TOOL_EVENTS, HookEventName
from llxprt_hooks.settings.hook_entries import hook_entries
from llxprt_hooks.settings.schema import OBSERVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llxprt_hooks.core.engine.system import CallerConfig
    from llxprt_hooks.settings.definitions import HookDefinition

log = debug_logger("triggers")

_BEFORE_TOOL, _AFTER_TOOL = HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL

ToolPlans: TypeAlias = "tuple[ExecutionPlan | None, ExecutionPlan | None]"
"""What runs before and after a tool."""
NO_PLANS: ToolPlans = (None, None)
"""Returned for every tool without hooks, so that callers can compare the identity."""
ModelPlans: TypeAlias = "tuple[ExecutionPlan | None, ExecutionPlan | None, ExecutionPlan | None]"
"""What runs before the model's tools are selected, before the model is called, and after it has answered."""


def plan_for(config: CallerConfig, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
    """Return the hooks that run for an event, or None. Initializes the hook system on first use."""
    try:
        system = config.get_hook_system()
        return None if system is None else system.plan(event_name, subject)
    except Exception as error:
        return _broken(config, event_name, error, subject)


def tool_plans(config: CallerConfig, tool_name: str) -> ToolPlans:
    """Return the hooks that run before and after a tool."""
    try:
        system = config.get_hook_system()
        if system is None:
            return NO_PLANS
        name = name_text(tool_name)
        before, after = system.plan(_BEFORE_TOOL, name), system.plan(_AFTER_TOOL, name)
        return NO_PLANS if before is None and after is None else (before, after)
    except Exception as error:
        name = name_text(tool_name)
        return _broken(config, _BEFORE_TOOL, error, name), _broken(config, _AFTER_TOOL, error, name)


def model_plans(config: CallerConfig) -> ModelPlans:
    """Return the hooks that run around a model call."""
    selection = plan_for(config, HookEventName.BEFORE_TOOL_SELECTION)
    return selection, plan_for(config, HookEventName.BEFORE_MODEL), plan_for(config, HookEventName.AFTER_MODEL)


def has_hooks_for(config: CallerConfig, event_name: HookEventName, subject: str | None = None) -> bool:
    """Whether any hook would run for an event; ``subject`` is what its matchers are compared with.

    Costs a few dictionary lookups.
    """
    plan = plan_for(config, event_name, subject)
    if isinstance(plan, BrokenPlan):
        log.warning("%s: looking up the hooks failed; they are skipped", event_name, exc_info=plan.error)
        return False
    return plan is not None and bool(plan.hook_configs)


def unmatched_hooks(config: CallerConfig, tool_names: Sequence[str]) -> list[HookDefinition]:
    """Return the hooks for tools that would run for none of these."""
    try:
        system = config.get_hook_system()
        return [] if system is None else [*chain(*(system.unmatched(event, tool_names) for event in TOOL_EVENTS))]
    except Exception:
        log.warning("comparing the matchers of hooks with the tools failed", exc_info=True)
        return []


def enforces(config: CallerConfig, event_name: HookEventName) -> bool:
    """Whether any hook would run for an event, and not only to observe."""
    plan = plan_for(config, event_name)
    return plan is not None and not plan.is_broken and not plan.observes_only


def _broken(config: CallerConfig, event_name: HookEventName, error: Exception, subject: str | None) -> BrokenPlan:
    fail_closed = event_name.spec.can_block and _must_not_fail(config, event_name)
    return BrokenPlan(event_name, error, "processing", fail_closed=fail_closed, subject=subject)


def _must_not_fail(config: CallerConfig, event_name: HookEventName) -> bool:
    """Whether any hook of the event has ``failClosed``, read without the engine, which has failed."""
    try:
        functions = (hook for hook in config.function_hooks if hook.event_name == event_name)
        if any(hook.config.fail_closed for hook in functions):
            return True
        entries = (entry for hook_set in config.hook_sets for entry in hook_entries(hook_set.hooks))
        hooks = (entry.hook for entry in entries if entry.event == event_name)
        return any(hook.get("failClosed") is True and hook.get("mode") != OBSERVE for hook in hooks)
    except Exception:  # the configuration itself cannot be read
        return False
