"""Finds Claude Code's names in migrated scripts, which receive different names here.

A tool's name is reported if the script reads ``tool_name`` and does not contain the tool's name here: a script for both
agents contains both. The name must be a whole string, an alternative of a pattern, or a word that a shell compares.
Comments are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from llxprt_hooks.settings.other_agents import CLAUDE_EVENTS, CLAUDE_FIELDS, CLAUDE_TOOLS

_TOOLS: Final[Mapping[str, str]] = {name: ours for name, ours in CLAUDE_TOOLS.items() if ours}
_EVENTS: Final = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "PreCompact")
"""Those whose names are not common words."""
MEANINGS: Final[Mapping[str, str]] = {
    **{name: f"the tool is called `{ours}` here" for name, ours in _TOOLS.items()},
    **{name: f"the event is called `{CLAUDE_EVENTS[name]}` here" for name in _EVENTS},
    "updatedInput": f"changed arguments are `{CLAUDE_FIELDS['updatedInput']}` here",
    "permissionDecision": 'here "ask" lets the call go ahead, and "allow" does not skip the agent\'s own question',
    "tool_use_id": "there is no such field here",
    "permission_mode": "there is no such field here",
}
_WORD: Final = re.compile(rf"""(["'`])({"|".join(MEANINGS)})\1|\.(updatedInput|permissionDecision|tool_use_id)\b""")

_TOOL: Final = "|".join(_TOOLS)
_NAMED: Final = re.compile(
    rf"""
      (?<=["'`|^(/])(?P<string>{_TOOL})(?=["'`|$)])
    | ^[ \t]*(?P<label>{_TOOL})(?=[ \t]*[|)])
    | (?:=~?|\bin|\bgrep(?:[ \t]+-\w+)*)[ \t]+(?P<word>{_TOOL})(?=[\s;\]|)&]|$)
    """,
    re.VERBOSE | re.MULTILINE,
)
_COMMENT: Final = re.compile(r"\s*(?:#|//|\*|/\*)")
_MAX_LINE: Final = 2000
"""Longer lines are not written by hand but part of bundled programs."""


def claude_names(text: str) -> list[tuple[int, str]]:
    """Return where a script uses names of Claude Code, for review after a migration: the first of each line."""
    words = [(found.start(), found[2] or found[3]) for found in _WORD.finditer(text)]
    first: dict[int, tuple[int, str]] = {}
    for start, name in [*words, *compared_tools(text)]:
        first.setdefault(text.count("\n", 0, start), (start, name))
    return sorted(first.values())


def compared_tools(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a script compares the tool's name with one of Claude Code's that never matches.

    >>> list(compared_tools('if call["tool_name"] != "Bash":'))
    [(25, 'Bash')]
    >>> list(compared_tools('if call["tool_name"] not in ("Bash", "run_shell_command"):'))
    []
    """
    if "tool_name" not in text:
        return
    unmatched = {name for name, ours in _TOOLS.items() if not _is_known(ours, text)}
    for found in _NAMED.finditer(text):
        group = found.lastgroup or ""
        if found[group] in unmatched and not _is_ignored(_line(text, found.start(group))):
            yield found.start(group), found[group]


def _is_known(tool: str, text: str) -> bool:
    """Return whether a script uses a tool's name here. `replace`, `glob` and `task` have other meanings in code."""
    name = rf"\b{tool}\b" if "_" in tool else rf"""["'`|^]{tool}\b|\b{tool}["'`|$)]"""
    return re.search(name, text) is not None


def _line(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    return text[start:].partition("\n")[0]


def _is_ignored(line: str) -> bool:
    return len(line) > _MAX_LINE or _COMMENT.match(line) is not None
