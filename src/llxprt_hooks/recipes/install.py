"""Installs recipes in a project or for the user: first a plan, then the changes.

Scripts and their tests go to ``.llxprt/hooks/``, samples to ``.llxprt/hooks/samples/``, and missing groups are added to
the settings file. Each file is replaced atomically. The settings are written last, so they never name a script that
does not exist.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from llxprt_hooks.commands.validate import settings_schema
from llxprt_hooks.events import HookEventName
from llxprt_hooks.recipes.tools import Tools, adapted_matcher
from llxprt_hooks.settings.atomic import make_private_folder, write_atomically
from llxprt_hooks.settings.definitions import read_hook
from llxprt_hooks.settings.document import ChangedMeanwhileError, Document, read_document, rewrite
from llxprt_hooks.settings.edit import EditError, add_hook_group, set_matcher, set_profile, set_top_level
from llxprt_hooks.settings.hook_entries import HookEntry, hook_entries
from llxprt_hooks.settings.hook_fields import FULL, read_hook_fields
from llxprt_hooks.settings.jsonc import parse
from llxprt_hooks.settings.levels import (
    FOLDER,
    Level,
    is_home,
    project_settings_file,
    settings_file,
    user_folder,
    user_settings_file,
)
from llxprt_hooks.settings.ownership import other_writers
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.covered_files import STATE_FOLDER

if TYPE_CHECKING:
    from llxprt_hooks.recipes.catalogue import Recipe

SCRIPT_MODE: Final = 0o755
SAMPLE_MODE: Final = 0o644
ALL: Final = 0o777
OWNER_ONLY: Final = 0o700
"""Mask for the modes of files in the user's folder."""

HOOKS_OF_A_PROJECT: Final = "$LLXPRT_PROJECT_DIR/.llxprt/hooks/"
"""In every recipe, a command ends with this path and the name of the script."""


SCHEMA: Final = f"{STATE_FOLDER}/settings.schema.json"
"""Beside the settings, in the folder that an approval does not cover: it is for editors only, and never executed."""


class InstallError(Exception):
    """The recipes cannot be installed. The message is for the user."""


class FileState(Enum):
    """How a recipe's file compares with the existing one."""

    NEW = auto()
    SAME = auto()
    DIFFERENT = auto()


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file of a recipe, compared with the existing one."""

    path: Path
    content: str
    mode: int
    state: FileState


@dataclass(frozen=True, slots=True)
class Installation:
    root: Path
    """The project, or the user's home folder."""
    is_users: bool
    """Whether the hooks are installed for the user: they run in every project and need no approval."""
    files: tuple[PlannedFile, ...]
    settings: Path
    settings_before: str
    settings_after: str
    added_hooks: int
    matchers: Mapping[str, tuple[str, ...]]
    """For each recipe with hooks for tools, their matchers in the settings; an empty one is for all tools."""
    is_off: bool
    """Whether the settings file turns hooks off, which the installation does not change."""
    disabled: tuple[str, ...]
    """The recipes' hooks that are disabled in a settings file, which the installation does not change."""
    refused: str | None
    """Why the settings file is ignored: others could have written it."""
    is_full: bool
    """Whether the installation sets the profile `full`, which the recipes need."""
    standard: tuple[str, ...]
    """The recipes that need this profile and do not get it, because the settings file has another one."""


def plan_installation(project: Path, recipes: Iterable[Recipe], tools: Tools) -> Installation:
    """Plan the installation of recipes in a project, for an agent with these tools.

    Writes nothing. Raises ``InstallError`` if it is not possible.
    """
    settings = project_settings_file(project)
    if is_home(project):
        raise InstallError(
            f"{project} is the home folder, not a project: choose a project's folder with -C, or copy the hooks for "
            "all your projects with --user"
        )
    recipes = tuple(recipes)
    _check_inside(project, settings)
    if settings.is_symlink():
        raise InstallError(f"{settings} is a link, and hooks in a linked file cannot be approved: use a regular file")
    return _plan(project, settings, recipes, tools, is_users=False)


def plan_user_installation(recipes: Iterable[Recipe], tools: Tools) -> Installation:
    """Plan the installation of recipes for the user, for all projects. Follows links in the user's own folders."""
    folder = user_folder()
    if not folder.parent.is_dir():
        raise InstallError("there is no home folder to copy the hooks to: set HOME to one")
    recipes = tuple(_with_scripts_in(recipe, folder / "hooks") for recipe in recipes)
    return _plan(folder.parent, user_settings_file(), recipes, tools, is_users=True)


def install(installation: Installation, *, keep: Iterable[PlannedFile] = ()) -> None:
    """Write the planned files, except those in ``keep``.

    Raises ``InstallError`` if the settings have changed since the plan was made.
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


def _plan(root: Path, settings: Path, recipes: Sequence[Recipe], tools: Tools, *, is_users: bool) -> Installation:
    document = read_document(settings)
    if isinstance(document, Problem):
        raise InstallError(f"the settings cannot be read, so nothing was changed: {document}")
    enabled = read_hook_fields(document).enabled if document else None
    before = document.text if document else ""
    try:
        described = before or set_top_level("", "$schema", f"./{SCHEMA}")
        after, added = _edited(described, enabled, recipes)
        after = _with_tools(after, recipes, tools)
        acting = tuple(recipe.name for recipe in recipes if recipe.profile == FULL)
        profile = read_hook_fields(document).profile if document else None
        if acting and profile is None:
            after = set_profile(after, FULL)
    except EditError as error:
        raise InstallError(f"{settings}: {error}") from error
    return Installation(
        root=root,
        is_users=is_users,
        files=tuple(_files(root, recipes, None if before else settings, is_users=is_users)),
        settings=settings,
        settings_before=before,
        settings_after=after,
        added_hooks=added,
        matchers=_matchers(after, recipes),
        is_off=enabled is False,
        disabled=_disabled(document, root, recipes),
        refused=other_writers(document) if document else None,
        is_full=bool(acting) and profile is None,
        standard=acting if profile not in (None, FULL) else (),
    )


def _with_scripts_in(recipe: Recipe, folder: Path) -> Recipe:
    """Return the recipe with absolute paths to its scripts, so that the commands work in every project."""

    def moved(hook: Mapping[str, Any]) -> dict[str, Any]:
        before, _, script = hook["command"].partition(HOOKS_OF_A_PROJECT)
        return {**hook, "command": before + shlex.quote(str(folder / script))}

    hooks = {
        event: [{**group, "hooks": [moved(hook) for hook in group["hooks"]]} for group in groups]
        for event, groups in recipe.hooks.items()
    }
    return structs.replace(recipe, hooks=hooks)


def _disabled(document: Document | None, root: Path, recipes: Sequence[Recipe]) -> tuple[str, ...]:
    """Return the recipes' hooks that are disabled in this file or in the user's or system settings."""
    others = [read_document(file) for level in (Level.USER, Level.SYSTEM) if (file := settings_file(level, root))]
    documents = [each for each in (document, *others) if each is not None and not isinstance(each, Problem)]
    listed = {name for each in documents for name in read_hook_fields(each).disabled}
    names = [entry.hook["name"] for recipe in recipes for entry in hook_entries(recipe.hooks)]
    return tuple(name for name in dict.fromkeys(names) if name in listed)


def _edited(text: str, enabled: bool | None, recipes: Sequence[Recipe]) -> tuple[str, int]:
    """Return the settings with missing groups added, and hooks turned on unless the settings already decide that."""
    added = 0
    if enabled is None:
        text = set_top_level(text, "enableHooks", True)
    for recipe in recipes:
        for event, groups in recipe.hooks.items():
            for group in groups:
                hooks = parse(text).at("hooks")
                if not _keys({event: [group]}) <= _keys(hooks or {}):
                    text = add_hook_group(text, event, group)
                    added += len(group["hooks"])
    return text, added


def _with_tools(text: str, recipes: Sequence[Recipe], tools: Tools) -> str:
    """Return the settings with the tools in the matchers of the recipes' hooks, also of those installed before."""
    for recipe in recipes:
        for entry in _installed(text, recipe):
            if (matcher := entry.group.matcher) is not None:
                text = set_matcher(text, entry.event, entry.group.number, adapted_matcher(matcher, tools))
    return text


def _matchers(text: str, recipes: Sequence[Recipe]) -> dict[str, tuple[str, ...]]:
    found = {recipe.name: tuple(entry.group.matcher or "" for entry in _installed(text, recipe)) for recipe in recipes}
    return {name: matchers for name, matchers in found.items() if matchers}


def _installed(text: str, recipe: Recipe) -> list[HookEntry]:
    """Return the hooks of a recipe in the settings that run for tools."""
    hooks = parse(text).at("hooks")
    return [
        entry
        for entry in hook_entries(hooks or {})
        if _keys({entry.event: [{"hooks": [entry.hook]}]}) & _keys(recipe.hooks)
        and HookEventName(entry.event).spec.is_about_tool
    ]


def _keys(hooks: object) -> set[tuple[str, str]]:
    found = ((entry.event, read_hook(entry.node)[0]) for entry in hook_entries(hooks))
    return {(event, hook.deduplication_key) for event, hook in found if hook}


def _files(
    root: Path, recipes: Sequence[Recipe], new_settings: Path | None, *, is_users: bool
) -> Iterator[PlannedFile]:
    folder, kept = root.absolute() / FOLDER / "hooks", OWNER_ONLY if is_users else ALL
    files: dict[Path, tuple[str, int]] = {}
    for recipe in recipes:
        files |= {folder / name: (content, SCRIPT_MODE) for name, content in recipe.scripts.items()}
        files[folder / "samples" / f"{recipe.name}.json"] = (recipe.sample, SAMPLE_MODE)
        files[folder / f"{recipe.name}.hooktest.json"] = (recipe.tests, SAMPLE_MODE)
    if new_settings is not None:  # which name this schema, for editors
        schema = json.dumps(settings_schema(), indent=2) + "\n"
        files[new_settings.absolute().parent / SCHEMA] = (schema, SAMPLE_MODE)
    for path, (content, mode) in files.items():
        if not is_users:
            _check_inside(root, path)
        yield PlannedFile(path, content, mode & kept, _state(path, content, mode & kept))


def _state(path: Path, content: str, mode: int) -> FileState:
    try:
        there, now = path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return FileState.NEW
    if there != content.encode():
        return FileState.DIFFERENT
    return FileState.SAME if now & mode == mode else FileState.NEW


def _check_inside(project: Path, path: Path) -> None:
    """Refuse links that lead out of the project: an untrusted repository must not redirect writes to other files."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(project)):
        raise InstallError(f"{path} is a link to {real}, outside the project: nothing was written")
