"""What in a project's scripts still speaks another agent's language: migrating settings does not change scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from llxprt_hooks.migration.matchers import TOOLS
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.scripts import ScriptsError, project_scripts

LARGEST: Final = 256 * 1024
MOST_PROBLEMS: Final = 20

_MEANINGS: Final[Mapping[str, str]] = {
    **{name: f"the tool is called `{ours}` here" for name, ours in TOOLS.items() if ours},
    "PreToolUse": "the event is called `BeforeTool` here",
    "PostToolUse": "the event is called `AfterTool` here",
    "UserPromptSubmit": "the event is called `BeforeAgent` here",
    "PreCompact": "the event is called `PreCompress` here",
    "updatedInput": "changed arguments are `tool_input` here",
    "permissionDecision": 'here "ask" allows, and "allow" does not skip the agent\'s own question',
    "tool_use_id": "there is no such field here",
    "permission_mode": "there is no such field here",
}
_WORD: Final = re.compile(rf"""(["'`])({"|".join(_MEANINGS)})\1|\.(updatedInput|permissionDecision|tool_use_id)\b""")


def foreign_words(commands: Iterable[str], project: Path) -> list[Problem]:
    """Where scripts that commands name use Claude Code's names for tools, events and fields."""
    try:
        files = project_scripts(commands, project)
    except ScriptsError:  # told by `trust`, which needs to know
        return []
    found = (problem for file in files for problem in _in_file(project / file))
    return [problem for problem, _ in zip(found, range(MOST_PROBLEMS), strict=False)]


def _in_file(file: Path) -> Iterator[Problem]:
    if not file.is_file() or file.stat().st_size > LARGEST:
        return
    text = file.read_text("utf-8", errors="replace")
    if "\0" in text:
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _WORD.search(line):
            word = found[2] or found[3]
            yield Problem(file, number, found.start() + 1, f"`{word}`: {_MEANINGS[word]}")
