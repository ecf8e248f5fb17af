"""Hooks, settings and payloads for the tests of planning and running."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llxprt_hooks import Config, HookEventHandler, HookEventName, HookExecutionResult
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.settings.definitions import HookConfig, HookDefinition, HookSet
from tests.support.processes import DEADLINE

REQUEST = {
    "model": "gemini-2.5-pro",
    "messages": [{"role": "user", "content": "hello"}],
    "config": {"temperature": 0.7, "topK": 40},
}
RESPONSE = {"text": "hi", "candidates": [{"content": {"role": "model", "parts": ["hi"]}, "finishReason": "STOP"}]}

EVENT_FIELDS: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BEFORE_TOOL: {"tool_name": "write_file", "tool_input": {"path": "a", "options": {"x": 1, "y": 2}}},
    HookEventName.AFTER_TOOL: {
        "tool_name": "write_file",
        "tool_input": {"path": "a"},
        "tool_response": {"llmContent": "done", "returnDisplay": "done"},
    },
    HookEventName.BEFORE_MODEL: {"llm_request": REQUEST},
    HookEventName.AFTER_MODEL: {"llm_request": REQUEST, "llm_response": RESPONSE},
    HookEventName.BEFORE_TOOL_SELECTION: {"llm_request": REQUEST},
    HookEventName.BEFORE_AGENT: {"prompt": "tidy up"},
    HookEventName.AFTER_AGENT: {"prompt": "tidy up", "prompt_response": "tidied", "stop_hook_active": False},
    HookEventName.SESSION_START: {"source": "startup"},
    HookEventName.SESSION_END: {"reason": "exit"},
    HookEventName.PRE_COMPRESS: {"trigger": "manual"},
    HookEventName.NOTIFICATION: {"notification_type": "ToolPermission", "message": "may I?", "details": {"tool": "x"}},
}

SUBJECTS = {
    HookEventName.BEFORE_TOOL: "write_file",
    HookEventName.AFTER_TOOL: "write_file",
    HookEventName.SESSION_START: "startup",
    HookEventName.SESSION_END: "exit",
    HookEventName.PRE_COMPRESS: "manual",
    HookEventName.NOTIFICATION: "ToolPermission",
}
"""The values that the matchers of an event are compared with, in the payloads above. Other events have none."""


@dataclass
class Sets:
    """A configuration for the registry, with sources that ``Config`` never gives (user, system)."""

    hook_sets: Sequence[HookSet]
    disabled_hooks: Sequence[str] = ()
    function_hooks: Sequence[HookDefinition] = ()
    profile: str = "standard"


def registry_of(hooks: Mapping[str, Any], **config: Any) -> HookRegistry:
    """An initialized registry of a program's own ``Config``."""
    registry = HookRegistry(Config(enable_hooks=True, hooks=hooks, **config))
    registry.initialize()
    return registry


def planned(registry: HookRegistry, event_name: HookEventName, subject: str | None = None) -> list[str]:
    """The commands that a fresh planner would run, in order."""
    plan = HookPlanner(registry).create_execution_plan(event_name, subject)
    return [] if plan is None else [config.command for config in plan.hook_configs]


def payload(event_name: HookEventName, cwd: Path | str, **fields: Any) -> dict[str, Any]:
    """What a hook of this event is sent; ``fields`` replace or add to the event's own."""
    base = {
        "session_id": "s1",
        "cwd": str(cwd),
        "timestamp": "2025-02-18T16:30:00.000Z",
        "hook_event_name": event_name.value,
        "transcript_path": "",
    }
    return {**base, **EVENT_FIELDS[event_name], **fields}


def hook(command: str, **fields: Any) -> HookConfig:
    """A command hook."""
    return HookConfig("command", CommandSpec(command), **fields)


async def run(
    command: str, cwd: Path | str, event_name: HookEventName = HookEventName.BEFORE_TOOL, **fields: Any
) -> HookExecutionResult:
    """Run one hook for real; ``fields`` are those of the hook (``timeout``)."""
    hooks = [hook(command, **fields)]
    async with asyncio.timeout(DEADLINE):
        [result] = await HookRunner(working_dir=lambda: str(cwd)).execute_hooks_parallel(
            hooks, event_name, payload(event_name, cwd)
        )
    return result


def says(output: Mapping[str, Any], *, saw: str = "/dev/null") -> str:
    """A command that keeps its stdin in the file ``saw`` and answers with ``output``."""
    return f"cat > {shlex.quote(saw)}; printf %s {shlex.quote(json.dumps(output))}"


def seen(directory: Path, name: str) -> Any:
    """The payload that a hook kept."""
    return json.loads((directory / name).read_bytes())


async def handler_of(hooks: Mapping[str, Any], project: Path) -> HookEventHandler:
    """The event handler of a program's own ``Config``, for what only shows where all parts work together."""
    system = Config(enable_hooks=True, working_dir=project, hooks=hooks).get_hook_system()
    assert system is not None
    await system.initialize()
    return system.get_event_handler()
