"""Migrates another agent's settings file: first a plan, then the changes. The source is never changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.diagnosis.foreign_words import claude_words, script_text
from llxprt_hooks.engine.definitions import read_hook
from llxprt_hooks.migration.dialects import CLAUDE
from llxprt_hooks.migration.reading import Reading
from llxprt_hooks.settings.document import ChangedMeanwhileError, Document, read_document, rewrite
from llxprt_hooks.settings.edit import EditError, add_hook_group, set_disabled, set_top_level
from llxprt_hooks.settings.hook_fields import read_hook_fields
from llxprt_hooks.settings.hook_groups import hook_entries
from llxprt_hooks.settings.jsonc import parse
from llxprt_hooks.settings.levels import is_home, project_settings_file, user_settings_file
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.trust.errors import ScriptsError
from llxprt_hooks.trust.scripts import project_scripts

if TYPE_CHECKING:
    from llxprt_hooks.migration.dialects import Dialect


MOST_PROBLEMS: Final = 20
"""In scripts; the rest is not reported."""


class MigrationError(Exception):
    """The migration is not possible. The message is for the user."""


class NoSourceError(MigrationError):
    """The file to migrate does not exist."""


@dataclass(frozen=True, slots=True)
class Migration:
    dialect: Dialect
    source: Path
    target: Path
    before: str
    after: str
    groups: int
    """The number of groups that can be migrated."""
    left_out: tuple[Problem, ...]
    """Settings without a counterpart, with advice."""
    remarks: tuple[Problem, ...]
    """Migrated settings that need review."""
    differences: tuple[str, ...]
    """How the migrated hooks behave differently here."""
    in_scripts: tuple[Problem, ...]
    """Where scripts use the other agent's names."""


def plan_migration(dialect: Dialect, source: Path, project: Path) -> Migration:
    """Plan the migration of a file's hooks into a project. Writes nothing."""
    target = user_settings_file() if is_home(project) else project_settings_file(project)
    if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(project)):
        raise MigrationError(f"{target} is a link to a file outside {project}: nothing was changed")
    given = _document(source)
    if given is None:
        raise NoSourceError(f"there is no file {source}")
    there = _document(target)
    reading = Reading(given, dialect)
    reading.read()
    text = there.text if there else ""
    try:
        after = _edited(text, reading, enabled=read_hook_fields(there).enabled if there else None)
    except EditError as error:
        raise MigrationError(f"{target}: {error}") from error
    events = dict.fromkeys(event for event, _ in reading.groups)
    hooks = (read_hook(hook)[0] for _, group in reading.groups for hook in group["hooks"])
    texts = [text for hook in hooks if hook for text in hook.executor.script_texts(hook.spec)]
    return Migration(
        dialect=dialect,
        source=source,
        target=target,
        before=text,
        after=after,
        groups=len(reading.groups),
        left_out=tuple(reading.left_out),
        remarks=tuple(reading.remarks),
        differences=(
            *(each for event in events for each in dialect.differences.get(event, ())),
            *(dialect.general if events else ()),
        ),
        in_scripts=tuple(_words_in_scripts(texts, project)) if dialect is CLAUDE else (),
    )


def write_migration(migration: Migration) -> None:
    """Write the planned changes. Raises ``MigrationError`` if the target has changed since the plan was made."""
    try:
        rewrite(migration.target, migration.before, migration.after)
    except ChangedMeanwhileError as error:
        raise MigrationError(str(error)) from error


def _document(file: Path) -> Document | None:
    document = read_document(file)
    if isinstance(document, Problem):
        raise MigrationError(f"nothing was changed, because a file cannot be read: {document}")
    return document


def _edited(text: str, reading: Reading, *, enabled: bool | None) -> str:
    new = [(event, group) for event, group in reading.groups if not _has_group(text, event, group)]
    if new and enabled is None and reading.is_on:
        text = set_top_level(text, "enableHooks", True)
    for event, group in new:
        text = add_hook_group(text, event, group)
    for name in reading.disabled:
        text = set_disabled(text, name, True)
    return text


def _words_in_scripts(texts: Iterable[str], project: Path) -> Iterator[Problem]:
    """Yield where scripts use Claude Code's names, which the migration of settings does not change."""
    try:
        files = project_scripts(texts, project)
    except ScriptsError:  # reported by `trust`
        return
    found = ((project / file, word) for file in files for word in claude_words(script_text(project / file) or ""))
    for file, word in islice(found, MOST_PROBLEMS):
        yield Problem(file, word.line, word.column, f"`{word.name}`: {word.meaning}")


def _has_group(text: str, event: str, group: Mapping[str, Any]) -> bool:
    """Return whether an event already has all hooks of a group, with the same matcher."""
    hooks = parse(text).at("hooks") if text.strip() else None
    return _keys({event: [group]}) <= _keys(hooks.to_value() if hooks else {})


def _keys(hooks: object) -> set[tuple[str, str, str]]:
    found = ((entry, read_hook(entry.hook)[0]) for entry in hook_entries(hooks))
    return {(entry.event, str(entry.group.get("matcher")), hook.deduplication_key) for entry, hook in found if hook}
