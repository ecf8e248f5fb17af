"""A project with the settings of another agent, and what its hooks do, in short."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llxprt_hooks import Hooks
from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.trust.status import grant_trust

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import AggregatedHookResult
    from llxprt_hooks.settings.definitions import HookDefinition

SHELL: dict[str, Any] = {"tool_name": "run_shell_command", "tool_input": {"command": "ls", "description": "list"}}
WRITE: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"file_path": "a.txt", "content": "new\n"}}
EDIT: dict[str, Any] = {
    "tool_name": "replace",
    "tool_input": {"file_path": "a.txt", "old_string": "old", "new_string": "new"},
}
READ: dict[str, Any] = {"tool_name": "read_file", "tool_input": {"file_path": "a.txt"}}
MCP: dict[str, Any] = {"tool_name": "mcp__shop__refund", "tool_input": {"id": 7}}
TASK: dict[str, Any] = {"tool_name": "task", "tool_input": {"subagent_name": "reviewer", "goal_prompt": "look"}}
PATCH: dict[str, Any] = {
    "tool_name": "apply_patch",
    "tool_input": {"patch": "*** Begin Patch\n*** Add File: n.txt\n+hi\n*** Delete File: .env\n*** End Patch\n"},
}
FAILED: dict[str, Any] = {"llmContent": "", "returnDisplay": "", "error": {"message": "no such file"}}

_FIELDS: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BEFORE_TOOL: SHELL,
    HookEventName.AFTER_TOOL: {
        **SHELL,
        "tool_response": {"llmContent": "a.txt", "returnDisplay": "a.txt", "metadata": {}},
    },
    HookEventName.BEFORE_AGENT: {"prompt": "hello"},
    HookEventName.AFTER_AGENT: {"prompt": "hello", "prompt_response": "hi", "stop_hook_active": False},
    HookEventName.SESSION_START: {"source": "startup"},
    HookEventName.SESSION_END: {"reason": "exit"},
    HookEventName.PRE_COMPRESS: {"trigger": "auto"},
    HookEventName.NOTIFICATION: {"notification_type": "ToolPermission", "message": "m", "details": {}},
}
EXTRAS = {"tool_use_id": "toolu_1", "duration_ms": 1500}


def prints(stdout: str | dict[str, Any], stderr: str = "", code: int = 0) -> str:
    """A command with this outcome."""
    text = stdout if isinstance(stdout, str) else json.dumps(stdout)
    return f"printf %s {shlex.quote(text)}; printf %s {shlex.quote(stderr)} >&2; exit {code}"


class ForeignProject:
    """A project folder, and the home directory of its user."""

    def __init__(self, root: Path, home: Path, dialect: str) -> None:
        self.root = root
        self.home = home
        self.dialect = dialect

    def write(self, name: str, content: Any, *, home: bool = False) -> Path:
        """Write a file, of an object as JSON."""
        file = (self.home if home else self.root) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def hooks(self) -> Hooks:
        """Approve what the project has, and load it."""
        grant_trust(self.root, dialect=self.dialect)
        return Hooks.load(self.root, dialects=(self.dialect,))

    def definitions(self) -> list[HookDefinition]:
        """The hooks that are usable."""
        registry = HookRegistry(self.hooks().config)
        registry.initialize()
        return [entry.definition for entry in registry.get_all_hooks()]

    async def fire(self, native: HookEventName, fields: dict[str, Any] | None = None) -> AggregatedHookResult | None:
        """Fire an event; None if no hook is for it."""
        config = self.hooks().config
        given = {**_FIELDS[native], **(fields or {})}
        matched = native.spec.matched_field
        plan = plan_for(config, native, given[matched] if matched else None)
        extras = EXTRAS if native.spec.is_about_tool else None
        return None if plan is None else await plan.fire(given, extras=extras)

    async def outcome(self, native: HookEventName, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        """What the hooks of an event decide: only what is not as if there were none."""
        return said(await self.fire(native, fields), native)

    def received(self, name: str = "payload.json") -> list[dict[str, Any]]:
        """What hooks with the command ``tee -a`` got, with this folder as ``/p``."""
        file = self.root / name
        text = file.read_text().replace(str(self.root), "/p") if file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


def said(result: AggregatedHookResult | None, native: HookEventName) -> dict[str, Any]:
    if result is None:
        return {}
    output = result.final_output
    found: dict[str, Any] = {}
    if result.errors:
        found["failed"] = True
    if output is None:
        return found
    specific, beyond = output.hook_specific_output or {}, output.beyond
    if result.is_blocked(native):
        found["blocked"] = output.get_effective_reason()
    elif output.asks():
        found["ask"] = True
    elif output.permission_decision == "allow":
        found["allow"] = True
    for name, value in (
        ("stop", output.get_stop_reason()),
        ("context", output.get_additional_context()),
        ("input", specific.get("tool_input")),
        ("replaced", specific.get("tool_response")),
        ("beside", beyond.beside_result if beyond else ""),
        ("user", output.user_message),
        ("model", output.system_message),
    ):
        if value:
            found[name] = value
    return found
