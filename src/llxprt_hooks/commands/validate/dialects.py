"""Mistakes in the settings files of other agents, in that agent's own words, and what cannot be honored here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from llxprt_hooks.commands.validate.diagnostic import Diagnostic
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.settings.definitions import HookSet, dialect_of, read_definitions
from llxprt_hooks.settings.document import Document
from llxprt_hooks.settings.foreign_files import load_foreign
from llxprt_hooks.settings.levels import Level, absolute_project
from llxprt_hooks.settings.load import asked_plugins
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.notices import not_approved
from llxprt_hooks.settings.trust.review import missing_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llxprt_hooks.settings.foreign_files import ForeignFile
    from llxprt_hooks.settings.trust.status import TrustStatus

_MISTAKE: Final = re.compile("discarded|.*(?:: expected|not a valid)")
"""A message about something that the other agent cannot use either."""
_FIXES: Final = {
    Rule.SYNTAX: "Correct the file. The other agent cannot read it either.",
    Rule.MISSPELT_KEY: "Correct the key, or remove it.",
    Rule.DIALECT_MISTAKE: "Correct it in the words of that agent; its own documentation has them.",
    Rule.DIALECT_GAP: "Nothing, if you do not rely on it here; otherwise add a hook that does the same.",
    Rule.PROGRAM_NOT_FOUND: "Create the file, or correct the path.",
    Rule.NOT_TRUSTED: "Review the hooks, then approve them.",
}


def check_dialect(directory: Path, name: str) -> Iterator[tuple[Path, bool, tuple[Diagnostic, ...]]]:
    """Yield every file of a dialect that applies to a project, whether it exists, and what is wrong with it."""
    settings = load_foreign(absolute_project(directory), name, asked_plugins(name))
    for file in settings.files:
        found = tuple(_diagnostic(*each, file) for each in _found(file, name, settings.trust))
        yield file.found.file, file.content is not None, found


def has_file(directory: Path, name: str, file: Path) -> bool:
    """Return whether a dialect has settings in this file."""
    return any(each.file == file for each in dialect_of(name).files(absolute_project(directory)))


def _found(file: ForeignFile, dialect: str, trust: TrustStatus) -> Iterator[tuple[Rule, Problem]]:
    document = file.content
    if isinstance(document, Problem):
        yield Rule.SYNTAX, document
    if file.read is None or not isinstance(document, Document):
        return
    yield from ((Rule.DIALECT_GAP, document.problem_at(*gap)) for gap in file.read.gaps)
    definitions, problems = read_definitions(HookSet(file.read.hooks, origin=str(file.found.file), dialect=dialect))
    for each in problems:
        yield _rule(each), each
    if file.found.level is not Level.PROJECT:
        return
    for hook in definitions:
        if missing := missing_file(trust, hook.config.command):
            yield Rule.PROGRAM_NOT_FOUND, document.problem_at(0, f"{hook.where}: `{missing}` does not exist")
    if file.read.hooks and (why := not_approved(trust)):
        yield Rule.NOT_TRUSTED, document.problem_at(0, why)


def _rule(problem: Problem) -> Rule:
    if _MISTAKE.match(problem.message):
        return Rule.DIALECT_MISTAKE
    return Rule.MISSPELT_KEY if "did you mean" in problem.message else Rule.DIALECT_GAP


def _diagnostic(rule: Rule, problem: Problem, file: ForeignFile) -> Diagnostic:
    place = problem.line or 1, problem.column or 1
    message = f"{problem.where}: {problem.message}" if problem.where else problem.message
    return Diagnostic(rule, file.found.file, *place, *place, message=message, fix=_FIXES[rule], text="")
