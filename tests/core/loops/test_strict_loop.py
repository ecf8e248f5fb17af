"""Guards hold where blocking calls on the event loop are forbidden, as by ``langgraph dev``, which uses blockbuster."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockingError, blockbuster_ctx

from llxprt_hooks import Config, HookLog, ToolResult, execute_tool_with_hooks, fire_before_tool_hook
from llxprt_hooks.commands.log import read_log
from llxprt_hooks.events import SessionEndReason, SessionStartSource

if TYPE_CHECKING:
    from pathlib import Path

Hook = dict[str, Any]


@pytest.fixture
def guard(tmp_path: Path) -> str:
    """A script that blocks, after it has read its input."""
    script = tmp_path / "guard.sh"
    script.write_text("#!/bin/sh\ncat > seen\necho no >&2\nexit 2\n")
    script.chmod(0o755)
    return str(script)


def config_of(
    folder: Path, *commands: str, sequential: bool = False, fields: Hook | None = None, **options: Any
) -> Config:
    hooks = [{"type": "command", "command": command, **(fields or {})} for command in commands]
    groups = {"BeforeTool": [{"sequential": sequential, "hooks": hooks}]}
    return Config(enable_hooks=True, working_dir=folder, hooks=groups, **options)


def strictly(config: Config, arguments: dict[str, Any] | None = None) -> ToolResult:
    """Call a tool on a loop on which nothing may block."""

    async def call() -> ToolResult:
        with pytest.raises(BlockingError):
            os.stat("/")
        return await execute_tool_with_hooks(config, "write_file", arguments or {}, lambda _: "RAN")

    with blockbuster_ctx():
        return asyncio.run(call())


@pytest.fixture(autouse=True)
def _nothing_is_known_of_commands() -> None:
    """What earlier tests have looked up is forgotten, so that it is looked up here."""
    from llxprt_hooks.core.executors import command
    from llxprt_hooks.process.shell import direct_exec

    command._shell_arguments.cache_clear()
    direct_exec._decide.cache_clear()


def test_a_plain_program_blocks(tmp_path: Path, guard: str) -> None:
    assert strictly(config_of(tmp_path, guard)).llm_content == "no"


def test_a_shell_command_blocks(tmp_path: Path) -> None:
    assert strictly(config_of(tmp_path, "cat >/dev/null; echo no >&2; exit 2")).llm_content == "no"


def test_one_of_many_in_parallel_blocks(tmp_path: Path, guard: str) -> None:
    commands = [f"true {number}; true" for number in range(80)]

    assert strictly(config_of(tmp_path, *commands, guard)).llm_content == "no"


def test_the_end_of_a_chain_blocks(tmp_path: Path, guard: str) -> None:
    rewriting = """echo '{"hookSpecificOutput": {"tool_input": {"a": 1}}}'"""

    assert strictly(config_of(tmp_path, rewriting, guard, sequential=True)).llm_content == "no"
    assert b'"a":1' in (tmp_path / "seen").read_bytes()


def test_a_large_input_is_blocked(tmp_path: Path, guard: str) -> None:
    assert strictly(config_of(tmp_path, guard), {"content": "x" * 3_000_000}).llm_content == "no"
    assert (tmp_path / "seen").stat().st_size > 3_000_000


def test_a_timeout_blocks_where_a_hook_must_not_fail(tmp_path: Path) -> None:
    config = config_of(tmp_path, "sleep 1000", fields={"timeout": 100, "failClosed": True})

    assert "timed out after 100 ms" in str(strictly(config).llm_content)


def test_a_program_that_cannot_be_started_directly_is_left_to_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "text"
    script.write_text("echo no >&2; exit 2")  # no first line with an interpreter: only a shell runs it
    script.chmod(0o755)

    assert strictly(config_of(tmp_path, "./text")).llm_content == "no"


@pytest.mark.slow
def test_many_events_at_once_are_all_blocked(tmp_path: Path, guard: str) -> None:
    config = config_of(tmp_path, guard)

    async def calls() -> list[bool]:
        outputs = await asyncio.gather(*(fire_before_tool_hook(config, "write_file", {}) for _ in range(100)))
        return [output is not None and output.is_blocking_decision() for output in outputs]

    with blockbuster_ctx():
        assert asyncio.run(calls()) == [True] * 100


def test_a_session_starts_and_ends_that_has_a_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its folder is emptied when it starts again, and removed when it ends."""
    command = {"type": "command", "command": f"cat > {tmp_path}/seen.$$; touch $LLXPRT_SESSION_DIR/note"}
    groups = {event: [{"hooks": [command]}] for event in ("SessionStart", "SessionEnd")}
    config = Config(session_id="strict", enable_hooks=True, working_dir=tmp_path, hooks=groups)

    async def twice() -> None:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        handler = system.get_event_handler()
        with blockbuster_ctx():
            for _ in range(2):
                await handler.fire_session_start_event(source=SessionStartSource.STARTUP)
            await handler.fire_session_end_event(reason=SessionEndReason.EXIT)

    asyncio.run(twice())

    assert len([*tmp_path.glob("seen.*")]) == 3
    assert caplog.text == ""


def test_the_log_is_written(tmp_path: Path, guard: str, caplog: pytest.LogCaptureFixture) -> None:
    config = config_of(tmp_path, guard, observer=HookLog(tmp_path))

    assert [strictly(config).llm_content for _ in range(3)] == ["no"] * 3

    assert [record["blocked"] for record in read_log()] == [True] * 3
    assert caplog.text == ""
