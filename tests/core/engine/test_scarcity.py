"""Hooks when resources are scarce or change during a run: a decision is not lost because of that."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from llxprt_hooks import Config, HookEventName, fire_before_tool_hook
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.core.protocol.exit_codes import read_outcome
from llxprt_hooks.process import Completed
from llxprt_hooks.process.shell.environment import process_environment
from tests.support.hooks import hook, payload
from tests.support.processes import run_python

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


@pytest.mark.slow
def test_more_hooks_at_once_than_there_are_descriptors_for() -> None:
    told = run_python("-c", MANY)

    assert told.stdout == "deny no\n", told.stderr


FLOOD = """
import asyncio, resource, sys, threading
from llxprt_hooks import Config, fire_before_tool_hook

descriptors, threads, events = map(int, sys.argv[1:])
deny = {"type": "command", "command": "sleep 0.02; exit 2"}
config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [deny]}]})
resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
blocked = []

async def flood():
    outputs = await asyncio.gather(*(fire_before_tool_hook(config, "write_file", {}) for _ in range(events)))
    blocked.extend(output is not None and output.is_blocking_decision() for output in outputs)

flooding = [threading.Thread(target=lambda: asyncio.run(flood())) for _ in range(threads)]
for each in flooding:
    each.start()
for each in flooding:
    each.join()
print(len(blocked), sum(blocked))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("descriptors", "threads"), [(1024, 1), (64, 1), (24, 1), (256, 4)])
def test_no_call_of_a_flood_bypasses_a_guard(descriptors: int, threads: int) -> None:
    arguments = [str(descriptors), str(threads), str(400 // threads)]

    told = run_python("-c", FLOOD, *arguments, seconds=120)

    assert told.stdout == "400 400\n", told.stderr


@pytest.mark.slow
async def test_a_configuration_limits_how_many_hooks_run_at_once(folder: Path) -> None:
    command = "touch running.$$; ls running.* | wc -l >> seen; sleep 0.05; rm running.$$"
    hooks = [{"type": "command", "command": f"{command} # {number}"} for number in range(9)]
    config = Config(enable_hooks=True, working_dir=folder, hooks={"BeforeTool": [{"hooks": hooks}]}, max_processes=3)

    await asyncio.gather(*(fire_before_tool_hook(config, "write_file", {}) for _ in range(3)))

    seen = [int(count) for count in (folder / "seen").read_text().split()]
    assert len(seen) == 27
    assert max(seen) <= 3


@pytest.mark.slow
async def test_the_timeout_of_a_hook_that_waits_counts_from_its_start(folder: Path) -> None:
    async def blocked(milliseconds: int) -> list[bool]:
        """Twelve calls take longer than the timeout of one."""
        hook = {"type": "command", "command": f"sleep {milliseconds / 1000}; exit 2", "timeout": 10 * milliseconds}
        hooks = {"BeforeTool": [{"hooks": [hook]}]}
        config = Config(enable_hooks=True, working_dir=folder, hooks=hooks, max_processes=1)
        outputs = await asyncio.gather(*(fire_before_tool_hook(config, "write_file", {}) for _ in range(12)))
        return [output is not None and output.is_blocking_decision() for output in outputs]

    # A busy machine may need more than the timeout for one of them.
    assert all(await blocked(200)) or all(await blocked(400)) or all(await blocked(800))


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="`max_processes` must be at least 1, found 0"):
        Config(max_processes=0)


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
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = [hook(f"sleep 0.05; true {number}") for number in range(12)]
    caplog.set_level(logging.DEBUG, logger="llxprt:core:hooks:process")
    runner = HookRunner(working_dir=lambda: str(folder))  # before the limit is lowered, which it would respect

    with descriptor_limit(len(os.listdir("/dev/fd")) + 24):
        results = await runner.execute_hooks_parallel(hooks, BEFORE_TOOL, payload(BEFORE_TOOL, folder))

    assert "waiting for another program to end" in caplog.text
    assert [result.error for result in results] == [None] * len(hooks)


async def test_a_hook_that_could_be_started_but_not_watched_is_not_started_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A process is already running when its input is written, and that is when the descriptors run out here."""
    caplog.set_level(logging.DEBUG, logger="llxprt:core:hooks:runner")

    with ExitStack() as scarcity:

        class Greedy:
            def __str__(self) -> str:
                scarcity.enter_context(descriptor_limit(0))
                return "mine"

        fields = {"tool_input": {"value": Greedy()}}
        hook_input = payload(BEFORE_TOOL, folder, **fields)
        [result] = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(
            [hook("cat")], BEFORE_TOOL, hook_input
        )

    assert "this process has too many files open" in str(result.error)
    assert "cannot be started directly" not in caplog.text


NOTHING_LEFT = """
import asyncio, os, resource, sys
from llxprt_hooks import Config, Hooks

closed = sys.argv[2] == "closed"
command = {"type": "command", "command": "exit 2", "failClosed": closed}
commands = Hooks(Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [command]}]}))
functions = Hooks()
functions.on("BeforeTool", lambda payload: None, threaded=True, fail_closed=closed)

async def calls():
    for hooks in (commands, functions):
        print((await hooks.run_tool("rm", {}, lambda _: "RAN")).llm_content)

async def main():
    if sys.argv[1] == "descriptors":
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        try:
            while True:
                os.open(os.devnull, os.O_RDONLY)
        except OSError:
            pass
    else:
        if os.getuid() == 0:
            os.setuid(100_000 + os.getpid())  # root has no limit, and this user no other process
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    await calls()

asyncio.run(main())
"""


def without(what: str, failing: str) -> list[str]:
    """Return what a command hook and a threaded function let a tool say, with nothing left to start them with."""
    told = run_python("-c", NOTHING_LEFT, what, failing)
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.requirement("HOOK-110")
@pytest.mark.parametrize(
    ("what", "reasons"),
    [
        ("descriptors", ["too many files open", "RAN"]),
        ("processes", ["allows no further process", "can't start new thread"]),
    ],
)
def test_a_guard_that_cannot_be_started_for_lack_of_resources_blocks_if_it_fails_closed(
    what: str, reasons: list[str]
) -> None:
    """A program that uses up all processes does not switch off such a guard."""
    lines = without(what, "closed")
    assert len(lines) == len(reasons)
    assert all(reason in line for reason, line in zip(reasons, lines, strict=True)), lines


@pytest.mark.slow
@pytest.mark.requirement("HOOK-110")
@pytest.mark.parametrize("what", ["descriptors", "processes"])
def test_any_other_hook_that_cannot_be_started_for_lack_of_resources_fails_open(what: str) -> None:
    assert without(what, "open") == ["RAN", "RAN"]


END_OF_STACK = """
import asyncio, logging, sys
from llxprt_hooks import Config, Hooks

logging.disable()
seen = set()

def guard(payload):
    seen.add(str(payload["tool_input"]))
    return {"decision": "deny"}

functions = Hooks()
functions.on("BeforeTool", guard)
command = {"type": "command", "command": "exit 2"}
commands = Hooks(Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [command]}]}))
arguments = {"list": [{"odd": "\\udc80"}]}
ended = []

async def call(hooks, depth):
    if depth:
        return await call(hooks, depth - 1)
    return (await hooks.run_tool("rm", arguments, lambda _: ended.append("RAN"))).llm_content

def call_sync(hooks, depth):
    if depth:
        return call_sync(hooks, depth - 1)
    return hooks.sync.run_tool("rm", arguments, lambda _: ended.append("RAN")).llm_content

for hooks in (functions, commands):
    hooks.sync.run_tool("rm", {}, lambda _: "RAN")
    for depth in range(sys.getrecursionlimit() - 80, sys.getrecursionlimit()):
        for calling in (lambda: asyncio.run(call(hooks, depth)), lambda: call_sync(hooks, depth)):
            try:
                calling()
            except RecursionError:
                ended.append("raised")
print(sorted(set(ended)), sorted(seen - {"{}"}))
"""


@pytest.mark.slow
def test_near_the_end_of_the_stack_no_guard_is_skipped_or_sees_less_than_the_tool_gets() -> None:
    """An agent that calls agents can get there, and the model decides how deep they are nested."""
    told = run_python("-W", "ignore", "-c", END_OF_STACK, seconds=120)

    assert told.stdout == "['raised'] [\"{'list': [{'odd': '\\\\udc80'}]}\"]\n", told.stderr


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
    ("stdout", "reason"),
    [
        (b'{"decision": "deny", "reason": "no"}', "no"),
        (b'{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}', "no"),
        (b'{"continue": false, "stopReason": "no"}', "no"),
        (b'{"decision": "allow"}', None),
        (b'{"hookSpecificOutput": {"permissionDecision": "ask"}}', None),
        (b"no", None),
        (b"", None),
    ],
)
def test_an_explicit_refusal_counts_whatever_became_of_the_exit_status(stdout: bytes, reason: str | None) -> None:
    reading = read_outcome(Completed(exit_code=None, stdout=stdout))

    assert not reading.success
    assert reading.output is None or reading.output.is_blocking_decision()
    assert (None if reading.output is None else reading.output.get_effective_reason()) == reason


LOST = """
import asyncio, fcntl, os, signal, sys, threading
from llxprt_hooks import Config, execute_tool_with_hooks

def no_ioctl(*arguments):
    raise OSError("as before Linux 6.15")

def reap():
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            pass

fcntl.ioctl = no_ioctl
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    threading.Thread(target=reap, daemon=True).start()

async def call(command, **fields):
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": command, **fields}]}]}
    result = await execute_tool_with_hooks(Config(enable_hooks=True, hooks=hooks), "rm", {}, lambda _: "RAN")
    print(str(result.llm_content)[:33])

async def main():
    permission = '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not yours"}}'
    await call("echo '{\\"decision\\": \\"deny\\", \\"reason\\": \\"no\\"}'; sleep 0.05")
    await call(f"echo '{permission}'; sleep 0.05")
    await call("sleep 0.05; exit 2", failClosed=True)
    await call("sleep 0.05", failClosed=True)
    await call("sleep 0.05")

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ignored", "reaped by another thread"])
def test_a_lost_exit_status_is_a_failure_and_loses_no_explicit_refusal(how: str, folder: Path) -> None:
    told = run_python("-c", LOST, how, cwd=folder)

    closed = "blocked because failClosed is set"
    lines = told.stdout.splitlines()
    assert lines[:2] == ["no", "not yours"], told.stderr
    if how == "ignored":
        assert lines[2:] == [closed, closed, "RAN"], told.stderr
