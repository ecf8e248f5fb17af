"""Calling a tool as the scheduler does, and what its result has to be like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llxprt_hooks.agent.tools import TOOLS
from tests.support.processes import written

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools import Workspace
    from llxprt_hooks.core.protocol.tool_result import ToolResult

SECRET = "the secret outside"


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


async def pid_in(path: Path) -> int:
    """The process number in a file that a process writes when it is ready."""
    return int(await written(path))
