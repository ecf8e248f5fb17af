#!/usr/bin/env python3
"""AfterAgent: runs the tests when the agent is done, and lets it continue if they fail."""

from __future__ import annotations

import json
import os
import sys

from llxprt_hooks.recipes.collection.parts.project_approval import is_approved
from llxprt_hooks.recipes.collection.parts.project_tests import run_tests, test_command

COMMAND = os.environ.get("WORK_UNTIL_TESTS_PASS_COMMAND", "")  # what to run; found out if empty
TIME_LIMIT = 240  # seconds; the hook's own `timeout` has to be longer
MAX_LENGTH = 4000  # characters of output for the model


def main() -> None:
    project = os.path.realpath(json.loads(sys.stdin.buffer.read())["cwd"])
    command = (COMMAND or test_command(project)) if is_approved(project) else None
    if not command:
        return
    passed, words = run_tests(command, project, TIME_LIMIT, MAX_LENGTH)
    if passed is False:
        print(json.dumps({"decision": "block", "reason": f"You are not done yet. {words}"}))
    elif passed is None:
        print(json.dumps({"systemMessage": words}))


if __name__ == "__main__":
    main()
