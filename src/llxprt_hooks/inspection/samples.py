"""Sample input for each event, for trying hooks without an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llxprt_hooks.events import HookEventName

_TOOL_INPUTS: Mapping[str, Mapping[str, Any]] = {
    "read_file": {"file_path": "README.md"},
    "write_file": {"file_path": "example.txt", "content": "Hello.\n"},
    "replace": {"file_path": "example.txt", "old_string": "Hello", "new_string": "Good day"},
    "list_directory": {"dir_path": "."},
    "glob": {"pattern": "**/*.py"},
    "search_file_content": {"pattern": "TODO", "dir_path": "."},
    "run_shell_command": {"command": "ls", "description": "list the files", "dir_path": "."},
}


def sample_input(event_name: HookEventName, tool_name: str = "write_file") -> dict[str, Any]:
    fields = {name: field.sample for name, field in event_name.spec.fields.items()}
    if event_name.spec.is_about_tool:
        fields |= {"tool_name": tool_name, "tool_input": dict(_TOOL_INPUTS.get(tool_name, {}))}
    return fields
