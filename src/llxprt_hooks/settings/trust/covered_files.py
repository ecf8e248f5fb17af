"""The one set of files that an approval covers (D-100): found, hashed, and compared before every start.

These are: the programs and scripts that commands start, with the modules that Python scripts import; everything below
``.llxprt/hooks/``, and what looks like code elsewhere below ``.llxprt/``; and other files that commands name as a path.
Not ``.llxprt/state/``, nor what a command writes itself. The agent's file tools protect the same set.

Links are followed. Not included: what a script reads or starts in turn outside ``.llxprt/``, installed packages, and
files outside the project that no link leads to. Of byte code, only what Python would run in place of a source file that
it was not made from.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.process.shell.direct_exec import is_executable
from llxprt_hooks.process.shell.words import CODE_SUFFIXES, INTERPRETERS, is_data_name
from llxprt_hooks.settings.levels import FOLDER
from llxprt_hooks.settings.trust.byte_code import CACHE_FOLDER, ByteCodeCheck, source_name
from llxprt_hooks.settings.trust.byte_code import SUFFIX as BYTE_CODE
from llxprt_hooks.settings.trust.command_names import CommandNames, ScriptsError, without_quotes
from llxprt_hooks.settings.trust.imports import MAX_SOURCE, SHADOWING, Import, imports_of
from llxprt_hooks.settings.trust.started import NamedFiles, files_of

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
_HOOKS_FOLDER: Final = "hooks"
_PYTHON_START: Final = re.compile(r"(?i)python|pypy")
_RUNS_TEXT: Final = re.compile(
    rf"\b(?:eval|source|xargs|exec)\b|(?:^|[\s;&|(])\.\s|\|\s*(?:\S*/)?{INTERPRETERS}(?![^\s;&|)])|"
    rf"{INTERPRETERS}\b[^|;&\n]*<|\b(?:BASH_ENV|ENV|LD_PRELOAD|NODE_OPTIONS|PERL5OPT|RUBYOPT)="
)
_RUNS_FILE: Final = re.compile(rf"(?:^|[\s/;&|(]){INTERPRETERS}\s+(?:-\S+\s+)*(\S+)")
_MODULE_SUFFIXES: Final = (".py", ".pyw", ".pyc", ".so", ".pyd")
_ANY: Final = "*"
_MAX_PROGRAMS: Final = 200
"""Maximum number of words of a command that are looked for on the search path."""
_SCRIPT_SUFFIXES: Final = (".py", ".pyw")
_PYTHON_SHEBANG: Final = re.compile(rb"#![^\n]*python")
INSTALLED_MARKS: Final = ("pyvenv.cfg", "conda-meta")
"""What a folder has into which packages are installed."""

Signature = tuple[int, int, int, int, int, int]
_UNSTABLE: Final[Signature] = (0, 0, 0, 0, 0, 0)
"""Stands for a file that has just changed. It equals no file, so the file is read again."""


class CoveredFile(NamedTuple):
    digest: str
    """The SHA-256 of its content; for a link to a folder, where it leads."""
    size: int
    is_link: bool = False
    is_data: bool = False
    """Whether it is only an argument: it counts if it was there when the hooks were approved (D-100)."""


class CoveredFiles:
    """The files that an approval of these commands covers, and a quick way to notice that one has changed.

    Raises ``ScriptsError`` if a file cannot be read, because then it is unknown whether it is still the approved one.
    """

    def __init__(self, commands: Iterable[str], project_dir: Path) -> None:
        self._project = Path(os.path.realpath(project_dir))
        self._named = _Named(commands, str(project_dir))
        self._contents: dict[str, _Content] = {}
        self._approved: Container[str] | None = None
        self.files: dict[str, CoveredFile] = {}
        self._seen: dict[str, Signature | None] = {}
        self._take(self._scan())

    def only_approved(self, names: Container[str]) -> CoveredFiles:
        """Return the same files without data that was not there when these names were approved."""
        other = copy(self)
        other._approved = names
        if any(file.is_data and name not in names for name, file in self.files.items()):
            other._take(other._scan())
        return other

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

    def cover(self, path: PurePath) -> bool:
        """Whether a file of the project is covered, or would be if it existed."""
        return self._covers(path)

    def _take(self, scan: _Scan) -> None:
        self.files, self._seen, self._covers = scan.files, scan.seen, scan.cover

    def _scan(self) -> _Scan:
        scan = _Scan(self._project, self._named, self._contents, self._approved)
        scan.add_named_files()
        scan.add_own_folder()
        scan.add_modules()
        return scan


def named_files(commands: Iterable[str], project_dir: Path) -> list[str]:
    """Return the files of a project that commands name or import. Raises ``ScriptsError`` if one cannot be read."""
    scan = _Scan(Path(os.path.realpath(project_dir)), _Named(commands, str(project_dir)), {}, None)
    scan.add_named_files()
    scan.add_modules()
    return list(scan.files)


class _Named:
    """What commands name: exactly where that is certain, else by their words."""

    def __init__(self, commands: Iterable[str], project: str) -> None:
        self.files = NamedFiles()
        uncertain = []
        for command in set(commands):
            if (found := files_of(command, project)) is not None:
                self.files.add(found)
            else:
                uncertain.append(command)
        self.names = CommandNames(uncertain)
        plain = [without_quotes(command) for command in uncertain]
        self.from_project = bool(self.files.imported) or any(map(_PYTHON_START.search, plain))
        """Whether Python may import from the project folder: only a plain start of a script certainly does not."""
        self.runs_text = any(
            _RUNS_TEXT.search(each) or any(map(is_data_name, _RUNS_FILE.findall(each))) for each in plain
        )
        """Whether a command may run what it reads, so that every file that it names may be code."""
        words = {word for command in plain for word in command.split()[:_MAX_PROGRAMS]}
        self.programs = {word for word in (*self.files.programs, *words) if "/" not in word}


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
    def __init__(
        self, project: Path, named: _Named, contents: dict[str, _Content], approved: Container[str] | None
    ) -> None:
        self.files: dict[str, CoveredFile] = {}
        self.seen: dict[str, Signature | None] = {}
        """Everything that was checked; if none of it has changed, the result has not changed."""
        self._project = project
        self._own_folder = project / FOLDER
        self._hooks_prefix = f"{self._own_folder / _HOOKS_FOLDER}/"
        self._prefix = f"{str(project).rstrip('/')}/"
        self._named = named
        self._contents = contents
        self._approved = approved
        self._listings: dict[Path, tuple[str, ...]] = {}
        self._budget = _Budget(MAX_BYTES, f"the scripts are larger than {MAX_BYTES // 2**20} MiB in total")
        self._python: dict[Path, _Content] = {}
        self._byte_code = ByteCodeCheck()
        self._started: set[Path] = set()
        """The files that commands start, existing or not."""
        self._sought: set[tuple[Path, str]] = set()
        """The folders in which modules were looked for, each with the name of the module."""
        self._first_on_path: set[Path] = set()
        """The folders in which Python looks before it looks for its own modules."""

    def cover(self, path: PurePath) -> bool:
        """Whether a file with this path, relative to the project, is covered, or would be if it existed."""
        file = self._project / path
        if str(path) in self.files or file in self._started or self._is_below_hooks(file):
            return True
        is_absent_data = is_data_name(path.name) and not self._named.runs_text
        if not is_absent_data and self._named.names and self._named.names.include_path(path.as_posix()):
            return True
        return self._would_import(file, len(path.parts))

    # Files that commands name.

    def add_named_files(self) -> None:
        named = self._named.files
        written = {file for path in named.written if (file := self._place(path))}
        self._started = {file for path in named.started if (file := self._place(path))}
        self._started |= set(self._programs())
        for file in sorted(self._started):
            self._add_named(file)
        for path in sorted(named.read):
            if (read := self._place(path)) and read not in written and not self._is_state(read):
                self._add_named(read, is_data=read not in self._started)
        self._add_by_words(written - self._started)

    def _place(self, path: str) -> Path | None:
        """Return where a path leads, with all links to folders resolved; None if that is outside the project."""
        if "\0" in path:
            return None
        at = Path("/") if path.startswith("/") else self._project
        parts = [part for part in Path(path).parts if part != "/"]
        through_link = False
        for part in parts[:-1]:
            at = at.parent if part == ".." else at / part
            if at.is_symlink() and at.is_dir():
                if at.is_relative_to(self._project):
                    through_link = True
                    self._look(at)
                    self._add_link(at)
                at = Path(os.path.realpath(at))
        file = at.parent if parts[-1:] == [".."] else at.joinpath(*parts[-1:])
        return file if through_link or file.is_relative_to(self._project) else None

    def _programs(self) -> Iterator[Path]:
        """Yield where the shell looks for programs inside the project, outside of folders with installed packages."""
        folders = [os.path.realpath(self._project / each) for each in os.environ.get("PATH", os.defpath).split(":")]
        in_project = [Path(folder).is_relative_to(self._project) for folder in folders]
        for name in sorted(self._named.programs) if any(in_project) else ():
            for folder, is_inside in zip(folders, in_project, strict=True):
                file = Path(folder, name)
                if is_inside and not is_installed(file.parent):
                    yield file
                if is_executable(str(file)):
                    break

    def _add_named(self, file: Path, *, is_data: bool = False) -> list[Path]:
        """Add a file; return the folders to enter next if it is one."""
        is_data = is_data and not self._is_below_hooks(file)  # everything there counts
        if is_data and self._approved is not None and self._name(file) not in self._approved:
            return []
        found = self._look(file)
        if found is None:  # a broken link: no command can run it
            return []
        if stat.S_ISREG(found.st_mode):
            self._add(file, found, self._budget, is_data=is_data)
        if not stat.S_ISDIR(found.st_mode):
            return []
        if not file.is_symlink():
            return [file]
        # Include the parents of the target, because `link/..` resolves to them.
        return [file, *(each for each in self._add_link(file).parents if each.is_relative_to(self._project))]

    def _add_by_words(self, written: set[Path]) -> None:
        """Enter only folders that are named, for files that are named."""
        names = self._named.names
        if not names:
            return
        folders = deque([self._project])
        for number, folder in enumerate(_each_once(folders), start=1):
            for name in self._listing(folder):
                file, implied = folder / name, folder != self._project and names.imply(folder.name, name)
                if names.include(name) or implied:
                    is_data = is_data_name(name) and not self._named.runs_text
                    if file in written or (is_data and self._is_state(file)):
                        continue
                    folders += self._add_named(file, is_data=is_data)
                elif names.include_folder(name) and file.is_dir():
                    folders += self._add_named(file)
                if len(folders) + number + len(self.files) > MAX_FILES:
                    raise ScriptsError(
                        f"the commands match more than {MAX_FILES} project files, which is too many to approve"
                    )

    # What belongs to the hooks below .llxprt/.

    def add_own_folder(self) -> None:
        """Add everything below ``.llxprt/hooks/``, and code elsewhere below ``.llxprt/``."""
        limit = f"at most {MAX_TREE_FILES} files and {MAX_TREE_BYTES // 2**20} MiB can be approved"
        advice = f"move what is not part of a hook to {FOLDER}/{STATE_FOLDER}/ or elsewhere"
        budget = _Budget(MAX_TREE_BYTES, f"{FOLDER}/ is too large: {limit}; {advice}")
        # The hooks first: another name of that folder must not hide its data.
        folders, count = deque([self._own_folder / _HOOKS_FOLDER, self._own_folder]), 0
        for folder in _each_once(folders):
            for name in self._listing(folder):
                file = folder / name
                if self._is_state(file):
                    continue
                count += 1
                if count > MAX_TREE_FILES:
                    raise ScriptsError(f"{FOLDER}/ has too many files: {limit}; {advice}")
                folders += self._add_own(file, budget)

    def _add_own(self, file: Path, budget: _Budget) -> list[Path]:
        """Add a file below ``.llxprt/``; return the folders to enter next if it is one."""
        try:
            mode = file.stat().st_mode
        except OSError:
            self._look(file)
            return []
        if stat.S_ISDIR(mode):
            if file.is_symlink():
                self._look(file)
                self._add_link(file)
            return [file]
        is_covered = self._is_below_hooks(file) or _is_code(file.name, mode)
        if is_covered and stat.S_ISREG(mode) and not self._is_mere_cache(file) and (found := self._look(file)):
            self._add(file, found, budget)
        return []

    def _is_below_hooks(self, file: Path) -> bool:
        return str(file).startswith(self._hooks_prefix)

    def _is_state(self, file: Path) -> bool:
        return file.is_relative_to(self._own_folder / STATE_FOLDER)

    def _is_mere_cache(self, file: Path) -> bool:
        """Whether this is byte code that Python does not run, or made itself from a source file, which is covered."""
        if file.parent.name != CACHE_FOLDER or file.suffix != BYTE_CODE:
            return False
        try:
            if self._byte_code.replaces_source(file):
                return False
        except OSError:  # reported when it is read as a script
            return False
        self._look(file)
        return True

    # Modules that Python finds beside a script.

    def add_modules(self) -> None:
        """Add what Python scripts import from their own folder, and from the project's if a start may do that."""
        roots = [self._project] if self._named.from_project else []
        roots += _search_path(self._project)
        for root in roots:
            self._found(root, self._named.files.imported)  # they are started like scripts
        files = deque((file, folder) for file in self._python for folder in (_real_folder(file), *roots))
        folders = dict.fromkeys((*roots, *(folder for _, folder in files)))
        self._first_on_path.update(folders)
        for folder in folders:
            shadowing = (Import(0, (name,)) for name in self._importable(folder) & SHADOWING)
            files += [(module, folder) for module in self._found(folder, shadowing)]
        done = set()
        while files:
            file, folder = files.popleft()
            if (file, folder) in done or (content := self._python.get(file)) is None:
                continue
            done.add((file, folder))
            imported = content.imports
            if imported is None:  # it could be any of them
                self._sought.add((folder, _ANY))
                imported = frozenset(Import(0, (name,)) for name in self._importable(folder))
            package = _real_folder(file)
            absolute = self._found(folder, (each for each in imported if not each.level))
            relative = self._found(package, (each for each in imported if each.level))
            files += [(module, folder) for module in (*absolute, *relative)]

    def _would_import(self, file: Path, depth: int) -> bool:
        """Whether a script would import a file, which need not exist, or import it instead of another."""
        if self._is_sought(file.parent, _module_name(file.name)):
            return True
        is_package = _module_name(file.name) == "__init__"
        for folder in file.parents[: depth - 1]:
            starts_package = (is_package and folder == file.parent) or not folder.is_dir()
            if starts_package and self._is_sought(folder.parent, folder.name):
                return True
        return False

    def _is_sought(self, folder: Path, module: str | None) -> bool:
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
            if found is not None and stat.S_ISREG(found.st_mode):
                self._add(module, found, self._budget)
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

    # Reading.

    def _add(self, file: Path, found: os.stat_result, budget: _Budget, *, is_data: bool = False) -> None:
        name = self._name(file)
        if name in self.files:
            return
        content = self._content(file, found, budget)
        self.files[name] = CoveredFile(content.digest, found.st_size, is_data=is_data)
        if content.is_python:
            self._python[file] = content
            self._add_byte_code(file)

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

    def _content(self, file: Path, found: os.stat_result, budget: _Budget) -> _Content:
        known = self._contents.get(str(file))
        if known is not None and known.signature == self.seen[str(file)]:
            budget.spend(found.st_size)
            return known
        digest, start = _digest(file, budget)
        may_be_python = file.suffix in ("", *_SCRIPT_SUFFIXES) or not is_data_name(file.name)
        imports = imports_of(start) if may_be_python else None
        is_python = file.suffix in _SCRIPT_SUFFIXES or bool(_PYTHON_SHEBANG.match(start) or imports)
        content = _Content(self.seen[str(file)], digest, imports, is_python)
        if content.signature is not _UNSTABLE:
            self._contents[str(file)] = content
        return content


def _each_once(folders: deque[Path]) -> Iterator[Path]:
    """Yield the folders of a queue, to which the caller adds others; links may lead to the same folder again."""
    entered = set[str]()
    while folders:
        folder = folders.popleft()
        # Which byte code Python runs depends on the folder that contains the cache, not on where the cache leads.
        real = os.path.realpath(folder.parent if folder.name == CACHE_FOLDER else folder)
        key = f"{real}/{CACHE_FOLDER}" if folder.name == CACHE_FOLDER else real
        if key not in entered:
            entered.add(key)
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


def is_installed(folder: Path) -> bool:
    """Whether a folder belongs to an environment with installed packages, such as that of `venv`, or to npm's."""
    if "node_modules" in folder.parts:
        return True
    return any(os.path.lexists(each / mark) for each in (folder, folder.parent) for mark in INSTALLED_MARKS)


def _is_code(name: str, mode: int) -> bool:
    return name.endswith(CODE_SUFFIXES) or ("." not in name and bool(mode & 0o111))


def _search_path(project: Path) -> list[Path]:
    """Return the folders of the project from which every Python imports."""
    folders = (project / entry for entry in os.environ.get("PYTHONPATH", "").split(":") if entry)
    return [real for folder in folders if (real := Path(os.path.realpath(folder))).is_relative_to(project)]


def _real_folder(file: Path) -> Path:
    """Where Python looks for the modules that a script imports."""
    return Path(os.path.realpath(file)).parent


def _module_name(name: str) -> str | None:
    return name.partition(".")[0] if name.endswith(_MODULE_SUFFIXES) else None
