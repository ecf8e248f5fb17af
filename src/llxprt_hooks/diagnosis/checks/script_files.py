"""Programs and scripts: whether what a command names is there, can be started, and can be read by who runs it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from llxprt_hooks.diagnosis.diagnostic import Diagnostic, Rule, diagnostic_at
from llxprt_hooks.diagnosis.entries import HookEntry, Role
from llxprt_hooks.diagnosis.rules import (
    PROGRAM_NOT_FOUND,
    SCRIPT_CRLF,
    SCRIPT_DIRECTORY,
    SCRIPT_MISSING,
    SCRIPT_NOT_EXECUTABLE,
    SCRIPT_SYNTAX,
    SCRIPT_UNREADABLE,
    SCRIPT_WITHOUT_SHEBANG,
    SCRIPT_WRITABLE,
    SHEBANG_NOT_FOUND,
)
from llxprt_hooks.diagnosis.shell_syntax import script_error
from llxprt_hooks.diagnosis.started_programs import SHELLS, Script, interpreter_word, programs, scripts
from llxprt_hooks.shell.direct_exec import EXECUTABLE_MAGIC
from llxprt_hooks.text import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from llxprt_hooks.diagnosis.inspection import Inspection

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_ONLY_READ_WITH_N: Final = ("sh", "bash", "dash", "ksh")
"""Shells whose option `-n` keeps them from running anything; zsh runs the user's .zshenv first."""

_END_WITH_TWO: Final = ("sh", "dash", "python", "python3", "pypy3", "perl")
"""Interpreters that end with 2 when the script is missing."""

_SHEBANGS: Final = {
    ".py": "#!/usr/bin/env python3",
    ".js": "#!/usr/bin/env node",
    ".mjs": "#!/usr/bin/env node",
    ".rb": "#!/usr/bin/env ruby",
    ".pl": "#!/usr/bin/env perl",
    ".bash": "#!/usr/bin/env bash",
}


def check_program(inspection: Inspection, hook: HookEntry) -> Iterator[Diagnostic]:
    """A program that is not on the search path."""
    node = hook.command_node
    for program in programs(inspection, hook):
        if node is None or program.is_path or program.is_known:
            continue
        here = f"./{program.name}" if _is_file(inspection.directory / program.name) else None
        fix = f"Did you mean `{here}`?" if here else "Install it, or give its whole path."
        message = f"there is no program `{program.name}` on the search path"
        yield hook.file.inside(PROGRAM_NOT_FOUND, node, program.words[0].span, message, fix)


def check_script(inspection: Inspection, hook: HookEntry) -> Iterator[Diagnostic]:
    """A script that is missing, cannot be started, or cannot be read. The first that is found is told."""
    for script in scripts(inspection, hook):
        found = next((told for check in _CHECKS if (told := check(inspection, script))), None)
        if found is not None:
            yield found


def _missing(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.mode is not None:
        return None
    message = f"there is no file {script.path}"
    if script.reader in _END_WITH_TWO:
        message += f", and `{script.reader}` ends with 2 then, which blocks"
    return _at_word(SCRIPT_MISSING, script, message, _where_it_may_be(inspection, script))


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  # pathlib raises for a name that is longer than any file's


def _where_it_may_be(inspection: Inspection, script: Script) -> str:
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
    if not written.startswith(("/", "~", "$", '"', "'")) and file.role in _ANYWHERE:
        return f"Hooks run in the project folder, whichever that is: {_ANYWHERE[file.role]}."
    return "Make it, or correct the path."


_ANYWHERE: Final = {
    Role.USER: "give the whole path, say `~/.llxprt/hooks/…`",
    Role.SYSTEM: "give the whole path",
    Role.EXTENSION: "write `${extensionPath}/…`",
}


def _directory(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.mode is None or not stat.S_ISDIR(script.mode):
        return None
    return _at_word(SCRIPT_DIRECTORY, script, f"{script.path} is a folder", "Name the script in it.")


def _unreadable(inspection: Inspection, script: Script) -> Diagnostic | None:
    # Of a project all files count that commands could mean: told with its trust. By itself a program may be unreadable.
    if script.hook.file.role is Role.PROJECT or not script.reader or os.access(script.path, os.R_OK):
        return None
    return _at_word(SCRIPT_UNREADABLE, script, f"{script.path} cannot be read", readable_fix(script.path))


def readable_fix(path: Path) -> str:
    """How to make a file or folder readable."""
    try:
        status = path.stat()
    except OSError as error:
        return f"Make it a file that you can read ({error.strerror})."
    if status.st_uid != os.geteuid():
        return "It is another user's: let them give you the permission, or put a file of your own there."
    return f"Run `chmod u+r{'x' if stat.S_ISDIR(status.st_mode) else ''} {quote(str(path))}`."


def _not_executable(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.reader or os.access(script.path, os.X_OK):
        return None
    fix = f"Run `chmod +x {quote(str(script.path))}`."
    return _at_word(SCRIPT_NOT_EXECUTABLE, script, f"{script.path} may not be executed", fix)


def _without_shebang(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.reader or not script.data or script.data.startswith(EXECUTABLE_MAGIC):
        return None
    shebang = _SHEBANGS.get(script.path.suffix, "#!/bin/sh")
    if script.data.startswith(_BYTE_ORDER_MARK + b"#!"):
        message, fix = "has a byte order mark before its `#!`, which hides it", "Save it as UTF-8 without that mark."
    else:
        message, fix = "does not begin with `#!`", f"Make `{shebang}` its first line."
    return _at_word(SCRIPT_WITHOUT_SHEBANG, script, f"{script.path} {message}", fix)


def _crlf(inspection: Inspection, script: Script) -> Diagnostic | None:
    first, newline, _ = script.data.partition(b"\n")
    by_a_shell = script.reader in SHELLS
    if not (newline and first.endswith(b"\r") and (by_a_shell or (not script.reader and first.startswith(b"#!")))):
        return None
    message = f"the lines of {script.path} end in CR LF, as on Windows"
    return _at_word(
        SCRIPT_CRLF, script, message, f"Run `sed -i 's/\\r$//' {quote(str(script.path))}`, and tell git: `*.sh eol=lf`."
    )


def _shebang_not_found(inspection: Inspection, script: Script) -> Diagnostic | None:
    word = interpreter_word(script.shebang)
    if script.reader or word is None:
        return None
    by_name = "/" not in word
    if shutil.which(word) if by_name else os.access(inspection.directory / word, os.X_OK):
        return None
    name = Path(word).name
    message = f"{script.path} asks for `{word}`, which is not there"
    fix = (
        f"Write `#!/usr/bin/env {name}`."
        if shutil.which(name) and not by_name
        else f"Install `{name}`, or name another interpreter."
    )
    return _at_word(SHEBANG_NOT_FOUND, script, message, fix)


def _syntax(inspection: Inspection, script: Script) -> Diagnostic | None:
    shell = shutil.which(script.interpreter) if script.interpreter in _ONLY_READ_WITH_N else None
    error = script_error(shell, script.path) if shell and script.may_be_shown and script.data else None
    if error is None:
        return None
    line = _IN_LINE.search(error)
    start = _start_of_line(script, int(line[1]) if line else 1)
    end = script.source.text.find("\n", start)
    message = f"`{script.interpreter}` cannot read this script: {_IN_LINE.sub('', error)}"
    return diagnostic_at(
        script.source,
        SCRIPT_SYNTAX,
        start,
        max(start, end),
        message,
        "Correct the script there, or above.",
    )


_IN_LINE: Final = re.compile(r" in line (\d+)$")


def _start_of_line(script: Script, number: int) -> int:
    starts = [0, *(found.end() for found in re.finditer("\n", script.source.text))]
    return starts[min(number, len(starts)) - 1]


def _writable(inspection: Inspection, script: Script) -> Diagnostic | None:
    if script.mode is None or not stat.S_ISREG(script.mode) or not script.mode & stat.S_IWOTH:
        return None
    message = f"everybody may write to {script.path} (mode {stat.S_IMODE(script.mode):04o})"
    return _at_word(SCRIPT_WRITABLE, script, message, f"Run `chmod o-w {quote(str(script.path))}`.")


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
    hook = script.hook
    return hook.file.inside(rule, hook.command_node or hook.node, script.word.span, message, fix)
