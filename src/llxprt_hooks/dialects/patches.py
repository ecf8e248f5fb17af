"""The files that a patch writes, whatever the format of the patch is, so that guards are shown every one of them.

A line that may name a file counts as one that does: a guard that runs once too often does no harm, a missing one does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

_STARTS_FILE: Final = re.compile(r"\s*(?:\*\*\* (?:Add|Update|Delete) File:|diff --git |Index: )")
_MARKER: Final = re.compile(r"\*\*\* (?:Add File|Update File|Delete File|Move to):\s*(?P<name>.+)")
_OTHER_NAME: Final = re.compile(r"(?:rename from|rename to|copy to|Index:)\s+(?P<name>.+)")
_GIT: Final = re.compile(r'diff --git (?P<old>"(?:[^"\\]|\\.)*"|.+?) (?P<new>"(?:[^"\\]|\\.)*"|[a-z]/.+)')
_CHANGED_LINES: Final = re.compile(r"\d+(?:,\d+)? (?:\*{4}|-{4})")
_STAMP: Final = re.compile(r"\t.*|\s+\d{4}-\d\d-\d\d[ T]\d\d:.*")
_PREFIX: Final = re.compile(r"[abciow]/")
_ESCAPE: Final = re.compile(r'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPED: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, '"': 34, "\\": 92}
_NOWHERE: Final = "/dev/null"
_PATHS: Final = ("file_path", "absolute_path", "path", "filename")
_MAX_DEPTH: Final = 20


class PatchedFile(NamedTuple):
    """A file that a patch writes, moves or deletes."""

    path: str
    text: str = ""
    """The part of the patch that is about it."""
    is_new: bool = False

    @property
    def content(self) -> str:
        """The lines that the patch adds."""
        added = (line[1:] for line in self.text.splitlines() if line.startswith("+") and not line.startswith("+++ "))
        return "".join(f"{line}\n" for line in added)


def patched_files(arguments: Mapping[str, Any]) -> list[PatchedFile]:
    """All files in the arguments of a tool that applies patches, each once: those in patches, and given paths."""
    found: dict[str, PatchedFile] = {}
    for each in _in_value(arguments, _MAX_DEPTH):
        found.setdefault(each.path, each)
    return list(found.values())


def _in_value(value: object, depth: int) -> Iterator[PatchedFile]:
    if isinstance(value, str):
        yield from _in_patch(value)
    elif depth and isinstance(value, Mapping):
        paths = [each for key in _PATHS if isinstance(each := value.get(key), str) and each]
        others = [each for each in value.values() if each not in paths]
        for each in others:
            yield from _in_value(each, depth - 1)
        text = "\n".join(each for each in others if isinstance(each, str))
        yield from (PatchedFile(path, text) for path in paths)
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from _in_value(each, depth - 1)


def _in_patch(patch: str) -> Iterator[PatchedFile]:
    lines = patch.splitlines()
    starts, is_open = [], False
    for number, line in enumerate(lines):
        has_names = _pair(lines, number) is not None
        if _STARTS_FILE.match(line) or (has_names and not is_open):
            starts.append(number)
            is_open = True
        if has_names:  # those of the next file belong to another part
            is_open = False
    for start, end in pairwise([*starts, len(lines)]):
        part = lines[start:end]
        names = [name for number, _ in enumerate(part) for name in _names(part, number)]
        is_new = "*** Add File:" in part[0] or any(line.strip() == f"--- {_NOWHERE}" for line in part)
        for name in dict.fromkeys(names):
            yield PatchedFile(name, "\n".join(part) + "\n", is_new)


def _pair(lines: list[str], number: int) -> tuple[str, str] | None:
    """The two names above the changes of a file, if they begin on this line."""
    if number + 1 >= len(lines):
        return None
    old, new = lines[number].strip(), lines[number + 1].strip()
    for first, second in (("--- ", "+++ "), ("*** ", "--- ")):
        if old.startswith(first) and new.startswith(second):
            names = old.removeprefix(first), new.removeprefix(second)
            return None if any(map(_CHANGED_LINES.fullmatch, names)) else names
    return None


def _names(lines: list[str], number: int) -> Iterator[str]:
    line = lines[number].strip()
    if (marker := _MARKER.fullmatch(line) or _OTHER_NAME.fullmatch(line)) is not None:
        yield _plain(marker["name"])
    elif (git := _GIT.fullmatch(line)) is not None:
        yield from _without_prefixes(git["old"], git["new"])
    elif (pair := _pair(lines, number)) is not None:
        yield from _without_prefixes(*pair)


def _without_prefixes(old: str, new: str) -> Iterator[str]:
    """The names of a file before and after, without the ``a/`` and ``b/`` that git puts before both."""
    names = [_plain(_STAMP.sub("", name)) for name in (old, new)]
    has_prefixes = all(name == _NOWHERE or _PREFIX.match(name) for name in names)
    for name in names:
        if name != _NOWHERE:
            yield name[2:] if has_prefixes else name


def _plain(name: str) -> str:
    """A name as git writes it: one with special characters is in quotes."""
    name = name.strip()
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    parts = _ESCAPE.split(name[1:-1])
    pieces = (
        part.encode(errors="surrogateescape") if number % 2 == 0 else bytes([_ESCAPED.get(part) or int(part, 8) & 255])
        for number, part in enumerate(parts)
    )
    return b"".join(pieces).decode(errors="surrogateescape")


def patch_key(arguments: Mapping[str, Any]) -> str | None:
    """The argument that is a patch."""
    keys = ("patch", "patch_content", "input", "diff")
    return next((key for key in keys if isinstance(arguments.get(key), str)), None)


def patch_of(tool_name: str, arguments: Mapping[str, Any]) -> str:
    """A patch, as Codex writes them, that does what a call of a tool for files does; a given patch as it is."""
    if (key := patch_key(arguments)) is not None:
        return str(arguments[key])
    path = next((each for key in _PATHS if isinstance(each := arguments.get(key), str) and each), "")
    if tool_name == "write_file":
        return _patch(f"*** Add File: {path}", _marked("+", arguments.get("content")))
    removed, added = _marked("-", arguments.get("old_string")), _marked("+", arguments.get("new_string"))
    added = added or _marked("+", arguments.get("content"))
    return _patch(f"*** Update File: {path}", ["@@", *removed, *added])


def _patch(file: str, lines: list[str]) -> str:
    return "\n".join(["*** Begin Patch", file, *lines, "*** End Patch"])


def _marked(mark: str, text: object) -> list[str]:
    return [f"{mark}{line}" for line in text.splitlines()] if isinstance(text, str) else []
