"""Which hooks of other agents a machine and a project have, and which of them would run here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llxprt_hooks.settings.definitions import HookSet, dialect_of, read_definitions
from llxprt_hooks.settings.foreign import DIALECTS
from llxprt_hooks.settings.foreign_files import load_foreign
from llxprt_hooks.settings.levels import Level, absolute_project
from llxprt_hooks.settings.load import asked_dialects, asked_plugins
from llxprt_hooks.settings.trust.notices import NOT_TRUSTED_REASONS
from llxprt_hooks.settings.trust.status import TrustState

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

    from llxprt_hooks.settings.definitions import HookDefinition
    from llxprt_hooks.settings.foreign_files import ForeignFile, ForeignSettings


@dataclass(frozen=True, slots=True)
class FoundHook:
    """A hook of another agent."""

    event: str
    matcher: str
    command: str
    obstacle: str | None
    """Why it would not run even if its dialect is used; None if it would."""

    def to_dict(self) -> dict[str, Any]:
        named = {"event": self.event, "matcher": self.matcher, "command": self.command}
        return {**named, "runs": self.obstacle is None, "why_not": self.obstacle}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A settings file of another agent that exists."""

    file: Path
    level: str
    hooks: tuple[FoundHook, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        hooks = [hook.to_dict() for hook in self.hooks]
        return {"file": str(self.file), "level": self.level, "hooks": hooks, "problems": list(self.problems)}


@dataclass(frozen=True, slots=True)
class FoundDialect:
    """Another agent, and what it has here."""

    name: str
    title: str
    is_used: bool
    """Whether the command line or native settings ask for its hooks."""
    files: tuple[FoundFile, ...]

    @property
    def runnable(self) -> int:
        """How many hooks would run if the dialect is used."""
        return sum(hook.obstacle is None for file in self.files for hook in file.hooks)

    def to_dict(self) -> dict[str, Any]:
        files = [file.to_dict() for file in self.files]
        return {"name": self.name, "title": self.title, "used": self.is_used, "files": files}


def find_dialects(directory: str | os.PathLike[str]) -> list[FoundDialect]:
    """Look for the settings files of all other agents whose hooks can run here. Runs nothing."""
    project, used = absolute_project(directory), asked_dialects(directory)
    found = []
    for name in DIALECTS:
        settings = load_foreign(project, name, asked_plugins(name))
        files = tuple(_files(settings))
        found.append(FoundDialect(name, dialect_of(name).title, name in used, files))
    return found


def _files(settings: ForeignSettings) -> Iterator[FoundFile]:
    for each in settings.files:
        if each.content is None:
            continue
        level = "plugin" if each.found.is_plugin else each.found.level.value
        if each.read is None:
            yield FoundFile(each.found.file, level, (), (str(each.content),))
            continue
        hook_set = HookSet(each.read.hooks, origin=str(each.found.file), dialect=settings.dialect)
        definitions, problems = read_definitions(hook_set)
        hooks = tuple(_hook(hook, _obstacle(settings, each)) for hook in definitions)
        yield FoundFile(each.found.file, level, hooks, tuple(map(str, problems)))


def _hook(definition: HookDefinition, obstacle: str | None) -> FoundHook:
    config = definition.config
    event = str(definition.path[1])
    return FoundHook(event, definition.matcher or "", config.command, config.executor.unsupported or obstacle)


def _obstacle(settings: ForeignSettings, file: ForeignFile) -> str | None:
    """Why no hook of a file would run."""
    if settings.off_by is not None:
        return f"{settings.off_by} turns them off"
    trust = settings.trust
    if file.found.level is not Level.PROJECT or trust.counts:
        return None
    refused = "the project's settings are refused"
    return refused if trust.state is TrustState.REFUSED else NOT_TRUSTED_REASONS.get(trust.state, refused)
