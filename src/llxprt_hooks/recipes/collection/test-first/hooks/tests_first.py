#!/usr/bin/env python3
"""BeforeTool: no code without a test. A write to a source file is blocked until there is a test for it.

With TEST_FIRST=changed in the environment the test also has to be new or changed since the last commit: then every
change of behaviour begins with a test.
"""

from __future__ import annotations

import collections.abc
import json
import os
import re
import subprocess
import sys

from llxprt_hooks.recipes.collection.parts.call_paths import paths_in
from llxprt_hooks.recipes.collection.parts.fail_closed import decide
from llxprt_hooks.recipes.collection.parts.project_approval import is_approved

MODE = os.environ.get("TEST_FIRST", "exists")

# For a source file `name.ext`: the names that its test may have, anywhere in the project.
TESTS = {
    (".py",): ["test_{}.py", "{}_test.py", "test_{}s.py"],
    (".js", ".jsx", ".mjs", ".ts", ".tsx"): ["{}.test{}", "{}.spec{}", "{}-test{}"],
    (".go",): ["{}_test.go"],
    (".rb",): ["{}_spec.rb", "test_{}.rb", "{}_test.rb"],
    (".java",): ["{}Test.java", "{}Tests.java", "{}IT.java"],
    (".kt",): ["{}Test.kt"],
    (".cs",): ["{}Tests.cs", "{}Test.cs"],
    (".php",): ["{}Test.php"],
    (".swift",): ["{}Tests.swift"],
    (".ex",): ["{}_test.exs"],
    (".rs",): ["{}_test.rs", "test_{}.rs", "{}_tests.rs"],
    (".c", ".cc", ".cpp"): ["test_{}{}", "{}_test{}", "{}_tests{}"],
}
SCRIPT_ENDINGS = [".js", ".jsx", ".mjs", ".ts", ".tsx"]

# No tests are asked for these.
EXEMPT = re.compile(
    r"(^|/)(__init__|__main__|conftest|setup|manage|version|_version|settings|config|index|main|mod|types?)\.\w+$"
    r"|\.d\.ts$|\.config\.\w+$|(^|/)(migrations?|examples?|docs?|scripts?|bench(marks)?|\.[^/]+)/"
)
IS_TEST = re.compile(
    r"(^|/)(tests?|specs?|__tests__|testing)/|(^|/)(test_|conftest)|[._-](test|spec)s?\.\w+$|Tests?\.\w+$|IT\.java$"
)
SKIPPED = {"node_modules", "venv", "env", "dist", "build", "target", "vendor", "__pycache__", "site-packages"}


def wanted_tests(path: str) -> list[str]:
    stem, end = os.path.splitext(os.path.basename(path))
    end = end.lower()
    for ends, patterns in TESTS.items():
        if end in ends:
            others = SCRIPT_ENDINGS if end in SCRIPT_ENDINGS else [end]
            return [pattern.format(stem, other) for pattern in patterns for other in others]
    return []


def existing(names: list[str], project: str) -> collections.abc.Iterator[str]:
    wanted = set(names)
    for folder, folders, files in os.walk(project):
        folders[:] = [each for each in folders if each not in SKIPPED and not each.startswith(".")]
        for name in wanted.intersection(files):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8", errors="replace") as opened:
                if re.search(r"(?i)assert|expect|should|test|require|check", opened.read(1_000_000)):
                    yield path  # an empty file is not a test


def is_changed(path: str, project: str) -> bool:
    """Whether a file differs from the last commit; every file does without git, or if the project is not approved."""
    if not is_approved(project):  # `git status` runs filters that the repository names
        return True
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain", "--", path],
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 0 or bool(done.stdout.strip())


def reason_to_block(given: str, project: str) -> str | None:
    """Why this file needs a test first, or None."""
    path = os.path.relpath(os.path.realpath(os.path.join(project, given)), project)
    names = wanted_tests(path)
    if not names or path.startswith("..") or EXEMPT.search(path) or IS_TEST.search(path):
        return None
    tests = list(existing(names, project))
    if not tests:
        return (
            f"there is no test for {path}. Write one, for example {names[0]}, run it and see it fail. "
            "Then repeat this change."
        )
    if MODE == "changed" and not any(is_changed(test, project) for test in tests):
        shown = ", ".join(os.path.relpath(test, project) for test in tests[:3])
        return (
            f"{shown} has not changed since the last commit. Add a test for this change, run it and see it fail. "
            "Then repeat this change."
        )
    return None


def main() -> str | None:
    call = json.loads(sys.stdin.buffer.read())
    project, has_tests = os.path.realpath(call["cwd"]), "#[test]" in json.dumps(call["tool_input"])  # beside the code
    paths = [path for path in paths_in(call["tool_input"], project) if not (path.lower().endswith(".rs") and has_tests)]
    return next(filter(None, (reason_to_block(path, project) for path in paths)), None)


if __name__ == "__main__":
    decide(main, "Test first: {}")
