"""One settings file, read once: its text, its tree, and the status and path of the file that was opened."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from llxprt_hooks.settings.atomic import exclusive_lock, write_atomically
from llxprt_hooks.settings.jsonc import JsoncError, Kind, LineIndex, Node, duplicate_members, node_of, parse, shown
from llxprt_hooks.settings.problem import Problem, first_problems

MAX_BYTES: Final = 4 * 1024 * 1024
"""Larger files are not read; far above the size of any real settings file."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value in a file; of settings, an object."""

    file: Path
    """The path as requested."""
    real_file: Path
    """The file that was opened, with symbolic links resolved."""
    status: os.stat_result = field(repr=False, compare=False)
    """Its owner and mode."""
    text: str = field(repr=False)
    root: Node = field(repr=False)
    _lines: LineIndex = field(repr=False, compare=False)

    def problem_at(self, offset: int, message: str) -> Problem:
        return Problem(self.file, *self._lines.line_and_column(max(offset, 0)), message)

    def found(self, node: Node) -> str:
        """Describe a node for a message: its source text, or its kind if it is a container."""
        return node.kind if node.kind in {Kind.OBJECT, Kind.ARRAY} else shown(self.text[node.start : node.end])

    def duplicate_keys(self) -> list[Problem]:
        """Return one problem for each key that overrides an earlier one in the same object."""
        return first_problems(
            [
                self.problem_at(each.key_start, f"duplicate key `{shown(each.key)}` in this object; the last one wins")
                for each in duplicate_members(self.root)
            ]
        )


def read_document(file: Path) -> Document | Problem | None:
    """Read a file once. Return ``None`` if it does not exist, a problem if it does not contain a valid JSON object."""
    document = read_any_document(file)
    if isinstance(document, Document) and document.root.kind is not Kind.OBJECT:
        root = document.root
        problem = document.problem_at(root.start, f"expected an object in braces, found {document.found(root)}")
        return replace(problem, fix='Write the settings as an object: `{ "enableHooks": true, "hooks": {} }`.')
    return document


def read_any_document(file: Path) -> Document | Problem | None:
    """The same for a file that may contain any JSON value."""
    try:
        # Resolve links once and open the result without following links, so that `real_file` is always the path
        # of the file that was read, even if the path is changed meanwhile.
        real_file = Path(os.path.realpath(file))
        data, status = _read(real_file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Problem(file, 1, 1, f"the file cannot be read: {error.strerror or error}")
    try:
        text = data.decode()
        root = _PARSERS.get(file.suffix, parse)(text)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        message = f"the byte 0x{data[error.start]:02x} is not valid UTF-8; save the file as UTF-8"
        return Problem(file, *LineIndex(before).line_and_column(len(before)), message, fix="Save the file as UTF-8.")
    except JsoncError as error:
        return Problem(file, error.line, error.column, error.message, fix=error.fix)
    return Document(file, real_file, status, text, root, LineIndex(text))


def _parse_toml(text: str) -> Node:
    """Parse TOML, which other agents use. Its values have no position."""
    import tomllib  # not above: most projects have no such file

    try:
        return node_of(_json_value(tomllib.loads(text)))
    except (ValueError, RecursionError) as error:
        message = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        found = _TOML_PLACE.search(message)
        line, column = (int(found[1]), int(found[2])) if found else (1, 1)
        message = _TOML_PLACE.sub("", message)
        raise JsoncError(line, column, f"this is not valid TOML: {message}", "Write valid TOML.") from error


_PARSERS: Final = {".toml": _parse_toml}
_TOML_PLACE: Final = re.compile(r" \(at line (\d+), column (\d+)\)")


def _json_value(value: Any) -> Any:
    """Return a value of TOML as JSON has it: dates and times become text."""
    if isinstance(value, dict):
        return {key: _json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    return value if isinstance(value, str | int | float) else str(value)


def _read(real_file: Path) -> tuple[bytes, os.stat_result]:
    # O_NONBLOCK: opening a named pipe would otherwise block forever.
    descriptor = os.open(real_file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as opened:
            data = opened.read(MAX_BYTES + 1)
        if data is None:  # typeshed omits this: some kernel files return no data at the moment
            raise OSError("it is empty at the moment, as some kernel files are")
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise OSError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    return data, status


class ChangedMeanwhileError(Exception):
    """The file was modified concurrently. The message is for the user."""


def rewrite(file: Path, before: str, after: str) -> None:
    """Replace a file's text; raise if it is no longer ``before`` (empty for a missing file)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(file):
        document = read_document(file)
        if isinstance(document, Problem) or (document.text if document else "") != before:
            raise ChangedMeanwhileError(f"{file} was changed by another program in the meantime; it was not modified")
        write_atomically(file, after)
