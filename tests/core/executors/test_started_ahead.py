"""Warm hooks that are not Python scripts: their next process is started before the event (D-167).

Nothing here depends on how fast a process starts: ``waiting`` waits for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, HookExecutionResult, HookObserver, Hooks
from llxprt_hooks.core.executors import watched_files
from llxprt_hooks.core.executors.command import CommandExecutor
from llxprt_hooks.core.executors.watched_files import FilesOfCommands
from llxprt_hooks.process import ahead as ahead_module
from llxprt_hooks.process.ahead import Start, ahead
from llxprt_hooks.process.warm import zygotes
from tests.support.processes import DEADLINE, end, lives, pids_in, run_python, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a process with its input")

COUNTER = 'read -r line; echo $$ >> pids; printf \'{"systemMessage": "%s"}\' "${#line}"'


class Recorder(HookObserver):
    def __init__(self) -> None:
        self.results: list[HookExecutionResult] = []

    def hook_ended(self, result: HookExecutionResult) -> None:
        self.results.append(result)


class Agent:
    """A program with one warm hook."""

    def __init__(self, folder: Path, command: str, **fields: Any) -> None:
        self.folder = folder
        self.recorder = Recorder()
        hook = {"type": "command", "command": command, "warm": True, "timeout": DEADLINE * 1000, **fields}
        hooks = {"BeforeTool": [{"hooks": [hook]}]}
        self.config = Config(enable_hooks=True, working_dir=folder, observer=self.recorder, hooks=hooks)
        self.hooks = Hooks(self.config)

    async def event(self) -> HookExecutionResult:
        async with asyncio.timeout(DEADLINE):
            await self.hooks.run_tool("write_file", {"path": "a"}, lambda _: "ran")
        return self.recorder.results[-1]

    def event_now(self) -> HookExecutionResult:
        return asyncio.run(self.event())


def waiting(count: int = 1) -> list[int]:
    """The processes that wait, once they are so many."""
    until(lambda: len(ahead._waiting) == count)
    return [each.child.pid for each in ahead._waiting.values()]


def until_it_reads(pid: int) -> None:
    """Wait until a process sleeps, which is when it has come to its input."""
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    ahead.close()
    ahead._wasted.clear()
    yield
    ahead.close()
    assert ahead._leaving == []
    until(lambda: ahead._thread is None)


async def test_the_first_process_is_started_when_the_hooks_are_read_and_the_next_one_after_each_run(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path, COUNTER)
    agent.hooks.has_hooks_for("BeforeTool", "write_file")
    used = []
    for _ in range(3):
        used += waiting()
        result = await agent.event()
        assert (result.ahead, result.warm, result.success) == (True, True, True)

    assert pids_in(tmp_path / "pids", 3) == used
    assert len(set(used)) == 3


@pytest.mark.parametrize(("command", "waits"), [(COUNTER, True), (f"{sys.executable} hook.py", False)])
def test_what_would_wait_for_the_first_event_is_known(
    tmp_path: Path, command: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hook.py").write_text("print('{}')")
    starts: list[Start | None] = []
    monkeypatch.setattr(
        CommandExecutor, "prepare", lambda executor, spec, run: starts.append(executor.first_start(spec, run))
    )

    Agent(tmp_path, command).hooks.has_hooks_for("BeforeTool", "write_file")

    [start] = starts
    assert (start is not None) is waits
    assert start is None or (start.argv[-1], start.cwd) == (COUNTER, str(tmp_path))


async def test_without_warm_nothing_is_started_ahead(tmp_path: Path) -> None:
    agent = Agent(tmp_path, COUNTER, warm=False)

    assert not (await agent.event()).ahead
    assert not ahead._waiting
    assert not ahead._wanted


async def test_a_python_script_keeps_its_interpreter(tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text("print('{}')")

    try:
        await Agent(tmp_path, f"{sys.executable} hook.py").event()

        assert not ahead._wanted
    finally:
        zygotes.close(DEADLINE)


async def test_a_program_that_fires_one_event_waits_until_a_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "prepare", lambda *_: None)  # there is no time for it before the only event
    monkeypatch.setattr(ahead, "patience", 0.01)

    assert (await Agent(tmp_path, COUNTER).event()).ahead


@pytest.mark.parametrize("events", [1, 200])
async def test_one_process_waits_however_many_events_there_are(tmp_path: Path, events: int) -> None:
    agent = Agent(tmp_path, COUNTER)
    await agent.event()
    waiting()

    await asyncio.gather(*(agent.event() for _ in range(events)))

    assert all(result.success for result in agent.recorder.results)
    assert sum(result.ahead for result in agent.recorder.results) >= 1
    assert len(pids_in(tmp_path / "pids", events + 1)) == events + 1
    waiting()


async def test_the_limit_on_processes_is_for_those_that_run(tmp_path: Path) -> None:
    noted = "read -r _; echo begins >> log; sleep 0.01; echo ends >> log; echo '{}'"
    hooks = [{"type": "command", "command": f"{noted}; : {number}", "warm": True} for number in range(3)]
    recorder = Recorder()
    config = Config(
        enable_hooks=True,
        working_dir=tmp_path,
        observer=recorder,
        max_processes=1,
        hooks={"BeforeTool": [{"hooks": hooks}]},
    )
    guarded = Hooks(config)
    guarded.has_hooks_for("BeforeTool", "write_file")
    waiting(3)

    await guarded.run_tool("write_file", {}, lambda _: "ran")

    assert [result.ahead for result in recorder.results] == [True, True, True]
    assert (tmp_path / "log").read_text().split() == ["begins", "ends"] * 3


async def test_two_configurations_share_what_waits_for_the_same_hook(tmp_path: Path) -> None:
    first, second = Agent(tmp_path, COUNTER), Agent(tmp_path, COUNTER)
    second.config.session_id = first.config.session_id
    await first.event()
    waiting()

    assert (await second.event()).ahead


async def test_a_changed_environment_gets_a_fresh_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(tmp_path, 'read -r _; printf \'{"systemMessage": "%s"}\' "$SHOP"')
    await agent.event()
    waiting()
    monkeypatch.setenv("SHOP", "open")

    result = await agent.event()

    assert not result.ahead
    assert json.loads(result.stdout) == {"systemMessage": "open"}
    waiting()
    assert (await agent.event()).ahead


async def test_each_session_gets_its_own_folder(tmp_path: Path) -> None:
    agent = Agent(tmp_path, 'read -r _; printf \'{"systemMessage": "%s"}\' "$LLXPRT_SESSION_DIR"')
    folders = []
    for session in ("one", "two"):
        with agent.hooks.session(session):
            folders.append(json.loads((await agent.event()).stdout)["systemMessage"])
        waiting()

    assert len(set(folders)) == 2


@pytest.mark.parametrize("where", ["project", "outside"])
async def test_an_edited_script_runs_as_it_is_now(tmp_path: Path, where: str) -> None:
    project = tmp_path / "code"
    project.mkdir()
    script = (project if where == "project" else tmp_path) / "hook.sh"
    text = '#!/bin/bash\nread -r _; printf \'{"systemMessage": "%s"}\' WORD\n'
    script.write_text(text.replace("WORD", "old"))
    script.chmod(0o755)
    agent = Agent(project, "./hook.sh" if where == "project" else str(script))
    await agent.event()
    until_it_reads(waiting()[0])
    script.write_text(text.replace("WORD", "new"))

    result = await agent.event()

    assert not result.ahead
    assert json.loads(result.stdout) == {"systemMessage": "new"}


async def test_a_program_that_has_become_a_python_script_is_not_started_ahead(tmp_path: Path) -> None:
    script = tmp_path / "hook"
    script.write_text("#!/bin/sh\nread -r line; echo '{}'\n")
    script.chmod(0o755)
    agent = Agent(tmp_path, "./hook")
    agent.hooks.has_hooks_for("BeforeTool", "write_file")
    until_it_reads(waiting()[0])
    script.write_text(f"#!{sys.executable} -IS\nimport sys\nsys.stdin.read()\n")

    result = await agent.event()

    assert not result.ahead
    assert not ahead._wanted


async def test_a_changed_file_mode_mask_counts(tmp_path: Path) -> None:
    agent = Agent(tmp_path, "read -r _; umask >&2; echo '{}'")
    await agent.event()
    waiting()
    before = os.umask(0o027)
    try:
        result = await agent.event()
    finally:
        os.umask(before)

    assert not result.ahead
    assert result.stderr.strip().endswith("27")


@pytest.mark.parametrize("command", ["echo early; read -r _", "echo early >&2; read -r _", "exit 0", "exec >&-; cat"])
async def test_a_process_that_acts_before_it_has_its_input_is_not_used(tmp_path: Path, command: str) -> None:
    agent = Agent(tmp_path, command)
    agent.hooks.has_hooks_for("BeforeTool", "write_file")
    for number in range(1, ahead_module._MAX_WASTED + 1):
        until(lambda expected=number: [count for count, _ in ahead._wasted.values()] == [expected])  # type: ignore[misc]
        await agent.event()

    assert not any(result.ahead for result in agent.recorder.results)
    assert not ahead._wanted  # it is left alone for a while


async def test_a_process_that_was_killed_meanwhile_is_not_used(tmp_path: Path) -> None:
    agent = Agent(tmp_path, COUNTER)
    await agent.event()
    [pid] = waiting()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid))

    result = await agent.event()

    assert result.success
    assert result.signal is None


async def test_timeout_kill_and_groups_are_those_of_a_fresh_start(tmp_path: Path) -> None:
    command = "read -r _; sleep 1000 & echo $! >> pids; echo $$ >> pids; wait"
    agent = Agent(tmp_path, command, timeout=1)
    await agent.event()
    ahead_pid = waiting()[0]
    agent.recorder.results.clear()

    result = await agent.event()

    assert result.ahead
    assert result.timed_out
    assert not result.success
    until(lambda: not lives(ahead_pid))


async def test_a_project_that_changed_is_blocked_although_a_process_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    folder = tmp_path / "code" / ".llxprt"
    folder.mkdir(parents=True)
    (folder / "hook.sh").write_text("read -r _; echo '{}'; echo ran >> ran\n")
    hook = {"type": "command", "command": "bash .llxprt/hook.sh; exit 0", "warm": True}
    settings = {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    (folder / "settings.json").write_text(json.dumps(settings))
    hooks = Hooks.load(folder.parent)
    await hooks.run_tool("write_file", {}, lambda _: "ran")
    waiting()
    (folder / "hook.sh").write_text("read -r _; echo '{}'; echo changed >> ran\n")

    result = await hooks.run_tool("write_file", {}, lambda _: "ran")

    assert result.error is not None
    assert "has changed since the project was approved" in str(result.error)
    assert (tmp_path / "code" / "ran").read_text() == "ran\n"


def test_events_of_one_loop_use_what_was_started_after_those_of_another(tmp_path: Path) -> None:
    agent = Agent(tmp_path, COUNTER)
    agent.event_now()
    waiting()

    assert agent.event_now().ahead


async def test_waiting_processes_are_ended_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead_module, "_LIFETIME", 0.0)
    monkeypatch.setattr(ahead_module, "_LOOK_SECONDS", 0.01)
    agent = Agent(tmp_path, COUNTER)
    await agent.event()

    until(lambda: ahead._thread is None)

    assert not ahead._waiting
    assert not ahead._leaving


async def test_waiting_processes_give_way_to_those_that_run(tmp_path: Path) -> None:
    agent = Agent(tmp_path, COUNTER)
    await agent.event()
    waiting()
    other = Agent(tmp_path, "cat > /dev/null; echo '{}'", warm=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    fillers = [os.dup(0) for _ in range(highest - len(os.listdir("/proc/self/fd")) + 2)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 8, hard))
    try:
        result = await other.event()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in fillers:
            os.close(fd)

    assert result.success, result.error


async def test_their_number_is_limited_by_the_descriptors_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead_module, "_DESCRIPTORS", 2**62)
    agent = Agent(tmp_path, COUNTER)

    await agent.event()

    until(lambda: ahead._thread is None)
    assert not ahead._waiting


KILLED = """
import asyncio, os, signal, sys, threading, time
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.core.executors.test_started_ahead import Agent, waiting, until_it_reads

agent = Agent(Path({folder!r}), "echo $$ >> pids; cat > input; echo ended > ended; echo '{{}}'")
agent.event_now()
os.unlink("ended"), os.unlink("input")
until_it_reads(waiting()[0])
{then}
"""
FORK = """
if not (pid := os.fork()):
    os.closerange(0, 3)
    time.sleep(1000)
Path("forked").write_text(str(pid) + chr(10))
"""


@pytest.mark.parametrize(
    "then",
    ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "sys.exit()", FORK + "os.kill(os.getpid(), 9)"],
    ids=["SIGKILL", "_exit", "exit", "SIGKILL with a forked process that lives on"],
)
def test_it_ends_with_its_parent_and_never_sees_the_end_of_its_input(tmp_path: Path, then: str) -> None:
    script = KILLED.format(root=str(Path(__file__).parents[3]), folder=str(tmp_path), then=then)

    run_python("-c", script, cwd=tmp_path)

    pids = pids_in(tmp_path / "pids", 2)
    until(lambda: not any(map(lives, pids)))
    assert not (tmp_path / "ended").exists()
    if (tmp_path / "forked").exists():
        end(int((tmp_path / "forked").read_text()))


async def test_a_forked_process_starts_its_own(tmp_path: Path) -> None:
    agent = Agent(tmp_path, COUNTER)
    await agent.event()
    [theirs] = waiting()
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        try:
            os.write(writer, json.dumps([len(ahead._waiting), lives(theirs)]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)  # noqa: ASYNC222  # it ends by itself

    assert json.loads(os.read(reader, 100)) == [0, True]
    os.close(reader)
    assert (await agent.event()).ahead


async def test_a_large_payload_arrives_whole(tmp_path: Path) -> None:
    agent = Agent(tmp_path, "wc -c >&2; echo '{}'")
    await agent.event()
    waiting()
    async with asyncio.timeout(DEADLINE):
        await agent.hooks.run_tool("write_file", {"text": "x" * 3_000_000}, lambda _: "ran")

    result = agent.recorder.results[-1]
    assert result.ahead
    assert int(result.stderr) > 3_000_000


def test_close_leaves_no_descriptor_thread_or_process(tmp_path: Path) -> None:
    agent = Agent(tmp_path, COUNTER)
    agent.event_now()
    ahead.close()
    until(lambda: ahead._thread is None)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        agent.event_now()
        [pid] = waiting()
        ahead.close()
        assert not lives(pid)

    assert len(os.listdir("/proc/self/fd")) == before
    until(lambda: ahead._thread is None)


def test_the_files_of_few_commands_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_files, "_MAX_KNOWN", 1)
    files, start = FilesOfCommands(), Start(("/bin/true",), None, {}, str(tmp_path), 1)

    first = files.of("true", start, str(tmp_path))

    assert files.of("true", start, str(tmp_path)) is first
    files.of("false", start, str(tmp_path))
    assert files.of("true", start, str(tmp_path)) is not first
