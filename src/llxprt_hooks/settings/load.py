"""Loads the settings of all levels, and merges those that are trusted (D-20).

The highest level that sets a value wins, hook groups are concatenated. Every ``merge`` function takes the levels in
order of priority, highest first.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.settings.audit import NOWHERE, AuditRule
from llxprt_hooks.settings.definitions import (
    ConfigSource,
    HookScope,
    HookSet,
    dialect_of,
    known_dialects,
    read_definitions,
)
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.environment import HookEnvironment
from llxprt_hooks.settings.extensions import find_extensions
from llxprt_hooks.settings.foreign import DIALECTS
from llxprt_hooks.settings.foreign_files import ForeignSettings, load_foreign
from llxprt_hooks.settings.hook_fields import (
    DEFAULT_MAX_CONTINUATIONS,
    FULL,
    MANAGED,
    MANAGED_ONLY,
    STANDARD,
    read_hook_fields,
)
from llxprt_hooks.settings.levels import (
    Level,
    absolute_project,
    extensions_folder,
    settings_file,
    standard_system_file,
)
from llxprt_hooks.settings.ownership import other_writers, read_own_document
from llxprt_hooks.settings.problem import Problem, SettingsError
from llxprt_hooks.settings.schema import shell_fields
from llxprt_hooks.settings.trust.held_back import acts, dialects_of, guards_of, switch_of
from llxprt_hooks.settings.trust.notices import (
    approval_notices,
    hooks_elsewhere,
    hooks_in_unread_files,
    hooks_under_another_key,
    never_enabled,
    not_approved,
)
from llxprt_hooks.settings.trust.status import (
    TrustState,
    TrustStatus,
    approved_by_environment,
    assess_trust,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from llxprt_hooks.settings.definitions import HookDefinition
    from llxprt_hooks.settings.extensions import Extension
    from llxprt_hooks.settings.hook_fields import HookFields
    from llxprt_hooks.settings.jsonc import Node

log = debug_logger("settings")

T = TypeVar("T")

_IGNORED: Final = "None of the hooks in this file run, so they block nothing. For details, run `llxprt-hooks validate`."
_HELD_BACK: Final = (
    "None of the hooks in this file run. The project was approved before, so every call that its hooks would check is "
    "blocked. For details, run `llxprt-hooks validate`."
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
    tools: tuple[str, ...]
    """The program's own tools; empty if no file names any."""
    warm_hooks: Sequence[str] | bool | None
    """Which hooks are warm: those of some levels and dialects, all, or none; None: those that say so themselves."""
    log: bool
    """Whether programs record executions in the local log."""
    profile: str
    """How much hooks can do: the highest level that says anything decides, and a managed one before all others."""
    max_continuations: int
    audit: AuditRule | None
    """Where records of executions are sent: what the system's file says, else the user's, else the project's (D-81)."""
    environment: HookEnvironment
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
    held_back: tuple[HookSet, ...]
    """The guards of a project that was approved and has changed since: they do not start, and block (D-28)."""
    trust: TrustStatus
    project_trusted: bool
    """Whether hooks may run programs of the project."""
    levels: tuple[LevelFile, ...]
    """The files that were looked for, highest priority first."""
    foreign: tuple[ForeignSettings, ...] = ()
    """The hooks of other agents, by dialect."""

    @property
    def hook_sets(self) -> tuple[HookSet, ...]:
        """The hooks of the sources, for the engine; those of other agents after ours of the same level."""
        ranked = [(_rank(each), self.warmed(_hook_set(each, self.trust), each.level.value)) for each in self.sources]
        if not self.managed_only:
            ranked += [
                (_RANKS[level], self.warmed(hooks, level.value))
                for each in self.foreign
                for level, hooks in each.hook_sets
            ]
        return (*(hooks for _, hooks in sorted(ranked, key=lambda pair: pair[0])), *self.held_back)

    @property
    def warm(self) -> bool:
        """Whether any hook may be warm."""
        return self.warm_hooks is not False

    def warmed(self, hook_set: HookSet, level: str) -> HookSet:
        """Return the hooks of a level, warm if the settings name it; managed ones decide themselves."""
        named = self.warm_hooks if isinstance(self.warm_hooks, list | tuple) else ()
        is_warm = self.warm_hooks is True or level in named or hook_set.dialect in named
        return replace(hook_set, warm=True) if is_warm and hook_set.scope is not HookScope.MANAGED else hook_set

    def trust_of(self, origin: str) -> TrustStatus:
        """Return the approval of the project's hooks that are in a file."""
        return next((each.trust for each in self.foreign if each.includes(origin)), self.trust)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems and notices for people: of a file that does not apply, they say what that means (D-88)."""
        ignored = self._ignored_files
        problems = (f"{each}. {why}" if (why := ignored.get(each)) else str(each) for each in self.problems)
        return (*problems, *self._not_applied)

    @property
    def unguarded(self) -> tuple[str, ...]:
        """Why hooks of these files may not run, although nobody turned them off; the rest of the warnings is less."""
        return (*(f"{each}. {why}" for each, why in self._ignored_files.items()), *self._not_applied)

    @property
    def _ignored_files(self) -> dict[Problem, str]:
        """The problems because of which a file does not apply, each with the consequence."""
        refused = self.trust.problems if self.trust.state is TrustState.REFUSED else ()
        ignored = dict.fromkeys(self.unreadable.values(), _IGNORED)
        return ignored | dict.fromkeys(refused, _HELD_BACK if self.held_back else _IGNORED)

    @property
    def _not_applied(self) -> tuple[str, ...]:
        return (*([self.never_enabled] if self.never_enabled else ()), *self.notices)

    @property
    def not_approved(self) -> str | None:
        """Why the project's settings do not apply, and what to do about it; None if they do, or cannot be approved."""
        return not_approved(self.trust)

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


class Asked(NamedTuple):
    """What the command line asks for, whatever is loaded."""

    dialects: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()


asked_for: ContextVar[Asked] = ContextVar("llxprt_hooks_asked_for", default=Asked())  # noqa: B039  # it is immutable

_RANKS: Final = {level: rank for rank, level in enumerate(Level)}


def _rank(source: LevelFile) -> int:
    return -1 if source.managed else _RANKS[source.level]


def asked_dialects(project_dir: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the other agents that the command line or native settings ask for, approved or not."""
    asked, levels = asked_for.get(), read_levels(absolute_project(project_dir))
    requested = asked.dialects or tuple(DIALECTS)[: bool(asked.plugins)]
    return known_dialects(merge_lists([requested, *(each.fields.dialects for each in levels if each.fields)]))


def asked_plugins(dialect: str) -> list[Path]:
    """Return the folders that the command line names and that are plugins of this dialect."""
    asked = asked_for.get()
    folders = map(absolute_project, asked.plugins)
    return [each for each in folders if _plugin_dialect(each, asked.dialects or tuple(DIALECTS)[:1]) == dialect]


def load_settings(
    project_dir: str | os.PathLike[str],
    *,
    named_file: Path | None = None,
    profile: str | None = None,
    dialects: Iterable[str] = (),
    plugins: Iterable[str | os.PathLike[str]] = (),
) -> Settings:
    """Read all levels and extensions. Nothing in a file makes it raise; mistakes are listed in ``problems``.

    A ``profile`` takes the place of that of the settings. A ``named_file`` takes the place of the project's own
    settings. The user named it, so it needs no approval (D-86).
    ``dialects`` are the other agents whose hooks run as well, and ``plugins`` folders with more of these. Raises
    ``UnknownDialectError``.
    """
    asked = asked_for.get()
    requested = known_dialects((*dialects, *asked.dialects))
    folders = [absolute_project(each) for each in (*plugins, *asked.plugins)]
    requested = requested or tuple(DIALECTS)[: bool(folders)]
    project = absolute_project(project_dir)
    levels = read_levels(project)
    project_content = next(each.content for each in levels if each.level is Level.PROJECT)
    own_trust = trust = assess_trust(project, project_content)
    if named_file is not None:
        trust = TrustStatus(TrustState.TRUSTED, own_trust.project, named_file)
        named = _read_level(Level.PROJECT, named_file)
        levels = tuple(named if each.level is Level.PROJECT else each for each in levels)
    folder = extensions_folder(project)
    extensions, extension_problems = find_extensions(folder, shell_fields()) if folder else ((), [])
    applying = (each for each in levels if each.level is not Level.PROJECT or trust.counts)
    also = (each.fields.dialects for each in applying if each.fields)
    names = known_dialects(merge_lists([requested, *also]))
    plugins_of = {folder: _plugin_dialect(folder, requested) for folder in folders}
    kept = (name for statement in trust.held_back for name in dialects_of(statement))
    foreign = (
        *(load_foreign(project, name, [folder for folder, of in plugins_of.items() if of == name]) for name in names),
        *(load_foreign(project, name, asked_by=trust) for name in dict.fromkeys(kept) if name not in names),
    )
    problems = (
        *(problem for each in levels for problem in each.problems),
        *trust.problems,
        *extension_problems,
        *(problem for each in foreign for problem in each.problems),
    )
    elsewhere = () if project_content is not None else (*hooks_elsewhere(project), *hooks_in_unread_files(project))
    settings = _merge(
        levels,
        trust,
        extensions,
        problems=tuple(dict.fromkeys(problems)),
        misplaced=(*hooks_under_another_key(levels), *elsewhere),
        profile=profile,
        project_trusted=own_trust.counts or (approved_by_environment() and own_trust.state is not TrustState.CHANGED),
        foreign=foreign,
    )
    for warning in settings.warnings:
        log.warning("%s", warning)
    return settings


def _merge(
    levels: tuple[LevelFile, ...],
    trust: TrustStatus,
    extensions: tuple[Extension, ...],
    *,
    problems: tuple[Problem, ...],
    misplaced: tuple[str, ...],
    project_trusted: bool,
    profile: str | None,
    foreign: tuple[ForeignSettings, ...],
) -> Settings:
    """Merge the levels that apply. Those that are read, but do not apply, say what an approval would change."""
    read = [(each, each.fields) for each in levels if each.fields]
    effective = [(each, fields) for each, fields in read if each.level is not Level.PROJECT or trust.counts]
    by_rank = [fields for _, fields in sorted(effective, key=lambda read: not read[0].managed)]
    sources = [each for each, fields in effective if any(fields.hooks.values())]
    managed = [source for source in sources if source.managed]
    others = [source for source in sources if not source.managed]
    managed_only = any(each.managed and fields.managed_only for each, fields in read)
    others_enabled = first_given((fields.enabled for _, fields in effective), False) and not managed_only
    disabled = merge_lists(fields.disabled for _, fields in effective)
    other_sets = (*(_hook_set(source, trust) for source in others), *map(extension_hook_set, extensions))
    forgotten = None
    if not managed_only and all(fields.enabled is None for _, fields in effective):
        applying, elsewhere = (each for each, _ in effective), any(fields.enabled for _, fields in read)
        forgotten = never_enabled(other_sets, disabled, applying, enabled_elsewhere=elsewhere)
    own_profile = profile or first_given((fields.profile for fields in by_rank), STANDARD)
    switches = [fields.enabled for _, fields in effective]
    held_back = () if managed_only else _held_back(trust, switches, full=own_profile == FULL)
    skipped: tuple[HookSet, ...] = ()
    speak = not managed_only and any(each.hook_sets for each in foreign)  # asking for them turns them on
    if managed_only or ((managed or held_back or speak) and not others_enabled):
        skipped, others, extensions = other_sets, [], ()
    return Settings(
        enabled=others_enabled or bool(managed) or bool(held_back) or speak,
        enabled_if_approved=bool(managed or foreign) or first_given((fields.enabled for _, fields in read), False),
        managed_only=managed_only,
        sources=(*managed, *others),
        disabled=disabled,
        disabled_if_approved=merge_lists(fields.disabled for _, fields in read),
        tools=merge_lists(fields.tools for _, fields in effective),
        warm_hooks=first_given((fields.warm for _, fields in effective), None),
        log=first_given((fields.log for _, fields in effective), False),
        profile=own_profile,
        max_continuations=first_given((fields.max_continuations for fields in by_rank), DEFAULT_MAX_CONTINUATIONS),
        audit=_audit(fields for _, fields in reversed(effective)),
        environment=_environment(fields for _, fields in effective),
        managed_environment=_environment(fields for each, fields in effective if each.managed),
        extensions=extensions,
        skipped=skipped,
        problems=problems,
        unreadable={each.level: each.content for each in levels if isinstance(each.content, Problem)},
        never_enabled=forgotten,
        notices=(
            *approval_notices(trust, asked_for_guards=any(each.held_back_by is trust for each in foreign)),
            *(notice for each in foreign for notice in (*approval_notices(each.trust), *_switched_off(each))),
            *misplaced,
        ),
        misplaced=misplaced,
        held_back=held_back,
        trust=trust,
        project_trusted=project_trusted,
        levels=levels,
        foreign=foreign,
    )


def _plugin_dialect(folder: Path, requested: Sequence[str]) -> str:
    """Return the first dialect that is asked for and has such a plugin; the first of all if nobody has."""
    return next((name for name in requested if dialect_of(name).plugin(folder).file.exists()), requested[0])


def _switched_off(foreign: ForeignSettings) -> tuple[str, ...]:
    if foreign.off_by is None:
        return ()
    file = escape_for_terminal(str(foreign.off_by))
    return (f"The hooks of the dialect {foreign.dialect} do not run: {file} turns them off.",)


def _held_back(trust: TrustStatus, switches: Sequence[bool | None], *, full: bool) -> tuple[HookSet, ...]:
    """Return the guards that block; ``switches`` and the profile ``full`` are those of the other levels."""
    guards: dict[str, list[Any]] = {}
    full = full or any(map(acts, trust.held_back))
    for statement in trust.held_back:
        on = first_given((switch_of(statement), *switches), False)
        for event, groups in guards_of(statement, full=full).items() if on else ():
            known = guards.setdefault(event, [])
            known += [group for group in groups if group not in known]
    held_back = HookSet(guards, origin=str(trust.settings_file), before_start=trust.refusal, acts=full)
    return (held_back,) if guards else ()


def _hook_set(source: LevelFile, trust: TrustStatus) -> HookSet:
    scope = HookScope.PROJECT if source.level is Level.PROJECT else HookScope.USER
    return HookSet(
        source.hooks,
        origin=str(source.file),
        scope=HookScope.MANAGED if source.managed else scope,
        disabled=source.fields.disabled if source.fields else (),
        before_start=trust.refusal if source.level is Level.PROJECT else None,
    )


def extension_hook_set(extension: Extension) -> HookSet:
    """Return the hooks of an extension for the engine."""
    origin = f"extension {extension.name}"
    return HookSet(extension.hooks, ConfigSource.EXTENSIONS, origin, scope=HookScope.USER)


def unapproved_hooks(settings: Settings) -> tuple[list[HookDefinition], list[Problem]]:
    """Return the usable hooks of a project that is not approved, and what is wrong with its other hooks.

    Those that block instead of running are among the configuration's own.
    """
    sets = [hooks for each in settings.foreign for hooks in each.unapproved]
    found, problems = [], []
    for definitions, wrong in map(read_definitions, sets):
        found += definitions
        problems += wrong
    own, own_problems = _own_unapproved(settings)
    return [*own, *found], [*own_problems, *problems]


def _own_unapproved(settings: Settings) -> tuple[list[HookDefinition], list[Problem]]:
    if settings.trust.counts:
        return [], []
    project_file = next(each for each in settings.levels if each.level is Level.PROJECT)
    found, problems = read_definitions(HookSet(project_file.hooks, ConfigSource.PROJECT, str(project_file.file)))
    held_back = {event for guards in settings.held_back for event in guards.hooks}
    return [each for each in found if each.config.observe or each.event_name not in held_back], problems


def skipped_hooks(settings: Settings) -> list[tuple[HookDefinition, str]]:
    """Return the hooks that do not run although managed hooks do, and why."""
    why = "only managed hooks run" if settings.managed_only else "hooks are off"
    return [(definition, why) for hooks in settings.skipped for definition in read_definitions(hooks)[0]]


def read_levels(project: Path) -> tuple[LevelFile, ...]:
    """Read the settings files of all levels, highest priority first; managed ones are among those of the system."""
    found = [_read_level(level, file) for level in Level if (file := settings_file(level, project))]
    if (standard := standard_system_file()) is not None:
        standard_level = _read_level(Level.SYSTEM, standard)
        if standard_level.managed or isinstance(
            standard_level.content, Problem
        ):  # a broken one could have been managed
            found.append(standard_level)
    return tuple(found)


def _read_level(level: Level, file: Path) -> LevelFile:
    # Who owns the project's file is checked together with its trust.
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


def merge_hooks(levels: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the hook groups of all levels by event name."""
    merged: dict[str, list[Any]] = {}
    for hooks in levels:
        for event, groups in hooks.items():
            merged.setdefault(event, []).extend(groups if isinstance(groups, list) else [groups])
    return merged


def first_given(values: Iterable[T | None], default: T) -> T:
    """Return the value of the first level that sets it; the default if none does."""
    return next((value for value in values if value is not None), default)


def merge_lists(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Join lists without duplicates."""
    return tuple(dict.fromkeys(element for elements in lists for element in elements))


def _audit(fields: Iterable[HookFields]) -> AuditRule | None:
    """Return the rule of the first file that has one; None if it has a mistake."""
    rule = next((each.audit for each in fields if each.audit is not None), NOWHERE)
    return None if rule is NOWHERE else rule


def _environment(levels: Iterable[HookFields]) -> HookEnvironment:
    return HookEnvironment(tuple(fields.environment for fields in levels if fields.environment))
