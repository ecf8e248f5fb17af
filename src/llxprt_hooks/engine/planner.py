"""The planner: which hooks run for an event, in which order, side by side or one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks.logger import debug_logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llxprt_hooks.engine.definitions import HookConfig
    from llxprt_hooks.engine.registry import HookRegistry, HookRegistryEntry
    from llxprt_hooks.events import HookEventName

log = debug_logger("planner")

_REMEMBERED_PLANS = 4096
"""A model may invent tool names without end; the memory for their plans has one."""


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """What to run for one event."""

    event_name: HookEventName
    hook_configs: tuple[HookConfig, ...]
    sequential: bool

    @property
    def fail_closed(self) -> bool:
        """Whether a failure of the engine itself must block."""
        return any(config.fail_closed for config in self.hook_configs)


class HookPlanner:
    """Makes plans, and remembers them: the same event and subject are looked up, not planned again."""

    def __init__(self, registry: HookRegistry) -> None:
        self._registry = registry
        self._plans: dict[tuple[HookEventName, str | None], ExecutionPlan | None] = {}
        self._revision = registry.revision

    def create_execution_plan(self, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
        """The plan for an event, or None when no hook is for it.

        ``subject`` is what matchers are held against: the tool's name, the session's source and the like; None for
        events that have none.
        """
        if self._revision != self._registry.revision or len(self._plans) >= _REMEMBERED_PLANS:
            self._plans.clear()
            self._revision = self._registry.revision
        try:
            return self._plans[event_name, subject]
        except KeyError:
            plan = self._plans[event_name, subject] = self._plan(event_name, subject)
            return plan

    def _plan(self, event_name: HookEventName, subject: str | None) -> ExecutionPlan | None:
        entries = self._registry.get_hooks_for_event(event_name)
        matching = _without_duplicates(entry for entry in entries if subject is None or entry.matches(subject))
        if not matching:
            return None
        plan = ExecutionPlan(
            event_name=event_name,
            hook_configs=tuple(entry.config for entry in matching),
            sequential=any(entry.sequential for entry in matching),  # HOOK-109
        )
        log.debug(
            "%s %s: %d hooks, %s",
            event_name,
            subject or "",
            len(matching),
            "one after another" if plan.sequential else "side by side",
        )
        return plan


def _without_duplicates(entries: Iterable[HookRegistryEntry]) -> list[HookRegistryEntry]:
    """The first entry of each command, which is the one of highest priority (HOOK-090)."""
    first: dict[str, HookRegistryEntry] = {}
    for entry in entries:
        first.setdefault(entry.config.deduplication_key, entry)
    return list(first.values())
