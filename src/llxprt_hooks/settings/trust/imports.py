"""Finds what a Python script imports, without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

MAX_SOURCE: Final = 1024 * 1024
"""Larger scripts are not parsed: it would take too long."""

SHADOWING: Final = sys.stdlib_module_names | {"sitecustomize", "usercustomize"}
"""Modules that a script can import without naming them, because the standard library imports them."""

_IMPORTING: Final = frozenset({"import_module", "__import__"})


class Import(NamedTuple):
    """A module that a script imports: ``level`` is the number of leading dots."""

    level: int
    parts: tuple[str, ...]


@lru_cache(maxsize=16)  # settings are read again and again, and scripts rarely change
def imports_of(source: bytes) -> frozenset[Import] | None:
    """Return what a script imports, also by a function call with a literal name; None if it cannot be parsed.

    >>> sorted(imports_of(b"import a.b; from . import c"))
    [Import(level=0, parts=('a', 'b')), Import(level=1, parts=()), Import(level=1, parts=('c',))]
    """
    if len(source) > MAX_SOURCE:
        return None
    try:
        tree = ast.parse(source)
        return frozenset(found for node in ast.walk(tree) for found in _imports(node))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports(node: ast.AST) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield Import(0, tuple(alias.name.split(".")))
        case ast.ImportFrom(module=module, names=names, level=level):
            parts = tuple(module.split(".")) if module else ()
            yield Import(level, parts)
            for alias in names:  # may be a module too
                if alias.name != "*":
                    yield Import(level, (*parts, alias.name))
        case ast.Call(
            func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]
        ) if called in _IMPORTING:
            bare = name.lstrip(".")
            yield Import(len(name) - len(bare), tuple(bare.split(".")))
