"""The extensions a user has installed, and the hooks they bring.

In ``hooks/hooks.json`` the text ``${extensionPath}`` stands for the extension's folder. In a command line it is put in
so that the shell reads exactly that path, whatever characters it has: outside quotes as a quoted word, inside double
or single quotes so that the surrounding quotes still close where the author closed them. A path of letters, digits
and ``_ @ % + = : , . / -`` needs none of this and goes in as it is. For any other path, a command in which quotes do
not tell the whole story (command substitution, here-documents, ``eval``, ``sh -c`` and the like) cannot be made safe
by quoting: that hook is left out, with a problem that says why.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.settings.document import read_document
from llxprt_hooks.settings.hook_fields import FieldReader
from llxprt_hooks.settings.hook_groups import SWITCHES
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.jsonc import Node

MANIFESTS: Final = ("llxprt-extension.json", "gemini-extension.json")
PLACEHOLDER: Final = "${extensionPath}"


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension and the hooks it brings, in the shape of a settings file's ``hooks``."""

    name: str
    hooks: Mapping[str, Any]
    is_active: bool = True
    path: Path | None = None
    document: Document | None = field(default=None, repr=False, compare=False)
    """The file that the hooks were read from, if it has exactly these: then problems have a line and a column."""


def find_extensions(folder: Path, shell_keys: Collection[str]) -> tuple[tuple[Extension, ...], list[Problem]]:
    """The extensions in a folder, by name, and what is wrong with them; ``shell_keys`` name the command lines."""
    problems: list[Problem] = []
    try:
        paths = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        paths = []
    except OSError as error:
        problems.append(Problem(folder, 1, 1, f"the extensions cannot be listed: {error.strerror}"))
        paths = []
    found = [extension for path in paths if (extension := _extension(path.absolute(), shell_keys, problems))]
    return tuple(sorted(found, key=lambda extension: (extension.name, str(extension.path)))), problems


def place_path(command: str, path: str) -> str | None:
    """Put a path in place of ``${extensionPath}`` in a shell command; ``None`` where no quoting can make it safe.

    >>> print(place_path('cat "${extensionPath}/a" ${extensionPath}/b', "/my ext"))
    cat ""'/my ext'"/a" '/my ext'/b
    """
    if PLACEHOLDER not in command or _PLAIN_PATH.fullmatch(path):
        return command.replace(PLACEHOLDER, path)
    pieces = command.split(PLACEHOLDER)
    if _BEYOND_QUOTES.search("\0".join(pieces)):
        return None
    quoted = {
        "": shlex.quote(path),
        '"': f'"{shlex.quote(path)}"',
        "'": path.replace("'", "'\\''"),
    }
    placed, quote = pieces[0], _open_quote(pieces[0], "")
    for piece in pieces[1:]:
        placed += quoted[quote] + piece
        quote = _open_quote(piece, quote)
    return placed


_PLAIN_PATH: Final = re.compile(r"[\w@%+=:,./-]+")
_BEYOND_QUOTES: Final = re.compile(
    r"""
      `  |  \$[(\['"]  |  \$\{(?!\w+\})    # substitution, $'…', expansion with operators
    | <<  |  \(\(  |  =\(  |  \#           # here-document, arithmetic, array (whose index is arithmetic), comment
    | >&[ \t]*+(?![0-9-])                 # a file name that bash expands twice, in quotes too
    | \b(?:eval|trap|alias)\b              # text that is read as code a second time
    | (?:^|[\s'"])-[A-Za-z]*c\b            # sh -c, python -c
    | [\\$]\0                             # an escape or a dollar that would meet the path's quotes
    """,
    re.VERBOSE,
)
_NEXT_QUOTE: Final = {
    "": re.compile(r"""(?:[^\\'"]|\\.)*(['"])""", re.DOTALL),
    '"': re.compile(r"""(?:[^\\"]|\\.)*(")""", re.DOTALL),
    "'": re.compile(r"""[^']*(')"""),
}


def _open_quote(text: str, quote: str) -> str:
    """The quote that is open after a piece of shell text, given the one that was open before it."""
    at = 0
    while found := _NEXT_QUOTE[quote].match(text, at):
        quote = "" if quote else found[1]
        at = found.end()
    return quote


def _extension(path: Path, shell_keys: Collection[str], problems: list[Problem]) -> Extension | None:
    hooks_file = path / "hooks" / "hooks.json"
    hooks = read_document(hooks_file)
    manifest = read_document(path / MANIFESTS[0]) or read_document(path / MANIFESTS[1])
    if manifest is None:
        if hooks is not None:
            problems.append(Problem(hooks_file, 1, 1, f"ignored, because the extension has no {MANIFESTS[0]}"))
        return None
    name = _name(manifest, problems) or path.name
    if isinstance(hooks, Problem):
        problems.append(hooks)
        hooks = None
    return _with_hooks(name, hooks, path, shell_keys, problems) if hooks else Extension(name, {}, path=path)


def _name(manifest: Document | Problem, problems: list[Problem]) -> str:
    if isinstance(manifest, Problem):
        problems.append(manifest)
        return ""
    reader = FieldReader(manifest)
    name = reader.member(manifest.root, "name", Kind.STRING)
    problems += reader.problems
    return str(name.scalar) if name else ""


def _with_hooks(
    name: str, document: Document, path: Path, shell_keys: Collection[str], problems: list[Problem]
) -> Extension:
    reader = FieldReader(document)
    if document.root.at("hooks") is None:
        reader.report(document.root, 'expected the events under the key "hooks", which is missing')
    for key in SWITCHES:
        if node := document.root.at("hooks", key):
            reader.report(node, f'"{key}" is ignored: an extension cannot switch hooks')
    placing = _Placing(reader, str(path), shell_keys)
    hooks = {event: placing.value(groups) for event, groups in reader.events(document.root).items()}
    problems += document.duplicate_keys() + reader.problems
    return Extension(name, hooks, path=path, document=None if placing.left_out else document)


class _Placing:
    """Turns nodes into values with the extension's path in its place."""

    def __init__(self, reader: FieldReader, path: str, shell_keys: Collection[str]) -> None:
        self._reader = reader
        self._path = path
        self._shell_keys = shell_keys
        self.left_out = False

    def value(self, node: Node) -> Any:
        if node.kind is Kind.OBJECT:
            return {member.key: self._member(member.key, member.value) for member in node.members}
        if node.kind is Kind.ARRAY:
            return [self.value(item) for item in node.items if not self._is_unsafe(item)]
        return node.scalar.replace(PLACEHOLDER, self._path) if isinstance(node.scalar, str) else node.scalar

    def _member(self, key: str, node: Node) -> Any:
        if key in self._shell_keys and isinstance(node.scalar, str):
            return place_path(node.scalar, self._path)
        return self.value(node)

    def _is_unsafe(self, hook: Node) -> bool:
        commands = (node for key in self._shell_keys if (node := hook.at(key)) and isinstance(node.scalar, str))
        unsafe = next((node for node in commands if place_path(str(node.scalar), self._path) is None), None)
        if unsafe is None:
            return False
        self.left_out = True
        self._reader.report(
            unsafe,
            f"this hook is left out: {PLACEHOLDER} stands where the characters of {self._path} could be read as "
            f"shell code; rename that folder, or put the command into a script of the extension",
        )
        return True
