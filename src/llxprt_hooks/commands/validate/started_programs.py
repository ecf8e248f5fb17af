"""The programs and scripts that a hook's command starts."""

from __future__ import annotations

import os
import re
import shutil
import stat
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks.commands.validate.diagnostic import Source
from llxprt_hooks.commands.validate.entries import FileHook, Role
from llxprt_hooks.commands.validate.shell_syntax import is_shell_word
from llxprt_hooks.process.shell.command_line import PROJECT_DIR_VARIABLES
from llxprt_hooks.process.shell.words import Word, simple_commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from llxprt_hooks.commands.validate.inspection import Inspection

SHELLS: Final = ("sh", "bash", "dash", "zsh", "ksh")

_WRAPPERS: Final = ("exec", "env", "nohup", "time")
"""Programs that start the program in their first argument."""

_NOT_ANALYZED: Final = frozenset(
    """
    [ [[ ! { } alias case cd command coproc do done elif else esac eval fi for function if popd pushd select source test
    then trap type until which while
    """.split()  # noqa: SIM905  # a list literal would take half a page
)
"""After these, only a shell can determine what runs, where, or whether it runs at all."""

_SHELL_OPTION: Final = re.compile(r"-[aefuvxl]+")
_PYTHON_OPTION: Final = re.compile(r"-[bBdEiIOPqsSuvx]+")
_INTERPRETERS: Final = {
    **dict.fromkeys(SHELLS, _SHELL_OPTION),
    **dict.fromkeys(("python", "python3", "pypy3"), _PYTHON_OPTION),
    **dict.fromkeys(("node", "ruby", "perl", "php"), re.compile(r"(?!)")),
}
"""Programs whose first argument is a script, and the options allowed before it."""

MAX_PROGRAMS: Final = 20
"""Limit per command; a hostile command could start any number."""

_MAX_BYTES: Final = 256 * 1024


@dataclass(frozen=True, eq=False)
class Program:
    """A program that a command starts, by name or path, with its arguments."""

    words: Sequence[Word]
    name: str

    @property
    def is_path(self) -> bool:
        return "/" in self.name

    @cached_property
    def is_known(self) -> bool:
        """Whether it is on the search path, or a keyword or builtin of the shell."""
        return shutil.which(self.name) is not None or is_shell_word(self.name)


@dataclass(frozen=True, eq=False)
class Script:
    """A file that a command starts, directly or with an interpreter."""

    hook: FileHook
    word: Word
    path: Path
    reader: str
    """The interpreter in the command; empty if the file is started directly."""
    may_be_shown: bool
    """Whether its lines may be shown: a project's settings must not cause files outside the project to be printed."""

    @cached_property
    def mode(self) -> int | None:
        """The file's mode; None if it does not exist."""
        try:
            return self.path.stat().st_mode
        except OSError:
            return None

    @cached_property
    def data(self) -> bytes:
        """The start of its content; empty if it cannot be read."""
        return start_of(self.path)

    @cached_property
    def source(self) -> Source:
        return Source(self.path, self.data.decode(errors="replace"))

    @cached_property
    def shebang(self) -> list[str]:
        """The words after ``#!``, if any."""
        first = self.data.partition(b"\n")[0][:512]
        return first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []

    @property
    def interpreter(self) -> str:
        """The name of its interpreter; empty if unknown."""
        if self.reader:
            return self.reader
        return Path(interpreter_word(self.shebang) or "").name


def start_of(file: Path) -> bytes:
    """Return the start of a regular file; empty if it cannot be read."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return b""
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES)
    except (OSError, ValueError):
        return b""


Place = tuple[FileHook, tuple[int, int]]
"""A hook, and a span of its command."""


def interpreter_word(shebang: Sequence[str]) -> str | None:
    """Return the word of a ``#!`` line that names the interpreter, possibly an argument of ``env``."""
    if not shebang or Path(shebang[0]).name != "env":
        return shebang[0] if shebang else None
    return next((word for word in shebang[1:] if not word.startswith("-") and "=" not in word), None)


def programs(inspection: Inspection, hook: FileHook) -> Iterator[Program]:
    """Yield the programs that a command certainly starts, in order."""
    variables = _variables(inspection, hook)
    for words in islice(simple_commands(hook.command), MAX_PROGRAMS):
        while words and words[0].text in _WRAPPERS:
            words = [word for word in words[1:] if "=" not in word.text]
        name = words[0].value(variables) if words else None
        if not name or name in _NOT_ANALYZED or "\0" in name:
            return
        yield Program(words, name)


def scripts(inspection: Inspection, hook: FileHook) -> Iterator[Script]:
    """Yield the scripts that a command starts."""
    for program in programs(inspection, hook):
        if program.is_path and "$" not in program.name:
            yield _script(inspection, hook, program.words[0], program.name, reader="")
        reader = Path(program.name).name
        word = _argument(program, reader)
        value = word.value(_variables(inspection, hook)) if word else None
        if word and value and "\0" not in value and "$" not in value:
            yield _script(inspection, hook, word, value, reader=reader)


def place_of(file: Path, started: Sequence[Script]) -> Place | None:
    real = os.path.realpath(file)
    return next(((each.hook, each.word.span) for each in started if os.path.realpath(each.path) == real), None)


def mentions(file: Path, hooks: Sequence[FileHook]) -> Iterator[Place]:
    """Yield the places where commands mention a file's name, with or without suffix; it may be another file."""
    for name in dict.fromkeys((file.name, file.stem)):
        word = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-]|\.\w)")
        yield from ((hook, found.span()) for hook in hooks for found in word.finditer(hook.command))


def _argument(program: Program, reader: str) -> Word | None:
    """Return the script among an interpreter's arguments."""
    option = _INTERPRETERS.get(reader)
    if option is None:
        return None
    first = next((word for word in program.words[1:] if not option.fullmatch(word.text)), None)
    return first if first and not first.text.startswith("-") else None


def _script(inspection: Inspection, hook: FileHook, word: Word, value: str, *, reader: str) -> Script:
    path = Path(os.path.normpath(inspection.directory / value))
    inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(inspection.directory))
    return Script(hook, word, path, reader, inside or hook.file.role not in (Role.PROJECT, Role.FILE))


def _variables(inspection: Inspection, hook: FileHook) -> dict[str, str]:
    directory = str(inspection.directory)
    known = {**dict.fromkeys(PROJECT_DIR_VARIABLES, directory), "PWD": directory}
    if home := os.environ.get("HOME"):
        known["HOME"] = home
    if hook.file.extension:
        known["extensionPath"] = str(hook.file.extension)
    return known
