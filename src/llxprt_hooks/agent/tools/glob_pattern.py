"""Glob patterns: ``*``, ``?``, ``[…]`` within a name, ``**`` for any folders, ``{a,b}`` for alternatives."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from llxprt_hooks.agent.tools.messages import ToolFailure

_ALTERNATIVES_LIMIT = 64
_INNERMOST_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_WILDCARD = re.compile(r"[*?\[]")


def alternatives(pattern: str) -> list[str]:
    """Expand the braces of a pattern.

    >>> alternatives("{src,tests}/*.p{y,yi}")
    ['src/*.py', 'src/*.pyi', 'tests/*.py', 'tests/*.pyi']
    """
    done: list[str] = []
    pending = [pattern]
    while pending:
        if len(done) + len(pending) > _ALTERNATIVES_LIMIT:
            raise ToolFailure(f"The braces in `pattern` expand to more than {_ALTERNATIVES_LIMIT} alternatives.")
        current = pending.pop()
        braces = _INNERMOST_BRACES.search(current)
        if braces is None:
            done.append(current)
        else:
            before, after = current[: braces.start()], current[braces.end() :]
            pending.extend(before + choice + after for choice in reversed(braces[1].split(",")))
    return done


def split_at_wildcard(pattern: str) -> tuple[str, list[str]]:
    """Split a pattern into the folder before the first wildcard (or before the last name) and the remaining names.

    >>> split_at_wildcard("src/app/**/*.py")
    ('src/app', ['**', '*.py'])
    """
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    first = next((at for at, name in enumerate(names[:-1]) if _WILDCARD.search(name)), max(len(names) - 1, 0))
    return ("/" if pattern.startswith("/") else "") + "/".join(names[:first]), names[first:]


class GlobPattern:
    """A pattern as a sequence of names. Matching time is proportional to the names times the length of the path.

    A hidden folder matches only a name that starts with a dot. Hidden files match like other files.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._expressions = [re.compile(fnmatch.translate(name)) for name in names]

    def matches(self, path: Sequence[str]) -> bool:
        *folders, file = path
        return len(self._names) in self._after(file, self._within(folders))

    def leads_into(self, folders: Sequence[str]) -> bool:
        """Whether a path below these folders could match."""
        return any(at < len(self._names) for at in self._within(folders))

    def _within(self, folders: Sequence[str]) -> set[int]:
        positions = self._skipping({0})
        for folder in folders:
            positions = self._after(folder, positions, hidden=folder.startswith("."))
        return positions

    def _after(self, name: str, positions: set[int], *, hidden: bool = False) -> set[int]:
        following = set()
        for at in positions:
            if at == len(self._names) or (hidden and not self._names[at].startswith(".")):
                continue
            if self._names[at] == "**":
                following.add(at)
            elif self._expressions[at].match(name):
                following.add(at + 1)
        return self._skipping(following)

    def _skipping(self, positions: set[int]) -> set[int]:
        """Add the positions after each ``**``, which also matches no folder at all."""
        reached = set(positions)
        for at in positions:
            while at < len(self._names) and self._names[at] == "**":
                at += 1
                reached.add(at)
        return reached
