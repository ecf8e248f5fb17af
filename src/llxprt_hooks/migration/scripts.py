"""Finds Claude Code's names in a project's scripts, which the migration of settings does not change."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from llxprt_hooks.diagnosis.foreign_words import claude_words, script_text
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.trust.errors import ScriptsError
from llxprt_hooks.trust.scripts import project_scripts

MOST_PROBLEMS: Final = 20


def foreign_words(texts: Iterable[str], project: Path) -> list[Problem]:
    """Return where the hooks' scripts use Claude Code's names for tools, events and fields."""
    try:
        files = project_scripts(texts, project)
    except ScriptsError:  # reported by `trust`
        return []
    found = (
        Problem(project / file, word.line, word.column, f"`{word.name}`: {word.meaning}")
        for file in files
        for word in claude_words(script_text(project / file) or "")
    )
    return list(islice(found, MOST_PROBLEMS))
