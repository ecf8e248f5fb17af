"""Calling a tool as the scheduler does, and what its result has to be like."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llxprt_hooks.agent.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from llxprt_hooks.agent.tools import Workspace
    from llxprt_hooks.protocol.tool_result import ToolResult

SECRET = "the secret outside"

DEADLINE = 10.0
"""Seconds after which something counts as hanging."""


async def call(workspace: Workspace, name: str, /, **arguments: Any) -> ToolResult:
    return await TOOLS[name].run(workspace, arguments)


async def succeed(workspace: Workspace, name: str, /, **arguments: Any) -> str:
    """What the model gets from a call that succeeds."""
    result = await call(workspace, name, **arguments)
    assert result.error is None, result.error
    assert isinstance(result.llm_content, str)
    assert isinstance(result.return_display, str)
    assert "\n" not in result.return_display
    return result.llm_content


async def fail(workspace: Workspace, name: str, /, **arguments: Any) -> str:
    """The message of a call that fails."""
    return message_of(await call(workspace, name, **arguments))


def message_of(result: ToolResult) -> str:
    assert result.error is not None, result.llm_content
    message = result.error["message"]
    assert isinstance(message, str)
    assert result.llm_content == result.return_display == message
    assert message.endswith(".")
    assert "\n" not in message
    return message


async def eventually(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up
        await asyncio.sleep(0.005)


async def pid_in(path: Path) -> int:
    """The process number in a file that a process writes when it is ready."""
    await eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return not Path("/proc/self").exists()
