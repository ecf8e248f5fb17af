"""Loads the settings of all levels, and merges those that are trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.engine.definitions import ConfigSource, HookSet, read_definitions
from llxprt_hooks.engine.executors.base import HookScope
from llxprt_hooks.engine.schema import SETTINGS, shell_fields
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.environment import HookEnvironment
from llxprt_hooks.settings.extensions import find_extensions
from llxprt_hooks.settings.hook_fields import ENABLING_KEYS, MANAGED, MANAGED_ONLY, read_hook_fields
from llxprt_hooks.settings.levels import (
    FILE_NAME,
    FOLDER,
    Level,
    absolute_project,
    extensions_folder,
    home_folder,
    settings_file,
    standard_system_file,
)
from llxprt_hooks.settings.merge import merge_lists, merge_switches
from llxprt_hooks.settings.ownership import other_writers, read_own_document
from llxprt_hooks.settings.problem import Problem, SettingsError
from llxprt_hooks.text import escape_for_terminal
from llxprt_hooks.trust.status import (
    TRUST_VARIABLE,
    TrustState,
    TrustStatus,
    approved_by_environment,
    assess_trust,
    ignored_approval,
)
from llxprt_hooks.trust.unread import unread_documents

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from llxprt_hooks.settings.audit import AuditRule
    from llxprt_hooks.settings.extensions import Extension
    from llxprt_hooks.settings.hook_fields import HookFields
    from llxprt_hooks.settings.jsonc import Node

log = debug_logger("settings")

_IGNORED: Final = (
    "None of the hooks in this file run, and nothing is blocked in their place. "
    "For details, run `llxprt-hooks validate`."
)


@dataclass(frozen=True, slots=True)
class LevelFile:
    """The settings file of a level, as it was found."""

    level: Level
    file: Path
    content: Document | Problem | None
    """None if it does not exist; a problem if it cannot be used."""
    fields: HookFields | None = None
    managed: bool = False
    """Whether its hooks are managed: root says so, and only root could have written it."""
    problems: tuple[Problem, ...] = ()

    @property
    def hooks(self) -> Mapping[str, list[Any]]:
        """Event name to hook groups."""
        return self.fields.hooks if self.fields else {}


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings of all files, without those of an untrusted project."""

    enabled: bool
    enabled_if_approved: bool
    """Whether hooks would be on if the project were approved."""
    managed_only: bool
    """Whether managed hooks are the only ones that may run."""
    sources: tuple[LevelFile, ...]
    """The levels that have hooks: managed ones first, then by priority, highest first."""
    disabled: tuple[str, ...]
    disabled_if_approved: tuple[str, ...]
    """The disabled hooks, including those of a project that is not approved."""
    warm: bool
    """Whether waiting interpreters may run hooks."""
    audit: AuditRule | None
    """Where records of executions are sent: what the system's file says, else the user's, else the project's (D-81)."""
    environment: HookEnvironment
    """Which variables hooks inherit."""
    managed_environment: HookEnvironment
    """Which variables managed hooks inherit: other levels cannot take away what these hooks need."""
    extensions: tuple[Extension, ...]
    skipped: tuple[HookSet, ...]
    """The hooks that do not run because they are not managed, while managed hooks do run."""
    problems: tuple[Problem, ...]
    unreadable: Mapping[Level, Problem]
    """The levels whose file exists and cannot be read or parsed; these are in ``problems``, too."""
    never_enabled: str | None
    """Which hooks do not run because no file turns hooks on or off: somebody may have forgotten to (D-92)."""
    notices: tuple[str, ...]
    """Which hooks were skipped because they are not approved or belong to another folder, and what to do about it."""
    misplaced: tuple[str, ...]
    """Those of the notices that are about a folder without settings: the hooks are in another folder or file."""
    trust: TrustStatus
    project_trusted: bool
    """Whether hooks may run programs of the project."""
    levels: tuple[LevelFile, ...]
    """The files that were looked for, highest priority first."""

    @property
    def hook_sets(self) -> tuple[HookSet, ...]:
        """The hooks of the sources, for the engine."""
        return tuple(_hook_set(source, self.trust) for source in self.sources)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems and notices for people: of a file that does not apply, they say what that means (D-88)."""
        ignored = {*self.unreadable.values(), *(self.trust.problems if self.trust.state is TrustState.REFUSED else ())}
        problems = (f"{each}. {_IGNORED}" if each in ignored else str(each) for each in self.problems)
        return (*problems, *([self.never_enabled] if self.never_enabled else ()), *self.notices)

    @property
    def not_approved(self) -> str | None:
        """Why the project's settings do not apply, and what to do about it; None if they do, or cannot be approved."""
        return _not_approved(self.trust)

    def environment_of(self, scope: HookScope) -> HookEnvironment:
        """Return which variables the hooks of a scope inherit."""
        return self.managed_environment if scope is HookScope.MANAGED else self.environment

    def require_readable(self, *levels: Level) -> None:
        """Raise ``SettingsError`` if the file of one of these levels cannot be read or parsed."""
        if problems := [self.unreadable[level] for level in levels if level in self.unreadable]:
            raise SettingsError(problems)

    def require_guards(self) -> None:
        """Raise ``SettingsError`` if guards of the user or the system could be in a file that cannot be read (D-27).

        A broken project file is different: a clone must not stop its user, and one that was approved has changed since.
        """
        self.require_readable(Level.USER, Level.SYSTEM)


def load_settings(project_dir: str | os.PathLike[str], *, named_file: Path | None = None) -> Settings:
    """Read all levels and extensions. Nothing in a file makes it raise; mistakes are listed in ``problems``.

    A ``named_file`` takes the place of the project's own settings. The user named it, so it needs no approval (D-86).
    """
    project = absolute_project(project_dir)
    levels = read_levels(project)
    of_project = next(each.content for each in levels if each.level is Level.PROJECT)
    own_trust = trust = assess_trust(project, of_project)
    if named_file is not None:
        trust = TrustStatus(TrustState.TRUSTED, own_trust.project, named_file)
        named = _read_level(Level.PROJECT, named_file)
        levels = tuple(named if each.level is Level.PROJECT else each for each in levels)
    read = [(each, each.fields) for each in levels if each.fields]
    effective = [(each, fields) for each, fields in read if each.level is not Level.PROJECT or trust.counts]
    folder = extensions_folder(project)
    extensions, extension_problems = find_extensions(folder, shell_fields()) if folder else ((), [])

    sources = [each for each, fields in effective if any(fields.hooks.values())]
    managed = [source for source in sources if source.managed]
    others = [source for source in sources if not source.managed]
    managed_only = any(each.managed and fields.managed_only for each, fields in read)
    others_enabled = merge_switches(fields.enabled for _, fields in effective) and not managed_only
    disabled = merge_lists(fields.disabled for _, fields in effective)
    of_others = (*(_hook_set(source, trust) for source in others), *map(extension_hook_set, extensions))
    never_enabled = None
    if not managed_only and all(fields.enabled is None for _, fields in effective):
        applies = " that applies" if any(fields.enabled for _, fields in read) else ""
        never_enabled = _never_enabled(of_others, disabled, f"no settings file{applies}")
        if never_enabled and (advice := misspelled_switch(each for each, _ in effective)):
            never_enabled = f"{never_enabled} {advice}"
    skipped: tuple[HookSet, ...] = ()
    if managed_only or (managed and not others_enabled):
        skipped, others, extensions = of_others, [], ()

    misplaced = () if of_project is not None else (*hooks_elsewhere(project), *_unread(project))
    settings = Settings(
        enabled=others_enabled or bool(managed),
        enabled_if_approved=merge_switches(fields.enabled for _, fields in read) or bool(managed),
        managed_only=managed_only,
        sources=(*managed, *others),
        disabled=disabled,
        disabled_if_approved=merge_lists(fields.disabled for _, fields in read),
        warm=merge_switches((fields.warm for _, fields in effective), default=True),
        audit=next((fields.audit for _, fields in reversed(effective) if fields.audit), None),
        environment=_environment(fields for _, fields in effective),
        managed_environment=_environment(fields for each, fields in effective if each.managed),
        extensions=extensions,
        skipped=skipped,
        problems=tuple(
            dict.fromkeys(
                (*(problem for each in levels for problem in each.problems), *trust.problems, *extension_problems)
            )
        ),
        unreadable={each.level: each.content for each in levels if isinstance(each.content, Problem)},
        never_enabled=never_enabled,
        notices=(*_notices(trust), *misplaced),
        misplaced=misplaced,
        trust=trust,
        project_trusted=own_trust.counts or (approved_by_environment() and own_trust.state is not TrustState.CHANGED),
        levels=levels,
    )
    for warning in settings.warnings:
        log.warning("%s", warning)
    return settings


def _hook_set(source: LevelFile, trust: TrustStatus) -> HookSet:
    scope = HookScope.PROJECT if source.level is Level.PROJECT else HookScope.USER
    return HookSet(
        source.hooks,
        origin=str(source.file),
        document=source.content if isinstance(source.content, Document) else None,
        scope=HookScope.MANAGED if source.managed else scope,
        disabled=source.fields.disabled if source.fields else (),
        before_start=trust.refusal if source.level is Level.PROJECT else None,
    )


def extension_hook_set(extension: Extension) -> HookSet:
    """Return the hooks of an extension for the engine."""
    origin = f"extension {extension.name}"
    return HookSet(extension.hooks, ConfigSource.EXTENSIONS, origin, extension.document, scope=HookScope.USER)


def read_levels(project: Path) -> tuple[LevelFile, ...]:
    """Read the settings files of all levels, highest priority first; managed ones are among those of the system."""
    found = [_read_level(level, file) for level in Level if (file := settings_file(level, project))]
    if (standard := standard_system_file()) is not None:
        of_standard = _read_level(Level.SYSTEM, standard)
        if of_standard.managed or isinstance(of_standard.content, Problem):  # a broken one could have been managed
            found.append(of_standard)
    return tuple(found)


def _read_level(level: Level, file: Path) -> LevelFile:
    # Whether the project's file is the user's own is part of its trust status.
    content = read_document(file) if level is Level.PROJECT else read_own_document(file)
    if not isinstance(content, Document):
        return LevelFile(level, file, content, problems=(content,) if content else ())
    fields = read_hook_fields(content)
    not_managed = [
        content.problem_at(node.start, f'"{key}" is ignored: {reason}')
        for key, node, reason in why_not_managed(level, content, fields)
    ]
    return LevelFile(
        level,
        file,
        content,
        fields,
        managed=fields.managed and not not_managed and fields.enabled is not False,
        problems=(*fields.problems, *not_managed),
    )


def why_not_managed(level: Level, content: Document, fields: HookFields) -> list[tuple[str, Node, str]]:
    """Return why what a file says about managed hooks is ignored: the key, its value, and the reason."""
    reason = None
    if level is not Level.SYSTEM:
        reason = "only the system's settings can be managed"
    elif fields.managed:
        reason = other_writers(content, only_root=True)
    elif fields.managed_only:
        reason = f'it needs `"{MANAGED}": true`'
    nodes = {key: content.root.at("hooksConfig", key) for key in (MANAGED, MANAGED_ONLY)}
    return [(key, node, reason) for key, node in nodes.items() if node and node.scalar is True and reason]


def _environment(levels: Iterable[HookFields]) -> HookEnvironment:
    return HookEnvironment(tuple(fields.environment for fields in levels if fields.environment))


NOT_TRUSTED_REASONS: Final = {
    TrustState.UNTRUSTED: "this project is not approved",
    TrustState.CHANGED: "the project has changed since it was approved",
}
"""Why a project's settings are ignored."""


def _not_approved(trust: TrustStatus) -> str | None:
    """Return why a project's settings do not apply, and what to do about it; None if they do."""
    reason = NOT_TRUSTED_REASONS.get(trust.state)
    if reason is None:
        return None
    if trust.is_outdated:
        reason = "the approval of this project was given to an earlier version and covered less"
    changed = f" ({', '.join(map(escape_for_terminal, trust.changed))})" if trust.changed else ""
    seen = "what has changed" if changed else "what would run"
    otherwise = "start the program again" if approved_by_environment() else f"set {TRUST_VARIABLE}=1 for one process"
    ignored = f" {other_value}" if (other_value := ignored_approval()) else ""
    return (
        f"{reason}{changed}. To see {seen}, run `llxprt-hooks trust --dry-run`; "
        f"to approve it, run `llxprt-hooks trust`, or {otherwise}.{ignored}"
    )


def _notices(trust: TrustStatus) -> tuple[str, ...]:
    reason = _not_approved(trust)
    if reason is None:
        return ()
    hooks = trust.statement.get("hooks")
    usable = len(read_definitions(HookSet(hooks))[0]) if isinstance(hooks, dict) else 0
    subject, consequence = _not_running(usable) if usable else ("The hook settings", "do not apply")
    unusable = len(trust.commands) - usable if usable else 0
    more = f" {unusable} more cannot be used: see `llxprt-hooks validate`." if unusable else ""
    return (f"{subject} in {escape_for_terminal(str(trust.file))} {consequence}, because {reason}{more}",)


def _never_enabled(hook_sets: Iterable[HookSet], disabled: tuple[str, ...], nothing: str) -> str | None:
    found = [hook for each in hook_sets for hook in read_definitions(each)[0] if hook.config.identity not in disabled]
    if not found:
        return None
    subject, consequence = _not_running(len(found))
    places = ", ".join(dict.fromkeys(escape_for_terminal(hook.origin) for hook in found))
    return f'{subject} in {places} {consequence}, because {nothing} has `"{ENABLING_KEYS[0][0]}": true`.'


def misspelled_switch(levels: Iterable[LevelFile]) -> str | None:
    """Return which key was probably meant to turn hooks on, as a sentence."""
    from llxprt_hooks.engine.suggestions import meant_key  # not needed if hooks are on

    switch = ENABLING_KEYS[0][0]
    for each in levels:
        for member in each.content.root.members if isinstance(each.content, Document) else ():
            if member.key != switch and meant_key(SETTINGS, member.key) == switch:
                return f"`{escape_for_terminal(member.key)}` is not read: did you mean `{switch}`?"
    return None


def _not_running(count: int) -> tuple[str, str]:
    if count == 1:
        return "1 hook", "does not run, and nothing is blocked in its place"
    return f"{count} hooks", "do not run, and nothing is blocked in their place"


def missing_project(project_dir: str | os.PathLike[str]) -> str | None:
    """Return why a project has no hooks at all, if its folder is missing."""
    project = absolute_project(project_dir)
    if project.is_dir():
        return None
    what = "is not a directory" if project.exists() else "does not exist"
    name = escape_for_terminal(str(project))
    return f"{name} {what}: no project hooks were loaded, and nothing is blocked in their place."


def _unread(project: Path) -> Iterator[str]:
    for document in unread_documents(project):
        name = escape_for_terminal(str(document.file))
        yield (
            f"Hooks in {name} do not run, and nothing is blocked in their place, because this file is not read. "
            f"Move them to `{FOLDER}/{FILE_NAME}`."
        )


def hooks_elsewhere(project: Path) -> Iterator[str]:
    """Warn about a missing folder, or one without settings inside a project whose hooks do not apply to it."""
    if missing := missing_project(project):
        yield missing
        return
    home = home_folder()
    for folder in project.parents:
        if folder == home:
            return
        if (folder / FOLDER / FILE_NAME).is_file():
            name = escape_for_terminal(str(folder))
            yield (
                f"Hooks in {name} do not apply to subdirectories: they do not run here, and nothing is blocked in "
                f"their place. Load that folder, or pass `-C {name}` on the command line."
            )
            return
