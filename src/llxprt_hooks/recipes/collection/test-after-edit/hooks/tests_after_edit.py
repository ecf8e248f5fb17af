#!/usr/bin/env python3
"""AfterTool: runs the tests after an edit, and shows the model the result.

Edits of one answer are made in parallel; their tests are run one after another, and an edit that was made before a
run began takes over that run's result instead of asking for another.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from llxprt_hooks.recipes.collection.parts.call_paths import paths_in
from llxprt_hooks.recipes.collection.parts.locked_file import locked_file
from llxprt_hooks.recipes.collection.parts.project_approval import is_approved

COMMAND = os.environ.get("TEST_AFTER_EDIT_COMMAND", "")  # what to run; found out if empty
TIME_LIMIT = 120  # seconds; the hook's own `timeout` has to be longer
MAX_LENGTH = 4000  # characters of output for the model
NOT_CODE = (".md", ".rst", ".txt", ".adoc", ".svg", ".png", ".jpg", ".gif", ".ico", ".lock", ".csv", "LICENSE")


def test_command(project: str) -> str | None:
    """How this project is tested, or None."""
    if COMMAND:
        return COMMAND

    def has(*names: str) -> bool:
        return any(os.path.exists(os.path.join(project, name)) for name in names)

    if has("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "conftest.py") and has("tests", "test"):
        for own in (".venv/bin/pytest", "venv/bin/pytest"):
            if has(own):
                return f"{own} -q -x"
        if shutil.which("pytest"):
            return "pytest -q -x"
    if has("package.json"):
        with open(os.path.join(project, "package.json"), encoding="utf-8") as opened:
            script = (json.load(opened).get("scripts") or {}).get("test", "")
        if script and "no test specified" not in script:
            return "npm test --silent"
    if has("go.mod"):
        return "go test ./..."
    if has("Cargo.toml"):
        return "cargo test --quiet"
    if has("Makefile"):
        with open(os.path.join(project, "Makefile"), encoding="utf-8", errors="replace") as opened:
            if any(line.startswith("test:") for line in opened):
                return "make test"
    return None


def run(command: str, project: str) -> str:
    """Run the tests; all that they started ends with them, or with this hook."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=os.setpgrp,  # process_group= needs Python 3.11
    )

    def end() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def stop(*_: object) -> None:
        end()
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)
    started = time.monotonic()
    try:
        output = process.communicate(timeout=TIME_LIMIT)[0].decode("utf-8", "replace").strip()
    except subprocess.TimeoutExpired:
        end()
        return f"`{command}` took longer than {TIME_LIMIT} s and was ended; run the tests that matter yourself."
    took = time.monotonic() - started
    if process.returncode == 0:
        return f"The tests pass (`{command}`, {took:.1f} s)."
    if process.returncode in (126, 127):
        print(f"`{command}` cannot be run: {output}", file=sys.stderr)
        sys.exit(1)
    shown = output if len(output) <= MAX_LENGTH else f"[…]\n{output[-MAX_LENGTH:]}"
    return f"The tests fail (`{command}`, exit code {process.returncode}):\n{shown}"


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
        result = run(command, project)
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
    command = test_command(project) if is_approved(project) else None
    if command:
        print(json.dumps({"hookSpecificOutput": {"additionalContext": outcome(command, project, asked)}}))


if __name__ == "__main__":
    main()
