"""Bundles the script of a recipe into one file that needs no other.

In the collection, scripts import the code that they share from ``collection/parts``. A user gets the code itself: one
file to read, copy and approve, which stays the same when recipes of another version are installed beside it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

PARTS: Final = Path(__file__).parent / "collection" / "parts"
PACKAGE: Final = "llxprt_hooks.recipes.collection.parts."

FUNCTIONS: Final = re.compile(r"^(?=(?:(?:#.*)?\n)*(?:@|def |class ))", re.MULTILINE)
"""Where the first function or class begins, with the comments above it."""


def bundled(script: str) -> str:
    """Return a script with the parts that it imports: after its settings, which users change, before its functions."""
    if PACKAGE not in script:
        return script
    imports: set[str] = set()
    parts: dict[str, str] = {}
    opening, body = _divided(script, imports, parts)
    settings, functions = FUNCTIONS.split(body, maxsplit=1)
    beginning = "\n".join([opening, *sorted(imports), settings])
    return "\n\n\n".join([beginning.rstrip(), *parts.values(), functions.lstrip("\n")])


def _divided(source: str, imports: set[str], parts: dict[str, str]) -> tuple[str, str]:
    """Return what is before and after the imports of a script or part, and collect what it imports."""
    lines, top = source.split("\n"), ast.parse(source).body
    found = [node for node in top if isinstance(node, ast.Import | ast.ImportFrom) or _is_for_type_checker(node)]
    for node in found:
        if isinstance(node, ast.Import):
            imports.add(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom):
            _add_part(node, imports, parts)
    begin, end = (found[0].lineno - 1, found[-1].end_lineno) if found else (top[0].end_lineno, top[0].end_lineno)
    return "\n".join(lines[:begin]), "\n".join(lines[end:])


def _is_for_type_checker(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _add_part(node: ast.ImportFrom, imports: set[str], parts: dict[str, str]) -> None:
    if node.module == "__future__":
        imports.add(f"{ast.unparse(node)}\n")  # sorted before all others, and a blank line after it
        return
    name = (node.module or "").removeprefix(PACKAGE)
    if name == node.module:
        raise ValueError(
            f"`{ast.unparse(node)}` is not supported in a bundled script: use a plain `import`, or import a part"
        )
    if name not in parts:
        source = PARTS.joinpath(*name.split(".")).with_suffix(".py").read_text("utf-8")
        docstring, body = _divided(source, imports, parts)
        heading = [f"# {line}".rstrip() for line in docstring.strip('"\n').splitlines()]
        parts[name] = "\n".join([*heading, body]).strip("\n")
