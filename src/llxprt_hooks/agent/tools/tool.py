"""What a tool is, and how a function with string parameters becomes one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from llxprt_hooks.agent.tools.arguments import texts
from llxprt_hooks.agent.tools.failure import ToolFailure, failed

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace
    from llxprt_hooks.protocol.tool_result import ToolResult


class ToolKind(StrEnum):
    """What a tool can do. Determines whether it needs approval."""

    READ = "read"
    EDIT = "edit"
    EXECUTE = "execute"


Run: TypeAlias = "Callable[[Workspace, Mapping[str, Any]], Awaitable[ToolResult]]"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its declaration for the model, and the function that runs it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments."""
    kind: ToolKind
    run: Run
    writes: str | None = None
    """The parameter with the path of the file that the tool writes, if it writes one."""

    def declaration(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "parameters_json_schema": dict(self.parameters),
        }


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
