"""Which hooks are chosen for an event, and why others are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks.engine.matcher import compile_matcher, is_for_all
from llxprt_hooks.engine.registry import HookRegistryEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llxprt_hooks.engine.definitions import HookDefinition


@dataclass(frozen=True, slots=True)
class Choice:
    """A hook of the event, whether it runs, and why."""

    entry: HookRegistryEntry
    runs: bool
    why: str


def choices(entries: Iterable[HookRegistryEntry], subject: str | None, *, hooks_are_on: bool = True) -> list[Choice]:
    """Each hook of an event, in order of priority."""
    taken: dict[str, str] = {}
    found = []
    for entry in entries:
        obstacle = _obstacle(entry, subject, taken) if hooks_are_on else "hooks are off"
        if obstacle is None:
            taken[entry.config.deduplication_key] = entry.definition.where
        found.append(Choice(entry, obstacle is None, obstacle or _grounds(entry, subject)))
    return found


def unapproved(definition: HookDefinition, why: str) -> Choice:
    """A hook of a project that is not approved."""
    matches = compile_matcher(definition.event_name, definition.matcher)
    return Choice(HookRegistryEntry(definition, matches, enabled=False), runs=False, why=why)


def _obstacle(entry: HookRegistryEntry, subject: str | None, taken: dict[str, str]) -> str | None:
    if not entry.enabled:
        return "it is disabled"
    if subject is not None and not entry.matches(subject):
        return f"its matcher {entry.matcher!r} does not match {subject!r}"
    if entry.config.deduplication_key in taken:
        return f"the same command is at {taken[entry.config.deduplication_key]} already, and runs once"
    return None


def _grounds(entry: HookRegistryEntry, subject: str | None) -> str:
    if subject is None:
        return f"{entry.event_name} does not look at matchers"
    if is_for_all(entry.matcher):
        return "it is for all"
    return f"its matcher {entry.matcher!r} matches {subject!r}"
