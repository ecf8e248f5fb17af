"""``"failClosed": true``: a hook that must not fail blocks when it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, ToolResult, execute_tool_with_hooks
from tests.support.replies import fired


def configured(tmp_path: Path, hook: dict[str, Any], **group: Any) -> Config:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", **hook}], **group}]}
    return Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks)


FAILURES = {
    "crash": {"command": "echo broken >&2; exit 1"},
    "signal": {"command": "kill -9 $$"},
    "timeout": {"command": "sleep 30", "timeout": 100},
    "missing program": {"command": "/no/such/program"},
    "plugin": {"type": "plugin", "name": "not-there"},
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_a_failure_of_a_fail_closed_hook_is_its_explicit_block(tmp_path: Path, failure: dict[str, Any]) -> None:
    result = await fired(configured(tmp_path, {**failure, "failClosed": True}))

    assert not result.success
    assert result.final_output is not None
    assert result.final_output.is_blocking_decision()
    assert result.final_output.get_effective_reason().startswith("blocked because failClosed is set: hook `")


@pytest.mark.requirement("HOOK-110")
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_without_it_the_same_failure_allows(tmp_path: Path, failure: dict[str, Any]) -> None:
    assert (await fired(configured(tmp_path, failure))).final_output is None


async def test_a_hook_that_cannot_be_started_blocks_too(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    config = configured(folder, {"command": "true", "failClosed": True})
    folder.rmdir()

    result = await execute_tool_with_hooks(config, "write_file", {}, lambda _: ToolResult("it ran"))

    assert result.llm_content.startswith("blocked because failClosed is set: hook `")


async def test_a_fail_closed_hook_that_works_decides_as_any_other(tmp_path: Path) -> None:
    hook = {"command": """echo '{"decision": "allow", "reason": "fine"}'""", "failClosed": True}

    result = await fired(configured(tmp_path, hook))

    assert result.success
    assert result.final_output is not None
    assert not result.final_output.is_blocking_decision()


async def test_its_failure_ends_a_chain(tmp_path: Path) -> None:
    hooks = [
        {"type": "command", "command": "exit 1", "failClosed": True},
        {"type": "command", "command": "touch ran"},
    ]
    config = Config(
        enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [{"sequential": True, "hooks": hooks}]}
    )

    assert (await fired(config)).final_output is not None
    assert not (tmp_path / "ran").exists()


async def test_a_value_that_is_not_a_flag_is_ignored_alone(tmp_path: Path) -> None:
    config = configured(tmp_path, {"command": "exit 1", "failClosed": "yes"})

    assert (await fired(config)).final_output is None
    system = config.get_hook_system()
    assert system is not None
    (problem,) = system.get_registry().problems
    assert str(problem) == "hooks.BeforeTool[0].hooks[0]: `failClosed` is ignored: expected true or false, found 'yes'"
