"""Loads the settings of all levels, and merges those that are trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llxprt_hooks.engine.schema import shell_fields
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.environment import HookEnvironment
from llxprt_hooks.settings.extensions import find_extensions
from llxprt_hooks.settings.hook_fields import read_hook_fields
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER, Level, absolute_project, settings_file, user_folder
from llxprt_hooks.settings.merge import HookSource, merge_lists, merge_switches
from llxprt_hooks.settings.problem import Problem, SettingsError
from llxprt_hooks.text import escape_for_terminal
from llxprt_hooks.trust.status import TRUST_VARIABLE, TrustState, assess_trust

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from llxprt_hooks.settings.extensions import Extension
    from llxprt_hooks.trust.status import TrustStatus

log = debug_logger("settings")


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings of all files, without those of an untrusted project."""

    enabled: bool
    enabled_if_approved: bool
    """Whether hooks would be on if the project were approved."""
    sources: tuple[HookSource, ...]
    """The levels that have hooks, highest priority first."""
    disabled: tuple[str, ...]
    disabled_if_approved: tuple[str, ...]
    """The disabled hooks, including those of a project that is not approved."""
    environment: HookEnvironment
    """Which variables hooks inherit."""
    extensions: tuple[Extension, ...]
    problems: tuple[Problem, ...]
    unreadable: Mapping[Level, Problem]
    """The levels whose file exists and cannot be read or parsed; these are in ``problems``, too."""
    notices: tuple[str, ...]
    """Which hooks were skipped because they are not approved or belong to another folder, and what to do about it."""
    trust: TrustStatus

    def require_readable(self, *levels: Level) -> None:
        """Raise ``SettingsError`` if the file of one of these levels cannot be read or parsed."""
        problems = [self.unreadable[level] for level in levels if level in self.unreadable]
        if problems:
            raise SettingsError(problems)


def load_settings(project_dir: str | os.PathLike[str]) -> Settings:
    """Read all levels and extensions. Nothing in a file makes it raise; mistakes are listed in ``problems``."""
    project = absolute_project(project_dir)
    contents = {level: read_document(file) for level in Level if (file := settings_file(level, project))}
    unreadable = [content for content in contents.values() if isinstance(content, Problem)]
    documents = {level: content for level, content in contents.items() if isinstance(content, Document)}
    read = {level: read_hook_fields(document) for level, document in documents.items()}
    trust = assess_trust(project, contents.get(Level.PROJECT))
    effective = {level: fields for level, fields in read.items() if level is not Level.PROJECT or trust.counts}
    extensions, extension_problems = find_extensions(user_folder() / "extensions", shell_fields())
    problems = [
        *unreadable,
        *(problem for fields in read.values() for problem in fields.problems),
        *trust.problems,
        *extension_problems,
    ]
    settings = Settings(
        enabled=merge_switches(fields.enabled for fields in effective.values()),
        enabled_if_approved=merge_switches(fields.enabled for fields in read.values()),
        sources=tuple(
            HookSource(level, documents[level].file, fields.hooks, documents[level])
            for level, fields in effective.items()
            if any(fields.hooks.values())
        ),
        disabled=merge_lists(fields.disabled for fields in effective.values()),
        disabled_if_approved=merge_lists(fields.disabled for fields in read.values()),
        environment=HookEnvironment(tuple(fields.environment for fields in effective.values() if fields.environment)),
        extensions=extensions,
        problems=tuple(dict.fromkeys(problems)),
        unreadable={level: content for level, content in contents.items() if isinstance(content, Problem)},
        notices=(*_notices(trust), *_elsewhere(project, contents.get(Level.PROJECT))),
        trust=trust,
    )
    for warning in (*settings.problems, *settings.notices):
        log.warning("%s", warning)
    return settings


NOT_TRUSTED_REASONS: Final = {
    TrustState.UNTRUSTED: "this project is not approved",
    TrustState.CHANGED: "the project has changed since it was approved",
}
"""Why a project's settings are ignored."""


def _notices(trust: TrustStatus) -> tuple[str, ...]:
    reason = NOT_TRUSTED_REASONS.get(trust.state)
    if reason is None:
        return ()
    if trust.is_outdated:
        reason = "the approval of this project was given to an earlier version and covered less"
    count = len(trust.commands)
    skipped = {0: "The hook settings", 1: "1 hook"}.get(count, f"{count} hooks")
    file = escape_for_terminal(str(trust.file))
    changed = f": {', '.join(map(escape_for_terminal, trust.changed))}" if trust.changed else ""
    look = "what has changed" if changed else "that file"
    notice = (
        f"{skipped} in {file} {'was' if count == 1 else 'were'} skipped, because {reason}{changed}. "
        f"Look at {look}, then run `llxprt-hooks trust`, or set {TRUST_VARIABLE}=1 for one process."
    )
    return (notice,)


def _elsewhere(project: Path, settings: Document | Problem | None) -> Iterator[str]:
    """Warn about a missing project folder, or one nested in a project whose hooks are not applied."""
    if settings is not None:
        return
    if not project.is_dir():
        yield f"{escape_for_terminal(str(project))} is not a directory; no project hooks are loaded."
        return
    home = user_folder().parent
    for folder in project.parents:
        if folder == home:
            return
        if (folder / FOLDER / FILE_NAME).is_file():
            name = escape_for_terminal(str(folder))
            yield f"Hooks in {name} do not apply to subdirectories. Run from there, or pass -C {name}."
            return
