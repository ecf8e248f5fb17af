"""Confine file access to the working directory: nothing outside it can be listed, read or written.

A path is first resolved as the operating system would, including symbolic links and ``..``, and must end up inside. It
is then opened folder by folder from the root, by descriptor and without following any link. So a link that another
process creates in between causes an error instead of an escape.

Limitation: a hard link to a file outside cannot be distinguished from a regular file.
"""

from __future__ import annotations

import contextlib
import copy
import os
import shlex
import stat
import threading
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from llxprt_hooks.agent.environment import tool_environment
from llxprt_hooks.agent.tools.messages import ToolFailure, escape_name, explained
from llxprt_hooks.agent.tools.protection import Identity, ProtectedFiles, identities
from llxprt_hooks.config import Config
from llxprt_hooks.core.engine.session_memory import ENV_FILE, folder_of

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PARENT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""With O_PATH where there is one: the folder need not be readable."""
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""O_NONBLOCK, because opening a named pipe would otherwise wait for its other end."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory entry. A link counts as its target; a link to the outside is neither folder nor file."""

    name: str
    is_folder: bool
    is_file: bool
    is_link: bool


@dataclass(frozen=True, slots=True)
class Target:
    """The file that a call would write."""

    place: Path
    protected: str | None
    """Why it needs a person's approval in every mode, if it does."""
    link_target: str | None
    """Where links in the path lead, if there are any."""


class Workspace:
    """Access to the files below a root. Every failure is a `ToolFailure`.

    A *place* is a path returned by `locate`: resolved, absolute and inside the root.
    """

    def __init__(self, root: str | os.PathLike[str], config: Config | None = None) -> None:
        """``config`` names the files that are protected, and the environment of what tools start."""
        self.root = Path(os.path.realpath(root))
        self.editing = threading.Lock()
        """Held from reading a file to writing it: calls of one answer run in parallel and may edit the same file."""
        self._config = config or Config(working_dir=self.root)
        self._protected = ProtectedFiles(self.root, self._config)
        self._approved: Path | None = None

    def approving(self, place: Path) -> Workspace:
        """Return this workspace for one call that may write one file, protected or not, and no other."""
        approving = copy.copy(self)
        approving._approved = place
        return approving

    def target(self, path: str) -> Target | None:
        """Return what writing to a path would change, or None if the path cannot be written."""
        try:
            place = self.locate(path)
        except ToolFailure:  # the tool reports it
            return None
        named = Path(os.path.relpath(self.root / path, self.root))
        real = place.relative_to(self.root)
        present = identities([place, *place.parents])
        protected = self._protected.reason(real, present) or self._protected.reason(named, present)
        return Target(place, protected, None if named == real else self.name(place))

    def environment(self) -> dict[str, str]:
        """Return the environment of programs that tools start."""
        return tool_environment(self._config)

    def shell_start(self) -> str:
        """Return what a shell runs before a command: it reads the variables that SessionStart hooks have set."""
        file = os.path.join(folder_of(self._config.session_id), ENV_FILE)  # noqa: PTH118
        return f". {shlex.quote(file)}\n" if os.path.isfile(file) else ""  # noqa: PTH113

    def locate(self, path: str) -> Path:
        """Resolve a path, relative to the root or absolute. It need not exist."""
        if "\0" in path:
            raise ToolFailure(f"`{path}` is not a valid path: it contains a NUL character.")
        try:
            place = Path(os.path.realpath(self.root / path))
        except (OSError, ValueError) as error:
            raise ToolFailure(f"`{path}` is not a valid path on this system: {error}.") from error
        if not place.is_relative_to(self.root):
            raise ToolFailure(f"`{path}` is outside the working directory `{self.root}`. Use a path inside it.")
        return place

    def name(self, place: Path) -> str:
        """Format a place for messages: relative to the root, on one line."""
        return escape_name(place.relative_to(self.root).as_posix())

    def folder(self, path: str) -> Path:
        place = self.locate(path)
        with self._opened_folder(place):
            return place

    def entries(self, place: Path) -> list[Entry]:
        """List a folder, sorted by name."""
        with self._opened_folder(place) as descriptor, self._explained(place), os.scandir(descriptor) as found:
            return sorted((self._entry(place, entry) for entry in found), key=lambda entry: entry.name)

    def read(self, place: Path, limit: int) -> tuple[bytes, int]:
        """Return the first ``limit`` bytes of a file, and its size."""
        with self._opened_parent(place) as folder:
            descriptor = os.open(place.name, os.O_RDONLY | _FILE, dir_fd=folder)
            with _closing(descriptor):
                status = self._regular(place, descriptor)
                with os.fdopen(descriptor, "rb", closefd=False) as opened:
                    data = opened.read(limit)
        return data, max(status.st_size, len(data))

    def write(self, place: Path, data: bytes, *, overwrite: bool = True) -> bool:
        """Write a file atomically and create missing folders. Returns whether the file is new.

        An existing file keeps its permissions.
        """
        self._check_protection(place, set())
        with self._opened_parent(place, create=True) as folder:
            self._check_protection(place, set(_containing(folder, place.name)))
            mode = self._writable_mode(place, folder)
            if mode is not None and not overwrite:
                raise ToolFailure(f"`{self.name(place)}` already exists.")
            _write_atomically(folder, place.name, data, mode)
        return mode is None

    def _check_protection(self, place: Path, present: AbstractSet[Identity]) -> None:
        """Check again when the file is written: links may have changed since the call was checked or approved."""
        if self._approved is not None and place != self._approved:
            raise ToolFailure(f"The path leads to `{self.name(place)}`, which is not what was approved.")
        if self._approved is None and (reason := self._protected.reason(place.relative_to(self.root), present)):
            raise ToolFailure(f"`{self.name(place)}` is protected ({reason}) and was not approved.")

    @contextlib.contextmanager
    def _opened_parent(self, place: Path, *, create: bool = False) -> Iterator[int]:
        if place == self.root:
            raise ToolFailure("`.` is a folder, not a file.")
        with self._opened_folder(place.parent, create=create) as descriptor, self._explained(place):
            yield descriptor

    @contextlib.contextmanager
    def _opened_folder(self, place: Path, *, create: bool = False) -> Iterator[int]:
        with self._explained(place):
            descriptor = os.open(self.root, _FOLDER)
            for name in place.relative_to(self.root).parts:
                with _closing(descriptor):
                    descriptor = _open_folder(name, descriptor, create=create)
        with _closing(descriptor):
            yield descriptor

    @contextlib.contextmanager
    def _explained(self, place: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise explained(error, self.name(place)) from error

    def _entry(self, folder: Path, found: os.DirEntry[str]) -> Entry:
        if not found.is_symlink():
            is_folder, is_file = found.is_dir(follow_symlinks=False), found.is_file(follow_symlinks=False)
            return Entry(found.name, is_folder, is_file, is_link=False)
        try:
            mode = self.locate(str(folder / found.name)).lstat().st_mode
        except (OSError, ToolFailure):
            mode = 0
        return Entry(found.name, stat.S_ISDIR(mode), stat.S_ISREG(mode), is_link=True)

    def _regular(self, place: Path, descriptor: int) -> os.stat_result:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ToolFailure(f"`{self.name(place)}` is a folder, not a file.")
        if not stat.S_ISREG(status.st_mode):
            raise ToolFailure(f"`{self.name(place)}` is not a regular file.")
        return status

    def _writable_mode(self, place: Path, folder: int) -> int | None:
        # Open for writing, because os.replace would succeed even if the file is read-only.
        try:
            descriptor = os.open(place.name, os.O_WRONLY | _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        with _closing(descriptor):
            return stat.S_IMODE(self._regular(place, descriptor).st_mode)


def _containing(folder: int, name: str) -> Iterator[Identity]:
    """Identify a file and the folders that contain it, from a descriptor, whatever they are called by now."""
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=folder)
        yield status.st_dev, status.st_ino
    folder, inner = os.dup(folder), None
    while True:
        with _closing(folder):
            status = os.fstat(folder)
            identity = status.st_dev, status.st_ino
            if identity == inner:  # the root of the file system contains itself
                return
            yield identity
            folder, inner = os.open("..", _PARENT, dir_fd=folder), identity


def _open_folder(name: str, parent: int, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # created concurrently
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)


def _write_atomically(folder: int, name: str, data: bytes, mode: int | None) -> None:
    temporary = f".llxprt-{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
    descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            if mode is not None:
                os.fchmod(descriptor, mode)
            opened.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)
