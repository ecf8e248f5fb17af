"""Turn a function with string parameters into a tool: build its schema, check arguments, report errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llxprt_hooks.agent.tools.failure import ToolFailure
from llxprt_hooks.agent.tools.tool import Tool, ToolKind
from llxprt_hooks.agent.tools.wording import one_line
from llxprt_hooks.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace


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
) -> Tool:
    """Return a tool that calls ``function(workspace, **arguments)``, without optional arguments that were not given.

    Invalid arguments, and a `ToolFailure` of the function, become an error result.
    """

    async def run(workspace: Workspace, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            return await function(workspace, **_texts(name, parameters, arguments))
        except ToolFailure as failure:
            message = one_line(str(failure))
            return ToolResult(llm_content=message, return_display=message, error={"message": message})

    return Tool(name=name, description=description, parameters=_schema(parameters), kind=kind, run=run)


def _schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {p.name: {"type": "string", "description": p.description} for p in parameters},
        "required": [p.name for p in parameters if p.required],
    }


def _texts(tool: str, parameters: Sequence[Parameter], arguments: Mapping[str, Any]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if isinstance(value, str):
            texts[parameter.name] = value
        elif value is not None:
            got = _JSON_TYPES.get(type(value), "something else")
            raise ToolFailure(f"{tool} expects a string as `{parameter.name}`, but got {got}.")
        elif parameter.required:
            raise ToolFailure(f"{tool} needs the string `{parameter.name}`, but got {_given(arguments)}.")
    return texts


_JSON_TYPES = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


def _given(arguments: Mapping[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name, value in arguments.items() if value is not None)
    return f"only {names}" if names else "no arguments"
