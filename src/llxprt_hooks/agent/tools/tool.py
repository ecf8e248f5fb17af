"""The definition of a tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

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
        """Return the function declaration for the model."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters_json_schema": dict(self.parameters),
        }
