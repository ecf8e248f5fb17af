"""Finds Claude Code's names in migrated scripts, which receive different names here.

A tool's name is reported if the script reads ``tool_name`` and does not contain the tool's name here: a script for both
agents contains both. The name must be a whole string, an alternative of a pattern, or a word that a shell compares.
Comments are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final

from llxprt_hooks.settings.other_agents import CLAUDE_EVENTS, CLAUDE_FIELDS, CLAUDE_TOOLS

_TOOLS: Final[Mapping[str, str]] = {name: ours for name, ours in CLAUDE_TOOLS.items() if ours}
_EVENTS: Final = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "PreCompact")
"""Those whose names are not common words."""
_RESULT: Final = "tool_response"
MEANINGS: Final[Mapping[str, str]] = {
    **{name: f"the tool is called `{ours}` here" for name, ours in _TOOLS.items()},
    **{name: f"the event is called `{CLAUDE_EVENTS[name]}` here" for name in _EVENTS},
    "updatedInput": f"changed arguments are `{CLAUDE_FIELDS['updatedInput']}` here",
    "permissionDecision": 'here "ask" lets the call go ahead, and "allow" does not skip the agent\'s own question',
    "tool_use_id": "there is no such field here",
    "permission_mode": "there is no such field here",
    _RESULT: "the result is in its field `llmContent` here, and the arguments are in `tool_input`",
}
_IN_RESULTS: Final = "filePath|stdout|stderr|interrupted|structuredPatch|success"
"""Fields of the results of Claude Code's tools."""
_WORD: Final = re.compile(
    rf"""(["'`])({"|".join(name for name in MEANINGS if name != _RESULT)})\1
    |\.(updatedInput|permissionDecision|tool_use_id)\b
    |\b({_RESULT})(?=[^\w\n]{{1,8}}(?:get\W{{1,3}})?(?:{_IN_RESULTS})\b)""",
    re.VERBOSE,
)

_TOOL: Final = "|".join(_TOOLS)
_NAMED: Final = re.compile(
    rf"""
      (?<=["'`|^(/])(?P<string>{_TOOL})(?=["'`|$)])
    | ^[ \t]*(?P<label>{_TOOL})(?=[ \t]*[|)])
    | (?:=~?|\bin|\bgrep(?:[ \t]+-\w+)*)[ \t]+(?P<word>{_TOOL})(?=[\s;\]|)&]|$)
    """,
    re.VERBOSE,
)
_COMMENT: Final = re.compile(r"\s*(?:#|//|\*|/\*)")
_MAX_LINE: Final = 2000
"""Longer lines are not written by hand but part of bundled programs."""


def claude_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a script uses names of Claude Code, for review after a migration: the first of each line."""
    unmatched = _unmatched(text)
    for start, line in _lines(text):
        if found := _WORD.search(line):
            yield start + found.start(), found[2] or found[3] or found[4]
        else:
            yield from islice(_compared(start, line, unmatched), 1)


def compared_tools(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a script compares the tool's name with one of Claude Code's that never matches.

    >>> list(compared_tools('if call["tool_name"] != "Bash":'))
    [(25, 'Bash')]
    >>> list(compared_tools('if call["tool_name"] not in ("Bash", "run_shell_command"):'))
    []
    """
    unmatched = _unmatched(text)
    for start, line in _lines(text):
        yield from _compared(start, line, unmatched)


def _unmatched(text: str) -> set[str]:
    """The names that a script does not also have as ours."""
    if "tool_name" not in text:
        return set()
    return {name for name, ours in _TOOLS.items() if not _is_known(ours, text)}


def _is_known(tool: str, text: str) -> bool:
    """Return whether a script uses a tool's name here. `replace`, `glob` and `task` have other meanings in code."""
    name = rf"\b{tool}\b" if "_" in tool else rf"""["'`|^]{tool}\b|\b{tool}["'`|$)]"""
    return re.search(name, text) is not None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _compared(start: int, line: str, unmatched: Collection[str]) -> Iterator[tuple[int, str]]:
    if not unmatched or _is_ignored(line):
        return
    for found in _NAMED.finditer(line):
        group = found.lastgroup or ""
        if found[group] in unmatched:
            yield start + found.start(group), found[group]


def _is_ignored(line: str) -> bool:
    return len(line) > _MAX_LINE or _COMMENT.match(line) is not None
