"""No decision is lost, and no script runs twice or for nobody, whatever happens to the interpreter or the agent."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks.process import run
from llxprt_hooks.process.child import start_program
from llxprt_hooks.process.warm import ScriptOffer, ZygotePool, pool, zygotes
from tests.process.warm.hook import ALLOWS, WarmHook, waiting_child
from tests.support.processes import DEADLINE, end, eventually, lives, pids_in, until

DENIES = "import sys\nopen('runs', 'a').write('x')\nsys.exit(2)"

ChangeZygote = Callable[[str, str], None]


@pytest.fixture
def change_zygote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangeZygote:
    """Changes the program of the waiting interpreter: so that a rare moment lasts, or a system call fails."""
    zygotes.close()
    folder = tmp_path / "changed"
    folder.mkdir()
    file = Path(shutil.copy(Path(pool._FOLDER, "zygote.py"), folder))
    monkeypatch.setattr(pool, "_FOLDER", str(folder))

    def change(old: str, new: str) -> None:
        text = file.read_text()
        assert text.count(old) == 1
        file.write_text(text.replace(old, new))

    return change


async def assert_decides_once(hook: WarmHook) -> None:
    (hook.folder / "runs").unlink(missing_ok=True)

    result = await hook.run(DENIES)

    assert result.exit_code == 2
    assert (hook.folder / "runs").read_text() == "x"


@pytest.mark.slow
async def test_script_that_is_offered_while_the_interpreter_leaves_runs_once(
    hook: WarmHook, change_zygote: ChangeZygote
) -> None:
    may_leave, leaves = hook.folder / "may-leave", hook.folder / "leaves"
    change_zygote("_IDLE_SECONDS = 600.0", "_IDLE_SECONDS = 0.1")
    change_zygote(
        'and not self._closed:\n                self._leave(b"I")\n            for',
        f'and os.path.exists("{may_leave}"):\n                open("{leaves}", "w").close(); time.sleep(0.5); '
        'self._leave(b"I")\n            for',
    )
    await hook.warm()
    may_leave.touch()
    await eventually(leaves.exists)

    await assert_decides_once(hook)


async def test_interpreter_without_descriptors_still_watches_the_script_that_it_has_accepted(
    hook: WarmHook, change_zygote: ChangeZygote
) -> None:
    fill = (
        "__import__('resource').setrlimit(7, (40, 40))\n"  # RLIMIT_NOFILE
        "        try:\n"
        "            while True: os.dup(0)\n"
        "        except OSError: pass\n"
        "        "
    )
    change_zygote("os.close(self._spare)  # so", f"{fill}os.close(self._spare)  # so")

    await assert_decides_once(hook)

    zygote = hook.zygote()
    await eventually(lambda: not lives(zygote))
    await assert_decides_once(hook)


async def test_interpreter_that_cannot_fork_leaves(hook: WarmHook, change_zygote: ChangeZygote) -> None:
    change_zygote("pid = os.fork()", "pid = os.fork() if self._latest is None else os.close(-1)")
    await hook.warm()
    zygote = hook.zygote()

    await eventually(lambda: not lives(zygote))
    await assert_decides_once(hook)


async def test_interpreter_whose_children_die_leaves(hook: WarmHook, change_zygote: ChangeZygote) -> None:
    """It must not fork endlessly."""
    change_zygote("ready = select.poll()\n        ready.register(pair", "os._exit(1)\n        ready.register(pair")

    await assert_decides_once(hook)

    zygote = hook.zygote()
    await eventually(lambda: not lives(zygote))


async def test_interpreter_continues_when_it_cannot_learn(hook: WarmHook, change_zygote: ChangeZygote) -> None:
    change_zygote("self._latest = request\n", "raise MemoryError\n")
    await hook.warm()
    zygote = hook.zygote()

    result = await hook.warm("import sys; sys.exit(2)")

    assert result.exit_code == 2
    assert hook.zygote() == zygote


@pytest.mark.slow
async def test_interpreter_that_hangs_costs_time_once(hook: WarmHook, monkeypatch: pytest.MonkeyPatch) -> None:
    await hook.warm()
    stopped = [await waiting_child(hook.zygote()), hook.zygote()]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(pool._Zygote, "offer", counted := _Counted(pool._Zygote.offer))

    with monkeypatch.context() as impatient:
        impatient.setattr(ScriptOffer, "seconds", 0.2)
        for _ in range(3):
            await assert_decides_once(hook)

    assert counted.calls == 1
    assert not zygotes._zygotes
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    until(lambda: not any(map(lives, stopped)))
    zygotes._failures.clear()  # as if the time were over
    await hook.warm()


class _Counted:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.calls = 0

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        self.calls += 1
        function: Callable[..., Any] = self._function.__get__(instance, owner)
        return function


async def test_failures_of_an_interpreter_double_the_time_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    counting = ZygotePool()

    rests = []
    for _ in range(12):
        counting._count_failure("key")
        rests.append(counting._failures["key"][1])
    for number in range(100):
        counting._count_failure(number)

    assert rests == [0, 0, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]
    assert len(counting._failures) == 64


@pytest.mark.slow
async def test_forked_process_does_not_wait_for_a_thread_of_its_parent(hook: WarmHook) -> None:
    await hook.warm()
    (zygote,) = zygotes._zygotes.values()
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with zygotes._lock, zygote._lock:
            locked.set()
            release.wait()

    threading.Thread(target=hold).start()
    locked.wait()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            result = asyncio.new_event_loop().run_until_complete(hook.run(ALLOWS))
            os.write(writer, f"{result.warm}".encode())
        finally:
            os._exit(0)
    release.set()
    os.waitpid(child, 0)  # noqa: ASYNC222
    os.close(writer)

    assert os.read(reader, 100) == b"True"
    os.close(reader)


async def test_lock_that_is_never_released_does_not_stop_a_hook(
    hook: WarmHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a signal handler fires an event while the thread that it interrupted sends one."""
    monkeypatch.setattr(pool, "_SEND_TIMEOUT", 0.1)
    with zygotes._lock:
        await assert_decides_once(hook)


AGENT = """
import asyncio, os, signal, time
from pathlib import Path
from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.process import run
from llxprt_hooks.process.warm import zygotes
from llxprt_hooks.process.watchdog import watchdog
zygotes.patience = 60

def wait_and_die():
    while not Path("pid").exists() or not Path("pid").read_text():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    hook = {{"type": "command", "command": {command!r}, "warm": True}}
    config = Config(enable_hooks=True, hooks={{"BeforeTool": [{{"hooks": [hook]}}]}})
    {moment}
    await fire_before_tool_hook(config, "x", {{}})

asyncio.run(main())
"""
WHEN_ACCEPTED = "run._answered = lambda loop, offer: wait_and_die()"
WHEN_LISTED = "run._Run.connect = lambda self: (watchdog.leave_running(), wait_and_die())"


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "stays"), [(WHEN_ACCEPTED, False), (WHEN_LISTED, True)])
async def test_script_of_an_agent_that_was_killed_at_once(tmp_path: Path, moment: str, stays: bool) -> None:
    """One that the agent did not know to run is killed; one that it wanted to leave running stays."""
    (tmp_path / "hook.py").write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(100)")
    program = AGENT.format(command=f"{sys.executable} hook.py", moment=moment)
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=tmp_path)
    assert await agent.wait() == -signal.SIGKILL

    (pid,) = pids_in(tmp_path / "pid", 1)

    if stays:
        await asyncio.sleep(0.5)
        assert lives(pid)
        end(pid)
    await eventually(lambda: not lives(pid))


async def test_hook_that_is_cancelled_when_it_was_just_accepted_gets_sigterm(
    hook: WarmHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hook.warm()
    answered, ready = run._answered, hook.folder / "ready"

    async def cancelled(loop: asyncio.AbstractEventLoop, offer: run.Offer) -> None:
        await answered(loop, offer)
        await eventually(ready.exists)
        raise asyncio.CancelledError

    monkeypatch.setattr(run, "_answered", cancelled)
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (open('terminated', 'w'), os._exit(0)))\n"
        "open('ready', 'w')\n"
        "while True: time.sleep(0.01)"  # the signal may come right before a call that waits, and not end it
    )

    with pytest.raises(asyncio.CancelledError):
        await hook.run(script)

    assert (hook.folder / "terminated").exists()


async def test_hook_whose_answer_cannot_be_waited_for_does_not_run(
    hook: WarmHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hook.warm()
    waiting = await waiting_child(hook.zygote())
    os.kill(waiting, signal.SIGSTOP)
    before = len(os.listdir("/proc/self/fd"))

    def refuse(*_: object) -> None:
        raise ValueError("filedescriptor out of range in select()")

    with monkeypatch.context() as patched:
        patched.setattr(asyncio.get_running_loop(), "add_reader", refuse)
        result = await hook.run(DENIES, failClosed=True)
    os.kill(waiting, signal.SIGCONT)
    await eventually(lambda: not lives(waiting))

    assert result.output is not None
    assert result.output.is_blocking_decision()
    assert not (hook.folder / "runs").exists()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_forked_process_does_not_keep_the_input_of_a_script(hook: WarmHook) -> None:
    """The script is offered, and not accepted yet, when the process is forked."""
    await hook.warm()
    forked: list[int] = []
    original = zygotes.offer

    def forking(*arguments: Any, **keywords: Any) -> ScriptOffer | None:
        offer = original(*arguments, **keywords)
        forked.append(os.fork())
        if not forked[0]:
            signal.pause()
        return offer

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(zygotes, "offer", forking)
        result = await hook.run("import sys; sys.stdin.read(); sys.exit(2)", timeout=30_000)
    end(*forked)
    await asyncio.to_thread(os.waitpid, forked[0], 0)

    assert (result.exit_code, result.warm) == (2, True)


async def test_forked_process_does_not_withdraw_an_offer_of_its_parent(hook: WarmHook) -> None:
    await hook.warm()
    offers: list[ScriptOffer] = []
    original = zygotes.offer

    def forking(*arguments: Any, **keywords: Any) -> ScriptOffer | None:
        offer = original(*arguments, **keywords)
        assert offer is not None
        offers.append(offer)
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                offer.withdraw()
            os._exit(0)
        os.waitpid(child, 0)
        return offer

    waiting = await waiting_child(hook.zygote())
    os.kill(waiting, signal.SIGSTOP)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(zygotes, "offer", forking)
        running = asyncio.create_task(hook.run("import sys; sys.exit(2)"))
        await eventually(lambda: bool(offers))
    os.kill(waiting, signal.SIGCONT)
    result = await running

    assert (result.exit_code, result.warm) == (2, True)


async def test_interpreter_that_is_dropped_ends_although_a_forked_process_lives(hook: WarmHook) -> None:
    await hook.warm()
    (zygote,) = zygotes._zygotes.values()
    copy = os.dup(zygote.control.fileno())  # as code that forks without Python would have it
    child = subprocess.Popen(["sleep", "100"], pass_fds=[copy])
    os.close(copy)

    zygotes.close()

    try:
        await eventually(lambda: not lives(zygote.pid))
    finally:
        child.kill()
        child.wait()


@pytest.mark.slow
async def test_many_different_interpreters_in_turn_are_not_started_each_time(
    hook: WarmHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    zygotes.close()
    monkeypatch.setattr(pool, "_RECENT_SECONDS", DEADLINE)
    started = []

    def counted(*given: Any) -> None:
        started.append(given)
        start_program(*given)

    monkeypatch.setattr(pool, "start_program", counted)

    for seed in "123456" * 2:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        await assert_decides_once(hook)

    assert len(started) == 4
    monkeypatch.setattr(pool, "_RECENT_SECONDS", 0.0)
    await hook.warm()
    assert len(started) == 5


@pytest.mark.slow
async def test_memory_of_a_script_has_no_variable_that_only_another_may_have(
    hook: WarmHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_FOR_ONE", "3421-terces"[::-1])
    await hook.warm()
    await hook.warm()
    monkeypatch.delenv("ONLY_FOR_ONE")
    script = (
        "import re\n"
        "found = False\n"
        "with open('/proc/self/mem', 'rb', 0) as memory, open('/proc/self/maps') as areas:\n"
        "    for area, access in (line.split()[:2] for line in areas.readlines()):\n"
        "        start, end = (int(part, 16) for part in area.split('-'))\n"
        "        if access.startswith('rw'):\n"
        "            memory.seek(start)\n"
        "            found = found or re.search(b'[s]ecret-1243', memory.read(end - start)) is not None\n"
        "print(found)"
    )

    result = await hook.warm(script)

    assert result.stdout.strip() == "False"


@pytest.mark.parametrize("variables", [{"A": "1\0B=2"}, {"A=B": "1"}])
async def test_environment_that_no_program_can_have_is_not_offered(hook: WarmHook, variables: dict[str, str]) -> None:
    (hook.folder / "hook.py").write_text("")
    start = pool.PythonStart(sys.executable, (sys.executable, "hook.py"), ())

    def no_cold_start() -> Any:
        raise AssertionError

    offer = zygotes.offer(
        start,
        stdin=b"",
        env={"PATH": os.environ["PATH"], **variables},
        cwd=str(hook.folder),
        output_limit=1000,
        otherwise=no_cold_start,
    )

    assert offer is None


@pytest.mark.slow
async def test_interpreter_that_was_killed_is_named_as_the_reason(hook: WarmHook) -> None:
    await hook.warm()
    zygote = hook.zygote()
    running = asyncio.create_task(hook.run("import time\nopen('started', 'w')\ntime.sleep(100)"))
    await eventually((hook.folder / "started").exists)

    os.kill(zygote, signal.SIGKILL)

    assert "the interpreter that ran it was ended" in str((await running).error)


@pytest.mark.parametrize("namespace", [0x40000000, 0x00020000], ids=["network", "mounts"])
async def test_agent_that_confined_itself_gets_another_interpreter(namespace: int) -> None:
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            before = pool.inherited_state()
            failed = ctypes.CDLL(None).unshare(namespace)
            os.write(writer, b"cannot" if failed else str(pool.inherited_state() != before).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)  # noqa: ASYNC222
    os.close(writer)
    answer = os.read(reader, 100)
    os.close(reader)

    if answer == b"cannot":
        pytest.skip("not permitted here")
    assert answer == b"True"
