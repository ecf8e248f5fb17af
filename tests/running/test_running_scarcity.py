"""Hooks where something is scarce or changes under way: a decision that was made is not lost over it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.protocol.exit_codes import ProcessOutcome, read_outcome
from llxprt_hooks.shell.environment import process_environment

MANY = """
import asyncio, resource
from llxprt_hooks import Config, fire_before_tool_hook

hooks = [{"type": "command", "command": f"sleep 0.05; true {number}"} for number in range(40)]
deny = {"type": "command", "command": "echo no >&2; exit 2"}
config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [*hooks, deny]}]})
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
output = asyncio.run(fire_before_tool_hook(config, "write_file", {}))
print(output.decision, output.reason)
"""


def test_more_hooks_at_once_than_there_are_descriptors_for() -> None:
    told = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=60, check=False)

    assert told.stdout == "deny no\n", told.stderr


def test_a_variable_that_another_thread_changes() -> None:
    done = threading.Event()
    interval = sys.getswitchinterval()

    def change() -> None:
        while not done.is_set():
            os.environ["LLXPRT_TEST_CHANGING"] = "set"
            del os.environ["LLXPRT_TEST_CHANGING"]

    thread = threading.Thread(target=change)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        seen = {process_environment().get("LLXPRT_TEST_CHANGING") for _ in range(3000)}
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)

    assert seen <= {"set", None}
    assert "LLXPRT_TEST_CHANGING" not in process_environment()


async def test_a_shell_that_has_moved_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tmp_path / "first"
    first.mkdir()
    (first / "bash").symlink_to(shutil.which("bash") or "/bin/sh")
    monkeypatch.setenv("PATH", f"{first}:{os.environ['PATH']}")
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks)

    for _ in range(2):
        output = await fire_before_tool_hook(config, "write_file", {})
        assert output is not None
        assert output.is_blocking_decision()
        (first / "bash").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("stdout", "blocks"),
    [(b'{"decision": "deny", "reason": "no"}', True), (b'{"decision": "allow"}', False), (b"no", False), (b"", False)],
)
def test_an_explicit_block_counts_whatever_became_of_the_exit_status(stdout: bytes, blocks: bool) -> None:
    reading = read_outcome(ProcessOutcome(exit_code=None, stdout=stdout))

    assert not reading.success
    assert (reading.output is not None and reading.output.is_blocking_decision()) is blocks
