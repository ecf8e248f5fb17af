"""What a tool is, how a function becomes one, and how the arguments of a call are checked. All of them are strings."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from llxprt_hooks._support.fields import found
from llxprt_hooks._support.text import shorten
from llxprt_hooks.agent.tools.messages import ToolFailure, escape_name, failed

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace
    from llxprt_hooks.core.protocol.tool_result import ToolResult

_MAX_NAME = 60
_MAX_NAMES = 5


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


def declare(
    kind: ToolKind, description: str, /, *, writes: str | None = None, **parameters: str
) -> Callable[[Callable[..., Awaitable[ToolResult]]], Tool]:
    """Turn a function ``(workspace, **arguments)`` into the tool of its name. ``parameters`` describes the arguments.

    All arguments are strings, and those with a default are optional. Invalid arguments, and a `ToolFailure` of the
    function, become an error result.
    """

    def declared(function: Callable[..., Awaitable[ToolResult]]) -> Tool:
        signature = inspect.signature(function).parameters
        schema = {
            "type": "object",
            "properties": {name: {"type": "string", "description": text} for name, text in parameters.items()},
            "required": [name for name in parameters if signature[name].default is inspect.Parameter.empty],
        }

        async def run(workspace: Workspace, arguments: Mapping[str, Any]) -> ToolResult:
            try:
                return await function(workspace, **texts(tool, arguments))
            except ToolFailure as failure:
                return failed(failure)

        tool = Tool(function.__name__, description, schema, kind, run, writes)
        return tool

    return declared


def check_requested(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise `ToolFailure` if a model's arguments are not those that the tool declares.

    An undeclared argument has no effect on the tool, but on what hooks and people see. One that is nested deeply enough
    makes many JSON parsers give up, and the guard that uses one sees no arguments at all.
    """
    declared = tool.parameters.get("properties", {})
    if undeclared := [name for name in arguments if name not in declared]:
        raise ToolFailure(f"{tool.name} has no parameter {_listed(undeclared)}. Its parameters: {_listed(declared)}.")
    texts(tool, arguments)


def texts(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the declared arguments, without those that are null. Undeclared ones, which hooks can add, are dropped."""
    given: dict[str, str] = {}
    for name in tool.parameters.get("properties", {}):
        if isinstance(value := arguments.get(name), str):
            given[name] = _valid(name, value)
        elif value is not None:
            raise ToolFailure(f"{tool.name} expects a string as `{name}`, but got {found(value)}.")
        elif name in tool.parameters.get("required", ()):
            raise ToolFailure(f"{tool.name} needs the string `{name}`, but got {_given(arguments)}.")
    return given


def _valid(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ToolFailure(
            f"`{name}` is not valid Unicode: it contains a lone surrogate at character {error.start:,}."
        ) from error
    return value


def _given(arguments: Mapping[str, Any]) -> str:
    names = [name for name, value in arguments.items() if value is not None]
    return f"only {_listed(names)}" if names else "no arguments"


def _listed(names: Iterable[str]) -> str:
    """List names, which may be a model's: a few of them, each on one line and shortened."""
    first = [f"`{shorten(escape_name(str(name)), _MAX_NAME)}`" for name in names]
    more = f" and {len(first) - _MAX_NAMES:,} more" if len(first) > _MAX_NAMES else ""
    return ", ".join(first[:_MAX_NAMES]) + more
