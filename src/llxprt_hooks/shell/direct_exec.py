"""Run a command without a shell if it is a program with literal or quoted arguments.

A shell that only starts a program doubles the cost of a hook. Such a program is started directly, with the arguments
and the environment that bash would have given it. The decision is conservative: anything uncertain goes to the shell.
That includes programs that are missing or not executable, so the error message is the shell's.
"""

from __future__ import annotations

import locale
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from llxprt_hooks.shell.command_line import PROJECT_DIR_REFERENCE, PROJECT_DIR_VARIABLES, hook_environment
from llxprt_hooks.shell.words import words

_REFERENCE = PROJECT_DIR_REFERENCE.pattern
_LITERAL = re.compile(
    rf"""(?>(?:
      [ \t]++ | [A-Za-z0-9_./:@%+,=-]++ | '[^'\0]*+' | "(?>(?:[^"$`\\!\0]|{_REFERENCE})*)" | {_REFERENCE}
    )*)""",
    re.VERBOSE,
)
"""A command line of plain and quoted text, with no variables other than the project directory.

Groups are atomic instead of possessive: Python before 3.11.5 matches too much with ``(…)*+``.
"""

_NUMBER = re.compile("[0-9]{1,9}")

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

_NOT_A_PROGRAM_PREFIX = ("-", "+", "%")
"""Words starting with these are options or job specs to bash."""

_BASH_SPECIAL_VARIABLES = frozenset(
    """
    COMP_WORDBREAKS ENV EPOCHREALTIME EPOCHSECONDS EXECIGNORE HISTCMD IFS LINENO OPTERR OPTIND POSIXLY_CORRECT PPID PS4
    RANDOM SHELLOPTS SRANDOM
    """.split()  # noqa: SIM905
)
"""Variables that change what bash does, or that it exports with another value; so do all that start with BASH."""

_PROMPTS = ("PS1", "PS2")
"""Unset by bash when not interactive."""

_SSH_VARIABLES = frozenset({"SSH_CLIENT", "SSH2_CLIENT"})
"""If one of them is set, a top-level bash may read ``~/.bashrc``."""

_MAX_SHELL_LEVEL = 998
"""Above it bash prints a warning and restarts at 1."""

_MAX_CACHED = 64

EXECUTABLE_MAGIC = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""First bytes of files that the kernel can execute; a shell runs any other file as a shell script."""


@dataclass(frozen=True, slots=True)
class DirectCommand:
    """A program to start without a shell: the file, and the arguments that the program gets."""

    executable: str
    arguments: tuple[str, ...]
    passed_over: tuple[str, ...]
    """Files earlier in the search path, which did not exist when the decision was made."""


class SpawnContext:
    """Environment and working directory for a hook, with everything derived from them cached.

    File-system checks that decide which program runs are repeated on every call.
    """

    def __init__(self, inherited: Mapping[str, str], directory: str) -> None:
        self.inherited = inherited
        self.directory = directory
        self.environment = hook_environment(inherited, directory)
        self._by_program: dict[str, dict[str, str]] = {}

    def direct_command(self, command: str) -> DirectCommand | None:
        """Return the program that a command line runs, or None if that takes a shell to find out."""
        if not self._bash_would_be_transparent or (
            "LC_ALL" in self.environment and not _is_known_locale(self.environment["LC_ALL"])
        ):
            return None
        decision = _decide(command, self.directory, self.environment.get("PATH"))
        if decision is None or any(map(is_executable, decision.passed_over)):
            return None
        return decision

    def direct_environment(self, command: DirectCommand) -> Mapping[str, str]:
        """Return the environment that bash would pass to the program."""
        environment = self._by_program.get(command.executable)
        if environment is None:
            if len(self._by_program) >= _MAX_CACHED:
                self._by_program.clear()
            environment = self._by_program[command.executable] = {**self._exported, "_": command.executable}
        return environment

    @cached_property
    def _exported(self) -> dict[str, str]:
        keeps_old = _is_directory(self.environment.get("OLDPWD", ""), self.directory)
        taken = _PROMPTS if keeps_old else (*_PROMPTS, "OLDPWD")
        kept = {name: value for name, value in self.environment.items() if name not in taken}
        directory = _logical_directory(self.directory, self.environment.get("PWD"))
        return {**kept, "PWD": directory, "SHLVL": str(_shell_level(self.environment))}

    @cached_property
    def _bash_would_be_transparent(self) -> bool:
        """Whether bash would read no file, print nothing, and change only what ``_exported`` changes."""
        if not self.directory.startswith("/"):
            return False
        if any(name.startswith("BASH") or name in _BASH_SPECIAL_VARIABLES for name in self.environment):
            return False
        level = _shell_level(self.environment)
        outermost_over_ssh = level == 0 and not _SSH_VARIABLES.isdisjoint(self.environment)
        return level <= _MAX_SHELL_LEVEL and not outermost_over_ssh


def _shell_level(environment: Mapping[str, str]) -> int:
    """bash increments SHLVL and decrements it again before exec, so the value is unchanged."""
    level = environment.get("SHLVL", "")
    if not level:
        return 0
    return int(level) if _NUMBER.fullmatch(level) else _MAX_SHELL_LEVEL + 1


def _is_known_locale(name: str) -> bool:
    """Whether the system certainly has a locale, because this process uses it; bash warns about an unknown one."""
    return name in ("", "C", "POSIX") or name == locale.setlocale(locale.LC_CTYPE)


@lru_cache(maxsize=1024)
def _decide(command: str, directory: str, path: str | None) -> DirectCommand | None:
    arguments = _literal_arguments(command, directory)
    if not arguments:
        return None
    program = arguments[0]
    if not program or "=" in program or program.startswith(_NOT_A_PROGRAM_PREFIX) or program in _SHELL_WORDS:
        return None
    passed_over: list[str] = []
    for file in candidates(program, path):
        absolute = os.path.join(directory, file)  # noqa: PTH118
        if is_executable(absolute):
            return (
                DirectCommand(file, tuple(arguments), tuple(passed_over)) if _is_native_executable(absolute) else None
            )
        passed_over.append(file)
    return None


def candidates(program: str, path: str | None) -> Iterator[str]:
    """List the files that a program name may refer to, in order.

    Stops at the first relative PATH entry, whose meaning depends on the cwd.
    """
    if "/" in program:
        yield program
        return
    for folder in (path or "").split(":"):
        if not folder.startswith("/"):
            return
        yield os.path.join(folder, program)  # noqa: PTH118


def is_executable(file: str) -> bool:
    try:
        return os.access(file, os.X_OK) and not os.path.isdir(file)  # noqa: PTH112
    except ValueError:  # not a valid file name
        return False


def _literal_arguments(command: str, directory: str) -> list[str] | None:
    """Return the arguments of a literal command line; None for any other."""
    if not _LITERAL.fullmatch(command):
        return None
    variables = dict.fromkeys(PROJECT_DIR_VARIABLES, directory)
    found = words(command)
    values = [value for word in found if (value := word.value(variables)) is not None]
    return values if len(values) == len(found) else None


def _is_native_executable(file: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116
            return False
        with open(file, "rb") as opened:  # noqa: PTH123
            return opened.read(4).startswith(EXECUTABLE_MAGIC)
    except (OSError, ValueError):
        return False


def _logical_directory(directory: str, inherited: str | None) -> str:
    """Return the inherited PWD if it refers to the directory, as bash does; otherwise its real path."""
    if inherited == directory:
        return directory
    try:
        if inherited and inherited.startswith("/") and os.path.samefile(inherited, directory):  # noqa: PTH121
            return inherited
        return os.path.realpath(directory)
    except OSError:
        return directory


def _is_directory(name: str, directory: str) -> bool:
    try:
        return name != "" and stat.S_ISDIR(os.stat(os.path.join(directory, name)).st_mode)  # noqa: PTH116, PTH118
    except (OSError, ValueError):
        return False
