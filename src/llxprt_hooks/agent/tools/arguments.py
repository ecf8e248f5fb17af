"""Check the arguments of a call against the declared parameters of its tool. All parameters are strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from llxprt_hooks.agent.tools.failure import ToolFailure
from llxprt_hooks.agent.tools.wording import escape_name
from llxprt_hooks.text import shorten

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.tool import Tool

_LONGEST_NAME = 60
_MOST_NAMES = 5


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
            got = _JSON_TYPES.get(type(value), "something else")
            raise ToolFailure(f"{tool.name} expects a string as `{name}`, but got {got}.")
        elif name in tool.parameters.get("required", ()):
            raise ToolFailure(f"{tool.name} needs the string `{name}`, but got {_given(arguments)}.")
    return given


_JSON_TYPES = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


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
    first = [f"`{shorten(escape_name(str(name)), _LONGEST_NAME)}`" for name in names]
    more = f" and {len(first) - _MOST_NAMES:,} more" if len(first) > _MOST_NAMES else ""
    return ", ".join(first[:_MOST_NAMES]) + more
