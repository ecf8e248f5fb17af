"""Hooks that do not do what their author thinks: they never ran, or they always fail."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks._support.text import closest
from llxprt_hooks.settings.matcher import is_for_all

if TYPE_CHECKING:
    from llxprt_hooks.commands.inspect.timeline import TimelineEvent
    from llxprt_hooks.commands.list import Inventory, Item

_FAILURES = 2
"""Executions that must all have failed before it counts as always."""

_SHOWN_TOOLS = 5


@dataclass(frozen=True, slots=True)
class SuspiciousHook:
    kind: str
    """``never fired``, ``does not run`` or ``always fails``."""
    hook: str
    event: str
    project: str
    text: str


def find_silent_hooks(project: str, inventory: Inventory, events: Iterable[TimelineEvent]) -> list[SuspiciousHook]:
    """Compare the hooks that are configured for a project with what its log shows."""
    events = list(events)
    place = os.path.realpath(project)
    names = {name for name in {event.project for event in events} if os.path.realpath(name) == place}
    own = [event for event in events if event.project in names]
    ran = {(event.event_name, hook) for event in own for hook in event.hooks}
    tools = sorted({event.tool for event in own} - {""})
    return [
        _silent(project, inventory, item, tools)
        for item in inventory.items
        if (item.definition.event_name.value, item.name) not in ran
    ]


def find_failing_hooks(events: Iterable[TimelineEvent]) -> list[SuspiciousHook]:
    """Return the hooks whose recorded executions all failed."""
    runs: dict[tuple[str, str, str], list[bool]] = {}
    errors: dict[tuple[str, str, str], str] = {}
    for event in events:
        for execution in event.executions:
            key = (event.project, event.event_name, str(execution.get("hook")))
            runs.setdefault(key, []).append(bool(execution.get("failed")))
            errors[key] = str(execution.get("error") or "")
    return [
        SuspiciousHook(
            "always fails", hook, event, project, f"All {len(failed)} recorded runs failed. Last: {errors[key]}"
        )
        for key, failed in runs.items()
        for project, event, hook in [key]
        if len(failed) >= _FAILURES and all(failed)
    ]


def _silent(project: str, inventory: Inventory, item: Item, tools: list[str]) -> SuspiciousHook:
    event = item.definition.event_name.value
    if not inventory.runs(item):
        return SuspiciousHook(
            "does not run", item.name, event, project, f"It is configured, but {inventory.state(item)}."
        )
    return SuspiciousHook("never fired", item.name, event, project, _why(item, tools))


def _why(item: Item, tools: list[str]) -> str:
    matcher = item.definition.matcher
    spec = item.definition.event_name.spec
    if not spec.matched_field or is_for_all(matcher):
        return "No recorded event reached it."
    if not spec.is_about_tool:
        return f"Its matcher is {matcher!r}, and no recorded event reached it."
    meant = closest(str(matcher), tools)
    seen = f" Tools seen: {', '.join(tools[:_SHOWN_TOOLS])}." if tools else ""
    guess = f" Did you mean {meant!r}?" if meant and meant != matcher else ""
    return f"Its matcher {matcher!r} matched no recorded tool.{guess}{seen}"
