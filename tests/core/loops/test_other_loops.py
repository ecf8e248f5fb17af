"""Events fired from where hooks cannot be awaited are blocked, with the reason, and never go through unguarded.

The functions above the event handler run hooks on a loop of their own there: see ``test_events_portal``.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import trio

from llxprt_hooks import (
    Config,
    execute_tool_with_hooks,
    fire_before_tool_hook,
)
from llxprt_hooks.process import child
from tests.support.processes import DEADLINE
from tests.support.replies import handler_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from llxprt_hooks.core.engine.results import AggregatedHookResult


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Hooks that allow: whatever is blocked here is not blocked by them."""
    events = ("BeforeTool", "AfterTool", "BeforeModel", "SessionStart")
    hooks = {event: [{"matcher": "", "hooks": [{"type": "command", "command": "touch ran"}]}] for event in events}
    hooks["BeforeTool"][0]["matcher"] = "write_file"
    return Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks)


def stepped(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Drive a coroutine by hand: it has to end without waiting for anything."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits for something")


def test_the_engine_runs_hooks_under_trio(config: Config, tmp_path: Path) -> None:
    result = trio.run(handler_of(config).fire_before_tool_event, "write_file", {})

    assert result.success
    assert (tmp_path / "ran").exists()


def test_the_engine_runs_hooks_under_trio_as_a_guest_of_asyncio(config: Config, tmp_path: Path) -> None:
    async def host() -> AggregatedHookResult:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        async def guest() -> AggregatedHookResult:
            return await handler_of(config).fire_before_tool_event("write_file", {})

        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=done.set_result,
            host_uses_signal_set_wakeup_fd=True,
        )
        result: AggregatedHookResult = (await done).unwrap()
        return result

    assert asyncio.run(host()).success
    assert (tmp_path / "ran").exists()


def test_the_engine_runs_hooks_without_an_event_loop(config: Config, tmp_path: Path) -> None:
    assert stepped(handler_of(config).fire_before_model_event({"contents": "hello"})).success
    assert (tmp_path / "ran").exists()


def test_calls_without_a_guard_continue(config: Config) -> None:
    assert stepped(execute_tool_with_hooks(config, "read_file", {}, lambda _: "RAN")).llm_content == "RAN"


@pytest.mark.slow
async def test_a_child_forked_by_a_running_task_is_blocked_and_its_parent_is_guarded(tmp_path: Path) -> None:
    deny = {"type": "command", "command": "sleep 0.3; exit 2"}
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [{"hooks": [deny]}]})
    task = asyncio.create_task(fire_before_tool_hook(config, "write_file", {}))
    await asyncio.sleep(0.1)

    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            output = stepped(fire_before_tool_hook(config, "write_file", {}))
            status = 0 if output is not None and output.is_blocking_decision() else 2
        finally:
            os._exit(status)

    assert await asyncio.to_thread(os.waitpid, pid, 0) == (pid, 0)
    output = await task
    assert output is not None
    assert output.is_blocking_decision()


ISOLATED = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
code = '''
import sys
sys.path[:] = {path!r}
import asyncio
from llxprt_hooks import Config, fire_before_tool_hook
hooks = {{"BeforeTool": [{{"hooks": [{{"type": "command", "command": "true"}}]}}]}}
output = asyncio.run(fire_before_tool_hook(Config(enable_hooks=True, hooks=hooks), "write_file", {{}}))
print(output.decision, output.reason)
'''
interpreters.run_string(interpreters.create(), code.format(path=sys.path))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="newer ones cannot import the package at all, which is an error"
)
def test_an_isolated_subinterpreter_is_blocked(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE, check=False
    )

    assert done.stdout.startswith("deny blocked because hooks cannot run here: Cannot start"), done.stderr
    assert "The call is blocked" in done.stderr


async def test_an_interpreter_that_can_start_no_process_blocks(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As above, in this process: a subinterpreter, or one that is shutting down."""

    def refuse(*_: Any) -> None:
        raise RuntimeError("subprocess not supported for isolated subinterpreters")

    monkeypatch.setattr(child, "start_program", refuse)

    output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert output.is_blocking_decision()
    assert "hooks cannot run here" in output.get_effective_reason()
    assert "The call is blocked" in caplog.text
