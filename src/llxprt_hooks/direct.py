"""Commands that need no shell: a plain program with literal or quoted arguments.

Starting a shell only to have it start a program doubles the cost of a hook. So where a command line says nothing that
takes a shell to understand, the program is started directly, with the arguments and the environment that bash would
have given it. The decision is conservative: whatever is not certain goes to the shell, which also has the say, and the
error message, about programs that are missing or cannot be executed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from llxprt_hooks.command import PROJECT_DIR_VARIABLES

_NAMES = "|".join(PROJECT_DIR_VARIABLES)
_PIECE = re.compile(
    rf"""
      (?P<blank>[ \t]+)
    | (?P<plain>[A-Za-z0-9_./:@%+,=-]+)
    | '(?P<single>[^'\0]*)'
    | "(?P<double>(?:[^"$`\\!\0]|\$(?:{_NAMES})(?![A-Za-z0-9_])|\$\{{(?:{_NAMES})\}})*)"
    | (?P<variable>\$(?:{_NAMES})(?![A-Za-z0-9_])|\$\{{(?:{_NAMES})\}})
    """,
    re.VERBOSE,
)
_VARIABLE = re.compile(rf"\$(?:{_NAMES})(?![A-Za-z0-9_])|\$\{{(?:{_NAMES})\}}")

# The builtins and reserved words of bash, dash, ksh and zsh: any of them may mean more than the program of that name.
_SHELL_WORDS = frozenset(
    """
    . : [ alias autoload bg bind break builtin bye caller case cd chdir command compgen complete compopt continue
    coproc declare dirs disown do done echo elif else enable end esac eval exec exit export false fc fg fi float for
    foreach function functions getopts hash help history if in integer jobs kill let limit local log logout mapfile
    nameref nocorrect noglob popd print printf printenv private pushd pwd read readarray readonly rehash repeat return
    sched select set setopt shift shopt source suspend test then time times trap true type typeset ulimit umask
    unalias unfunction unhash unlimit unset unsetopt until vared wait whence where which while zcompile zmodload
    """.split()  # noqa: SIM905  # a list literal would take a page
)

_CHANGE_BASH = ("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_COMPAT", "POSIXLY_CORRECT")
"""Variables that make bash read files or behave otherwise before it runs a command."""

_EXECUTABLE_FORMATS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""Beginnings of files that the kernel runs by itself; a shell runs other text as a script of its own."""


@dataclass(frozen=True, slots=True)
class DirectCommand:
    """A program to start without a shell: the file, and the arguments as the program will see them."""

    executable: str
    arguments: tuple[str, ...]


def direct_command(command: str, directory: str, environment: Mapping[str, str]) -> DirectCommand | None:
    """The program that a command line comes to, or None where that takes a shell to tell."""
    if any(name in environment for name in _CHANGE_BASH) or any(name.startswith("BASH_FUNC_") for name in environment):
        return None
    return _decide(command, directory, environment.get("PATH"))


def direct_environment(command: DirectCommand, directory: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment as bash hands it on to the one program that it runs."""
    changed = {**environment, "PWD": _logical_directory(directory, environment.get("PWD")), "_": command.executable}
    changed["SHLVL"] = _shell_level(environment.get("SHLVL"))
    if not os.path.isdir(environment.get("OLDPWD", "")):  # noqa: PTH112
        changed.pop("OLDPWD", None)
    return changed


@lru_cache(maxsize=1024)
def _decide(command: str, directory: str, path: str | None) -> DirectCommand | None:
    words = _words(command, directory)
    if not words or "=" in words[0] or words[0] in _SHELL_WORDS or not _is_absolute(path):
        return None
    program = words[0]
    executable = program if "/" in program else shutil.which(program, path=path)
    if executable is None or not _runs_by_itself(os.path.join(directory, executable)):  # noqa: PTH118
        return None
    return DirectCommand(executable, tuple(words))


def _is_absolute(path: str | None) -> bool:
    """Whether a search path means the same in every directory."""
    return bool(path) and all(folder.startswith("/") for folder in (path or "").split(":"))


def _words(command: str, directory: str) -> list[str] | None:
    """The words of a command line, or None where it holds anything but plain and quoted text."""
    words: list[str] = []
    word: str | None = None
    position = 0
    while position < len(command):
        piece = _PIECE.match(command, position)
        if piece is None:
            return None
        position = piece.end()
        if piece.lastgroup == "blank":
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + _meaning(piece, directory)
    return words if word is None else [*words, word]


def _meaning(piece: re.Match[str], directory: str) -> str:
    kind = piece.lastgroup or ""
    text = piece.group(kind)
    return text if kind in ("plain", "single") else _VARIABLE.sub(lambda _: directory, text)


def _runs_by_itself(file: str) -> bool:
    try:
        mode = os.stat(file).st_mode  # noqa: PTH116
        if not stat.S_ISREG(mode) or not os.access(file, os.X_OK):
            return False
        with open(file, "rb") as opened:  # noqa: PTH123
            return opened.read(4).startswith(_EXECUTABLE_FORMATS)
    except (OSError, ValueError):
        return False


def _logical_directory(directory: str, inherited: str | None) -> str:
    """The directory by the name that the parent knew it by, if that is one of its names."""
    try:
        if inherited and inherited.startswith("/") and os.path.samefile(inherited, directory):  # noqa: PTH121
            return inherited
        return os.path.realpath(directory)
    except OSError:
        return directory


def _shell_level(inherited: str | None) -> str:
    """One more for the shell, one less for the program that takes its place."""
    try:
        return str(max(0, int(inherited or "0")))
    except ValueError:
        return "0"
