"""How levels are merged (D-20): the highest level that speaks decides, lists of hooks are put one after another.

Every function takes its levels highest priority first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.levels import Level


@dataclass(frozen=True, slots=True)
class HookSource:
    """The hooks of one level, and the document in which ``document.root.at("hooks", …)`` tells where each stands."""

    level: Level
    file: Path
    hooks: Mapping[str, Any]
    document: Document = field(repr=False, compare=False)


def merge_hooks(levels: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Event name to the hook groups of all levels, one after another."""
    merged: dict[str, list[Any]] = {}
    for hooks in levels:
        for event, groups in hooks.items():
            merged.setdefault(event, []).extend(groups if isinstance(groups, list) else [groups])
    return merged


def merge_switches(switches: Iterable[bool | None]) -> bool:
    """Whether hooks are on; off where no level says anything."""
    return next((switch for switch in switches if switch is not None), False)


def merge_lists(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """All lists joined, each element once."""
    return tuple(dict.fromkeys(element for elements in lists for element in elements))
