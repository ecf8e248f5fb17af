"""Finds Claude Code's names in migrated scripts, which receive different names here.

A tool's name is reported if the script reads ``tool_name`` and does not contain the tool's name here: a script for both
agents contains both. The name must be a whole string, an alternative of a pattern, or a word that a shell compares.
Comments are ignored.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llxprt_hooks.settings.other_agents import CLAUDE_EVENTS, CLAUDE_FIELDS, CLAUDE_TOOLS

_MAX_BYTES: Final = 256 * 1024
_MAX_LINE: Final = 2000
"""Longer lines are not written by hand but part of bundled programs."""

_TOOLS: Final[Mapping[str, str]] = {name: ours for name, ours in CLAUDE_TOOLS.items() if ours}
_EVENTS: Final = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "PreCompact")
"""Those whose names are not common words."""
_MEANINGS: Final[Mapping[str, str]] = {
    **{name: f"the tool is called `{ours}` here" for name, ours in _TOOLS.items()},
    **{name: f"the event is called `{CLAUDE_EVENTS[name]}` here" for name in _EVENTS},
    "updatedInput": f"changed arguments are `{CLAUDE_FIELDS['updatedInput']}` here",
    "permissionDecision": 'here "ask" lets the call go ahead, and "allow" does not skip the agent\'s own question',
    "tool_use_id": "there is no such field here",
    "permission_mode": "there is no such field here",
}
_WORD: Final = re.compile(rf"""(["'`])({"|".join(_MEANINGS)})\1|\.(updatedInput|permissionDecision|tool_use_id)\b""")

_TOOL: Final = "|".join(_TOOLS)
_NAMED: Final = re.compile(
    rf"""
      (?<=["'`|^(])(?P<string>{_TOOL})(?=["'`|$)])
    | (?<=/)(?P<pattern>{_TOOL})(?=\|)
    | ^[ \t]*(?P<label>{_TOOL})(?=[ \t]*[|)])
    | (?:=~?|\bin|\bgrep(?:[ \t]+-\w+)*)[ \t]+(?P<word>{_TOOL})(?=[\s;\]|)&]|$)
    """,
    re.VERBOSE,
)
_COMMENT: Final = re.compile(r"\s*(?:#|//|\*|/\*)")


@dataclass(frozen=True, slots=True)
class ForeignWord:
    """A name of Claude Code in a text; line and column are 1-based."""

    name: str
    line: int
    column: int

    @property
    def meaning(self) -> str:
        """What it corresponds to here."""
        return _MEANINGS[self.name]


def script_text(file: Path) -> str | None:
    """Return the text of a script; None if it is not text, too large, or unreadable."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            return None
        text = file.read_text("utf-8", errors="replace")
    except (OSError, ValueError):
        return None
    return None if "\0" in text else text


def claude_words(text: str) -> Iterator[ForeignWord]:
    """Yield the first name of Claude Code on each line, for review after a migration."""
    compared = {found.line: found for found in reversed(compared_tools(text))}
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _WORD.search(line):
            yield ForeignWord(found[2] or found[3], number, found.start() + 1)
        elif number in compared:
            yield compared[number]


def compared_tools(text: str) -> list[ForeignWord]:
    """Return Claude Code's tool names that a script compares with the tool's name and that never match.

    >>> compared_tools('if call["tool_name"] != "Bash":')
    [ForeignWord(name='Bash', line=1, column=26)]
    >>> compared_tools('if call["tool_name"] not in ("Bash", "run_shell_command"):')
    []
    """
    if "tool_name" not in text:
        return []
    unmatched = {name for name, ours in _TOOLS.items() if not _is_known(ours, text)}
    lines = (each for each in enumerate(text.splitlines(), start=1) if not _is_ignored(each[1]))
    found = ((number, match, match.lastgroup or "") for number, line in lines for match in _NAMED.finditer(line))
    return [
        ForeignWord(match[group], number, match.start(group) + 1)
        for number, match, group in found
        if match[group] in unmatched
    ]


def _is_known(tool: str, text: str) -> bool:
    """Return whether a script uses a tool's name here. `replace`, `glob` and `task` have other meanings in code."""
    name = rf"\b{tool}\b" if "_" in tool else rf"""["'`|^]{tool}\b|\b{tool}["'`|$)]"""
    return re.search(name, text) is not None


def _is_ignored(line: str) -> bool:
    return len(line) > _MAX_LINE or _COMMENT.match(line) is not None
