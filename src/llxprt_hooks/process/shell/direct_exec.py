"""Run a command without a shell if it is a program with literal or quoted arguments.

A shell that only starts a program doubles the cost of a hook. Such a program is started directly, with the arguments
that bash would have given it. Variables that bash sets for the programs it starts, such as ``SHLVL`` and ``_``, are
inherited instead. The decision is conservative: anything uncertain goes to the shell. That includes programs that are
missing or not executable, so the error message is the shell's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from llxprt_hooks.process.shell.command_line import PROJECT_DIR_VARIABLES, hook_environment
from llxprt_hooks.process.shell.environment import Environment
from llxprt_hooks.process.shell.words import literal_arguments

# The builtins and reserved words of bash, dash, ksh and zsh: any of them may mean more than the program of that name.
SHELL_WORDS = frozenset(
    """
    ! . : [ alias autoload bg bind break builtin bye caller case cd chdir command compgen complete compopt continue
    coproc declare dirs disown do done echo elif else enable end esac eval exec exit export false fc fg fi float for
    foreach function functions getopts hash help history if in integer jobs kill let limit local log logout mapfile
    nameref nocorrect noglob popd print printf printenv private pushd pwd read readarray readonly rehash repeat return
    sched select set setopt shift shopt source suspend test then time times trap true type typeset ulimit umask
    unalias unfunction unhash unlimit unset unsetopt until vared wait whence where which while zcompile zmodload
    """.split()  # noqa: SIM905  # a list literal would take a page
)

_NOT_A_PROGRAM_PREFIX = ("-", "+", "%")
"""Words starting with these are options or job specs to bash."""

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
    """Environment and working directory for a hook, which is the project unless a project is given.

    File-system checks that decide which program runs are repeated on every call.
    """

    def __init__(self, inherited: Mapping[str, str], directory: str, project: str | None = None) -> None:
        self.inherited = inherited
        self.directory = directory
        self.project = directory if project is None else project
        self.environment = Environment({**hook_environment(inherited, self.project), "PWD": directory})
        self._latest: tuple[Mapping[str, str], Environment] = {}, self.environment
        self._configures_bash = any(name.startswith("BASH") or name == "SHELLOPTS" for name in inherited)

    def environment_with(self, own: Mapping[str, str]) -> Environment:
        """Return the environment with more variables; the same object as long as they are the same."""
        latest = self._latest  # of this thread: another may replace it
        if latest[0] != own:
            latest = self._latest = own, Environment({**self.environment, **own})
        return latest[1]

    def direct_command(self, command: str) -> DirectCommand | None:
        """Return the program that a command line runs, or None if that takes a shell to find out.

        A shell also runs it if the environment brings options, functions or a start-up file for bash.
        """
        if self._configures_bash or not self.directory.startswith("/"):
            return None
        decision = _decide(command, self.directory, self.project, self.environment.get("PATH"))
        if decision is None or any(map(is_executable, decision.passed_over)):
            return None
        return decision


@lru_cache(maxsize=1024)
def _decide(command: str, directory: str, project: str, path: str | None) -> DirectCommand | None:
    arguments = literal_arguments(command, dict.fromkeys(PROJECT_DIR_VARIABLES, project))
    if not arguments or "\0" in command:
        return None
    program = arguments[0]
    if not program or "=" in program or program.startswith(_NOT_A_PROGRAM_PREFIX) or program in SHELL_WORDS:
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


def _is_native_executable(file: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116
            return False
        with open(file, "rb") as opened:  # noqa: PTH123
            return opened.read(4).startswith(EXECUTABLE_MAGIC)
    except (OSError, ValueError):
        return False
