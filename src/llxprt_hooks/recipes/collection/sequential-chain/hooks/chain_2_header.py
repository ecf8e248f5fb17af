#!/usr/bin/env python3
"""Second of three: puts the project's header, .llxprt/header.txt, above source files that lack it."""

from __future__ import annotations

import json
import os
import sys

COMMENTS = {
    ("# ", ""): (".py", ".sh", ".rb", ".pl", ".yaml", ".yml", ".toml", ".tf"),
    ("// ", ""): (".js", ".mjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cc", ".cpp", ".cs"),
    ("/* ", " */"): (".css",),
    ("<!-- ", " -->"): (".html", ".xml"),
}


def header(path: str, lines: list[str]) -> str | None:
    for (begin, end), names in COMMENTS.items():
        if path.endswith(names):
            return "".join(f"{begin}{line}{end}".rstrip() + "\n" for line in lines)
    return None


call = json.loads(sys.stdin.buffer.read())
content, path = call["tool_input"].get("content"), call["tool_input"].get("file_path")
source = os.path.join(call["cwd"], ".llxprt", "header.txt")
if isinstance(content, str) and isinstance(path, str) and content and os.path.isfile(source):
    with open(source, encoding="utf-8") as opened:
        lines = opened.read().strip("\n").split("\n")
    wanted = header(path, lines)
    if wanted and lines[0] not in content[:2000]:
        first, rest = "", content
        if content.startswith("#!"):  # the line that names the interpreter stays the first
            first, _, rest = content.partition("\n")
            first += "\n"
        print(json.dumps({"hookSpecificOutput": {"tool_input": {"content": f"{first}{wanted}\n{rest.lstrip()}"}}}))
