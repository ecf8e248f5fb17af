"""Hostile moments: too few descriptors or processes, a full disk, no home, a closed loop, a clock that jumps."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, HookLog, ToolResult, execute_tool_with_hooks
from llxprt_hooks.settings import write_atomically
from tests.support.processes import DEADLINE

HOOKS = {"BeforeTool": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}


def in_a_process_with(limit: str, folder: Path) -> dict[str, Any]:
    """Fire an event in a fresh interpreter under a limit, and return the result."""
    program = f"""
import asyncio, json, logging, os, resource, sys
from llxprt_hooks import Config
warnings = []
class Notes(logging.Handler):
    def emit(self, record): warnings.append(record.getMessage())
logging.getLogger().addHandler(Notes())
config = Config(enable_hooks=True, working_dir={str(folder)!r}, hooks={HOOKS!r})
async def main():
    system = config.get_hook_system()
    await system.initialize()
    handler = system.get_event_handler()
    before = await handler.fire_before_tool_event("write_file", {{}})
    {limit}
    under = await handler.fire_before_tool_event("write_file", {{}})
    print(json.dumps({{
        "before": before.final_output.is_blocking_decision(),
        "under": under.final_output is None,
        "errors": [str(error) for error in under.errors],
        "warnings": warnings,
    }}))
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.requirement("HOOK-110")
def test_without_descriptors_a_hook_fails_open_with_a_clear_record(tmp_path: Path) -> None:
    # Descriptors in use stay open; there is just no room for three more pipes.
    limit = "resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/dev/fd')) + 1,) * 2)"

    result = in_a_process_with(limit, tmp_path)

    assert result["before"] is True
    assert result["under"] is True
    assert "too many files open" in result["errors"][0]
    assert any("too many files open" in warning for warning in result["warnings"])


@pytest.mark.requirement("HOOK-110")
@pytest.mark.skipif(sys.platform != "linux", reason="the limit counts differently elsewhere")
def test_without_processes_a_hook_fails_open_with_a_clear_record() -> None:
    as_nobody = "os.geteuid() == 0 and os.setuid(100_000 + os.getpid())"  # the limit does not bind root

    result = in_a_process_with(f"{as_nobody}; resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))", Path("/"))

    assert result["before"] is True
    assert result["under"] is True
    assert "process" in result["errors"][0]
    assert any("process" in warning for warning in result["warnings"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
async def test_a_full_disk_for_the_record_does_not_affect_a_decision(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = HookLog(tmp_path, file=Path("/dev/full"))
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks=HOOKS, observer=record)

    for _ in range(2):
        result = await execute_tool_with_hooks(config, "write_file", {}, lambda _: ToolResult("it ran"))
        assert result.llm_content == "no"

    complaints = [each for each in caplog.messages if "no longer recorded" in each]
    assert len(complaints) == 1


def test_a_full_disk_leaves_a_settings_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    write_atomically(file, '{"enableHooks": true}')
    program = f"""
import resource, sys
from pathlib import Path
from llxprt_hooks.settings import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    write_atomically(Path({str(file)!r}), "x" * 100_000)
except OSError:
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=DEADLINE)

    assert done.returncode == 7
    assert file.read_text() == '{"enableHooks": true}'
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("settings")] == ["settings.json"]


def test_a_loop_that_is_closed_with_a_hook_in_flight_leaves_no_process(tmp_path: Path) -> None:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "echo $$ > pid; exec sleep 60"}]}]}
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks)
    loop = asyncio.new_event_loop()
    task = loop.create_task(execute_tool_with_hooks(config, "write_file", {}, lambda _: ToolResult("it ran")))
    pid_file = tmp_path / "pid"

    async def until_it_runs() -> None:
        while not (pid_file.exists() and pid_file.read_text().strip()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # nobody tells when a file is written

    loop.run_until_complete(asyncio.wait_for(until_it_runs(), 30))
    process = int(pid_file.read_text())
    coroutine = task.get_coro()
    assert coroutine is not None
    loop.close()
    coroutine.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # that it is left pending is the point

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_clock_that_jumps_ends_no_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "sleep 0.3; exit 2", "timeout": 20_000}]}]}
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks)
    years = itertools.count(0.0, 86_400.0 * 365)
    monkeypatch.setattr(time, "time", lambda: next(years))

    result = await execute_tool_with_hooks(config, "write_file", {}, lambda _: ToolResult("it ran"))

    assert result.llm_content == "Blocked by hook"
