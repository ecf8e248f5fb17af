"""Finds the files of a project that an approval covers, and hashes their content.

These are: everything below ``.llxprt/`` except ``.llxprt/state/``; the files that commands name, see ``command_names``;
and the modules beside a Python script that it imports, or that shadow one of the standard library.

Links are followed. Not included: what a script reads or starts in turn outside ``.llxprt/``, what installed packages
import, and files outside the project that no link leads to. Of byte code, only what Python would run in place of a
source file that it was not made from.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER
from llxprt_hooks.settings.trust.byte_code import CACHE_FOLDER, ByteCodeCheck, source_name
from llxprt_hooks.settings.trust.byte_code import SUFFIX as BYTE_CODE
from llxprt_hooks.settings.trust.command_names import IMPLIED_FILES, SIMPLE_COMMAND, CommandNames, ScriptsError
from llxprt_hooks.settings.trust.imports import MAX_SOURCE, SHADOWING, Import, imports_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

STATE_FOLDER: Final = "state"
"""Below ``.llxprt/``: what hooks write. It is not part of the approval."""

MAX_FILES: Final = 10_000
"""Maximum number of files and folders to read; a hostile project could have any number."""

MAX_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of all scripts together; hashing them delays every start of the agent."""

MAX_TREE_FILES: Final = 2_000
MAX_TREE_BYTES: Final = 32 * 1024 * 1024
"""The same for everything below ``.llxprt/``."""

_CHUNK: Final = 1024 * 1024
_OWN_FILES: Final = re.compile(rf"{re.escape(FILE_NAME)}(?:\.lock)?|\.{re.escape(FILE_NAME)}\..*\.tmp")
"""The settings, which are compared by their meaning, and the files next to them while they are written."""
_MODULE_SUFFIXES: Final = (".py", ".pyw", ".pyc", ".so", ".pyd")
_ANY: Final = "*"
_SCRIPT_SUFFIXES: Final = (".py", ".pyw")
_PYTHON_SHEBANG: Final = re.compile(rb"#![^\n]*python")
_MODULE_OPTION: Final = re.compile(r"\s-\w{0,8}[mc]")

Signature = tuple[int, int, int, int, int, int]
_UNSTABLE: Final[Signature] = (0, 0, 0, 0, 0, 0)
"""Stands for a file that has just changed. It equals no file, so the file is read again."""


class CoveredFile(NamedTuple):
    digest: str
    """The SHA-256 of its content; for a link to a folder, where it leads."""
    size: int
    is_link: bool = False


class CoveredFiles:
    """The files that an approval of these commands covers, and a quick way to notice that one has changed.

    Raises ``ScriptsError`` if a file cannot be read, because then it is unknown whether it is still the approved one.
    """

    def __init__(self, commands: Iterable[str], project_dir: Path) -> None:
        commands = tuple(commands)
        self._project = Path(os.path.realpath(project_dir))
        self._names = CommandNames(commands)
        self._runs_modules = any(map(_imports_from_project, commands))
        self._contents: dict[str, _Content] = {}
        scan = self._scan()
        self.files = scan.files
        self._seen = scan.seen

    def changes(self) -> tuple[str, ...]:
        """Return which files are new, gone or changed since this object was created.

        Compares inode, size and times of everything that was read. Only if one of them differs, it looks again, and
        reads the files that differ. May be called in any thread.
        """
        if _are_as_seen(self._seen):
            return ()
        scan = self._scan()
        now, before = scan.files, self.files
        changed = tuple(sorted(name for name in {*now, *before} if now.get(name) != before.get(name)))
        if not changed:
            self._seen = scan.seen
        return changed

    def _scan(self) -> _Scan:
        scan = _Scan(self._project, self._names, self._contents)
        scan.add_named_files()
        scan.add_own_folder()
        scan.add_modules(from_project=self._runs_modules)
        return scan


def project_scripts(commands: Iterable[str], project_dir: Path) -> dict[str, str]:
    """Return the files inside the project that commands name, each with the SHA-256 of its content.

    For a link to a folder, the target is recorded. Raises ``ScriptsError`` if a script cannot be read.
    """
    scan = _Scan(Path(os.path.realpath(project_dir)), CommandNames(commands), {})
    scan.add_named_files()
    return {name: file.digest for name, file in scan.files.items()}


class ImportingScripts:
    """The files inside the project that commands name, as far as ``include`` accepts them, and what they import.

    Raises ``ScriptsError`` if a script cannot be read.
    """

    def __init__(self, commands: Iterable[str], project_dir: Path, include: Callable[[PurePath], bool]) -> None:
        commands = tuple(commands)
        self._project = Path(os.path.realpath(project_dir))
        self._scan = _Scan(self._project, CommandNames(commands), {})
        self._scan.add_named_files()
        self._scan.keep(include)
        self.named = self._files()
        self._scan.add_modules(from_project=any(map(_imports_from_project, commands)))
        self.imported = [file for file in self._files() if file not in self.named]

    def _files(self) -> list[Path]:
        return [self._project / name for name in self._scan.files]

    def would_import(self, path: PurePath) -> bool:
        """Whether one of the scripts would import a file, which need not exist, or import it instead of another."""
        file = self._project / path
        if self._scan.is_sought(file.parent, _module_name(file.name)):
            return True
        is_package = _module_name(file.name) == "__init__"
        for folder in file.parents[: len(path.parts) - 1]:
            starts_package = (is_package and folder == file.parent) or not folder.is_dir()
            if starts_package and self._scan.is_sought(folder.parent, folder.name):
                return True
        return False


class _Content(NamedTuple):
    """What the content of a file says, and the signature of the file when it was read."""

    signature: Signature | None
    digest: str
    imports: frozenset[Import] | None
    """What it imports, if it is Python; None if that cannot be found out."""
    is_python: bool


@dataclass(slots=True)
class _Budget:
    """How much may still be read."""

    bytes_left: int
    message: str

    def spend(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise ScriptsError(self.message)


class _Scan:
    def __init__(self, project: Path, names: CommandNames, contents: dict[str, _Content]) -> None:
        self.files: dict[str, CoveredFile] = {}
        self.seen: dict[str, Signature | None] = {}
        """Everything that was checked; if none of it has changed, the result has not changed."""
        self._project = project
        self._own_folder = project / FOLDER
        self._own_prefix = f"{self._own_folder}/"
        self._prefix = f"{str(project).rstrip('/')}/"
        self._names = names
        self._contents = contents
        self._listings: dict[Path, tuple[str, ...]] = {}
        self._budget = _Budget(MAX_BYTES, f"the scripts are larger than {MAX_BYTES // 2**20} MiB in total")
        self._python: dict[Path, _Content] = {}
        self._byte_code = ByteCodeCheck()
        self._sought: set[tuple[Path, str]] = set()
        """The folders in which modules were looked for, each with the name of the module."""
        self._first_on_path: set[Path] = set()
        """The folders in which Python looks before it looks for its own modules."""

    # Files that commands name.

    def add_named_files(self) -> None:
        """Enter only folders that are named, for files that are named."""
        if not self._names:
            return
        folders = deque([self._project])
        for number, folder in enumerate(_each_once(folders), start=1):
            for file in self._named(folder):
                folders += self._add_named(file)
                if len(folders) + number + len(self.files) > MAX_FILES:
                    raise ScriptsError(f"the commands could mean more than {MAX_FILES} files of the project")

    def _named(self, folder: Path) -> Iterator[Path]:
        is_project = folder == self._project
        for name in self._listing(folder):
            if self._names.include(name) or (name in IMPLIED_FILES and not is_project):
                yield folder / name

    def _add_named(self, file: Path) -> list[Path]:
        """Add a file; return the folders to enter next."""
        found = self._look(file)
        if found is None:  # a broken link: no command can run it
            return []
        if stat.S_ISREG(found.st_mode):
            self._add(file, found, self._budget, parse=True)
        if not stat.S_ISDIR(found.st_mode):
            return []
        if not file.is_symlink():
            return [file]
        # Include the parents of the target, because `link/..` resolves to them.
        return [file, *(each for each in self._add_link(file).parents if each.is_relative_to(self._project))]

    def keep(self, include: Callable[[PurePath], bool]) -> None:
        """Forget the other files that commands name."""
        self.files = {name: file for name, file in self.files.items() if include(PurePath(name))}
        self._python = {file: content for file, content in self._python.items() if self._name(file) in self.files}

    # Everything below .llxprt/.

    def add_own_folder(self) -> None:
        """Add everything below ``.llxprt/`` except the settings and ``.llxprt/state/``."""
        limit = f"at most {MAX_TREE_FILES} files and {MAX_TREE_BYTES // 2**20} MiB can be approved"
        advice = f"move what is not part of a hook to {FOLDER}/{STATE_FOLDER}/ or elsewhere"
        budget = _Budget(MAX_TREE_BYTES, f"{FOLDER}/ is too large: {limit}; {advice}")
        folders, count = deque([self._own_folder]), 0
        for folder in _each_once(folders):
            for name in self._listing(folder):
                if folder == self._own_folder and (name == STATE_FOLDER or _OWN_FILES.fullmatch(name)):
                    continue
                count += 1
                if count > MAX_TREE_FILES:
                    raise ScriptsError(f"{FOLDER}/ has too many files: {limit}; {advice}")
                file = folder / name
                found = self._look(file)
                if found is None:
                    continue
                if stat.S_ISREG(found.st_mode) and not self._is_mere_cache(file):
                    self._add(file, found, budget)
                if stat.S_ISDIR(found.st_mode):
                    if file.is_symlink():
                        self._add_link(file)
                    folders.append(file)

    def _is_mere_cache(self, file: Path) -> bool:
        """Whether this is byte code that Python does not run, or made itself from a source file, which is covered."""
        if file.parent.name != CACHE_FOLDER or file.suffix != BYTE_CODE:
            return False
        try:
            return not self._byte_code.replaces_source(file)
        except OSError:  # reported when it is read as a script
            return False

    # Modules that Python finds beside a script.

    def add_modules(self, *, from_project: bool) -> None:
        """Add what Python scripts import from their own folder; with ``from_project``, from the project's too."""
        roots = [self._project] if from_project else []
        files = deque((file, folder) for file in self._python for folder in (_real_folder(file), *roots))
        folders = dict.fromkeys((*roots, *(folder for _, folder in files)))
        self._first_on_path.update(folders)
        for folder in folders:
            for module in self._found(folder, (Import(0, (name,)) for name in self._importable(folder) & SHADOWING)):
                files.append((module, folder))
        done = set()
        while files:
            file, folder = files.popleft()
            if (file, folder) in done or (content := self._python.get(file)) is None:
                continue
            done.add((file, folder))
            imports = content.imports
            if imports is None:  # it could be any of them
                self._sought.add((folder, _ANY))
                imports = frozenset(Import(0, (name,)) for name in self._importable(folder))
            package = _real_folder(file)
            absolute = self._found(folder, (each for each in imports if not each.level))
            relative = self._found(package, (each for each in imports if each.level))
            files += [(module, folder) for module in (*absolute, *relative)]

    def is_sought(self, folder: Path, module: str | None) -> bool:
        """Whether a script would import a module of this name in a folder, if there was one."""
        is_first = folder in self._first_on_path and module in SHADOWING
        return module is not None and (is_first or bool({(folder, module), (folder, _ANY)} & self._sought))

    def _found(self, folder: Path, imports: Iterable[Import]) -> list[Path]:
        """Add the modules in a folder that are imported, and return them."""
        modules: list[Path] = []
        for each in imports:
            base = folder
            for _ in range(each.level - 1):
                base = base.parent
            modules += self._modules(base, each.parts)
        for module in dict.fromkeys(modules):
            found = self._look(module)
            if found is not None and stat.S_ISREG(found.st_mode) and not self._is_covered_anyway(module):
                self._add(module, found, self._budget, parse=True)
                self._add_byte_code(module)
                if len(self.files) > MAX_FILES:
                    raise ScriptsError(f"the scripts import more than {MAX_FILES} files of the project")
        return modules

    def _add_byte_code(self, module: Path) -> None:
        """Add what Python would run in place of a module."""
        folder = module.parent / CACHE_FOLDER
        for name in self._listing(folder):
            file = folder / name
            if source_name(name) != module.name or not name.endswith(BYTE_CODE) or (found := self._look(file)) is None:
                continue
            if stat.S_ISREG(found.st_mode) and not self._is_mere_cache(file):
                self._add(file, found, self._budget)

    def _modules(self, folder: Path, parts: Sequence[str]) -> Iterator[Path]:
        """Yield the files that an import of ``a.b.c`` could run."""
        for part in parts:
            if self._is_covered_anyway(folder):
                return
            self._sought.add((folder, part))
            listing = self._listing(folder)
            yield from (folder / name for name in listing if _module_name(name) == part)
            if part not in listing:
                return
            folder = folder / part
            yield from (folder / name for name in self._listing(folder) if _module_name(name) == "__init__")

    def _importable(self, folder: Path) -> frozenset[str]:
        """The names of modules and packages in a folder."""
        return frozenset(_module_name(name) or name for name in self._listing(folder)) - {"__init__"}

    def _is_covered_anyway(self, path: Path) -> bool:
        inside = f"{path}/"
        return inside.startswith(self._own_prefix) and not inside.startswith(f"{self._own_prefix}{STATE_FOLDER}/")

    # Reading.

    def _add(self, file: Path, found: os.stat_result, budget: _Budget, *, parse: bool = False) -> None:
        name = self._name(file)
        if name not in self.files:
            content = self._content(file, found, budget, parse=parse and not self._is_covered_anyway(file))
            self.files[name] = CoveredFile(content.digest, found.st_size)
            if content.is_python:
                self._python[file] = content

    def _add_link(self, link: Path) -> Path:
        real = Path(os.path.realpath(link))
        self.files[self._name(link)] = CoveredFile(f"leads to {real}", 0, is_link=True)
        return real

    def _name(self, file: Path) -> str:
        return str(file).removeprefix(self._prefix)

    def _look(self, path: Path) -> os.stat_result | None:
        try:
            found = path.stat()
        except OSError:
            self.seen[str(path)] = None
            return None
        self.seen[str(path)] = _UNSTABLE if _has_just_changed(found) else _signature_of(found)
        return found

    def _listing(self, folder: Path) -> tuple[str, ...]:
        known = self._listings.get(folder)
        if known is None:
            self._look(folder)
            known = self._listings[folder] = tuple(sorted(_names_in(folder)))
        return known

    def _content(self, file: Path, found: os.stat_result, budget: _Budget, *, parse: bool) -> _Content:
        known = self._contents.get(str(file))
        if known is not None and known.signature == self.seen[str(file)]:
            budget.spend(found.st_size)
            return known
        digest, start = _digest(file, budget)
        imports = imports_of(start) if parse else None
        is_python = parse and (file.suffix in _SCRIPT_SUFFIXES or bool(_PYTHON_SHEBANG.match(start) or imports))
        content = _Content(self.seen[str(file)], digest, imports, is_python)
        if content.signature is not _UNSTABLE:
            self._contents[str(file)] = content
        return content


def _each_once(folders: deque[Path]) -> Iterator[Path]:
    """Yield the folders of a queue, to which the caller adds others; links may lead to the same folder again."""
    entered = set[str]()
    while folders:
        folder = folders.popleft()
        real = os.path.realpath(folder)
        if real not in entered:
            entered.add(real)
            yield folder


def _are_as_seen(seen: Mapping[str, Signature | None]) -> bool:
    """Whether everything is as it was when it was looked at. Runs before every start of a hook, so it is kept lean."""
    for path, signature in seen.items():
        try:
            found = os.stat(path)  # noqa: PTH116  # faster
        except OSError:
            if signature is not None:
                return False
        else:
            if signature != _signature_of(found):
                return False
    return True


def _signature_of(found: os.stat_result) -> Signature:
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _has_just_changed(found: os.stat_result) -> bool:
    """Whether another change could leave the times as they are, because the clock of the file system is too coarse."""
    newest = max(found.st_mtime_ns, found.st_ctime_ns)
    return newest > time.time_ns() - (50_000_000 if newest % 1_000_000_000 else 2_000_000_000)


def _names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):  # deleted in the meantime
        return []
    except OSError as error:
        raise ScriptsError(f"the folder {escape_for_terminal(str(folder))} cannot be read: {error.strerror}") from error


def _digest(file: Path, budget: _Budget) -> tuple[str, bytes]:
    """Return the SHA-256 of a file, and its content up to the size of a script that is parsed."""
    digest, start = hashlib.sha256(), b""
    try:
        # O_NONBLOCK: opening a named pipe that replaced the file would otherwise block.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            while data := os.read(descriptor, min(_CHUNK, budget.bytes_left + 1)):
                digest.update(data)
                if len(start) <= MAX_SOURCE:
                    start += data
                budget.spend(len(data))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ScriptsError(f"the script {escape_for_terminal(str(file))} cannot be read: {error.strerror}") from error
    return digest.hexdigest(), start


def _imports_from_project(command: str) -> bool:
    """Whether a command has ``python -m`` or ``python -c``, which import from the working directory."""
    parts = SIMPLE_COMMAND.findall(command) if "python" in command else ()
    return any("python" in part and _MODULE_OPTION.search(part) for part in parts)


def _real_folder(file: Path) -> Path:
    """Where Python looks for the modules that a script imports."""
    return Path(os.path.realpath(file)).parent


def _module_name(name: str) -> str | None:
    return name.partition(".")[0] if name.endswith(_MODULE_SUFFIXES) else None
