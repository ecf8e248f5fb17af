#!/usr/bin/env python3
"""BeforeTool: blocks a tool call that would write down, or use in a command, a key, token or password.

Looks at every text that a call carries, except at what it takes away (`old_string`): as it is, with string literals
joined ("AKIA…" + "…"), and with escapes and base64 decoded. What was found is never repeated in full:
reasons go to the model and into logs.
"""

from __future__ import annotations

import base64
import collections.abc
import json
import re
import sys
import unicodedata

from llxprt_hooks.recipes.collection.parts.fail_closed import decide
from llxprt_hooks.recipes.collection.parts.secret_scanning.context import in_context
from llxprt_hooks.recipes.collection.parts.secret_scanning.issuers import issued, long_texts

ALLOWED: collections.abc.Collection[str] = {
    # Texts that only look like a secret, such as the keys of test fixtures.
}

REPLACED = {"old_string", "old_str", "oldText"}
PATHS = {"file_path", "absolute_path", "path", "dir_path"}

MAX_LENGTH = 2_000_000  # characters of a call; longer ones are refused

# In files of programs, a value needs quotes: without them, it is the name of a variable.
CODE = (".py", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".rs", ".java", ".kt", ".swift", ".c", ".h", ".cc",
        ".cpp", ".hpp", ".cs", ".rb", ".php", ".scala", ".lua", ".pl", ".html", ".vue", ".svelte", ".css", ".scss",
        ".sql", ".graphql", ".proto", ".tf", ".hcl", ".nix", ".dart", ".ex", ".exs", ".clj", ".hs", ".zig", ".m",
        ".r", ".jl", ".groovy", ".gradle", ".ipynb")  # fmt: skip


def texts(value: object, name: str = "") -> collections.abc.Iterator[tuple[str, str]]:
    """Every text in the arguments, with the name of the argument. Names are texts too."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in REPLACED:
                yield "", key
                yield from texts(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, name)


def decoded(text: str) -> collections.abc.Iterator[str]:
    """The text as it is meant: literals joined, escapes and base64 decoded."""
    joined = re.sub(r"['\"`]\s{0,9}(?:\+|\.\.?|&|,|\\)?\s{0,9}[rbfu]?['\"`]", "", text)
    joined = re.sub(r"\\\r?\n\s{0,40}", "", joined)
    if joined != text:
        yield joined
    escaped = re.sub(r"\\x([0-9a-fA-F]{2})|\\u00([0-9a-fA-F]{2})|%([2-7][0-9a-fA-F])|&#(\d{2,3});", character, text)
    if escaped != text:
        yield escaped
    for found in re.finditer(r"[A-Za-z0-9+/_-]{24,4000}={0,2}", text):
        data = found.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            inner = base64.b64decode(data + "=" * (-len(data) % 4)).decode("ascii")
        except ValueError:
            continue
        if inner.isprintable() or "\n" in inner:
            yield inner


def character(found: re.Match[str]) -> str:
    number = next(each for each in found.groups() if each)
    return chr(int(number) % 128 if found.group().startswith("&") else int(number, 16))


def secrets(text: str, name: str = "", bare: bool = True) -> collections.abc.Iterator[tuple[str, str, int]]:
    """What is found: its kind, the text, and where it begins."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = unicodedata.normalize("NFKC", re.sub("[\u00ad\u200b-\u200f\u2060\ufeff]", "", text))
    yield from issued(text)
    if name in PATHS:
        return
    yield from in_context(text, name, bare)
    seen = set(long_texts(text))
    for reading in decoded(text):
        for kind, secret, _ in issued("\n".join(each for each in long_texts(reading) if each not in seen)):
            yield kind, secret, 0


def is_code(given: dict[str, object]) -> bool:
    path = given.get("file_path") or given.get("absolute_path") or given.get("path")
    return isinstance(path, str) and path.lower().endswith(CODE)


def judge(given: dict[str, object]) -> str | None:
    """Why a call with these arguments is blocked, or None."""
    for name, text in texts(given):
        if len(text) > MAX_LENGTH:
            return f"`{name}` is too long to be searched for secrets: write it in parts."
        for kind, secret, at in secrets(text, name, bare=not is_code(given)):
            if secret in ALLOWED:
                continue
            line = text.count("\n", 0, at) + 1
            where = f"Line {line} of `{name}`" if name else "The name of an argument"
            return (
                f"{where} has what looks like {kind} ({secret[:4]}…, {len(secret)} characters). Do not "
                "write it down: read it from the environment or a secret store. If it is not a secret, ask the user to "
                "add it to ALLOWED in the script of this hook, secret_scanning.py."
            )
    return None


def main() -> str | None:
    return judge(json.loads(sys.stdin.buffer.read())["tool_input"])


if __name__ == "__main__":
    decide(main, unchecked="this call cannot be searched for secrets")
