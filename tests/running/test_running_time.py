"""A hook has its time; when that is over its whole process group is ended (HOOK-117 to 120, D-18)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import HookEventName
from llxprt_hooks.engine.executors import command as command_module
from llxprt_hooks.engine.runner import HookRunner
from llxprt_hooks.process import Completed, run_child
from tests.running.running_hooks import handler_of, hook, payload, run
from tests.support.processes import eventually

if TYPE_CHECKING:
    from llxprt_hooks.engine.results import HookExecutionResult

BEFORE_TOOL = HookEventName.BEFORE_TOOL


async def run_until(begun: list[str], command: str, project: Path) -> tuple[HookExecutionResult, float]:
    """Run a hook that writes files when it has begun, and then outlasts its timeout, which is returned too."""
    timeout = 500.0
    while True:
        result = await run(command, project, timeout=timeout)
        if all((project / name).exists() for name in begun):
            return result, timeout
        for name in [*begun, "asked"]:
            (project / name).unlink(missing_ok=True)
        timeout *= 2  # the machine was too busy


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Notes that it was asked to end, and ends; so does its child.
ASKED_TO_END = """
sh -c 'trap "echo child >> asked; exit" TERM; echo $$ > child-pid; while :; do sleep 0.02; done' &
trap 'wait; echo parent >> asked; exit {code}' TERM
echo $$ > pid
{before}
while :; do sleep 0.02; done
"""


class TestTimeIsOver:
    @pytest.mark.requirement("HOOK-117", "HOOK-119", "HOOK-155")
    async def test_the_hook_and_its_children_get_sigterm_and_the_hook_has_failed(self, project: Path) -> None:
        command = ASKED_TO_END.format(before="", code=0)

        result, timeout = await run_until(["pid", "child-pid"], command, project)

        assert sorted((project / "asked").read_text().split()) == ["child", "parent"]
        assert not is_alive(int((project / "pid").read_text()))
        assert not is_alive(int((project / "child-pid").read_text()))
        assert not result.success
        assert result.output is None
        assert f"after {timeout:g} ms" in str(result.error)

    @pytest.mark.slow
    @pytest.mark.requirement("HOOK-119")
    async def test_a_hook_out_of_time_never_blocks_whatever_it_says_at_the_end(
        self, project: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        deny = 'echo \'{"decision": "deny"}\'; echo no >&2'
        command = ASKED_TO_END.format(before=deny, code=2)
        entry = {"type": "command", "command": command, "timeout": 1500, "name": "slow"}
        handler = await handler_of({"BeforeTool": [{"hooks": [entry]}]}, project)

        result = await handler.fire_before_tool_event("write_file", {})

        assert not result.success
        assert result.final_output is None or not result.final_output.is_blocking_decision()
        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert any("slow" in warning and "1500" in warning for warning in warnings)

    @pytest.mark.slow
    @pytest.mark.requirement("HOOK-118")
    async def test_a_hook_that_ignores_sigterm_is_killed_five_seconds_later(
        self, project: Path, script: Callable[[str, str], str]
    ) -> None:
        stubborn = script(
            "stubborn",
            f"#!{sys.executable}\n"
            "import os, signal, time\n"
            "def note(what): os.write(notes, f'{what} {time.monotonic()}\\n'.encode())\n"
            "signal.signal(signal.SIGTERM, lambda *_: note('asked'))\n"
            "notes = os.open('notes', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
            "note(os.getpid())\n"
            "while True:\n"
            "    time.sleep(0.05)\n"
            "    note('alive')\n",
        )

        result, timeout = await run_until(["notes"], stubborn, project)

        notes = [line.split() for line in (project / "notes").read_text().splitlines()]
        asked = [float(when) for what, when in notes if what == "asked"]
        assert len(asked) == 1
        assert result.duration >= timeout + 5000
        assert time.monotonic() - asked[0] < 30
        assert not is_alive(int(notes[0][0]))
        assert not result.success
        assert result.signal == "SIGKILL"
        assert result.output is None

    async def test_the_others_are_not_affected(self, project: Path) -> None:
        hooks = [hook("sleep 30", timeout=100), hook("echo fine", timeout=20_000)]

        slow, fine = await HookRunner().execute_hooks_parallel(hooks, BEFORE_TOOL, payload(BEFORE_TOOL, project))

        assert not slow.success
        assert fine.success
        assert fine.stdout == "fine\n"

    @pytest.mark.requirement("HOOK-119")
    async def test_a_chain_continues_after_a_hook_out_of_time(self, project: Path) -> None:
        hooks = [hook("sleep 30", timeout=100), hook("touch after")]

        results = await HookRunner().execute_hooks_sequential(hooks, BEFORE_TOOL, payload(BEFORE_TOOL, project))

        assert [result.success for result in results] == [False, True]
        assert (project / "after").exists()


@pytest.mark.requirement("HOOK-120")
@pytest.mark.parametrize(("fields", "seconds"), [({}, 60.0), ({"timeout": 1_500}, 1.5)])
async def test_a_hook_has_sixty_seconds_unless_its_settings_say_otherwise(
    fields: dict[str, Any], seconds: float, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    async def noted(*arguments: Any, **options: Any) -> Completed:
        given.append(options["timeout"])
        return await run_child(*arguments, **options)

    monkeypatch.setattr(command_module, "run_child", noted)
    entry = {"type": "command", "command": "true", **fields}
    handler = await handler_of({"BeforeTool": [{"hooks": [entry]}]}, project)

    result = await handler.fire_before_tool_event("write_file", {})

    assert result.success
    assert given == [seconds]


class TestTheEndOfAHook:
    """D-18."""

    async def test_a_child_that_a_hook_leaves_behind_does_not_hold_the_agent_and_lives_on(self, project: Path) -> None:
        answer = json.dumps({"decision": "deny", "reason": "said in time"})

        result = await run(f"sleep 300 & echo $! > pid; echo '{answer}'", project)

        child = int((project / "pid").read_text())
        try:
            assert is_alive(child)
            assert result.success
            assert result.output is not None
            assert result.output.to_dict() == json.loads(answer)
        finally:
            os.kill(child, signal.SIGKILL)

    @pytest.mark.parametrize("mode", ["parallel", "sequential"])
    async def test_a_cancelled_hook_is_ended_with_its_children_before_the_cancellation_propagates(
        self, mode: str, project: Path
    ) -> None:
        execute = getattr(HookRunner(), f"execute_hooks_{mode}")
        hooks = [hook(ASKED_TO_END.format(before="", code=0)), hook("echo $$ > next; exec sleep 300")]
        begun = [project / "pid", project / "child-pid"] + [project / "next"] * (mode == "parallel")
        running = asyncio.create_task(execute(hooks, BEFORE_TOOL, payload(BEFORE_TOOL, project)))
        await eventually(lambda: all(file.exists() and file.read_text() for file in begun))

        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert sorted((project / "asked").read_text().split()) == ["child", "parent"]
        assert [is_alive(int(file.read_text())) for file in begun] == [False] * len(begun)
        assert (project / "next").exists() is (mode == "parallel")

    async def test_a_hook_that_wrote_much_is_read_to_the_end(self, project: Path) -> None:
        result = await run("head -c 3000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero | tr '\\0' y >&2", project)

        assert (len(result.stdout), len(result.stderr)) == (3_000_000, 300_000)
