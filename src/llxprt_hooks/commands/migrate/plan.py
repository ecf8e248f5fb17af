"""Migrates another agent's settings file: first a plan, then the changes. The source is never changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from llxprt_hooks.commands.migrate.dialects import CLAUDE, Dialect
from llxprt_hooks.commands.migrate.translation import Translation
from llxprt_hooks.commands.validate.claude_names import MEANINGS, claude_names
from llxprt_hooks.commands.validate.diagnostic import Source
from llxprt_hooks.commands.validate.started_programs import start_of
from llxprt_hooks.settings.definitions import read_hook
from llxprt_hooks.settings.document import ChangedMeanwhileError, Document, read_document, rewrite
from llxprt_hooks.settings.edit import EditError, add_hook_group, set_disabled, set_top_level
from llxprt_hooks.settings.hook_entries import hook_entries
from llxprt_hooks.settings.hook_fields import read_hook_fields
from llxprt_hooks.settings.jsonc import parse
from llxprt_hooks.settings.levels import is_home, project_settings_file, user_settings_file
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.command_names import ScriptsError
from llxprt_hooks.settings.trust.covered_files import named_files

_MAX_PROBLEMS: Final = 20
"""In scripts; the rest is not reported."""


class MigrationError(Exception):
    """The migration is not possible. The message is for the user."""


class NoSourceError(MigrationError):
    """The file to migrate does not exist."""


@dataclass(frozen=True, slots=True)
class Migration:
    """The translated hooks, and what the file they go into will contain."""

    translation: Translation
    target: Path
    before: str
    after: str
    in_scripts: tuple[Problem, ...]
    """Where scripts use the other agent's names."""

    @property
    def source(self) -> Path:
        """The file with the other agent's settings."""
        return self.translation.document.file


def plan_migration(dialect: Dialect, source: Path, project: Path) -> Migration:
    """Plan the migration of a file's hooks into a project. Writes nothing."""
    target = user_settings_file() if is_home(project) else project_settings_file(project)
    if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(project)):
        raise MigrationError(f"{target} is a link to a file outside {project}: nothing was changed")
    given = _document(source)
    if given is None:
        raise NoSourceError(f"there is no file {source}")
    there = _document(target)
    translation = Translation(given, dialect)
    before = there.text if there else ""
    try:
        after = _edited(before, translation, enabled=read_hook_fields(there).enabled if there else None)
    except EditError as error:
        raise MigrationError(f"{target}: {error}") from error
    hooks = (read_hook(hook)[0] for _, group in translation.groups for hook in group["hooks"])
    texts = [text for hook in hooks if hook for text in hook.executor.script_texts(hook.spec)]
    in_scripts = tuple(islice(_words_in_scripts(texts, project), _MAX_PROBLEMS)) if dialect is CLAUDE else ()
    return Migration(translation, target, before, after, in_scripts)


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


def _edited(text: str, translation: Translation, *, enabled: bool | None) -> str:
    new = [(event, group) for event, group in translation.groups if not _has_group(text, event, group)]
    if new and enabled is None and translation.is_on:
        text = set_top_level(text, "enableHooks", True)
    for event, group in new:
        text = add_hook_group(text, event, group)
    for name in translation.disabled:
        text = set_disabled(text, name, True)
    return text


def _words_in_scripts(texts: Iterable[str], project: Path) -> Iterator[Problem]:
    """Yield where scripts use Claude Code's names, which the migration of settings does not change."""
    try:
        files = named_files(texts, project)
    except ScriptsError:  # reported by `trust`
        return
    for file in files:
        if b"\0" not in (data := start_of(project / file)):
            source = Source(project / file, data.decode(errors="replace"))
            for start, name in claude_names(source.text):
                yield Problem(source.file, *source.position(start), f"`{name}`: {MEANINGS[name]}")


def _has_group(text: str, event: str, group: Mapping[str, Any]) -> bool:
    """Return whether an event already has all hooks of a group, with the same matcher."""
    hooks = parse(text).at("hooks") if text.strip() else None
    return _keys({event: [group]}) <= _keys(hooks or {})


def _keys(hooks: object) -> set[tuple[str, str, str]]:
    found = ((entry, read_hook(entry.node)[0]) for entry in hook_entries(hooks))
    return {(entry.event, str(entry.group.matcher), hook.deduplication_key) for entry, hook in found if hook}
