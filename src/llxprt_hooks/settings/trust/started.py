"""Reads from a command which files it starts, reads and writes, where that is certain.

Most hooks are a script with arguments, or a program of the system. What these run needs no guess. For any other
command, ``files_of`` returns None, and every name in it counts, see ``command_names``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from llxprt_hooks.process.shell.command_line import PROJECT_DIR_VARIABLES
from llxprt_hooks.process.shell.direct_exec import SHELL_WORDS
from llxprt_hooks.process.shell.words import (
    CODE_SUFFIXES,
    INTERPRETERS,
    NODES,
    OTHER_INTERPRETERS,
    PYTHONS,
    SHELLS,
    CertainCommand,
    certain_commands,
    is_data_name,
    writes_named,
    writes_next,
)
from llxprt_hooks.settings.trust.imports import Import, imports_of

_PYTHON: Final = re.compile(PYTHONS)
_PYTHON_OPTIONS: Final = re.compile(r"-[IEsSuBPbdiOqvx]+")
_MODULE: Final = re.compile(r"\w+(?:\.\w+)*")
_SHELL: Final = re.compile(SHELLS)
_SHELL_OPTIONS: Final = re.compile(r"-[aefuvxl]+")
_NODE: Final = re.compile(NODES)
_OTHERS: Final = re.compile(OTHER_INTERPRETERS)
_NO_OPTIONS: Final = re.compile(r"(?!)")
_INTERPRETER: Final = re.compile(INTERPRETERS)
_COMMAND: Final = re.compile(r"""[\s;|&$`"'(){}!]""")

_HARMLESS: Final = frozenset(": [ echo exit false printf read test true".split())  # noqa: SIM905
"""Words of the shell that start nothing."""
_READERS: Final = _HARMLESS | frozenset(
    "cat cmp cut date diff egrep fgrep grep head jq ls mkdir rg sort stat tail tee touch tr uniq wc".split()  # noqa: SIM905
)
"""Programs whose arguments are text and data; that of another may be a command."""
_RUNNERS: Final = frozenset(
    """
    busybox chroot doas env find flock ionice nice nohup npx parallel pipx setsid ssh stdbuf su sudo time timeout uv uvx
    watch xargs
    """.split()  # noqa: SIM905
)
"""Programs that start others."""

_OTHER_NAMES: Final = ("/proc/", "/dev/fd", "/dev/stdin")
"""Folders that have other names for files of a process."""
_INDIRECT: Final = re.compile(r"__|exec|eval|open|run|import_module|load|path|popen|system|subprocess")
"""Ways of Python to run a file that an import does not name."""
_NODE_FILES: Final = ("", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.cjs", "/index.mjs", "/package.json")
_PYTHON_FILES: Final = ("", "/__main__.py")


@dataclass(slots=True)
class NamedFiles:
    """The paths in commands, absolute or relative to the project; they need not exist."""

    started: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Named as an argument: content that counts if it is there when the hooks are approved."""
    written: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    """Names without a path, which the shell looks for on its search path."""
    imported: set[Import] = field(default_factory=set)
    """What Python imports from the project folder."""

    def add(self, other: NamedFiles) -> None:
        self.started |= other.started
        self.read |= other.read
        self.written |= other.written
        self.programs |= other.programs
        self.imported |= other.imported


def files_of(command: str, project: str) -> NamedFiles | None:
    """Return the files of a command; None if they are not certain."""
    variables = {**dict.fromkeys(PROJECT_DIR_VARIABLES, project), "PWD": project}
    commands = certain_commands(command, variables)
    found = NamedFiles()
    if commands is None or not all(_read(each, found) for each in commands):
        return None
    return found


def _read(command: CertainCommand, found: NamedFiles) -> bool:
    """Add the files of one program. Return whether they are certain."""
    found.written.update(command.written)
    found.read.update(command.read)
    if any(word.startswith(_OTHER_NAMES) for word in (*command.arguments, *command.read)):
        return False
    if not command.arguments:
        return True
    program, *arguments = command.arguments
    name = program.rpartition("/")[2]
    if (name in SHELL_WORDS and name not in _HARMLESS) or name in _RUNNERS or "=" in program or not name:
        return False
    (found.started if "/" in program else found.programs).add(program)
    for interpreter, options, suffixes in (
        (_PYTHON, _PYTHON_OPTIONS, _PYTHON_FILES),
        (_SHELL, _SHELL_OPTIONS, ("",)),
        (_NODE, _NO_OPTIONS, _NODE_FILES),
        (_OTHERS, _NO_OPTIONS, ("",)),
    ):
        if interpreter.fullmatch(name):
            while arguments and options.fullmatch(arguments[0]):
                arguments = arguments[1:]
            if interpreter is _PYTHON and arguments and arguments[0] in ("-m", "-c"):
                return _read_module(arguments, found)
            if not arguments or arguments[0].startswith(("-", "+")):
                return False
            found.started.update(arguments[0] + suffix for suffix in suffixes)
            _read_arguments("", arguments[1:], found)
            return True
    if "/" not in program and name not in _READERS and any(map(_may_be_command, arguments)):
        return False
    _read_arguments(name if "/" not in program else "", arguments, found)
    return True


def _read_module(arguments: Sequence[str], found: NamedFiles) -> bool:
    """Add what ``python -m`` and ``python -c`` import."""
    option, *rest = arguments
    text = rest[0] if rest else ""
    if option == "-m":
        if not _MODULE.fullmatch(text):
            return False
        parts = tuple(text.split("."))
        found.imported.update((Import(0, parts), Import(0, (*parts, "__main__"))))
    else:
        imports = imports_of(text.encode(errors="replace"))
        if imports is None or _INDIRECT.search(text):
            return False
        found.imported.update(imports)
    _read_arguments("", rest[1:], found)
    return True


def _read_arguments(program: str, arguments: Sequence[str], found: NamedFiles) -> None:
    """Add the arguments that are paths. ``program`` is empty for a script, which has its own options."""
    before = ""
    for argument in arguments:
        if writes_named(argument):
            found.written.add(argument.partition("=")[2])
        elif (writes_next(before) and is_data_name(argument)) or (program == "tee" and not argument.startswith("-")):
            found.written.add(argument)
        else:
            for value in _values(argument):
                is_unclear = before.startswith("-") or not is_data_name(value)
                is_code = value.endswith(CODE_SUFFIXES) or (is_unclear and program not in (*_READERS, ""))
                if "/" in value or "." in value.strip("."):
                    (found.started if is_code else found.read).add(value)
                elif program not in (*_HARMLESS, "") and "-" in (argument[:1], before[:1]):
                    found.read.add(value)  # the value of an option, as in `awk -f guard`
        before = argument


def _values(argument: str) -> list[str]:
    """Return what may be a path in an argument: all of it, what follows an option's letter, and what follows ``=``."""
    values = [] if argument.startswith("-") else [argument]
    values += [argument[2:]] if argument.startswith("-") and not argument.startswith("--") else []
    values += [argument.partition("=")[2]] if "=" in argument else []
    return [value for value in values if value.strip(".")]


def _may_be_command(argument: str) -> bool:
    return _COMMAND.search(argument) is not None or _INTERPRETER.fullmatch(argument.rpartition("/")[2]) is not None
