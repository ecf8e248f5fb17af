"""Which calls a hook of Claude Code is for: the permission rule in ``if``.

A rule that cannot be compared for certain holds: a hook that runs once too often does no harm, a missing one does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from llxprt_hooks.settings.levels import home_folder
from llxprt_hooks.settings.search import searching

_RULE: Final = re.compile(r"\s*([A-Za-z_][\w-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_COVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Edit": ("Edit", "Write", "NotebookEdit", "MultiEdit"),
    "Read": ("Read", "Grep", "Glob"),
    "Task": ("Agent", "Task"),
}
"""The tools that a rule is for, besides the one that it names."""
_SEPARATORS: Final = re.compile(r"&&|\|\||\|&|[;|&\n]|\$\(|`|[()]")
_BEFORE: Final = re.compile(
    # A quotation is never read as single characters too: twenty of them would be a million ways to read a command.
    r"(?:[A-Za-z_]\w*=(?>(?>'[^']*'|\"[^\"]*\"|\S)*)\s+"
    r"|(?:timeout(?:\s+-\S+)*\s+\S+|time|nice(?:\s+-n\s*\S+)?|nohup|stdbuf(?:\s+-\S+)*|command|builtin|noglob|xargs)\s+)+"
)
"""Assignments and wrappers."""
_UNCERTAIN: Final = re.compile(r"[$`]")


def holds(rule: str, tool: str, arguments: Mapping[str, Any], directory: str) -> bool:
    """Whether a permission rule is for a call, in the names of the product."""
    found = _RULE.fullmatch(rule)
    if found is None:
        return True
    name, pattern = found[1], found[2]
    if tool != name and tool not in _COVERS.get(name, ()):
        return False
    if pattern is None or pattern.strip() in ("", "*"):
        return True
    if tool == "Bash":
        return _command_matches(pattern, str(arguments.get("command", "")))
    path = next(
        (value for key in ("file_path", "notebook_path", "path") if isinstance(value := arguments.get(key), str)), None
    )
    return True if path is None else _path_matches(pattern, path, directory)


def _command_matches(pattern: str, command: str) -> bool:
    """Whether any command in a command line matches; also if that cannot be told."""
    test = _command_test(pattern)
    if len(pattern.split()) > 1 and _UNCERTAIN.search(command):
        return True
    parts = (part.strip() for part in _SEPARATORS.split(command))
    return any(test(part) or test(_bare(part)) for part in parts if part)


def _bare(part: str) -> str:
    """A command without assignments and wrappers before it."""
    before = _BEFORE.match(part)
    return part[before.end() :] if before else part


def _command_test(pattern: str) -> Callable[[str], bool]:
    text = pattern.strip()
    if text.endswith(":*"):  # the older way to write a prefix
        prefix = text[:-2]
        return lambda part: part == prefix or part.startswith((f"{prefix} ", f"{prefix}\t"))
    ends_in_word = text.endswith(" *")
    first, *rest = map(re.escape, (text[:-2] if ends_in_word else text).split("*"))
    # The first place of each word will do, whatever follows it: so there is only one way to compare.
    body = "".join((first, *(f"(?>.*?{word})" for word in rest[:-1]), *(f".*{word}" for word in rest[-1:])))
    expression = re.compile(body + (r"(?:\s.*)?" if ends_in_word else ""), re.DOTALL)
    return lambda part: expression.fullmatch(part) is not None


def _path_matches(pattern: str, path: str, directory: str) -> bool:
    """Whether a path matches like a line of .gitignore, seen from the folder that the rule is about."""
    text, start = pattern.strip(), directory
    if text.startswith("//"):
        text, start = text[1:].lstrip("/"), "/"
    elif text.startswith("~/"):
        text, start = text[2:], str(home_folder())
    elif text.startswith("/"):
        text = text[1:]
    elif "/" not in text.rstrip("/"):
        text = f"**/{text}"
    text = text.removeprefix("./")
    relative = os.path.relpath(os.path.join(directory, path), start)  # noqa: PTH118
    if relative == ".." or relative.startswith("../"):
        return text.startswith("**/") and _glob(text)(os.path.basename(path))  # noqa: PTH119
    return _glob(text)(relative)


def _glob(text: str) -> Callable[[str], bool]:
    """A pattern with ``*``, ``**`` and ``?``. It also matches everything below a folder that it matches."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", text.rstrip("/"))
    words = {"**/": "(?:[^]*/)?", "**": "[^]*", "*": "[^/]*", "?": "[^/]"}
    expression = "".join(words.get(piece) or re.sub(r"\W", r"\\\g<0>", piece) for piece in pieces)
    return searching(f"^{expression}(?:/[^]*)?$") or text.__eq__
