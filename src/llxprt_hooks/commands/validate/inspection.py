"""The settings files to check, and their context."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks.commands.validate.diagnostic import Diagnostic, Source, diagnostic_of_file
from llxprt_hooks.commands.validate.dialects import check_dialect, has_file
from llxprt_hooks.commands.validate.entries import FileHook, Role, SettingsFile
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.settings import Document, Problem, read_document, user_folder
from llxprt_hooks.settings.document import MAX_BYTES
from llxprt_hooks.settings.extensions import MANIFESTS, extension_folders, read_manifest
from llxprt_hooks.settings.hook_fields import FULL, STANDARD, read_hook_fields
from llxprt_hooks.settings.levels import absolute_project, extensions_folder
from llxprt_hooks.settings.load import LevelFile, asked_dialects, merge_lists, read_levels
from llxprt_hooks.settings.other_agents import KNOWN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from llxprt_hooks.events import HookEventName

_HOOKS_FILE: Final = "hooks.json"
_OTHERS: Final = {_HOOKS_FILE: Role.EXTENSION, **dict.fromkeys(MANIFESTS, Role.MANIFEST)}
"""The roles of files that belong to no level, by their name."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """The settings files to check, already read, and their context."""

    directory: Path
    """The project folder, where hooks run."""
    files: tuple[SettingsFile, ...]
    """The readable files, highest priority first."""
    unread: tuple[Diagnostic, ...]
    """One diagnostic for each unreadable file."""
    looked_for: tuple[Path, ...]
    """All paths that were checked for settings files."""
    tools: tuple[str, ...]
    """The tools that matchers are checked against."""
    own_tools: bool
    """Whether the settings name all tools of the program; otherwise others than these may exist."""
    alone: bool
    """Whether a single file is checked, so that other levels are unknown."""
    managed: frozenset[Path]
    """The files whose hooks no other file can switch off."""
    unsupported: Mapping[HookEventName, str] = field(default_factory=dict)
    """Events that never fire where the hooks will be used, each with the reason."""
    limited: Mapping[HookEventName, str] = field(default_factory=dict)
    """Events that fire there in part, each with what it fires for."""
    not_honored: Mapping[HookEventName, str] = field(default_factory=dict)
    """The events at which hooks that act cannot have all their effects there, with the reasons."""
    others: tuple[Diagnostic, ...] = ()
    """What is wrong in the files of other agents."""
    other_files: frozenset[Path] = frozenset()
    """Those that exist."""
    unstreamed: str = ""
    """Why answers are not streamed in sentences there; empty if they are."""
    asks_first: bool = False
    """Whether a person is asked about a tool before BeforeTool hooks run there."""

    @property
    def found(self) -> tuple[Path, ...]:
        """The files that exist, readable or not."""
        existing = {file.document.file for file in self.files} | {diagnostic.file for diagnostic in self.unread}
        existing |= self.other_files
        return tuple(file for file in self.looked_for if file in existing)

    @property
    def hooks(self) -> Iterator[FileHook]:
        """All hooks, in the order of the engine."""
        return (hook for file in self.files for hook in file.hooks)


def inspect_project(directory: Path, tools: Iterable[str] = ()) -> Inspection:
    """Inspect all files that apply to a project: project, user, system, and the user's extensions."""
    levels = _levels(directory)
    roles = {file: Role(each.level) for file, each in levels.items()}
    folders, problem = extension_folders(extensions_folder(absolute_project(directory)))
    inspection = _inspect(directory, {**roles, **_extension_files(folders)}, tools, levels, alone=False)
    inspection = _with_dialects(inspection, asked_dialects(directory))
    if problem is None or problem.file is None:
        return inspection
    unlisted = diagnostic_of_file(
        problem.file,
        Rule.UNREADABLE_FILE,
        problem.message,
        "Make the folder readable for you: run `chmod u+rx FOLDER`.",
    )
    return replace(inspection, unread=(*inspection.unread, unlisted))


def inspect_file(file: Path, directory: Path, tools: Iterable[str] = ()) -> Inspection:
    """Inspect one file in its role for the project: the settings of a level, an extension's hooks or manifest."""
    path = Path(os.path.abspath(file))  # noqa: PTH100  # pathlib keeps the ..
    spoken = tuple(name for name in asked_dialects(directory) if has_file(directory, name, path))
    if spoken:
        return _with_dialects(_inspect(directory, {}, tools, {}, alone=True), spoken, only=path)
    levels = _levels(directory)
    role = Role(levels[path].level) if path in levels else _OTHERS.get(path.name, Role.FILE)
    return _inspect(directory, {path: role}, tools, levels, alone=True)


def _with_dialects(inspection: Inspection, names: Iterable[str], only: Path | None = None) -> Inspection:
    """Add the files of other agents, or ``only`` one of them."""
    checked = [each for name in names for each in check_dialect(inspection.directory, name)]
    checked = [each for each in checked if only is None or each[0] == only]
    return replace(
        inspection,
        looked_for=(*inspection.looked_for, *(file for file, _, _ in checked)),
        others=tuple(each for _, _, found in checked for each in found),
        other_files=frozenset(file for file, exists, _ in checked if exists),
    )


def project_of(file: Path) -> Path | None:
    """Return the project that a settings file belongs to, based on its folder."""
    folder = Path(os.path.abspath(file)).parent  # noqa: PTH100  # pathlib keeps the ..
    if folder.name == user_folder().name and folder != user_folder():
        return folder.parent
    dialects = asked_dialects(folder.parent)
    return folder.parent if any(has_file(folder.parent, name, folder / file.name) for name in dialects) else None


def _levels(directory: Path) -> dict[Path, LevelFile]:
    levels = read_levels(absolute_project(directory))
    return {each.file: each for each in sorted(levels, key=lambda each: not each.managed)}


def _extension_files(folders: Iterable[Path]) -> dict[Path, Role]:
    found: dict[Path, Role] = {}
    for folder in sorted(folders):
        manifest, hooks = read_manifest(folder), folder / "hooks" / _HOOKS_FILE
        if manifest is not None and manifest.file is not None:
            found[manifest.file] = Role.MANIFEST
        if os.path.lexists(hooks):
            found[hooks] = Role.EXTENSION
    return found


def _inspect(
    directory: Path, roles: dict[Path, Role], tools: Iterable[str], levels: dict[Path, LevelFile], *, alone: bool
) -> Inspection:
    contents = {file: read_document(file) for file in roles}
    documents = {file: each for file, each in contents.items() if isinstance(each, Document)}
    fields = [each.fields for each in levels.values() if each.fields]
    fields += [read_hook_fields(each) for file, each in documents.items() if roles[file] is Role.FILE]
    acts = next((each.profile for each in fields if each.profile), STANDARD) == FULL
    files = tuple(SettingsFile(each, roles[file], acts=acts) for file, each in documents.items())
    own_tools = merge_lists(each.tools for each in fields)
    return Inspection(
        directory=absolute_project(directory),
        files=files,
        unread=tuple(_unread(file, content) for file, content in contents.items() if isinstance(content, Problem)),
        looked_for=tuple(roles),
        tools=merge_lists((own_tools or KNOWN_TOOLS, tools)),
        own_tools=bool(own_tools),
        alone=alone,
        managed=frozenset(file for file in roles if file in levels and levels[file].managed),
    )


def _unread(file: Path, problem: Problem) -> Diagnostic:
    source = _source(file)
    if source is None:
        return diagnostic_of_file(
            file, Rule.UNREADABLE_FILE, problem.message, "Make sure it's a regular file that you can read."
        )
    token = _TOKEN.match(source.line(problem.line), problem.column - 1)
    text = token[0] if token else ""
    return Diagnostic(
        Rule.SYNTAX,
        file,
        problem.line,
        problem.column,
        problem.line,
        problem.column + len(text),
        message=problem.message,
        fix=problem.fix,
        text=text,
        source=source,
    )


def _source(file: Path) -> Source | None:
    try:
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            return None
        text = file.read_bytes().decode(errors="replace")
        return Source(file, text, lambda: _possible_passwords(text))
    except OSError:
        return None


def _possible_passwords(text: str) -> Iterator[tuple[int, int]]:
    """Return where passwords of addresses may be in a file that is not parsed."""
    for found in _BETWEEN_QUOTES.finditer(text):
        if "@" in found[0]:
            yield found.start(), found.start() + found[0].rindex("@")


_BETWEEN_QUOTES: Final = re.compile(r'[^"\r\n]+')
_TOKEN: Final = re.compile(r"[\w$.+-]+|.")
