"""Checks of programs and scripts: whether they exist, can be started, and can be parsed."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import closest
from llxprt_hooks.commands.validate.diagnostic import Diagnostic, diagnostic_at
from llxprt_hooks.commands.validate.entries import FileHook, Role
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.commands.validate.shell_syntax import script_error
from llxprt_hooks.commands.validate.started_programs import SHELLS, Script, interpreter_word, programs, scripts
from llxprt_hooks.process.shell.command_line import absolute_search_path
from llxprt_hooks.process.shell.direct_exec import EXECUTABLE_MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from llxprt_hooks.commands.validate.inspection import Inspection

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAFE_WITH_N: Final = ("sh", "bash", "dash", "ksh")
"""Shells that run nothing with the option `-n`; zsh would run the user's .zshenv."""

_EXIT_WITH_TWO: Final = ("sh", "dash", "python", "python3", "pypy3", "perl")
"""Interpreters that exit with 2 if the script is missing."""

_SHEBANGS: Final = {
    ".py": "#!/usr/bin/env python3",
    ".js": "#!/usr/bin/env node",
    ".mjs": "#!/usr/bin/env node",
    ".rb": "#!/usr/bin/env ruby",
    ".pl": "#!/usr/bin/env perl",
    ".bash": "#!/usr/bin/env bash",
}


def check_program(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find programs that are not on the search path."""
    for program in programs(inspection, hook):
        if program.is_path or program.is_known:
            continue
        here = f"./{program.name}" if _is_file(inspection.directory / program.name) else None
        fix = f"Did you mean `{here}`?" if here else "Install it, or write its full path."
        message = f"program `{program.name}` not found on the search path"
        yield hook.in_command(Rule.PROGRAM_NOT_FOUND, program.words[0].span, message, fix)


def check_script(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find scripts that are missing, cannot be started, or have syntax errors. Reports the first finding per script."""
    for script in scripts(inspection, hook):
        found = next((found for check in _CHECKS if (found := check(inspection, script))), None)
        if found is not None:
            yield found


def _missing(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.mode is not None:
        return None
    message = f"{script.path} does not exist"
    if script.reader in _EXIT_WITH_TWO:
        message += f", and `{script.reader}` then exits with 2, which blocks"
    return _at_word(Rule.SCRIPT_MISSING, script, message, _missing_fix(inspection, script))


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  # pathlib raises if the name is too long


def _missing_fix(inspection: Inspection, script: Script) -> str:
    file = script.hook.file
    written = script.word.text
    if _is_file(file.document.file.parent / written):
        path = os.path.relpath(file.document.file.parent / written, inspection.directory)
        return f"Hooks run in the project folder: write `$LLXPRT_PROJECT_DIR/{path}`."
    try:
        near = closest(script.path.name, (each.name for each in script.path.parent.iterdir() if each.is_file()))
    except OSError:
        near = None
    if near is not None:
        return f"Did you mean `{near}`?"
    if not written.startswith(("/", "~", "$", '"', "'")) and file.role in _ABSOLUTE:
        return f"Hooks run in the current project folder: {_ABSOLUTE[file.role]}."
    return "Create it, or fix the path."


_ABSOLUTE: Final = {
    Role.USER: "write the full path, such as `~/.llxprt/hooks/…`",
    Role.SYSTEM: "write the full path",
    Role.EXTENSION: "write `${extensionPath}/…`",
}


def _directory(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.mode is None or not stat.S_ISDIR(script.mode):
        return None
    return _at_word(Rule.SCRIPT_DIRECTORY, script, f"{script.path} is a folder", "Write the path of a script in it.")


def _unreadable(inspection: Inspection, script: Script) -> Diagnostic | None:
    # `check_trust` reports unreadable files of a project. A program that is started directly may be unreadable.
    if script.hook.file.role is Role.PROJECT or not script.reader or os.access(script.path, os.R_OK):
        return None
    return _at_word(Rule.SCRIPT_UNREADABLE, script, f"{script.path} cannot be read", readable_fix(script.path))


def readable_fix(path: Path) -> str:
    """Return how to make a file or folder readable."""
    try:
        status = path.stat()
    except OSError as error:
        return f"Make sure it's a regular file that you can read ({error.strerror})."
    if status.st_uid != os.geteuid():
        return "It belongs to another user: ask them for permission, or replace it with your own file."
    return f"Run `chmod u+r{'x' if stat.S_ISDIR(status.st_mode) else ''} {quote(str(path))}`."


def _not_executable(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.reader or os.access(script.path, os.X_OK):
        return None
    fix = f"Run `chmod +x {quote(str(script.path))}`."
    return _at_word(Rule.SCRIPT_NOT_EXECUTABLE, script, f"{script.path} is not executable", fix)


def _without_shebang(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.reader or not script.data or script.data.startswith(EXECUTABLE_MAGIC):
        return None
    shebang = _SHEBANGS.get(script.path.suffix, "#!/bin/sh")
    if script.data.startswith(_BYTE_ORDER_MARK + b"#!"):
        message, fix = "has a byte order mark before its `#!`, which hides it", "Save it without a byte order mark."
    else:
        message, fix = "does not begin with `#!`", f"Make `{shebang}` its first line."
    return _at_word(Rule.SCRIPT_WITHOUT_SHEBANG, script, f"{script.path} {message}", fix)


def _crlf(inspection: Inspection, script: Script) -> Diagnostic | None:
    first, newline, _ = script.data.partition(b"\n")
    by_a_shell = script.reader in SHELLS
    if not (newline and first.endswith(b"\r") and (by_a_shell or (not script.reader and first.startswith(b"#!")))):
        return None
    message = f"{script.path} has Windows line endings (CRLF)"
    fix = f"Run `perl -pi -e 's/\\r$//' {quote(str(script.path))}`, and add `*.sh eol=lf` to .gitattributes."
    return _at_word(Rule.SCRIPT_CRLF, script, message, fix)


def _shebang_not_found(inspection: Inspection, script: Script) -> Diagnostic | None:
    word = interpreter_word(script.shebang)
    if script.reader or word is None:
        return None
    by_name = "/" not in word
    if shutil.which(word) if by_name else os.access(inspection.directory / word, os.X_OK):
        return None
    name = Path(word).name
    message = f"{script.path} needs `{word}`, which does not exist"
    fix = (
        f"Write `#!/usr/bin/env {name}`."
        if shutil.which(name) and not by_name
        else f"Install `{name}`, or use another interpreter."
    )
    return _at_word(Rule.SHEBANG_NOT_FOUND, script, message, fix)


def _syntax(inspection: Inspection, script: Script) -> Diagnostic | None:
    by_name = script.interpreter in _SAFE_WITH_N
    # Not from a relative folder in PATH: that would be a program of the project's.
    shell = shutil.which(script.interpreter, path=absolute_search_path()) if by_name else None
    error = script_error(shell, script.path) if shell and script.may_be_shown and script.data else None
    if error is None:
        return None
    line = _IN_LINE.search(error)
    start = _start_of_line(script, int(line[1]) if line else 1)
    end = script.source.text.find("\n", start)
    message = f"`{script.interpreter}` cannot parse this script: {_IN_LINE.sub('', error)}"
    return diagnostic_at(
        script.source, Rule.SCRIPT_SYNTAX, start, max(start, end), message, "Fix the script here, or above."
    )


_IN_LINE: Final = re.compile(r" in line (\d+)$")


def _start_of_line(script: Script, number: int) -> int:
    starts = [0, *(found.end() for found in re.finditer("\n", script.source.text))]
    return starts[min(number, len(starts)) - 1]


def _writable(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.mode is None or not stat.S_ISREG(script.mode) or not script.mode & stat.S_IWOTH:
        return None
    message = f"every user may write to {script.path} (mode {stat.S_IMODE(script.mode):04o})"
    return _at_word(Rule.SCRIPT_WRITABLE, script, message, f"Run `chmod o-w {quote(str(script.path))}`.")


_CHECKS: Final[tuple[Callable[[Inspection, Script], Diagnostic | None], ...]] = (
    _missing,
    _directory,
    _unreadable,
    _not_executable,
    _crlf,
    _without_shebang,
    _shebang_not_found,
    _syntax,
    _writable,
)


def _at_word(rule: Rule, script: Script, message: str, fix: str) -> Diagnostic:
    return script.hook.in_command(rule, script.word.span, message, fix)
