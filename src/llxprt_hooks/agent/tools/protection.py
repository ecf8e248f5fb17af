"""Files that decide what hooks do. The agent writes them only if a person says yes, in every approval mode.

These are: everything below ``.llxprt``, ``.git`` and ``llxprt-code``, wherever they are; the folders and files of the
user's and the system's settings; the files that a configured hook names; and the modules that its Python scripts
import, or would import instead of others. A file is recognized by its path, which need not exist, and by its identity on
the disk, so that links and other spellings of a name make no difference.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from llxprt_hooks.settings.levels import (
    CONFIG_FOLDER,
    FOLDER,
    SYSTEM_SETTINGS,
    Level,
    settings_file,
    unused_user_files,
    user_folder,
    user_settings_file,
)
from llxprt_hooks.trust.command_names import CommandNames
from llxprt_hooks.trust.errors import ScriptsError
from llxprt_hooks.trust.fingerprint import hook_commands
from llxprt_hooks.trust.scripts import ImportingScripts

if TYPE_CHECKING:
    from llxprt_hooks.config import Config

Identity: TypeAlias = tuple[int, int]
"""Device and inode."""

_FOLDERS: Final = (FOLDER, ".git", CONFIG_FOLDER.name)


class ProtectedFiles:
    """The protected files of a working directory and a configuration."""

    def __init__(self, root: Path, config: Config) -> None:
        self._root = root
        self._config = config

    def reason(self, path: PurePath, present: AbstractSet[Identity]) -> str | None:
        """Return why a file is protected, or None. Its path is relative to the root.

        ``present`` identifies the file and the folders that contain it, as far as they exist.
        """
        for part in path.parts:
            if (name := _plain(part)) in _FOLDERS:
                return f"it is in `{name}`"
        if present & self._settings():
            return "it belongs to the settings of llxprt-hooks"
        scripts = self._scripts
        if not self._is_named(path) and scripts and scripts.would_import(path):
            return "a script of a configured hook imports it"
        if self._is_named(path) or (scripts and present & identities(scripts.files)):
            return "a configured hook names it"
        return None

    def _settings(self) -> set[Identity]:
        files = [file for level in Level if (file := settings_file(level, self._root))]
        files += [user_settings_file(), *unused_user_files()]
        folders = [user_folder(), SYSTEM_SETTINGS.parent, *(self._root / folder for folder in _FOLDERS)]
        # A settings file in a place of the user's choice protects its folder, unless the project is in that folder.
        folders += [file.parent for file in files if not self._root.is_relative_to(os.path.realpath(file.parent))]
        return identities([*files, *folders])

    @cached_property
    def _script_texts(self) -> tuple[str, ...]:
        hooks = (hook for hook_set in self._config.hook_sets for hook in hook_commands({"hooks": hook_set.hooks}))
        return tuple({text for hook in hooks for text in hook.script_texts})

    def _is_named(self, path: PurePath) -> bool:
        names = self._names
        return names is None or (bool(names) and names.include_path(path.as_posix()))

    @cached_property
    def _names(self) -> CommandNames | None:
        try:
            return CommandNames(self._script_texts)
        except ScriptsError:  # the commands could mean too many names, so any could be one
            return None

    @cached_property
    def _scripts(self) -> ImportingScripts | None:
        try:
            return ImportingScripts(self._script_texts, self._root)
        except ScriptsError:  # too many or unreadable; they are still recognized by their names
            return None


def _plain(name: str) -> str:
    """Return the form in which file systems compare names: some ignore case, invisible characters, dots at the end."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").rstrip(". ")


def identities(paths: Iterable[Path]) -> set[Identity]:
    """Identify the files and folders that exist. Links count as what they lead to."""
    found = set()
    for path in paths:
        with suppress(OSError, ValueError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return found
