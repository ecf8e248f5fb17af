"""Which files are looked at, and what is known about their surroundings."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks.diagnosis.diagnostic import Diagnostic, Source, diagnostic_of_file
from llxprt_hooks.diagnosis.entries import HookEntry, Role, SettingsFile
from llxprt_hooks.diagnosis.foreign_names import KNOWN_TOOLS
from llxprt_hooks.diagnosis.rules import SYNTAX, UNREADABLE_FILE
from llxprt_hooks.settings import Level, Problem, read_document, settings_file, user_folder
from llxprt_hooks.settings.document import MAX_BYTES
from llxprt_hooks.settings.levels import absolute_project

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ROLES: Final = {Level.PROJECT: Role.PROJECT, Level.USER: Role.USER, Level.SYSTEM: Role.SYSTEM}
_HOOKS_FILE: Final = "hooks.json"


@dataclass(frozen=True, eq=False)
class Inspection:
    """Settings files, read, and what else there is to know for judging them."""

    directory: Path
    """The project folder, in which hooks run."""
    files: tuple[SettingsFile, ...]
    """Those that could be read, highest priority first."""
    unread: tuple[Diagnostic, ...]
    """What is wrong with the others."""
    looked_for: tuple[Path, ...]
    """All paths at which a file would have counted."""
    tools: tuple[str, ...]
    """The tools that matchers are held against."""
    alone: bool
    """Whether one file was asked for: then nothing is known about what the others say."""

    @property
    def found(self) -> tuple[Path, ...]:
        """The files that are there, readable or not."""
        there = {file.document.file for file in self.files} | {diagnostic.file for diagnostic in self.unread}
        return tuple(file for file in self.looked_for if file in there)

    @property
    def hooks(self) -> Iterator[HookEntry]:
        """All hooks, in the order in which the engine takes them."""
        return (hook for file in self.files for hook in file.hooks)


def inspect_project(directory: Path, tools: Iterable[str] = ()) -> Inspection:
    """All files that count for a project: of the project, the user, the system, and the user's extensions."""
    levels = {file: _ROLES[level] for level in Level if (file := settings_file(level, absolute_project(directory)))}
    extensions = dict.fromkeys(_extension_files(), Role.EXTENSION)
    return _inspect(directory, {**levels, **extensions}, tools, alone=False)


def inspect_file(file: Path, directory: Path, tools: Iterable[str] = ()) -> Inspection:
    """One file, as what it is for the project: the settings of one of its levels, or an extension's hooks."""
    path = Path(os.path.abspath(file))  # noqa: PTH100  # pathlib keeps the ..
    roles = {known: _ROLES[level] for level in Level if (known := settings_file(level, absolute_project(directory)))}
    other = Role.EXTENSION if path.name == _HOOKS_FILE else Role.FILE
    return _inspect(directory, {path: roles.get(path, other)}, tools, alone=True)


def project_of(file: Path) -> Path | None:
    """The project whose settings a file is, by the folder it stands in."""
    folder = Path(os.path.abspath(file)).parent  # noqa: PTH100  # pathlib keeps the ..
    return folder.parent if folder.name == user_folder().name and folder != user_folder() else None


def _extension_files() -> list[Path]:
    try:
        folders = [folder for folder in (user_folder() / "extensions").iterdir() if not folder.name.startswith(".")]
    except OSError:
        return []
    files = (folder / "hooks" / _HOOKS_FILE for folder in sorted(folders))
    return [file for file in files if os.path.lexists(file)]


def _inspect(directory: Path, roles: dict[Path, Role], tools: Iterable[str], *, alone: bool) -> Inspection:
    contents = {file: read_document(file) for file in roles}
    return Inspection(
        directory=absolute_project(directory),
        files=tuple(
            SettingsFile(content, roles[file])
            for file, content in contents.items()
            if content is not None and not isinstance(content, Problem)
        ),
        unread=tuple(_unread(file, content) for file, content in contents.items() if isinstance(content, Problem)),
        looked_for=tuple(roles),
        tools=tuple(dict.fromkeys((*KNOWN_TOOLS, *tools))),
        alone=alone,
    )


def _unread(file: Path, problem: Problem) -> Diagnostic:
    source = _source(file)
    if source is None:
        return diagnostic_of_file(file, UNREADABLE_FILE, problem.message, "Make it a file that you can read.")
    token = _TOKEN.match(source.line(problem.line), problem.column - 1)
    text = token[0] if token else ""
    return Diagnostic(
        SYNTAX,
        file,
        problem.line,
        problem.column,
        problem.line,
        problem.column + len(text),
        message=problem.message,
        fix=next(fix for words, fix in _SYNTAX_FIXES.items() if words in problem.message),
        text=text,
        source=source,
    )


def _source(file: Path) -> Source | None:
    try:
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            return None
        return Source(file, file.read_bytes().decode(errors="replace"))
    except OSError:
        return None


_TOKEN: Final = re.compile(r"[\w$.+-]+|.")
_SYNTAX_FIXES: Final = {
    "not valid UTF-8": "Save the file as UTF-8.",
    "expected ','": "Is a comma missing after what stands before this, or a bracket one too many or too few?",
    "expected ':'": 'Write `"key": value`.',
    "key in double quotes": "Write the key in double quotes, and no comma before the first one.",
    "not closed, expected '*/'": "Close the comment.",
    "not closed": "Close the string; a line break inside one is written `\\n`.",
    "expected a value, found the end": "Write what is missing; the least that a settings file may be is `{}`.",
    "the end of the file": "Is a closing bracket missing, or is there one too many?",
    "unknown escape": "Write a backslash as `\\\\`.",
    "did you mean": "Write it in lower case: true, false or null.",
    "strings are written in double quotes": "Write it in double quotes.",
    "control character": "Write it as the escape.",
    "nested more than": "Take out some levels.",
    "object in braces": 'Write the settings as an object: `{ "enableHooks": true, "hooks": {} }`.',
    "": "Write a value there: a string in double quotes, a number, true, false, an object or an array.",
}
"""By words of the reader's message; the first that fits."""
