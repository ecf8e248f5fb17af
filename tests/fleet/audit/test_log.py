"""The record of executions: bounded, private, shared by many processes, and never in anyone's way."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, HookEventName, HookLog, Hooks, ask, deny, fire_before_tool_hook, replace_result
from llxprt_hooks.commands.log import LogReader, read_log
from llxprt_hooks.core.engine.results import AggregatedHookResult, HookExecutionResult
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.core.protocol.outputs import BeforeToolHookOutput
from llxprt_hooks.fleet.audit import log as hook_log
from llxprt_hooks.fleet.audit.log import log_file
from llxprt_hooks.fleet.audit.record import MAX_PAYLOAD
from llxprt_hooks.integrations.inspector_questions import announced
from llxprt_hooks.settings import atomic
from llxprt_hooks.settings.definitions import HookConfig
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.support.cli import CliProject

DENY = {"BeforeTool": [{"hooks": [{"type": "command", "name": "guard", "command": "echo no >&2; exit 2"}]}]}


@pytest.fixture(autouse=True)
def home(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> Path:
    world.enter(monkeypatch)
    return world.home


def execution(name: str = "guard", output: dict[str, Any] | None = None, **fields: Any) -> HookExecutionResult:
    return HookExecutionResult(
        HookConfig("command", CommandSpec("true"), name=name),
        HookEventName.BEFORE_TOOL,
        success=True,
        output=None if output is None else BeforeToolHookOutput(output),
        **fields,
    )


async def fire(observer: HookLog) -> AggregatedHookResult:
    """A tool call that a hook blocks, recorded."""
    config = Config(enable_hooks=True, hooks=DENY, observer=observer)
    system = config.get_hook_system()
    assert system
    return await system.ready_event_handler().fire_before_tool_event("write_file", {"content": "the payload"})


async def blocks(observer: HookLog) -> bool:
    output = (await fire(observer)).final_output
    return output is not None and output.is_blocking_decision()


async def test_a_program_opts_in_by_an_observer() -> None:
    assert await blocks(HookLog("/a/project", session_id="s-1"))

    [record] = read_log()
    assert (record["project"], record["session_id"], record["hook"], record["blocked"]) == (
        "/a/project",
        "s-1",
        "guard",
        True,
    )
    assert "the payload" not in log_file().read_text()


async def test_project_and_session_are_known_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = Config(enable_hooks=True, session_id="s-2", hooks=DENY, observer=HookLog("."))

    await fire_before_tool_hook(config, "write_file", {})

    [record] = read_log()
    assert (record["project"], record["session_id"]) == (str(tmp_path), "s-2")


async def test_the_records_of_one_event_can_be_distinguished_from_those_of_another() -> None:
    commands = [{"type": "command", "name": name, "command": f"true {name}"} for name in ("a", "b")]
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": commands}]}, observer=HookLog())
    system = config.get_hook_system()
    assert system
    handler = system.ready_event_handler()

    results = await asyncio.gather(*(handler.fire_before_tool_event("write_file", {}) for _ in range(2)))

    records = list(read_log())
    for result in results:
        [event_id] = {each.event_id for each in result.results}
        recorded = {record["id"]: record["hook"] for record in records if record["event_id"] == event_id}
        assert recorded == {each.execution_id: each.hook_config.name for each in result.results}
    assert len({record["id"] for record in records}) == 4


async def test_payloads_are_recorded_when_asked_for() -> None:
    await fire(HookLog(payloads=True))

    [record] = read_log()
    assert record["payload"]["tool_input"] == {"content": "the payload"}
    assert record["payload"]["hook_event_name"] == "BeforeTool"


@pytest.mark.parametrize("success", [True, False])
def test_an_answer_that_may_repeat_the_payload_is_recorded_only_with_payloads(success: bool) -> None:
    answer = '{"hookSpecificOutput": {"tool_input": {"content": "the payload"}}}'
    for result in (execution(stdout=answer, stderr="own words"), execution(stdout="plain text")):
        HookLog().hook_ended(replace(result, success=success))
    HookLog(payloads=True).hook_ended(execution(stdout=answer))

    streams = [(record["stdout"], record["stderr"]) for record in read_log()]
    assert streams == [("", "own words"), ("plain text", ""), (answer, "")]


def test_only_the_size_of_a_large_payload_is_recorded() -> None:
    large = replace(execution(), hook_input={"prompt": "x" * MAX_PAYLOAD})

    HookLog(payloads=True).hook_ended(large)

    [record] = read_log()
    assert "payload" not in record
    assert record["payload_bytes"] > MAX_PAYLOAD


def test_only_the_user_can_read_it_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        HookLog().hook_ended(execution())
    finally:
        os.umask(before)

    assert log_file() == home / ".llxprt" / "logs" / "hooks.jsonl"
    assert log_file().stat().st_mode & 0o777 == 0o600
    assert log_file().parent.stat().st_mode & 0o777 == 0o700


def test_it_is_bounded_and_keeps_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_log, "MAX_BYTES", 4000)
    log = HookLog()

    for number in range(200):
        log.hook_ended(execution(f"hook-{number}"))

    kept = [record["hook"] for record in read_log()]
    assert kept == [f"hook-{number}" for number in range(200 - len(kept), 200)]
    assert len(kept) >= 8
    files = {file.name: file.stat().st_size for file in log_file().parent.iterdir()}
    assert set(files) <= {"hooks.jsonl", "hooks.1.jsonl", "hooks.jsonl.lock"}
    assert max(files.values()) < 4000 + 1000


@contextmanager
def lock_held() -> Iterator[None]:
    """Another process, say one that hangs, holds the lock of the log."""
    lock = log_file().with_name("hooks.jsonl.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


async def test_a_full_log_whose_lock_is_held_delays_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hook_log, "MAX_BYTES", 2000)
    monkeypatch.setattr(hook_log, "MAX_BYTES_WHILE_LOCKED", 4000)
    never = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: pytest.fail("the event loop waits"))
    monkeypatch.setattr(atomic, "time", never)
    log = HookLog()

    with lock_held():
        for _ in range(30):
            assert await blocks(log)
    written = len(LogReader(events=True).read())
    assert log_file().stat().st_size < 4000 + 1000
    assert await blocks(log)

    assert len(LogReader(events=True).read()) == written + 2
    told = [record.getMessage() for record in caplog.records if record.name.endswith(":log")]
    assert len(told) == 2
    assert "another process holds the lock" in told[0]
    assert told[1] == f"executions are recorded again; {60 - written} records were not written"


def test_a_record_is_bounded_whatever_a_hook_printed() -> None:
    flood = "x" * 3_000_000
    output = {"decision": "deny", "reason": flood, "hookSpecificOutput": {f"{n}{flood[:500]}": n for n in range(5000)}}

    HookLog(flood, session_id=flood).hook_ended(execution(flood, output, stdout=flood, stderr=flood))

    assert log_file().stat().st_size < 64 * 1024
    [record] = read_log()
    assert record["blocked"] is True


def test_what_a_record_says_of_an_output_is_what_it_does() -> None:
    log = HookLog()
    permission = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not yours"}}
    log.hook_ended(execution(output=permission))
    log.hook_ended(execution(output={"continue": False, "stopReason": "enough"}))
    log.hook_ended(execution(output={"hookSpecificOutput": {"tool_input": {"secret": "value"}}}))
    log.hook_ended(execution(output={"decision": "allow", "systemMessage": "Warning: x"}, error=RuntimeError("failed")))

    told = [(each["blocked"], each["stopped"], each["reason"], each["effects"]) for each in read_log()]

    assert told == [
        (True, False, "not yours", ["permissionDecision", "permissionDecisionReason"]),
        (False, True, "enough", []),
        (False, False, None, ["tool_input"]),
        (False, False, None, []),
    ]
    assert "value" not in log_file().read_text()


@pytest.mark.parametrize(
    ("event", "answer", "recorded"),
    [
        ("BeforeTool", ask("sure?"), {"asked": True, "reason": "sure?"}),
        ("AfterTool", deny("no"), {"blocked": True, "reason": "no"}),
        ("AfterTool", replace_result("gone"), {"effects": ["tool_response"]}),
        ("BeforeAgent", deny("no"), {"blocked": True, "reason": "no"}),
    ],
)
async def test_records_say_what_an_answer_does_only_where_hooks_act(
    event: str, answer: dict[str, Any], recorded: dict[str, Any]
) -> None:
    nothing: dict[str, Any] = {"blocked": False, "asked": None, "reason": None, "effects": []}
    for profile, expected in (("standard", nothing), ("full", {**nothing, **recorded})):
        hooks = Hooks(Config(profile=profile, observer=HookLog(session_id=profile), approver=lambda request: True))
        hooks.on(event, lambda payload: answer)
        await hooks.run_turn("hello", lambda prompt: "hi")
        await hooks.run_tool("ls", {}, lambda arguments: "done")
        await hooks.settle()
        found = [each for each in LogReader(events=True).read() if each["session_id"] == profile]
        assert len(found) == 2
        for record in found:
            assert {name: record.get(name) for name in expected} == expected


# In nobody's way.


def _folder(file: Path) -> None:
    file.mkdir(parents=True)


def _file_for_folder(file: Path) -> None:
    file.parent.parent.mkdir()
    file.parent.write_text("in the way")


def _pipe(file: Path) -> None:
    file.parent.mkdir(parents=True)
    os.mkfifo(file)


def _link(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.symlink_to("/dev/null")


@pytest.mark.parametrize("obstacle", [_folder, _file_for_folder, _pipe, _link])
async def test_an_obstacle_at_the_path_of_the_log_does_not_affect_a_run(
    obstacle: Any, caplog: pytest.LogCaptureFixture
) -> None:
    obstacle(log_file())
    log = HookLog()

    assert await blocks(log)
    assert await blocks(log)

    warnings = [record for record in caplog.records if "no longer recorded" in record.getMessage()]
    assert len(warnings) == 1
    assert str(log_file()) in warnings[0].getMessage()


FIRING = """
import asyncio, resource, sys
from llxprt_hooks import Config, HookLog
count, limit = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
hook = {"type": "command", "name": "guard", "command": "exit 2"}
config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]}, observer=HookLog("x" * 4000))
async def main():
    handler = config.get_hook_system().ready_event_handler()
    results = [await handler.fire_before_tool_event("t", {}) for _ in range(count)]
    sys.exit(0 if all(result.final_output.is_blocking_decision() for result in results) else 1)
asyncio.run(main())
"""
"""Fires events whose hooks block, with a limit on the size of files."""


def test_a_full_disk_does_not_affect_a_run(home: Path) -> None:
    own_mounts = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=32k none {home}"
    if shutil.which("unshare") is None or subprocess.run([*own_mounts, mount], capture_output=True).returncode:
        pytest.skip("a file system of a certain size cannot be mounted here")

    ended = subprocess.run(
        [*own_mounts, f'{mount} && "$0" -c "$1" 20 1000000 && df {home}', sys.executable, FIRING],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert "100%" in ended.stdout
    assert ended.stderr.count("no longer recorded") == 1


def test_a_record_that_is_cut_off_takes_no_other_with_it() -> None:
    """A disk that is full in the middle of a record: as if by a limit on the size of files."""
    HookLog().hook_ended(execution("first"))

    ended = subprocess.run(
        [sys.executable, "-c", FIRING, "10", "20000"], capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    HookLog().hook_ended(execution("last"))

    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("no longer recorded") == 1
    raw = log_file().read_bytes().splitlines()
    assert sum(not line.endswith(b"}") for line in raw) == 1  # there is one that was cut off
    names = [record["hook"] for record in read_log()]
    assert names == ["first", *["guard"] * (len(names) - 2), "last"]
    assert len(names) >= 3


def test_hooks_run_for_a_user_without_a_home(world: CliProject) -> None:
    """The record cannot be stored, and the hook's decision still applies."""
    blocker = world.folder / "not-a-folder"
    blocker.write_text("")
    world.configure(BeforeTool="exit 2")
    call = {"functionCall": {"name": "list_directory", "args": {"dir_path": "."}}}
    answers = [
        [{"candidates": [{"content": {"role": "model", "parts": [part]}}]}] for part in (call, {"text": "Done."})
    ]
    recording = world.folder / "answers.jsonl"
    recording.write_text(
        "".join(json.dumps({"method": "generateContentStream", "response": answer}) + "\n" for answer in answers)
    )

    run = world.run("run", "-p", "Do it.", "--replay", str(recording), "-o", "json", HOME=str(blocker))

    assert run.status == 0, run.stderr
    assert [call["status"] for call in run.json["tool_calls"]] == ["blocked"]
    assert "executions are no longer recorded" in run.stderr


# Many at once.

WRITER = """
import sys
from llxprt_hooks import HookEventName, HookLog
from llxprt_hooks.fleet.audit import log as hook_log
from llxprt_hooks.settings.definitions import HookConfig
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.core.engine.results import HookExecutionResult
name, count, hook_log.MAX_BYTES = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
log = HookLog()
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    config = HookConfig("command", CommandSpec("true"), name=f"{name}-{number}")
    log.hook_ended(HookExecutionResult(config, HookEventName.BEFORE_TOOL, success=True, stdout="x" * 50))
"""


@pytest.mark.parametrize("largest", [4_000_000, 300_000], ids=["one file", "set aside meanwhile"])
def test_processes_that_write_at_once_lose_nothing(largest: int) -> None:
    writers, count = 4, 250
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(name), str(count), str(largest)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in range(writers)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"

    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=DEADLINE)
        assert process.returncode == 0

    names = [record["hook"] for record in read_log()]
    assert sorted(names) == sorted(f"{name}-{number}" for name in range(writers) for number in range(count))
    assert log_file().with_suffix(".1.jsonl").exists() is (largest == 300_000)
    for name in range(writers):
        own = [each for each in names if each.startswith(f"{name}-")]
        assert own == [f"{name}-{number}" for number in range(count)]


async def test_an_event_has_a_record_of_its_own_which_is_read_only_on_request() -> None:
    await fire(HookLog("/a/project", session_id="s-1"))

    assert len(read_log()) == 1
    execution_record, event = LogReader(events=True).read()
    assert event["event_id"] == execution_record["event_id"] != ""
    assert event.pop("wall_time") > 0
    assert {name: event[name] for name in ("subject", "hooks", "sequential", "blocked", "reason", "errors")} == {
        "subject": "write_file",
        "hooks": ["guard"],
        "sequential": False,
        "blocked": True,
        "reason": "no",
        "errors": [],
    }
    assert "output" not in event
    assert "the payload" not in log_file().read_text()


async def test_the_merged_output_is_recorded_together_with_payloads() -> None:
    await fire(HookLog(payloads=True))

    _, event = LogReader(events=True).read()
    assert event["output"]["decision"] == "deny"


def test_the_start_of_an_event_is_recorded_while_an_inspector_is_open(tmp_path: Path) -> None:
    hooks = Hooks(hooks=DENY, observer=HookLog(tmp_path), metadata={"team": "web"})
    hooks.sync.run_tool("glob", {}, lambda args: "ran")
    assert [each.get("started", False) for each in LogReader(events=True).read()] == [False, False]

    reader = LogReader(events=True)
    reader.read()
    with announced(1, "key"):
        hooks.sync.run_tool("glob", {}, lambda args: "ran")
    begin, run, end = reader.read()
    assert begin["event_id"] == run["event_id"] == end["event_id"]
    assert (begin["started"], begin["subject"], begin["hooks"]) == (True, "glob", ["guard"])
    assert begin["metadata"] == {"team": "web"}
    assert [each["hook"] for each in read_log()] == ["guard", "guard"]
