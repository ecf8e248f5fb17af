"""Files that decide what hooks do. The agent writes them only if a person says yes, in every approval mode (D-29).

These are: everything below ``.llxprt``, ``.git`` and ``llxprt-code``, wherever they are; the folders and files of the
user's and the system's settings; the files that an approval of the configured hooks covers, see ``covered_files``; and
what decides which program a command starts: folders on the search path, environments with installed packages, the
folder of this Python, and this package. A file is recognized by its path, which need not exist, and by its identity on
the disk, so that links and other spellings of a name make no difference.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

import llxprt_hooks
from llxprt_hooks.settings.definitions import dialect_of
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
from llxprt_hooks.settings.trust.command_names import ScriptsError
from llxprt_hooks.settings.trust.covered_files import INSTALLED_MARKS, CoveredFiles
from llxprt_hooks.settings.trust.fingerprint import commands_of

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.settings.load import Settings

Identity: TypeAlias = tuple[int, int]
"""Device and inode."""

_FOLDERS: Final = (FOLDER, ".git", CONFIG_FOLDER.name)
_NODE_MODULES, _PROGRAMS = "node_modules", ".bin"
_OWN_FOLDERS: Final = [
    Path(os.path.realpath(folder)) for folder in (sys.prefix, sys.base_prefix, Path(llxprt_hooks.__file__).parent)
]


class ProtectedFiles:
    """The protected files of a working directory and a configuration."""

    def __init__(self, root: Path, config: Config) -> None:
        self._root = root
        self._config = config
        self._named: _HookFiles | None = None
        self._named_by: Settings | None = None

    def reason(self, path: PurePath, present: AbstractSet[Identity]) -> str | None:
        """Return why a file is protected, or None. Its path is relative to the root.

        ``present`` identifies the file and the folders that contain it, as far as they exist.
        """
        for part in path.parts:
            if (name := _plain(part)) in _FOLDERS:
                return f"it is in `{name}`"
        if self._root / path in self._foreign_files() or any(map(path.is_relative_to, self._foreign_folders())):
            return "it has the settings of hooks"
        if present & self._settings():
            return "it belongs to the settings of llxprt-hooks"
        if self._is_installed(path):
            return "programs and packages are installed there, and hooks may use them"
        if self._files_of_hooks().include(path, present):
            return "a configured hook runs or reads it"
        return None

    def _is_installed(self, path: PurePath) -> bool:
        """Whether a file is in an environment, on the search path, or a part of this Python or package."""
        file = self._root / path
        in_environment = path.name in INSTALLED_MARKS or any(
            os.path.lexists(folder / mark) for folder in file.parents[: len(path.parts)] for mark in INSTALLED_MARKS
        )
        in_npm = (_NODE_MODULES, _PROGRAMS) in pairwise(map(_plain, path.parts))
        own = (folder for folder in _OWN_FOLDERS if folder != self._root and folder.is_relative_to(self._root))
        search_path = os.environ.get("PATH", os.defpath).split(":")
        on_path = any(file.parent == Path(os.path.realpath(self._root / folder)) for folder in search_path)
        return in_environment or in_npm or on_path or any(map(file.is_relative_to, own))

    def _settings(self) -> set[Identity]:
        files = [file for level in Level if (file := settings_file(level, self._root))]
        files += [user_settings_file(), *unused_user_files(), *self._foreign_files()]
        folders = [user_folder(), SYSTEM_SETTINGS.parent, *(self._root / folder for folder in _FOLDERS)]
        # A settings file in a place of the user's choice protects its folder, unless the project is in that folder.
        folders += [file.parent for file in files if not self._root.is_relative_to(os.path.realpath(file.parent))]
        return identities([*files, *folders])

    def _foreign_files(self) -> list[Path]:
        """Return the settings files of other agents whose hooks are in use, existing or not."""
        foreign = self._config.settings.foreign if self._config.settings is not None else ()
        return [each.found.file for settings in foreign for each in settings.files]

    def _foreign_folders(self) -> list[str]:
        """Return the folders in which other agents take any file for settings."""
        foreign = self._config.settings.foreign if self._config.settings is not None else ()
        return [folder for settings in foreign for folder in dialect_of(settings.dialect).folders]

    def _files_of_hooks(self) -> _HookFiles:
        settings = self._config.settings  # another object after a reload
        if self._named is None or self._named_by is not settings:
            hooks = (hook for hook_set in self._config.hook_sets for hook in commands_of(hook_set))
            self._named = _HookFiles(self._root, {text for hook in hooks for text in hook.script_texts})
            self._named_by = settings
        return self._named


class _HookFiles:
    """The files below a root that an approval of these commands covers."""

    def __init__(self, root: Path, commands: AbstractSet[str]) -> None:
        self._root = root
        self._covered: CoveredFiles | None = None
        with suppress(ScriptsError):  # too many or unreadable: any file could be one
            self._covered = CoveredFiles(commands, root)

    def include(self, path: PurePath, present: AbstractSet[Identity]) -> bool:
        covered = self._covered
        plain = PurePath(*map(_plain, path.parts))
        if covered is None or covered.cover(path) or covered.cover(plain):
            return True
        if plain in {PurePath(*map(_plain, PurePath(name).parts)) for name in covered.files}:
            return True
        return bool(present & identities(self._root / name for name, file in covered.files.items() if not file.is_link))


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
