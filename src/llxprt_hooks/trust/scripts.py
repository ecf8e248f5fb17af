"""Finds the files of a project that its commands name, and hashes their content.

There are too many ways to write a path in a shell (variables, quotes, ``cd hooks &&``, ``~``) to resolve it reliably.
Instead, a file is included if the words of its name, and of every folder above it, occur anywhere in the commands, in
any order and with any quoting. This includes too many files rather than too few. Files that a command only writes to
are excluded; otherwise a hook that writes a log would invalidate its own approval.

Not included: files whose names a command does not spell out (a wildcard, an escape such as ``\\x63``, the folder of a
package, a search path), files that a script reads or imports, and files outside the project.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks.text import escape_for_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import PurePath

MAX_FILES: Final = 10_000
"""Maximum number of files and folders to read; a hostile project could have any number."""

MAX_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of all scripts together; hashing them delays every start of the agent."""

_WRITTEN: Final = re.compile(r"(?<![<=-])>>?\|?[ \t]*[^\s;&|<>()]+")
_WORD: Final = re.compile(r"\.?\w+")
_QUOTING: Final = re.compile(r"\\\n|[\"'`\\]")
_ESCAPE_OR_QUOTE: Final = re.compile(r"\\.|[\"'`]", re.DOTALL)
_OPTION_LETTER: Final = re.compile(r"(?<![\w-])-\w")
_IMPLIED_SUFFIXES: Final = (".js", ".cjs", ".mjs", ".ts", ".py")
"""Suffixes that ``node hooks/check`` and ``python -m hooks.check`` add."""


class ScriptsError(Exception):
    """The content of scripts cannot be determined. The message is for the user."""


def project_scripts(commands: Iterable[str], project_dir: Path) -> dict[str, str]:
    """Return the files inside the project that commands name, each with the SHA-256 of its content.

    For a link to a folder, the target is recorded. Raises ``ScriptsError`` if a script cannot be read, because then it
    is unknown whether it is still the approved one.
    """
    words = _words_of(commands)
    return _Search(Path(os.path.realpath(project_dir)), words).scripts() if words else {}


def file_test(commands: Iterable[str]) -> Callable[[PurePath], bool]:
    """Return a test whether commands name a file, which need not exist, by its path relative to the project."""
    words = _words_of(commands)
    return lambda path: bool(words and path.parts) and all(_is_named(part, words) for part in path.parts)


def _words_of(commands: Iterable[str]) -> set[str]:
    """Return the words of all commands, for each way that quotes and options may join or split them."""
    words: set[str] = set()
    for command in set(commands):
        text = _WRITTEN.sub(" ", _plain(command))
        for reading in (
            _QUOTING.sub("", text),
            _ESCAPE_OR_QUOTE.sub(" ", text),
            _OPTION_LETTER.sub(" ", text),
        ):
            words.update(_WORD.findall(reading))
    return words | {word.removeprefix(".") for word in words}


def _plain(text: str) -> str:
    """Normalize Unicode and case, because some file systems ignore these differences."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _is_named(name: str, words: set[str]) -> bool:
    plain = _plain(name).partition(">")[0]  # the rest may have been removed as the target of a redirection
    suffix = next((suffix for suffix in _IMPLIED_SUFFIXES if plain.endswith(suffix)), "")
    stem = plain.removesuffix(suffix)
    return any(words.issuperset(_WORD.findall(reading)) for reading in (stem, _QUOTING.sub("", stem)))


class _Search:
    """Searches the project, entering only folders that are named, for files that are named."""

    def __init__(self, project: Path, words: set[str]) -> None:
        self._project = project
        self._words = words
        self._folders = deque([project])
        self._seen: set[str] = set()
        self._scripts: dict[str, str] = {}
        self._bytes_left = MAX_BYTES

    def scripts(self) -> dict[str, str]:
        while self._folders:
            folder = self._folders.popleft()
            real = os.path.realpath(folder)
            if real not in self._seen:
                self._seen.add(real)
                for file in sorted(self._named(folder)):
                    self._add(file)
                    if len(self._folders) + len(self._seen) + len(self._scripts) > MAX_FILES:
                        raise ScriptsError(f"the commands could mean more than {MAX_FILES} files of the project")
        return self._scripts

    def _named(self, folder: Path) -> Iterator[Path]:
        try:
            with os.scandir(folder) as entries:
                yield from (folder / entry.name for entry in entries if _is_named(entry.name, self._words))
        except (FileNotFoundError, NotADirectoryError):  # deleted in the meantime
            return
        except OSError as error:
            raise ScriptsError(
                f"the folder {escape_for_terminal(str(folder))} cannot be read: {error.strerror}"
            ) from error

    def _add(self, file: Path) -> None:
        try:
            mode = file.stat().st_mode
        except OSError:  # a broken link: no command can run it
            return
        if stat.S_ISREG(mode):
            self._scripts[self._name(file)] = self._digest(file)
        elif stat.S_ISDIR(mode):
            self._folders.append(file)
            if file.is_symlink():
                self._follow(file)

    def _follow(self, link: Path) -> None:
        # Include the parents of the target, because `link/..` resolves to them.
        real = Path(os.path.realpath(link))
        self._scripts[self._name(link)] = f"leads to {real}"
        self._folders += [folder for folder in real.parents if folder.is_relative_to(self._project)]

    def _name(self, file: Path) -> str:
        return str(file.relative_to(self._project))

    def _digest(self, file: Path) -> str:
        digest = hashlib.sha256()
        try:
            # O_NONBLOCK: opening a named pipe that replaced the file would otherwise block.
            descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                while data := os.read(descriptor, min(_CHUNK, self._bytes_left + 1)):
                    digest.update(data)
                    self._bytes_left -= len(data)
                    if self._bytes_left < 0:
                        raise ScriptsError(f"the scripts are larger than {MAX_BYTES // 2**20} MiB in total")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ScriptsError(
                f"the script {escape_for_terminal(str(file))} cannot be read: {error.strerror}"
            ) from error
        return digest.hexdigest()


_CHUNK: Final = 1024 * 1024
