"""How a project is tested, and its tests, run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time


def test_command(project: str) -> str | None:
    """How this project is tested, or None."""

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


def run_tests(command: str, project: str, time_limit: int, max_length: int) -> tuple[bool | None, str]:
    """Run the tests; all that they started ends with them, or with this hook. None: they took too long."""
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
        sys.exit("ended before the tests were done")

    signal.signal(signal.SIGTERM, stop)
    started = time.monotonic()
    try:
        output = process.communicate(timeout=time_limit)[0].decode("utf-8", "replace").strip()
    except subprocess.TimeoutExpired:
        end()
        return None, f"`{command}` took longer than {time_limit} s and was ended; run the tests that matter yourself."
    took = time.monotonic() - started
    if process.returncode == 0:
        return True, f"The tests pass (`{command}`, {took:.1f} s)."
    if process.returncode in (126, 127):
        sys.exit(f"`{command}` cannot be run: {output}")
    shown = output if len(output) <= max_length else f"[…]\n{output[-max_length:]}"
    return False, f"The tests fail (`{command}`, exit code {process.returncode}):\n{shown}"
