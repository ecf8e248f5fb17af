#!/usr/bin/env python3
"""Third of three: blocks a file that does not even parse. It sees the text as the two before it left it."""

from __future__ import annotations

import ast
import json
import sys


def problem(path: str, content: str) -> str | None:
    try:
        if path.endswith((".py", ".pyi")):
            ast.parse(content)
        elif path.endswith(".json"):
            json.loads(content)
        elif path.endswith(".toml"):
            try:
                import tomllib
            except ImportError:  # before Python 3.11
                return None
            tomllib.loads(content)
    except (SyntaxError, ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    return None


call = json.loads(sys.stdin.buffer.read())
content, path = call["tool_input"].get("content"), call["tool_input"].get("file_path")
if isinstance(content, str) and isinstance(path, str):
    found = problem(path, content)
    if found:
        print(f"{path} was not written, because it would not parse: {found}", file=sys.stderr)
        sys.exit(2)
