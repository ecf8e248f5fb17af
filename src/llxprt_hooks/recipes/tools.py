"""Adapts the matchers of recipes to the names that an agent's tools have.

>>> adapted_matcher("^(write_file|replace)$", {"write": ["edit"]})
'^(write_file|replace|edit)$'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.matcher import compile_matcher

ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "write": ("write_file", "replace"),
    "shell": ("run_shell_command",),
    "read": ("read_file", "read_many_files", "list_directory", "glob", "search_file_content"),
}
"""What tools do, and the tools that do it, by the names that recipes use."""

_LIKELY: Final = ("shell", "bash", "sh", "run", "run_command", "execute_command", "terminal", "python")
"""Names that other agents have for the tool that runs commands."""

_SIMILAR: Final = "another_shell"
"""Represents the tools whose names say that they run commands, and that no matcher lists."""

_ANY_OTHER: Final = "zzz"
"""Represents the tools whose names say nothing."""

Tools = Mapping[str, Sequence[str]]
"""The names of an agent's tools, by role."""


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


def tool_words(matchers: Sequence[str], tools: Tools) -> str:
    """Name the tools that any of the matchers is for.

    >>> tool_words(["^(?!(read_file|glob)$)"], {})
    'all tools except read_file, glob'
    """

    def runs_for(tool: str) -> bool:
        return any(_matches(matcher, tool) for matcher in matchers)

    known = [*chain(*ROLES.values()), *_LIKELY]
    added = [*chain(*map(_names_in, matchers)), *chain(*tools.values())]
    if runs_for(_ANY_OTHER):
        excluded = ", ".join(dict.fromkeys(name for name in [*known, *added] if not runs_for(name)))
        return f"all tools except {excluded}" if excluded else "all tools"
    matched = dict.fromkeys(name for name in [*known, *added] if runs_for(name))
    if runs_for(_SIMILAR):
        others = ", ".join(name for name in matched if name not in known)
        likely = ", ".join(name for name in matched if name in known)
        return f"{likely} and similar names" + (f", and {others}" if others else "")
    return ", ".join(matched) or f"those that match {' or '.join(dict.fromkeys(matchers))}"


def not_added(matchers: Sequence[str], tools: Tools) -> list[tuple[str, str]]:
    """Return the roles and names of the tools that none of the matchers is for, because none lists their role."""
    listed = roles_listed(matchers)
    return [
        (role, name)
        for role, names in tools.items()
        for name in names
        if role not in listed and not any(_matches(matcher, name) for matcher in matchers)
    ]


def roles_listed(matchers: Sequence[str]) -> list[str]:
    """Return the roles whose tools the matchers treat otherwise than unknown tools."""
    return [
        role
        for role, known in ROLES.items()
        if any(_matches(matcher, known[0]) != _matches(matcher, _ANY_OTHER) for matcher in matchers)
    ]


def _matches(matcher: str, tool: str) -> bool:
    return compile_matcher(HookEventName.BEFORE_TOOL, matcher)(tool)


def _names_in(matcher: str) -> Iterator[str]:
    """Yield the parts of a matcher that may be names, also those that ``adapted_matcher`` added."""
    for part in re.split(r"[|()^$]", matcher):
        if re.fullmatch(r"(?:[\w-]|\\\W)+", part):
            yield re.sub(r"\\(\W)", r"\1", part)


def _with_name(matcher: str, known: Sequence[str], name: str) -> str:
    listed = list(re.finditer(rf"\b(?:{'|'.join(known)})\b", matcher))
    if not listed:
        return f"{matcher}|^{name}$"
    start, end = listed[-1].span()
    with_name = f"{matcher[start:end]}|{name}"
    if "(" not in matcher:
        with_name = f"({with_name})"
    return f"{matcher[:start]}{with_name}{matcher[end:]}"
