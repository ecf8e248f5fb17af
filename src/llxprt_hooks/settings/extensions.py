"""The extensions a user has installed, and their hooks.

In ``hooks/hooks.json`` the text ``${extensionPath}`` is replaced by the extension's folder. In a command line the path
is quoted so that the shell reads exactly that path, whatever characters it contains: as a quoted word outside quotes;
inside double or single quotes so that the surrounding quotes still close where the author closed them. A path of
letters, digits and ``_ @ % + = : , . / -`` is inserted unquoted. With any other path, quoting cannot make a command
safe if it uses command substitution, here-documents, ``eval``, ``sh -c`` and the like: the hook is skipped, and a
problem explains why.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from llxprt_hooks.process.shell.words import open_quote
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.hook_entries import LEFT_OUT, SWITCHES, WrittenHooks
from llxprt_hooks.settings.hook_fields import HOOKS, FieldReader
from llxprt_hooks.settings.jsonc import Kind, Node
from llxprt_hooks.settings.ownership import other_writers, read_own_document
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.shape import Field, Scalar, Shape

MANIFESTS: Final = ("llxprt-extension.json", "gemini-extension.json")
PLACEHOLDER: Final = "${extensionPath}"

MANIFEST: Final = Shape(
    "manifest",
    "About an extension. Other keys belong to other parts of the agent.",
    {"name": Field(Scalar(Kind.STRING), "What lists and logs call the extension; its folder if not given.")},
    open=True,
)

EXTENSION: Final = Shape(
    "extension",
    "The hooks of an extension.",
    {"hooks": Field(Shape("hooks", HOOKS.description, {}, open=True), HOOKS.description, required=True)},
    open=True,
)
"""The file with the hooks of an extension, except for events, which ``schema`` adds."""


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension and its hooks, in the format of ``hooks`` in a settings file, with ``LEFT_OUT`` for unsafe ones."""

    name: str
    hooks: Mapping[str, Any]
    is_active: bool = True
    path: Path | None = None
    document: Document | None = field(default=None, repr=False, compare=False)
    """The file the hooks were read from. Gives problems a line and a column."""


def find_extensions(folder: Path, shell_keys: Collection[str]) -> tuple[tuple[Extension, ...], list[Problem]]:
    """Return the extensions in a folder by name, and their problems. ``shell_keys`` are hook keys with shell code."""
    paths, problem = extension_folders(folder)
    problems = [problem] if problem else []
    found = [extension for path in paths if (extension := _extension(path.absolute(), shell_keys, problems))]
    return tuple(sorted(found, key=lambda extension: (extension.name, str(extension.path)))), problems


def extension_folders(folder: Path | None) -> tuple[list[Path], Problem | None]:
    """Return the folders of the extensions in a folder, or why they cannot be listed."""
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith(".")] if folder else []
        return [path for path in paths if path.is_dir()], None
    except (FileNotFoundError, NotADirectoryError):
        return [], None
    except OSError as error:
        return [], Problem(folder, 1, 1, f"the extensions cannot be listed: {error.strerror}")


def read_manifest(path: Path) -> Document | Problem | None:
    return read_document(path / MANIFESTS[0]) or read_document(path / MANIFESTS[1])


def place_path(command: str, path: str) -> str | None:
    """Replace ``${extensionPath}`` in a shell command by a path; return ``None`` if no quoting makes that safe.

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
    placed, before = pieces[0], pieces[0]
    for piece in pieces[1:]:
        placed += quoted[open_quote(before)] + piece
        before += piece
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


def _extension(path: Path, shell_keys: Collection[str], problems: list[Problem]) -> Extension | None:
    hooks_file = path / "hooks" / "hooks.json"
    hooks = read_own_document(hooks_file)
    manifest = read_manifest(path)
    if manifest is None:
        if hooks is not None:
            problems.append(Problem(hooks_file, 1, 1, f"ignored, because the extension has no {MANIFESTS[0]}"))
        return None
    if isinstance(manifest, Document) and (objection := other_writers(manifest)):
        problems.append(manifest.problem_at(0, f"{objection}, so this extension is ignored"))
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
    reader = FieldReader(manifest, MANIFEST)
    problems += reader.problems
    return reader.value("name") or ""


def _with_hooks(
    name: str, document: Document, path: Path, shell_keys: Collection[str], problems: list[Problem]
) -> Extension:
    reader = FieldReader(document, EXTENSION)
    for key in SWITCHES:
        if node := document.root.at("hooks", key):
            reader.report(node, f"`{key}` is ignored: an extension cannot turn hooks on or off")
    inserter = PathInserter(reader.report, str(path), shell_keys)
    hooks = WrittenHooks(document, inserter.insert(reader.events()))
    problems += document.duplicate_keys() + reader.problems
    return Extension(name, hooks, path=path, document=document)


class PathInserter:
    """Replaces ``${extensionPath}`` in nodes, which keep their positions."""

    def __init__(self, report: Callable[[Node, str], object], path: str, shell_keys: Collection[str]) -> None:
        self._report = report
        self._path = path
        self._shell_keys = shell_keys

    def insert(self, node: Node) -> Node:
        if node.kind is Kind.OBJECT:
            members = (each._replace(value=self._member(each.key, each.value)) for each in node.members)
            return node._replace(members=tuple(members))
        if node.kind is Kind.ARRAY:
            return node._replace(items=tuple(map(self._item, node.items)))
        text = node.scalar
        return node._replace(scalar=text.replace(PLACEHOLDER, self._path)) if isinstance(text, str) else node

    def _member(self, key: str, node: Node) -> Node:
        if key not in self._shell_keys or node.kind is not Kind.STRING:
            return self.insert(node)
        placed = place_path(str(node.scalar), self._path)
        return node._replace(kind=Kind.NULL if placed is None else Kind.STRING, scalar=placed)

    def _item(self, node: Node) -> Node:
        if self._is_unsafe(node):
            left_out: Any = LEFT_OUT
            return Node(Kind.OTHER, node.start, node.end, left_out)
        return self.insert(node)

    def _is_unsafe(self, hook: Node) -> bool:
        commands = (node for key in self._shell_keys if (node := hook.at(key)) and isinstance(node.scalar, str))
        unsafe = next((node for node in commands if place_path(str(node.scalar), self._path) is None), None)
        if unsafe is None:
            return False
        self._report(
            unsafe,
            f"this hook is skipped: {PLACEHOLDER} is used where the shell could read parts of {self._path} as "
            f"code; rename that folder, or move the command into a script of the extension",
        )
        return True
