"""Switching a hook on or off for good: its name in ``hooksConfig.disabled`` of a settings file.

A hook is switched off where it is defined: the project's in the project's file, all others in the user's. It is
switched on in every file that has it on its list. An approval of the project that held before holds after: it is the
user who made the change.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llxprt_hooks.inspection.inventory import take_inventory
from llxprt_hooks.settings import (
    Document,
    Level,
    Problem,
    exclusive_lock,
    parse,
    read_document,
    settings_file,
    write_atomically,
)
from llxprt_hooks.settings.edit import EditError, set_disabled
from llxprt_hooks.settings.hook_fields import read_hook_fields
from llxprt_hooks.settings.levels import absolute_project
from llxprt_hooks.trust.fingerprint import hook_fingerprint
from llxprt_hooks.trust.scripts import ScriptsError, project_scripts
from llxprt_hooks.trust.status import TrustError, TrustState, grant_trust, trust_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llxprt_hooks.inspection.inventory import Item


class SwitchError(Exception):
    """A hook could not be switched; the message says why."""


class UnknownHookError(SwitchError):
    """No hook has this name; ``known`` are the names there are, and ``problem`` may be why it is not among them."""

    def __init__(self, name: str, known: Sequence[str], problem: str | None) -> None:
        super().__init__(f"no hook is called {name}")
        self.known = known
        self.problem = problem


def disable_hook(directory: str, name: str) -> list[Path]:
    """Switch off all hooks of a name, or with that command where they have none; the files that were changed."""
    enabled = [item for item in _items(directory, name) if item.enabled]
    if not enabled:
        return []
    heard = next((item for item in enabled if item.approved), enabled[0])
    level = Level.PROJECT if heard.source == Level.PROJECT else Level.USER
    return _edit(level, absolute_project(directory), name, disabled=True)


def enable_hook(directory: str, name: str) -> list[Path]:
    """Switch them on again, in every file that lists them; the files that were changed."""
    _items(directory, name)
    project = absolute_project(directory)
    listing = [level for level in Level if _is_listed(level, project, name)]
    changed = [file for level in listing for file in _edit(level, project, name, disabled=False)]
    if not all(item.enabled for item in _items(directory, name)):
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
    """Whether a level has a list of disabled hooks with this one on it, and is one that may be edited."""
    if level is Level.PROJECT and trust_status(project).state is TrustState.REFUSED:
        return False
    file = settings_file(level, project)
    document = read_document(file) if file else None
    return isinstance(document, Document) and name in read_hook_fields(document).disabled


def _edit(level: Level, project: Path, name: str, *, disabled: bool) -> list[Path]:
    """Change a level's list; the file, if it had to be changed."""
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
        document = read_document(file)
        if isinstance(document, Problem):
            raise SwitchError(str(document))
        before = document.text if document else ""
        after = set_disabled(before, name, disabled)
        if after == before:
            return False
        approval = _renewed_approval(project, document, after) if level is Level.PROJECT else None
        write_atomically(file, after)
        if approval:  # before the next one changes the file and looks whether it is approved
            _renew(project, approval)
    return True


def _renewed_approval(project: Path, document: Document | None, after: str) -> str | None:
    """The fingerprint of the project after the change, if it is approved as it is before."""
    status = trust_status(project)
    if status.state is TrustState.REFUSED:
        raise SwitchError(f"the project's settings are left as they are: {status.problems[0]}")
    if status.state is not TrustState.TRUSTED or document is None:
        return None
    try:
        scripts = project_scripts(status.script_texts, status.project)
    except ScriptsError:
        return None
    if hook_fingerprint(document.root.to_value(), scripts) != status.fingerprint:
        return None  # something has been changed this very moment, and not by us
    return hook_fingerprint(parse(after).to_value(), scripts)


def _renew(project: Path, fingerprint: str) -> None:
    try:
        grant_trust(project, expected_fingerprint=fingerprint)
    except TrustError as error:
        raise SwitchError(f"the change is made, but the project has to be approved again: {error}") from error
