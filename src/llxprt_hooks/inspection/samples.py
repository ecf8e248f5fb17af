"""Sample input for each event, for trying hooks without an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llxprt_hooks.events import HookEventName

_REQUEST = {
    "model": "gemini-2.5-flash",
    "messages": [{"role": "user", "content": "What does this project do?"}],
    "config": {"temperature": 0.7},
}
_RESPONSE = {
    "text": "It runs hooks.",
    "candidates": [
        {"content": {"role": "model", "parts": ["It runs hooks."]}, "finishReason": "STOP", "index": 0},
    ],
    "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 4, "totalTokenCount": 16},
}
_TOOL_INPUTS: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"file_path": "README.md"},
    "write_file": {"file_path": "example.txt", "content": "Hello.\n"},
    "replace": {"file_path": "example.txt", "old_string": "Hello", "new_string": "Good day"},
    "list_directory": {"dir_path": "."},
    "glob": {"pattern": "**/*.py"},
    "search_file_content": {"pattern": "TODO", "dir_path": "."},
    "run_shell_command": {"command": "ls", "description": "list the files", "dir_path": "."},
}
_SAMPLES: Mapping[HookEventName, Mapping[str, Any]] = {
    HookEventName.BEFORE_MODEL: {"llm_request": _REQUEST},
    HookEventName.AFTER_MODEL: {"llm_request": _REQUEST, "llm_response": _RESPONSE},
    HookEventName.BEFORE_TOOL_SELECTION: {"llm_request": _REQUEST},
    HookEventName.BEFORE_AGENT: {"prompt": "What does this project do?"},
    HookEventName.AFTER_AGENT: {
        "prompt": "What does this project do?",
        "prompt_response": "It runs hooks.",
        "stop_hook_active": False,
    },
    HookEventName.SESSION_START: {"source": "startup"},
    HookEventName.SESSION_END: {"reason": "exit"},
    HookEventName.PRE_COMPRESS: {"trigger": "manual"},
    HookEventName.NOTIFICATION: {
        "notification_type": "ToolPermission",
        "message": "write_file needs approval",
        "details": {"tool_name": "write_file"},
    },
}


def sample_input(event_name: HookEventName, tool_name: str = "write_file") -> dict[str, Any]:
    """What an event might tell its hooks."""
    if event_name in _SAMPLES:
        return dict(_SAMPLES[event_name])
    fields: dict[str, Any] = {"tool_name": tool_name, "tool_input": dict(_TOOL_INPUTS.get(tool_name, {}))}
    if event_name is HookEventName.AFTER_TOOL:
        fields["tool_response"] = {"llmContent": "done", "returnDisplay": "done", "metadata": {}}
    return fields
