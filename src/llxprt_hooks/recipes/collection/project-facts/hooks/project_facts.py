#!/usr/bin/env python3
"""SessionStart: tells the model what the team has written down about the project, and how it is built and tested."""

from __future__ import annotations

import json
import os
import sys

from llxprt_hooks.recipes.collection.parts.project_approval import is_approved
from llxprt_hooks.recipes.collection.parts.project_tests import test_command

FACTS = ".llxprt/project-facts.md"  # what the team has written down
MAX_LENGTH = 4000  # characters for the model
MANIFESTS = {"pyproject.toml": "Python", "package.json": "JavaScript", "go.mod": "Go", "Cargo.toml": "Rust",
             "pom.xml": "Java", "build.gradle": "Java", "Gemfile": "Ruby", "composer.json": "PHP"}  # fmt: skip


def facts(project: str) -> str:
    lines = []
    languages = [name for file, name in MANIFESTS.items() if os.path.exists(os.path.join(project, file))]
    if languages:
        lines.append(f"Languages: {', '.join(dict.fromkeys(languages))}.")
    if command := test_command(project):
        lines.append(f"Tests: `{command}`.")
    try:
        with open(os.path.join(project, FACTS), encoding="utf-8", errors="replace") as opened:
            lines.append(opened.read(MAX_LENGTH).strip())
    except OSError:
        pass
    return "\n".join(lines)


def main() -> None:
    project = os.path.realpath(json.loads(sys.stdin.buffer.read())["cwd"])
    text = facts(project) if is_approved(project) else ""
    if text:
        print(json.dumps({"hookSpecificOutput": {"additionalContext": f"Facts about this project:\n{text}"}}))


if __name__ == "__main__":
    main()
