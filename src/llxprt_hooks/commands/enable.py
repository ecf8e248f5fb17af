"""Enables and disables hooks permanently, by their names in ``hooksConfig.disabled`` of a settings file.

A project's hook is disabled in the project's file, any other in the user's. Enabling removes it from the list in every
file. A change of the project's file ends its approval, and the user has to approve every change (D-29).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from llxprt_hooks.commands.list import Item, take_inventory
from llxprt_hooks.settings import (
    Document,
    Level,
    Problem,
    exclusive_lock,
    read_document,
    settings_file,
    write_atomically,
)
from llxprt_hooks.settings.edit import EditError, set_disabled
from llxprt_hooks.settings.hook_fields import read_hook_fields
from llxprt_hooks.settings.levels import absolute_project
from llxprt_hooks.settings.ownership import read_own_document
from llxprt_hooks.settings.trust.status import TrustState, trust_status


class SwitchError(Exception):
    """A hook could not be enabled or disabled. The message is for the user."""


class UnknownHookError(SwitchError):
    """No hook has this name. ``known`` lists the existing names; ``problem`` may explain why it is missing."""

    def __init__(self, name: str, known: Sequence[str], problem: str | None) -> None:
        super().__init__(f"no hook is called {name}")
        self.known = known
        self.problem = problem


class AmbiguousHookError(SwitchError):
    """Hooks of several settings files have this name, and the list of any of them disables all. ``files`` by level."""

    def __init__(self, name: str, files: Mapping[Level, Path]) -> None:
        super().__init__(f"{name} is configured in several files: {' and '.join(map(str, files.values()))}")
        self.files = files


def disable_hook(directory: str, name: str, level: Level | None = None) -> list[Path]:
    """Disable all hooks with a name, or unnamed hooks with that command. Return the changed files.

    ``level`` is whose list the name is added to: the project's or the user's. It may be omitted if the hooks are
    configured in one place; otherwise ``AmbiguousHookError`` is raised.
    """
    found = _items(directory, name)
    if all(item.managed for item in found):
        raise SwitchError(f"{name} is managed: only the administrator can disable it, in {found[0].definition.origin}")
    enabled = [item for item in found if item.enabled and not item.managed]
    if not enabled:
        return []
    project = absolute_project(directory)
    if level is None:
        levels = {Level.PROJECT if item.source == Level.PROJECT else Level.USER for item in enabled}
        if len(levels) > 1:
            files = {each: file for each in (Level.PROJECT, Level.USER) if (file := settings_file(each, project))}
            raise AmbiguousHookError(name, files)
        [level] = levels
    return _edit(level, project, name, disabled=True)


def enable_hook(directory: str, name: str) -> list[Path]:
    """Enable them again, in every file that lists them. Return the changed files."""
    _items(directory, name)
    project = absolute_project(directory)
    listing = [level for level in Level if _is_listed(level, project, name)]
    changed = [file for level in listing for file in _edit(level, project, name, disabled=False)]
    if not all(item.enabled for item in _items(directory, name) if not item.managed):
        refused = trust_status(project).problems
        raise SwitchError(f"{name} is still disabled{f': {refused[0]}' if refused else ''}")
    return changed


def _items(directory: str, name: str) -> list[Item]:
    inventory = take_inventory(directory)
    found = [item for item in inventory.items if item.name == name]
    if not found:
        known = list(dict.fromkeys(item.name for item in inventory.items))
        raise UnknownHookError(name, known, inventory.problems[0] if inventory.problems else None)
    return found


def _is_listed(level: Level, project: Path, name: str) -> bool:
    """Return whether a level lists this hook as disabled and may be edited."""
    if level is Level.PROJECT and trust_status(project).state is TrustState.REFUSED:
        return False
    file = settings_file(level, project)
    document = read_own_document(file) if file else None
    return isinstance(document, Document) and name in read_hook_fields(document).disabled


def _edit(level: Level, project: Path, name: str, *, disabled: bool) -> list[Path]:
    """Change a level's list. Return the file if it was changed."""
    file = settings_file(level, project)
    if file is None:
        return []
    try:
        return [file] if _edit_file(level, file, project, name, disabled=disabled) else []
    except EditError as error:
        raise SwitchError(f"{file}: {error}") from error
    except OSError as error:
        raise SwitchError(f"{file} cannot be changed: {error.strerror or error}") from error


def _edit_file(level: Level, file: Path, project: Path, name: str, *, disabled: bool) -> bool:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with exclusive_lock(file):
        document = read_document(file) if level is Level.PROJECT else read_own_document(file)
        if isinstance(document, Problem):
            raise SwitchError(str(document))
        before = document.text if document else ""
        after = set_disabled(before, name, disabled)
        if after == before:
            return False
        if level is Level.PROJECT and (status := trust_status(project)).state is TrustState.REFUSED:
            raise SwitchError(f"the project's settings were not changed: {status.problems[0]}")
        write_atomically(file, after)
    return True
