"""Hooks where something is scarce or changes under way: a decision that was made is not lost over it."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from llxprt_hooks import Config, HookEventName, fire_before_tool_hook
from llxprt_hooks.engine.runner import HookRunner
from llxprt_hooks.protocol.exit_codes import ProcessOutcome, read_outcome
from llxprt_hooks.shell.environment import process_environment
from tests.running.running_hooks import hook, payload

BEFORE_TOOL = HookEventName.BEFORE_TOOL

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


@contextmanager
def descriptor_limit(limit: int) -> Iterator[None]:
    """This process opens no descriptor from this number on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_hook_without_descriptors_waits_until_another_has_ended(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = [hook(f"sleep 0.05; true {number}") for number in range(12)]
    caplog.set_level(logging.DEBUG, logger="llxprt:core:hooks:runner")

    with descriptor_limit(len(os.listdir("/dev/fd")) + 24):
        results = await HookRunner().execute_hooks_parallel(hooks, BEFORE_TOOL, payload(BEFORE_TOOL, project))

    assert "waiting for another hook to end" in caplog.text
    assert [result.error for result in results] == [None] * len(hooks)


async def test_a_hook_that_could_be_started_but_not_watched_is_not_started_again(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A process is already running when its input is written, and that is when the descriptors run out here."""
    caplog.set_level(logging.DEBUG, logger="llxprt:core:hooks:runner")

    with ExitStack() as scarcity:

        class Greedy:
            def __str__(self) -> str:
                scarcity.enter_context(descriptor_limit(0))
                return "mine"

        fields = {"tool_input": {"value": Greedy()}}
        hook_input = payload(BEFORE_TOOL, project, **fields)
        [result] = await HookRunner().execute_hooks_parallel([hook("cat")], BEFORE_TOOL, hook_input)

    assert "this process has too many files open" in str(result.error)
    assert "cannot be started directly" not in caplog.text


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
