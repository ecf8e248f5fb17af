"""Adapts the matchers of recipes to the names that an agent's tools have.

>>> adapted_matcher("^(write_file|replace)$", {"write": ["edit"]})
'^(write_file|replace|edit)$'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.engine.matcher import compile_matcher
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.recipes.catalogue import Recipe

ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "write": ("write_file", "replace"),
    "shell": ("run_shell_command",),
    "read": ("read_file", "read_many_files", "list_directory", "glob", "search_file_content"),
}
"""What tools do, and the tools that do it, by the names that recipes use."""

Tools = Mapping[str, Sequence[str]]
"""The names of an agent's tools, by role."""


def adapt_to_tools(recipe: Recipe, tools: Tools) -> Recipe:
    """Return the recipe with matchers that treat these tools like the recipe's own tools of the same role."""

    def adapted(event: str, group: Mapping[str, Any]) -> Mapping[str, Any]:
        if "matcher" not in group or not HookEventName(event).spec.is_about_tool:
            return group
        return {**group, "matcher": adapted_matcher(group["matcher"], tools)}

    hooks = {event: [adapted(event, group) for group in groups] for event, groups in recipe.hooks.items()}
    return replace(recipe, hooks=hooks)


def adapted_matcher(matcher: str, tools: Tools) -> str:
    """Return a matcher with the same result for each of the tools as for the tool of its role in recipes.

    The name is added where the matcher lists tools of this role, also if it lists them to exclude them.
    """
    for role, names in tools.items():
        known = ROLES[role]
        for name in names:
            if _matches(matcher, name) != _matches(matcher, known[0]):
                matcher = _with_name(matcher, known, re.sub(r"[^\w-]", r"\\\g<0>", name))
    return matcher


def _matches(matcher: str, tool: str) -> bool:
    return compile_matcher(HookEventName.BEFORE_TOOL, matcher)(tool)


def _with_name(matcher: str, known: Sequence[str], name: str) -> str:
    listed = list(re.finditer(rf"\b(?:{'|'.join(known)})\b", matcher))
    if not listed:
        return f"{matcher}|^{name}$"
    start, end = listed[-1].span()
    with_name = f"{matcher[start:end]}|{name}"
    if "(" not in matcher:
        with_name = f"({with_name})"
    return f"{matcher[:start]}{with_name}{matcher[end:]}"
