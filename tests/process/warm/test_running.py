"""Warm hooks through the engine: the same limits as for cold ones, and what happens when their interpreter fails."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.process.warm import ScriptOffer, zygotes
from llxprt_hooks.settings.definitions import HookSet, read_definitions
from tests.process.warm.hook import ALLOWS, WarmHook, children, waiting_child
from tests.support.processes import eventually, lives, pids_in, until, watchdog_shell
from tests.support.project import Project


async def test_warm_hook_gets_its_payload_and_its_answer_counts(hook: WarmHook) -> None:
    result = await hook.warm("import json, sys; print(json.dumps({'reason': json.load(sys.stdin)['tool_name']}))")

    assert result.success
    assert result.output is not None
    assert result.output.reason == "write_file"


async def test_warm_hook_blocks_with_exit_code_2(hook: WarmHook) -> None:
    result = await hook.warm("import sys; sys.exit('no') if 0 else None; print('no', file=sys.stderr); sys.exit(2)")

    assert result.output is not None
    assert result.output.is_blocking_decision()
    assert (result.exit_code, result.output.reason) == (2, "no")


@pytest.mark.slow
async def test_warm_hook_is_ended_with_its_group_at_the_timeout(hook: WarmHook) -> None:
    await hook.warm()
    script = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "open('new', 'w').write(f'{os.getpid()}\\n{child.pid}\\n')\n"
        "os.rename('new', 'pids')\n"
        "time.sleep(1000)"
    )

    timeout, result = 500, await hook.warm(script, timeout=500)
    while not (hook.folder / "pids").exists():  # a busy machine needs more time to get that far
        timeout *= 2
        result = await hook.warm(script, timeout=timeout)

    assert "timed out" in str(result.error)
    until(lambda: not any(map(lives, pids_in(hook.folder / "pids", 2))))


async def test_warm_hook_that_writes_too_much_fails(hook: WarmHook) -> None:
    result = await hook.warm("print('x' * 1_000_000)")

    assert "more to stdout than the limit" in str(result.error)


async def test_warm_hook_that_is_killed_reports_the_signal(hook: WarmHook) -> None:
    result = await hook.warm("import os; os.kill(os.getpid(), 9)")

    assert (result.success, result.signal) == (False, "SIGKILL")


async def test_warm_hook_gets_a_large_payload(hook: WarmHook) -> None:
    (hook.folder / "hook.py").write_text("import json, sys; print(json.dumps({'reason': str(len(sys.stdin.read()))}))")
    config = Config(
        enable_hooks=True,
        working_dir=hook.folder,
        hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": f"{sys.executable} hook.py", "warm": True}]}]},
    )

    output = await fire_before_tool_hook(config, "write_file", {"content": "x" * 3_000_000})

    assert output is not None
    assert int(output.reason or "0") > 3_000_000


async def test_first_run_is_cold_and_starts_the_interpreter(hook: WarmHook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zygotes, "patience", 0.0)

    first = later = await hook.run(ALLOWS)
    while not later.warm:
        await asyncio.sleep(0.05)
        later = await hook.run(ALLOWS)

    assert not first.warm


@pytest.mark.parametrize("command", ["true", f"{sys.executable} -c ''", f"{sys.executable} hook.py | cat"])
async def test_other_commands_run_cold(hook: WarmHook, command: str) -> None:
    result = await hook.run(ALLOWS, command=command)

    assert result.success
    assert not result.warm


async def test_script_that_is_refused_runs_cold(hook: WarmHook) -> None:
    result = await hook.run("import os; print(os.getppid())")

    assert result.stdout.strip() == str(os.getpid())
    assert not result.warm


async def test_interpreter_that_was_killed_costs_one_cold_start(hook: WarmHook) -> None:
    await hook.warm()
    os.kill(hook.zygote(), signal.SIGKILL)
    until(lambda: not lives(hook.zygote()))

    results = [await hook.run(ALLOWS) for _ in range(2)]

    assert all(result.success for result in results)
    assert results[-1].warm


@pytest.mark.slow
async def test_interpreter_that_always_crashes_is_given_up(hook: WarmHook) -> None:
    crashes = 0
    for _ in range(10):
        result = await hook.run(ALLOWS)
        assert result.success
        if result.warm:  # it may be cold right after a crash
            crashes += 1
            os.kill(hook.zygote(), signal.SIGKILL)
            until(lambda: not lives(hook.zygote()))

    assert crashes == 3


@pytest.mark.slow
async def test_hook_whose_interpreter_is_killed_fails_and_does_not_run_on(hook: WarmHook) -> None:
    await hook.warm()
    zygote = hook.zygote()
    run = asyncio.create_task(
        hook.run("import os, time\nopen('pids', 'a').write(f'{os.getpid()}\\n')\ntime.sleep(1000)", failClosed=True)
    )
    await eventually(lambda: (hook.folder / "pids").exists() and bool((hook.folder / "pids").read_text()))

    os.kill(zygote, signal.SIGKILL)
    result = await run

    assert result.output is not None
    assert result.output.is_blocking_decision()
    assert len((hook.folder / "pids").read_text().split()) == 1, "the script was started twice"
    until(lambda: not any(map(lives, pids_in(hook.folder / "pids", 1))))


@pytest.mark.slow
async def test_interpreter_that_does_not_answer_is_passed_over_and_the_script_runs_once(
    hook: WarmHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "open('runs', 'a').write('x')"
    await hook.warm(script)
    waiting = await waiting_child(hook.zygote())
    os.kill(waiting, signal.SIGSTOP)
    monkeypatch.setattr(ScriptOffer, "seconds", 0.2)

    result = await hook.run(script)
    os.kill(waiting, signal.SIGCONT)
    await eventually(lambda: not lives(waiting))

    assert result.success
    assert not result.warm
    assert (hook.folder / "runs").read_text() == "xx"


async def test_hook_that_is_cancelled_before_it_is_accepted_never_runs(hook: WarmHook) -> None:
    await hook.warm()
    waiting = await waiting_child(hook.zygote())
    os.kill(waiting, signal.SIGSTOP)

    run = asyncio.create_task(hook.run("open('runs', 'a').write('x')"))
    await eventually((hook.folder / "hook.py").exists)
    await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    os.kill(waiting, signal.SIGCONT)
    await eventually(lambda: not lives(waiting))

    assert not (hook.folder / "runs").exists()


async def test_interpreter_that_makes_room_for_another_lets_its_scripts_finish(hook: WarmHook) -> None:
    await hook.warm()
    run = asyncio.create_task(
        hook.run("import os, time\nopen('started', 'w')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('{}')")
    )
    await eventually((hook.folder / "started").exists)

    zygotes.close()
    (hook.folder / "go").touch()

    assert (await run).success


@pytest.mark.slow
async def test_warm_hooks_leave_no_descriptors_and_no_zombies(hook: WarmHook) -> None:
    await hook.warm("import time; time.sleep(0.1)")  # long enough for the watchdog to start, which keeps descriptors
    await eventually(lambda: not any(thread.name == "start the watchdog" for thread in threading.enumerate()))
    before = len(os.listdir("/proc/self/fd"))

    await asyncio.gather(*(hook.run(ALLOWS) for _ in range(30)))

    zygote = hook.zygote()
    assert len(os.listdir("/proc/self/fd")) == before
    until(lambda: len(children(zygote)) == 1)
    until(lambda: len(os.listdir(f"/proc/{zygote}/fd")) <= 10)


@pytest.mark.slow
async def test_interpreters_end_with_the_configuration_process(tmp_path: Path) -> None:
    agent = _agent(tmp_path, "time.sleep(1000)")
    zygote, waiting, script = pids_in(tmp_path / "pids", 3)
    watchdog_shell(agent.pid)

    agent.kill()
    agent.wait()

    until(lambda: not any(map(lives, (zygote, waiting, script))))


@pytest.mark.slow
async def test_interpreters_end_when_the_program_ends(tmp_path: Path) -> None:
    agent = _agent(tmp_path, "")
    zygote, waiting, _ = pids_in(tmp_path / "pids", 3)

    assert agent.wait() == 0

    until(lambda: not any(map(lives, (zygote, waiting))))


def _agent(folder: Path, at_end: str) -> subprocess.Popen[bytes]:
    """A program that runs a warm hook, and writes the numbers of the processes that it caused."""
    (folder / "hook.py").write_text(f"import os, time\nprint(os.getpid(), flush=True)\n{at_end}")
    program = f"""
import asyncio, os
from pathlib import Path
from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.process.warm import zygotes
from llxprt_hooks.process.warm import ScriptOffer
zygotes.patience = ScriptOffer.seconds = 60

async def main():
    hook = {{"type": "command", "command": {f"{sys.executable} hook.py"!r}, "warm": True}}
    config = Config(enable_hooks=True, hooks={{"BeforeTool": [{{"hooks": [hook]}}]}})
    run = asyncio.create_task(fire_before_tool_hook(config, "x", {{}}))
    children = []
    while len(children) < 2:
        await asyncio.sleep(0.05)
        zygote = next(iter(zygotes._zygotes.values())).pid
        children = Path(f"/proc/{{zygote}}/task/{{zygote}}/children").read_text().split()
        children = children * 2 if run.done() and children else children
    Path("pids").write_text("\\n".join(map(str, [zygote, *children[:2]])) + "\\n")
    await run

asyncio.run(main())
"""
    return subprocess.Popen([sys.executable, "-c", program], cwd=folder)


@pytest.mark.slow
async def test_after_a_fork_the_child_starts_its_own_interpreter(hook: WarmHook) -> None:
    await hook.warm()
    ours = hook.zygote()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            result = asyncio.new_event_loop().run_until_complete(hook.run(ALLOWS))
            os.write(writer, f"{result.warm} {hook.zygote()}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)  # noqa: ASYNC222

    warm, theirs = os.read(reader, 100).decode().split()

    assert warm == "True"
    assert int(theirs) != ours
    assert (await hook.warm()).success
    until(lambda: not lives(int(theirs)))


@pytest.mark.parametrize(("value", "warm"), [(True, True), (False, False), (None, False)])
def test_warm_is_read_from_settings(value: object, warm: bool) -> None:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "true", "warm": value}]}]}

    (definition,), problems = read_definitions(HookSet(hooks))

    assert not problems
    assert definition.config.warm is warm


def test_warm_of_another_type_is_ignored_with_a_problem() -> None:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "true", "warm": "yes"}]}]}

    (definition,), (problem,) = read_definitions(HookSet(hooks))

    assert not definition.config.warm
    assert "`warm` is ignored" in problem.message


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setattr(zygotes, "patience", 60.0)
    project = Project(tmp_path, approved=True)
    project.enter(monkeypatch)
    yield project
    zygotes.close(60.0)


@pytest.mark.parametrize("switch", [True, False])
async def test_settings_can_turn_all_of_it_off(project: Project, switch: bool) -> None:
    project.write("hook.py", ALLOWS)
    hook = {"type": "command", "command": f"{sys.executable} hook.py", "warm": True}
    hooks = {"BeforeTool": [{"hooks": [hook]}]}
    project.put("project", {"enableHooks": True, "hooks": hooks, "hooksConfig": {"warm": switch}})
    system = Config.load(project.root).get_hook_system()
    assert system is not None

    result = await system.ready_event_handler().fire_before_tool_event("write_file", {})

    assert result.results[0].warm is switch


async def test_interpreters_end_when_a_reload_turns_them_off(project: Project) -> None:
    project.write("hook.py", ALLOWS)
    hook = {"type": "command", "command": f"{sys.executable} hook.py", "warm": True}
    settings = {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    project.put("project", settings)
    config = Config.load(project.root)
    system = config.get_hook_system()
    assert system is not None
    zygotes.close()
    first = await system.ready_event_handler().fire_before_tool_event("write_file", {})
    (zygote,) = (each.pid for each in zygotes._zygotes.values())

    project.put("user", {"hooksConfig": {"warm": False}})
    config.reload()
    second = await system.ready_event_handler().fire_before_tool_event("write_file", {})

    assert [result.results[0].warm for result in (first, second)] == [True, False]
    await eventually(lambda: not lives(zygote))


async def test_warm_hook_with_many_descriptors_open_is_as_usual(hook: WarmHook) -> None:
    """Their numbers are larger than what `select` takes, here and in the interpreter that waits."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while opened[-1] < 1100:
            opened.append(os.open(os.devnull, os.O_RDONLY))
        results = [await hook.run("import sys; sys.exit(2)") for _ in range(3)]
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert [(result.exit_code, result.warm) for result in results] == [(2, True)] * 3


async def test_warm_hook_does_not_see_the_environment_of_another(
    hook: WarmHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_FIRST", "secret")
    await hook.warm()
    monkeypatch.delenv("OF_THE_FIRST")

    result = await hook.warm("print(b'OF_THE_FIRST' in open('/proc/self/environ', 'rb').read())")

    assert result.stdout.strip() == "False"


async def test_warm_hook_with_a_python_path_runs_cold(
    hook: WarmHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module there could be imported by the interpreter that waits, and change what it does with every script."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "socket.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))

    result = await hook.run("import sys; sys.exit(2)")

    assert (result.exit_code, result.warm) == (2, False)
