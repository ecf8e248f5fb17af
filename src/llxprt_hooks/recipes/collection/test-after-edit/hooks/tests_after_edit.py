#!/usr/bin/env python3
"""AfterTool: runs the tests after an edit, and shows the model the result.

Edits of one answer are made in parallel; their tests are run one after another, and an edit that was made before a
run began takes over that run's result instead of asking for another.
"""

from __future__ import annotations

import json
import os
import sys
import time

from llxprt_hooks.recipes.collection.parts.call_paths import paths_in
from llxprt_hooks.recipes.collection.parts.locked_file import locked_file
from llxprt_hooks.recipes.collection.parts.project_approval import is_approved
from llxprt_hooks.recipes.collection.parts.project_tests import run_tests, test_command

COMMAND = os.environ.get("TEST_AFTER_EDIT_COMMAND", "")  # what to run; found out if empty
TIME_LIMIT = 120  # seconds; the hook's own `timeout` has to be longer
MAX_LENGTH = 4000  # characters of output for the model
NOT_CODE = (".md", ".rst", ".txt", ".adoc", ".svg", ".png", ".jpg", ".gif", ".ico", ".lock", ".csv", "LICENSE")


def outcome(command: str, project: str, asked: float) -> str:
    """The result of a run that began after `asked`: another hook's if there is one, else one of our own."""
    with locked_file("test-after-edit", f"{project}\0{command}") as state:
        try:
            last = json.load(state)
        except ValueError:
            last = {}
        if "result" in last and last["began"] > asked:
            return str(last["result"])
        began = time.time()
        _, result = run_tests(command, project, TIME_LIMIT, MAX_LENGTH)
        state.seek(0)
        state.truncate()
        json.dump({"began": began, "result": result}, state)
        return result


def main() -> None:
    asked = time.time()
    call = json.loads(sys.stdin.buffer.read())
    project = os.path.realpath(call["cwd"])
    paths = paths_in(call["tool_input"], project)
    if call["tool_response"].get("error") or (paths and all(path.endswith(NOT_CODE) for path in paths)):
        return
    command = (COMMAND or test_command(project)) if is_approved(project) else None
    if command:
        print(json.dumps({"hookSpecificOutput": {"additionalContext": outcome(command, project, asked)}}))


if __name__ == "__main__":
    main()
