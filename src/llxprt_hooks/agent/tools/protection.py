"""Files that decide what hooks do. The agent writes them only if a person says yes, in every approval mode.

These are: everything below ``.llxprt``, ``.git`` and ``llxprt-code``, wherever they are; the folders and files of the
user's and the system's settings; the files that a configured hook names; and the modules that its Python scripts
import, or would import instead of others. A file is recognized by its path, which need not exist, and by its identity
on the disk, so that links and other spellings of a name make no difference. A mere word in a command, as in ``make
test``, names only a file of that name that exists.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
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
from llxprt_hooks.settings.trust.command_names import IMPLIED_FILES, CommandNames, ScriptsError, paths_in
from llxprt_hooks.settings.trust.covered_files import ImportingScripts
from llxprt_hooks.settings.trust.fingerprint import hook_commands

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.settings.load import Settings

Identity: TypeAlias = tuple[int, int]
"""Device and inode."""

_FOLDERS: Final = (FOLDER, ".git", CONFIG_FOLDER.name)


class ProtectedFiles:
    """The protected files of a working directory and a configuration."""

    def __init__(self, root: Path, config: Config) -> None:
        self._root = root
        self._config = config
        self._named: _NamedFiles | None = None
        self._named_by: Settings | None = None

    def reason(self, path: PurePath, present: AbstractSet[Identity]) -> str | None:
        """Return why a file is protected, or None. Its path is relative to the root.

        ``present`` identifies the file and the folders that contain it, as far as they exist.
        """
        for part in path.parts:
            if (name := _plain(part)) in _FOLDERS:
                return f"it is in `{name}`"
        if present & self._settings():
            return "it belongs to the settings of llxprt-hooks"
        if self._files_of_hooks().include(path, present):
            return "a configured hook names it"
        if self._files_of_hooks().would_import(path, present):
            return "a script of a configured hook imports it"
        return None

    def _settings(self) -> set[Identity]:
        files = [file for level in Level if (file := settings_file(level, self._root))]
        files += [user_settings_file(), *unused_user_files()]
        folders = [user_folder(), SYSTEM_SETTINGS.parent, *(self._root / folder for folder in _FOLDERS)]
        # A settings file in a place of the user's choice protects its folder, unless the project is in that folder.
        folders += [file.parent for file in files if not self._root.is_relative_to(os.path.realpath(file.parent))]
        return identities([*files, *folders])

    def _files_of_hooks(self) -> _NamedFiles:
        settings = self._config.settings  # another object after a reload
        if self._named is None or self._named_by is not settings:
            hooks = (hook for hook_set in self._config.hook_sets for hook in hook_commands({"hooks": hook_set.hooks}))
            self._named = _NamedFiles(self._root, {text for hook in hooks for text in hook.script_texts})
            self._named_by = settings
        return self._named


class _NamedFiles:
    """The files below a root that commands name, and what these import."""

    def __init__(self, root: Path, commands: AbstractSet[str]) -> None:
        self._root = root
        self._all_named = False
        self._commands: list[tuple[CommandNames, CommandNames]] = []
        self._scripts: ImportingScripts | None = None
        try:
            self._commands = [(CommandNames([each]), CommandNames(paths_in(each))) for each in commands]
        except ScriptsError:  # a command could mean too many names, so any could be one
            self._all_named = True
        with suppress(ScriptsError):  # too many or unreadable; they are still recognized by their names
            self._scripts = ImportingScripts(commands, root, self._include_path)

    def include(self, path: PurePath, present: AbstractSet[Identity]) -> bool:
        named = self._scripts.named if self._scripts else ()
        return self._all_named or self._include_path(path) or bool(present & identities(named))

    def would_import(self, path: PurePath, present: AbstractSet[Identity]) -> bool:
        scripts = self._scripts
        return scripts is not None and (scripts.would_import(path) or bool(present & identities(scripts.imported)))

    def _include_path(self, path: PurePath) -> bool:
        exists = os.path.lexists(self._root / path)
        return any(_names(everything, paths, path, exists) for everything, paths in self._commands)


def _names(everything: CommandNames, paths: CommandNames, path: PurePath, exists: bool) -> bool:
    """Whether a command names a file, given all of its words and those that are part of a path."""
    if not everything or not everything.include_path(path.as_posix()):
        return False
    last = path.parent.name if path.name in IMPLIED_FILES and path.parent.name else path.name
    return (exists and everything.spell(path.name)) or (bool(paths) and paths.include(last))


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
