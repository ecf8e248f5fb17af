"""Copying recipes into a project: first what would be done, then doing it.

Scripts go to ``.llxprt/hooks/``, samples to ``.llxprt/hooks/samples/``, and the settings file gets the groups that it
lacks, with everything in it kept. A file is replaced as a whole or not at all; the settings come last, so that they
never name a script that is not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.settings.atomic import write_atomically
from llxprt_hooks.settings.document import read_document
from llxprt_hooks.settings.edit import EditError, add_hook_group, set_top_level
from llxprt_hooks.settings.hook_fields import read_hook_fields
from llxprt_hooks.settings.jsonc import parse
from llxprt_hooks.settings.levels import Level, settings_file
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.rewrite import ChangedMeanwhileError, rewrite
from llxprt_hooks.settings.trust_store import WRITABLE_BY_OTHERS

if TYPE_CHECKING:
    from llxprt_hooks.recipes.catalogue import Recipe
    from llxprt_hooks.settings.jsonc import Node

SCRIPT_MODE: Final = 0o755
SAMPLE_MODE: Final = 0o644


class InstallError(Exception):
    """Why nothing can be copied into this project, in a sentence for the user."""


class FileState(Enum):
    """How what a recipe brings stands to what is there."""

    NEW = auto()
    SAME = auto()
    DIFFERENT = auto()


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file of a recipe, and whether it is there already."""

    path: Path
    content: str
    mode: int
    state: FileState


@dataclass(frozen=True, slots=True)
class Installation:
    """What copying some recipes into a project comes to."""

    project: Path
    files: tuple[PlannedFile, ...]
    settings: Path
    settings_before: str
    settings_after: str
    added_hooks: int
    is_off: bool
    """The settings file says that hooks are off, and this is left so."""
    writable_by_others: bool
    """So that its hooks could not be trusted."""


def plan_installation(project: Path, recipes: Iterable[Recipe]) -> Installation:
    """What copying recipes into a project would do. Nothing is written; ``InstallError`` where it cannot be done."""
    settings = settings_file(Level.PROJECT, project)
    if settings is None:
        raise InstallError(f"{project} is the home folder, not a project: choose a project's folder with -C")
    recipes = tuple(recipes)
    _stay_inside(project, settings)
    if settings.is_symlink():
        raise InstallError(f"{settings} is a link, and hooks of a linked file cannot be approved: put the file there")
    document = read_document(settings)
    if isinstance(document, Problem):
        raise InstallError(f"the settings cannot be read, so nothing was changed: {document}")
    enabled = read_hook_fields(document).enabled if document else None
    before = document.text if document else ""
    try:
        after, added = _edited(before, enabled, recipes)
    except EditError as error:
        raise InstallError(f"{settings}: {error}") from error
    return Installation(
        project=project,
        files=tuple(_files(project, recipes)),
        settings=settings,
        settings_before=before,
        settings_after=after,
        added_hooks=added,
        is_off=enabled is False,
        writable_by_others=bool(document and document.mode & WRITABLE_BY_OTHERS),
    )


def install(installation: Installation, *, keep: Iterable[PlannedFile] = ()) -> None:
    """Write what was planned, except for files that are to be kept as they are.

    ``InstallError`` where the settings are no longer what the plan was made for.
    """
    kept = {file.path for file in keep}
    for file in installation.files:
        if file.state is not FileState.SAME and file.path not in kept:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file.path, file.content, mode=file.mode)
    if installation.settings_after != installation.settings_before:
        try:
            rewrite(installation.settings, installation.settings_before, installation.settings_after)
        except ChangedMeanwhileError as error:
            raise InstallError(f"{error}; run `llxprt-hooks init` again") from error


def _edited(text: str, enabled: bool | None, recipes: Sequence[Recipe]) -> tuple[str, int]:
    """The settings with the switch on, unless they say anything about it, and with the groups that they lack."""
    added = 0
    if enabled is None:
        text = set_top_level(text, "enableHooks", True)
    for recipe in recipes:
        for event, groups in recipe.hooks.items():
            for group in groups:
                if not _commands(group) <= _configured(parse(text), event):
                    text = add_hook_group(text, event, group)
                    added += len(group["hooks"])
    return text, added


def _commands(group: Mapping[str, Any]) -> set[str]:
    return {hook["command"] for hook in group["hooks"]}


def _configured(root: Node, event: str) -> set[str]:
    """The commands that an event has already."""
    groups = root.at("hooks", event)
    hooks = [hooks for group in groups.items if (hooks := group.at("hooks"))] if groups else []
    commands = [hook.at("command") for each in hooks for hook in each.items]
    return {command.scalar for command in commands if command and isinstance(command.scalar, str)}


def _files(project: Path, recipes: Sequence[Recipe]) -> Iterator[PlannedFile]:
    folder = project.absolute() / ".llxprt" / "hooks"
    for recipe in recipes:
        for name, content in recipe.scripts.items():
            yield _planned(project, folder / name, content, SCRIPT_MODE)
        yield _planned(project, folder / "samples" / f"{recipe.name}.json", recipe.sample, SAMPLE_MODE)


def _planned(project: Path, path: Path, content: str, mode: int) -> PlannedFile:
    _stay_inside(project, path)
    return PlannedFile(path, content, mode, _state(path, content, mode))


def _state(path: Path, content: str, mode: int) -> FileState:
    try:
        there, now = path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return FileState.NEW
    if there != content.encode():
        return FileState.DIFFERENT
    return FileState.SAME if now & mode == mode else FileState.NEW


def _stay_inside(project: Path, path: Path) -> None:
    """A link in a repository of somebody else's must not have us write to a file of the user's."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(project)):
        raise InstallError(f"{path} is a link to {real}, outside the project: nothing was written")
