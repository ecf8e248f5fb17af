"""Turn a function with string parameters into a tool: build its schema, pass arguments, report errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llxprt_hooks.agent.tools.arguments import texts
from llxprt_hooks.agent.tools.failure import ToolFailure, failed
from llxprt_hooks.agent.tools.tool import Tool, ToolKind

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace
    from llxprt_hooks.protocol.tool_result import ToolResult


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool. All parameters are strings."""

    name: str
    description: str
    required: bool = True


def declare(
    *,
    name: str,
    kind: ToolKind,
    description: str,
    parameters: Sequence[Parameter],
    function: Callable[..., Awaitable[ToolResult]],
    writes: str | None = None,
) -> Tool:
    """Return a tool that calls ``function(workspace, **arguments)``, without optional arguments that were not given.

    Invalid arguments, and a `ToolFailure` of the function, become an error result.
    """

    async def run(workspace: Workspace, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            return await function(workspace, **texts(tool, arguments))
        except ToolFailure as failure:
            return failed(failure)

    tool = Tool(name, description, _schema(parameters), kind, run, writes)
    return tool


def _schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {p.name: {"type": "string", "description": p.description} for p in parameters},
        "required": [p.name for p in parameters if p.required],
    }
