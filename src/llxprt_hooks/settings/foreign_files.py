"""Loads the settings files of other agents: those of the user, those of an approved project, and those of plugins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks.settings.definitions import HookScope, HookSet, dialect_of
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.levels import Level
from llxprt_hooks.settings.ownership import read_own_document
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.fingerprint import FOREIGN
from llxprt_hooks.settings.trust.status import TrustStatus, assess_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from llxprt_hooks.settings.definitions import BeforeStart
    from llxprt_hooks.settings.foreign import DialectFile, ReadFile


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A settings file of another agent, as it was found."""

    found: DialectFile
    content: Document | Problem | None
    read: ReadFile | None = None

    def hook_set(self, dialect: str, refusal: BeforeStart, disabled: tuple[str, ...] = ()) -> HookSet | None:
        """The hooks of the file, without those that any file of the dialect switches off; None if it has none.

        Those of a project are refused before a start, or not.
        """
        if self.read is None or not self.read.hooks:
            return None
        is_project = self.found.level is Level.PROJECT
        return HookSet(
            self.read.hooks,
            origin=str(self.found.file),
            scope=HookScope.PROJECT if is_project else HookScope.USER,
            disabled=disabled,
            before_start=refusal if is_project else None,
            dialect=dialect,
            variables={**self.read.variables, **self.found.variables},
        )


@dataclass(frozen=True, slots=True)
class ForeignSettings:
    """The hooks of one dialect that apply to a project, and those that an approval would add."""

    dialect: str
    files: tuple[ForeignFile, ...]
    trust: TrustStatus
    hook_sets: tuple[tuple[Level, HookSet], ...]
    unapproved: tuple[HookSet, ...]
    problems: tuple[Problem, ...]
    off_by: Path | None = None
    """The file that switches the hooks off."""
    held_back_by: TrustStatus | None = None
    """The changed project that had asked for the dialect, if hooks of the project block because of it."""

    def includes(self, origin: str) -> bool:
        """Whether these are the hooks of a file."""
        return any(str(each.found.file) == origin for each in self.files)


def load_foreign(
    project: Path, dialect: str, plugins: Sequence[Path] = (), *, asked_by: TrustStatus | None = None
) -> ForeignSettings:
    """Read the files of a dialect. Nothing in a file makes it raise.

    If only an approved project that has changed since asked for it, ``asked_by``, the project's hooks block as well.
    """
    speaks = dialect_of(dialect)
    wanted = [*speaks.files(project), *map(speaks.plugin, plugins)]
    files = tuple(_read(dialect, each) for each in wanted)
    own = [each.content for each in files if each.found.level is Level.PROJECT and each.content is not None]
    trust = assess_foreign(project, dialect, own)
    applying = [each for each in files if each.found.level is not Level.PROJECT or trust.counts]
    switches = [(each.found.file, each.read.off) for each in applying if each.read and not each.found.is_plugin]
    off_by = next((file if off else None for file, off in switches if off is not None), None)
    in_use = files if trust.counts or trust.held_back else applying
    disabled = tuple(name for each in applying if each.read for name in each.read.disabled)
    refusal = trust.refusal if asked_by is None or trust.held_back else asked_by.refusal
    pairs = [
        (each.found.level, each.hook_set(dialect, refusal, disabled))
        for each in in_use
        if off_by is None or each.found.is_policy
    ]
    pairs += [(Level.PROJECT, hooks) for hooks in _held_back(dialect, trust)]
    others = (each.hook_set(dialect, refusal) for each in files if each not in in_use)
    return ForeignSettings(
        dialect,
        files,
        trust,
        tuple((level, hooks) for level, hooks in pairs if hooks is not None),
        tuple(hooks for hooks in others if hooks is not None),
        tuple(_problems(files, trust)),
        off_by,
        asked_by if any(hooks and level is Level.PROJECT for level, hooks in pairs) else None,
    )


def _held_back(dialect: str, trust: TrustStatus) -> Iterator[HookSet]:
    """Yield the approved hooks of a project that has changed since: they do not start, and block (D-28)."""
    for statement in trust.held_back[1:]:
        origin = str(trust.settings_file)
        if "hooks" in statement:  # the text is gone: any call may have been guarded
            yield HookSet(statement["hooks"], origin=origin, before_start=trust.refusal)
        for content in statement.get(FOREIGN, {}).get(dialect, {}).values():
            yield HookSet(content.get("hooks", {}), origin=origin, before_start=trust.refusal, dialect=dialect)


def _read(dialect: str, wanted: DialectFile) -> ForeignFile:
    read = read_document if wanted.level is Level.PROJECT else read_own_document
    content = read(wanted.file)
    if content is None and wanted.is_plugin:
        content = Problem(wanted.file, 1, 1, "there is no such file, so this plugin has no hooks")
    return ForeignFile(
        wanted, content, dialect_of(dialect).read_file(content) if isinstance(content, Document) else None
    )


def _problems(files: tuple[ForeignFile, ...], trust: TrustStatus) -> Iterator[Problem]:
    for each in files:
        if isinstance(each.content, Problem):
            yield each.content
        elif each.content is not None and each.read is not None:
            yield from (each.content.problem_at(offset, message) for offset, message in each.read.gaps)
    yield from trust.problems
