"""Reloads a configuration when a settings file, also another agent's, an extension or the user's approvals change.

One thread per configuration compares size and time of a few files once a second, and ends with the configuration.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.settings.definitions import dialect_of
from llxprt_hooks.settings.extensions import MANIFESTS
from llxprt_hooks.settings.foreign import DIALECTS
from llxprt_hooks.settings.levels import SYSTEM_SETTINGS, Level, absolute_project, extensions_folder, settings_file
from llxprt_hooks.settings.load import asked_dialects
from llxprt_hooks.settings.problem import SettingsError
from llxprt_hooks.settings.trust.store import TrustStore

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from pathlib import Path

log = debug_logger("settings")

INTERVAL: Final = 1.0
"""Seconds between two looks at the files."""

_Stamp: TypeAlias = tuple[int, int, int] | None


class Reloadable(Protocol):
    """What is watched: a configuration."""

    def reload(self) -> None: ...


class SettingsWatch:
    """The state of all files that a project's configuration is read from. Create it before they are read."""

    def __init__(
        self,
        project_dir: str | os.PathLike[str],
        dialects: Iterable[str] = (),
        plugins: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self._project = absolute_project(project_dir)
        self._plugins = [absolute_project(each) for each in plugins]
        self._requested = tuple(dialects) or tuple(DIALECTS)[: bool(self._plugins)]
        self._dialects = self._used_dialects()
        self._settings_files: dict[Path, None] = {}
        """Those that have been found: the file of a folder that is deleted is not found again."""
        self._seen = self._stamps()
        # Not an Event: the garbage collector may end the watch in the very thread that is beginning to wait for it.
        self._end = threading.Lock()
        self._end.acquire()

    def start(self, config: Reloadable) -> None:
        """Watch the files for as long as the configuration is used."""
        weakref.finalize(config, self._end.release)
        arguments = (weakref.ref(config),)
        threading.Thread(target=self._watch, args=arguments, name="llxprt-hooks-watch", daemon=True).start()

    def _watch(self, reference: weakref.ref[Reloadable]) -> None:
        while not self._end.acquire(timeout=INTERVAL):
            before, self._seen = self._seen, self._stamps()
            config = reference()
            if self._seen != before and config is not None:
                self._reload(config, before)
                self._dialects = self._used_dialects()
            del config

    def _reload(self, config: Reloadable, before: dict[Path, _Stamp]) -> None:
        # A deleted file must not disable a guard in a running agent; a reload by hand does.
        gone = [file for file in self._settings_files if before.get(file) and not self._seen[file]]
        if gone:
            log.warning("%s was deleted; its hooks stay in use until a reload", ", ".join(map(str, gone)))
            return
        try:
            config.reload()
            log.debug("settings have changed, and were read again")
        except SettingsError as error:
            log.warning("settings have changed but cannot be used, the old ones stay in use: %s", error)
        except Exception:
            log.warning("settings have changed but could not be read, the old ones stay in use", exc_info=True)

    def _stamps(self) -> dict[Path, _Stamp]:
        return {file: _stamp(file) for file in self._files()}

    def _files(self) -> Iterator[Path]:
        self._settings_files.update(dict.fromkeys(self._find_settings_files()))
        yield from self._settings_files
        yield TrustStore.of(self._project).file
        if extensions := extensions_folder(self._project):
            yield extensions
            for folder in sorted(_children(extensions)):
                yield folder / "hooks" / "hooks.json"
                yield from (folder / manifest for manifest in MANIFESTS)

    def _find_settings_files(self) -> Iterator[Path]:
        yield from (file for level in Level if (file := settings_file(level, self._project)))
        yield SYSTEM_SETTINGS
        for dialect in map(dialect_of, self._dialects):
            yield from (each.file for each in (*dialect.files(self._project), *map(dialect.plugin, self._plugins)))

    def _used_dialects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._requested, *asked_dialects(self._project))))


def _stamp(file: Path) -> _Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
