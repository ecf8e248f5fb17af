"""Merges settings levels (D-20): the highest level that sets a value wins, hook groups are concatenated.

Every function takes the levels in order of priority, highest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def merge_hooks(levels: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the hook groups of all levels by event name."""
    merged: dict[str, list[Any]] = {}
    for hooks in levels:
        for event, groups in hooks.items():
            merged.setdefault(event, []).extend(groups if isinstance(groups, list) else [groups])
    return merged


def merge_switches(switches: Iterable[bool | None], default: bool = False) -> bool:
    """Return whether something, by default the hooks, is on; the default if no level sets it."""
    return next((switch for switch in switches if switch is not None), default)


def merge_lists(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Join lists without duplicates."""
    return tuple(dict.fromkeys(element for elements in lists for element in elements))
