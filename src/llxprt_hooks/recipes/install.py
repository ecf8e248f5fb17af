"""Copying recipes into a project, or among the user's own hooks: first what would be done, then doing it.

Scripts go to ``.llxprt/hooks/``, samples to ``.llxprt/hooks/samples/``, and the settings file gets the groups that it
lacks, with everything in it kept. A file is replaced as a whole or not at all; the settings come last, so that they
never name a script that is not there.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.engine.definitions import read_hook
from llxprt_hooks.settings.atomic import write_atomically
from llxprt_hooks.settings.document import read_document
from llxprt_hooks.settings.edit import EditError, add_hook_group, set_top_level
from llxprt_hooks.settings.hook_fields import read_hook_fields
from llxprt_hooks.settings.hook_groups import hook_entries
from llxprt_hooks.settings.jsonc import parse
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER, Level, settings_file, user_folder
from llxprt_hooks.settings.private import make_private_folder
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.rewrite import ChangedMeanwhileError, rewrite
from llxprt_hooks.trust.store import WRITABLE_BY_OTHERS

if TYPE_CHECKING:
    from llxprt_hooks.recipes.catalogue import Recipe
    from llxprt_hooks.settings.document import Document

SCRIPT_MODE: Final = 0o755
SAMPLE_MODE: Final = 0o644
ALL: Final = 0o777
OWNER_ONLY: Final = 0o700
"""What is left of these modes among the user's own files."""

HOOKS_OF_A_PROJECT: Final = "$LLXPRT_PROJECT_DIR/.llxprt/hooks/"
"""What the commands of all recipes have before the name of the script, which ends them."""


class InstallError(Exception):
    """Why nothing can be copied there, in a sentence for the user."""


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
    """What copying some recipes comes to."""

    root: Path
    """The project, or the user's home folder."""
    is_users: bool
    """The hooks are the user's own: they run in every project, and need no approval."""
    files: tuple[PlannedFile, ...]
    settings: Path
    settings_before: str
    settings_after: str
    added_hooks: int
    is_off: bool
    """The settings file says that hooks are off, and this is left so."""
    disabled: tuple[str, ...]
    """Names of hooks that a settings file lists as disabled, which is left so."""
    writable_by_others: bool


def plan_installation(project: Path, recipes: Iterable[Recipe]) -> Installation:
    """What copying recipes into a project would do. Nothing is written; ``InstallError`` where it cannot be done."""
    settings = settings_file(Level.PROJECT, project)
    if settings is None:
        raise InstallError(
            f"{project} is the home folder, not a project: choose a project's folder with -C, or copy the hooks for "
            "all your projects with --user"
        )
    recipes = tuple(recipes)
    _stay_inside(project, settings)
    if settings.is_symlink():
        raise InstallError(f"{settings} is a link, and hooks of a linked file cannot be approved: put the file there")
    return _plan(project, settings, recipes, is_users=False)


def plan_user_installation(recipes: Iterable[Recipe]) -> Installation:
    """The same for the user's own hooks, which run in every project. Links among the user's own files are followed."""
    folder = user_folder()
    if not folder.parent.is_dir():
        raise InstallError("there is no home folder to copy the hooks to: set HOME to one")
    recipes = tuple(_from_anywhere(recipe, folder / "hooks") for recipe in recipes)
    return _plan(folder.parent, folder / FILE_NAME, recipes, is_users=True)


def install(installation: Installation, *, keep: Iterable[PlannedFile] = ()) -> None:
    """Write what was planned, except for files that are to be kept as they are.

    ``InstallError`` where the settings are no longer what the plan was made for.
    """
    kept = {file.path for file in keep}
    for file in installation.files:
        if file.state is not FileState.SAME and file.path not in kept:
            _make_folder(file.path.parent, installation)
            write_atomically(file.path, file.content, mode=file.mode)
    if installation.settings_after != installation.settings_before:
        _make_folder(installation.settings.parent, installation)
        try:
            rewrite(installation.settings, installation.settings_before, installation.settings_after)
        except ChangedMeanwhileError as error:
            raise InstallError(f"{error}; run `llxprt-hooks init` again") from error
        if installation.is_users and not installation.settings_before:
            installation.settings.chmod(SAMPLE_MODE & OWNER_ONLY)


def _make_folder(folder: Path, installation: Installation) -> None:
    if installation.is_users:
        make_private_folder(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)


def _plan(root: Path, settings: Path, recipes: Sequence[Recipe], *, is_users: bool) -> Installation:
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
        root=root,
        is_users=is_users,
        files=tuple(_files(root, recipes, is_users=is_users)),
        settings=settings,
        settings_before=before,
        settings_after=after,
        added_hooks=added,
        is_off=enabled is False,
        disabled=_disabled(document, root, recipes),
        writable_by_others=bool(document and document.mode & WRITABLE_BY_OTHERS),
    )


def _from_anywhere(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with commands that find their scripts in this folder, whatever project they run in."""

    def moved(hook: Mapping[str, Any]) -> dict[str, Any]:
        before, _, script = hook["command"].partition(HOOKS_OF_A_PROJECT)
        return {**hook, "command": before + shlex.quote(str(folder / script))}

    hooks = {
        event: [{**group, "hooks": [moved(hook) for hook in group["hooks"]]} for group in groups]
        for event, groups in recipe.hooks.items()
    }
    return replace(recipe, hooks=hooks)


def _disabled(document: Document | None, root: Path, recipes: Sequence[Recipe]) -> tuple[str, ...]:
    """The hooks of the recipes that this settings file, or one that has a say with it, switches off."""
    others = [read_document(file) for level in (Level.USER, Level.SYSTEM) if (file := settings_file(level, root))]
    documents = [each for each in (document, *others) if each is not None and not isinstance(each, Problem)]
    listed = {name for each in documents for name in read_hook_fields(each).disabled}
    names = [entry.hook["name"] for recipe in recipes for entry in hook_entries(recipe.hooks)]
    return tuple(name for name in dict.fromkeys(names) if name in listed)


def _edited(text: str, enabled: bool | None, recipes: Sequence[Recipe]) -> tuple[str, int]:
    """The settings with the switch on, unless they say anything about it, and with the groups that they lack."""
    added = 0
    if enabled is None:
        text = set_top_level(text, "enableHooks", True)
    for recipe in recipes:
        for event, groups in recipe.hooks.items():
            for group in groups:
                hooks = parse(text).at("hooks")
                if not _keys({event: [group]}) <= _keys(hooks.to_value() if hooks else {}):
                    text = add_hook_group(text, event, group)
                    added += len(group["hooks"])
    return text, added


def _keys(hooks: object) -> set[tuple[str, str]]:
    """The hooks that there are, each by its event and what tells it from others."""
    found = ((entry.event, read_hook(entry.hook)[0]) for entry in hook_entries(hooks))
    return {(event, hook.deduplication_key) for event, hook in found if hook}


def _files(root: Path, recipes: Sequence[Recipe], *, is_users: bool) -> Iterator[PlannedFile]:
    folder, kept = root.absolute() / FOLDER / "hooks", OWNER_ONLY if is_users else ALL
    for recipe in recipes:
        files = {folder / name: (content, SCRIPT_MODE) for name, content in recipe.scripts.items()}
        files[folder / "samples" / f"{recipe.name}.json"] = (recipe.sample, SAMPLE_MODE)
        for path, (content, mode) in files.items():
            if not is_users:
                _stay_inside(root, path)
            yield PlannedFile(path, content, mode & kept, _state(path, content, mode & kept))


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
