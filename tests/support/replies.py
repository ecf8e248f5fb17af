"""What hooks answer in tests, the commands that print it, and an event or a tool call with such hooks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from llxprt_hooks import AggregatedHookResult, Config, HookEventHandler, ToolResult, execute_tool_with_hooks

DENY = {"decision": "deny", "reason": "not today"}
STOP = {"continue": False, "stopReason": "enough"}


def says(output: Mapping[str, Any] | None = None, **specific: Any) -> dict[str, Any]:
    """An output with these fields in ``hookSpecificOutput``."""
    return {**(output or {}), "hookSpecificOutput": specific}


def printing(output: object) -> str:
    """A command that prints an output, or a text as it is."""
    return f"printf %s {shlex.quote(output if isinstance(output, str) else json.dumps(output))}"


def command_hook(command: str, **fields: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **fields}


def group(*commands: str, **fields: Any) -> dict[str, Any]:
    """A hook group as in a settings file; ``fields`` are the group's own."""
    return {"hooks": [command_hook(command) for command in commands], **fields}


def done(args: Mapping[str, Any]) -> str:
    """A tool."""
    return "done"


def handler_of(config: Config) -> HookEventHandler:
    system = config.get_hook_system()
    assert system is not None
    return system.ready_event_handler()


async def fired(config: Config, **tool_input: Any) -> AggregatedHookResult:
    """The result of a BeforeTool event."""
    return await handler_of(config).fire_before_tool_event("write_file", tool_input)


async def run_tool(config: Config) -> ToolResult:
    """The result of a tool call, which is ``RAN`` unless hooks change it."""
    return await execute_tool_with_hooks(config, "rm", {}, lambda _: ToolResult("RAN"))
