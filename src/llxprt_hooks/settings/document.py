"""One settings file, read once: its text, its tree, and the mode and path of the file that was opened."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings.jsonc import JsoncError, Kind, LineIndex, duplicate_members, line_and_column, parse, shown
from llxprt_hooks.settings.problem import Problem

if TYPE_CHECKING:
    from llxprt_hooks.settings.jsonc import Node

MAX_BYTES: Final = 4 * 1024 * 1024
"""More than any settings file has; what is larger is not read into memory."""

MAX_PROBLEMS: Final = 100
"""Of one kind, in one file; nobody reads more, and a hostile file could hold a million."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON object in a file."""

    file: Path
    """The path by which the file was asked for."""
    real_file: Path
    """The file that was opened, with no symbolic link left in its path."""
    mode: int
    """Its permission bits."""
    text: str = field(repr=False)
    root: Node = field(repr=False)
    _lines: LineIndex = field(repr=False, compare=False)

    def problem_at(self, offset: int, message: str) -> Problem:
        """A problem with what stands at an offset of the text."""
        return Problem(self.file, *self._lines.line_and_column(offset), message)

    def found(self, node: Node) -> str:
        """What a node is, as a message tells it: how it was written, or for a container its kind."""
        return node.kind if node.kind in {Kind.OBJECT, Kind.ARRAY} else shown(self.text[node.start : node.end])

    def duplicate_keys(self) -> list[Problem]:
        """One problem for every key that overrides an earlier one of the same object."""
        return [
            self.problem_at(member.key_start, f'duplicate key "{shown(member.key)}"; the last one wins')
            for member in islice(duplicate_members(self.root), MAX_PROBLEMS)
        ]


def read_document(file: Path) -> Document | Problem | None:
    """Read a file once; ``None`` when there is none, a problem when it holds no readable JSON object."""
    try:
        # Opening what the path leads to, and nothing that was put in its place meanwhile: whoever judges
        # `real_file` judges the file that was read.
        real_file = Path(os.path.realpath(file))
        data, mode = _read(real_file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Problem(file, 1, 1, f"the file cannot be read: {error.strerror or error}")
    try:
        text = data.decode()
        root = parse(text)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8, save the file in that encoding"
        return Problem(file, *line_and_column(before, len(before)), message)
    except JsoncError as error:
        return Problem(file, error.line, error.column, error.message)
    document = Document(file, real_file, mode, text, root, LineIndex(text))
    if root.kind is not Kind.OBJECT:
        return document.problem_at(root.start, f"expected an object in braces, found {document.found(root)}")
    return document


def _read(real_file: Path) -> tuple[bytes, int]:
    # Without O_NONBLOCK a named pipe in the file's place would hold the agent for ever.
    descriptor = os.open(real_file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError("it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as opened:
            data = opened.read(MAX_BYTES + 1)
        if data is None:  # what typeshed does not tell: some files of the kernel have nothing to say at the moment
            raise OSError("it has no content at the moment")
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise OSError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    return data, stat.S_IMODE(mode)
