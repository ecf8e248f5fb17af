"""Finds Claude Code's names in migrated scripts, which receive different names here.

A tool's name is reported if the script reads ``tool_name``, if the script does not contain the tool's name here (a
script for both agents contains both), and if the name is compared: the line mentions ``tool_name`` or a variable set
from it, is a label of a ``case`` over one, or lists the name, alone or with other tools. The name must be a whole word
in quotes; in the first two cases also without quotes, as in shells and patterns. Comments are ignored.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from llxprt_hooks.foreign import CLAUDE_EVENTS, CLAUDE_FIELDS, CLAUDE_TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_LARGEST: Final = 256 * 1024
_LONGEST_LINE: Final = 2000
"""Longer lines are not written by hand but part of bundled programs."""

_MOST_VARIABLES: Final = 20
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
_QUOTED: Final = re.compile(rf"""(["'`])({_TOOL})\1""")
_BARE: Final = re.compile(
    rf"""
      (?<=["'`|^(])(?P<alternative>{_TOOL})(?=["'`|$)])
    | (?<=/)(?P<first>{_TOOL})(?=\|)
    | (?:=~?|\bin|\bgrep(?:[ \t]+-\w+)*)[ \t]+(?P<operand>{_TOOL})(?=[\s;\]|)&]|$)
    """,
    re.VERBOSE,
)
"""A name in a pattern or in a shell comparison."""

_CHOICE: Final = re.compile(r"\s*(?:case\b.*\bin\b|case\s+[\w$@.\"'{}]+\s*$|switch\b|match\b)")
_LABEL: Final = re.compile(
    rf"""\s*(?:
          (?:case|when)\b.*["'`](?:{_TOOL})["'`]
        | \(?\s*(?:["']?[\w*.-]+["']?\s*\|\s*)*["']?(?:{_TOOL})["']?\s*(?:\|[^)]*)?\)
    )""",
    re.VERBOSE,
)
_IN_LABEL: Final = re.compile(rf"(?<![\w.-])({_TOOL})(?![\w.-])")
_LISTED: Final = re.compile(rf"""[\[{{]\s*["'`](?:{_TOOL})["'`]""")
_COMMENT: Final = re.compile(r"\s*(?:#|//|\*|/\*)")
_READS: Final = re.compile(r"\btool_?name\b", re.IGNORECASE)
_SET: Final = re.compile(
    r"""^\s*(?:(?:const|let|var|local|export|readonly|declare|my)\s+)?[$@]?(?P<left>[A-Za-z_]\w*)\b[^=!<>"'(]*=(?!=).*\btool_name\b
      | \btool_name\s*:\s*(?P<renamed>[A-Za-z_]\w*)[^}]*\}\s*=""",
    re.VERBOSE,
)


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
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
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
    [ForeignWord(name='Bash', line=1, column=25)]
    >>> compared_tools('if call["tool_name"] not in ("Bash", "run_shell_command"):')
    []
    """
    if "tool_name" not in text:
        return []
    lines = ["" if _is_ignored(line) else line for line in text.splitlines()]
    mentions_tool = _tool_name_pattern(lines)
    unmatched = {name for name, ours in _TOOLS.items() if not _is_known(ours, text)}
    named = [{found[2] for found in _QUOTED.finditer(line)} for line in lines]
    found: list[ForeignWord] = []
    about_choice = False
    for number, line in enumerate(lines, start=1):
        about = mentions_tool.search(line) is not None
        if _CHOICE.match(line):
            about_choice = about
        others = set().union(*named[max(0, number - 2) : number + 1])
        words = _in_line(line, about=about, label=about_choice, listed=len(others) > 1)
        found += (ForeignWord(name, number, column) for name, column in words if name in unmatched)
    return found


def _is_known(tool: str, text: str) -> bool:
    """Return whether a script uses a tool's name here. `replace`, `glob` and `task` have other meanings in code."""
    name = rf"\b{tool}\b" if "_" in tool else rf"""["'`|^]{tool}\b|\b{tool}["'`|$)]"""
    return re.search(name, text) is not None


def _is_ignored(line: str) -> bool:
    return len(line) > _LONGEST_LINE or _COMMENT.match(line) is not None


def _tool_name_pattern(lines: list[str]) -> re.Pattern[str]:
    """Return a pattern for lines about the tool's name: ``tool_name`` or a variable set from it."""
    found = (match for line in lines if "tool_name" in line for match in _SET.finditer(line))
    variables = dict.fromkeys(match["left"] or match["renamed"] for match in islice(found, _MOST_VARIABLES))
    return re.compile("|".join([_READS.pattern, *(rf"\b{name}\b" for name in variables)]), re.IGNORECASE)


def _in_line(line: str, *, about: bool, label: bool, listed: bool) -> Iterator[tuple[str, int]]:
    quoted = list(_QUOTED.finditer(line))
    if label and _LABEL.match(line):
        yield from ((found[1], found.start(1) + 1) for found in _IN_LABEL.finditer(line))
    elif quoted and (about or listed or _LISTED.search(line)):
        yield from ((found[2], found.start() + 1) for found in quoted)
    elif about:
        bare = ((found, found.lastgroup or 0) for found in _BARE.finditer(line))
        yield from ((found[group], found.start(group) + 1) for found, group in bare)
