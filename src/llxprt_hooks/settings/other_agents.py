"""Names that other agents use, and their counterparts here.

Gemini CLI and LLxprt Code have the same events and mostly the same tools; Claude Code has its own names for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llxprt_hooks.events import HookEventName

_WITHOUT_COUNTERPART: Final = """
    PermissionDenied PostCompact PostToolBatch Setup StopFailure SubagentStart SubagentStop TaskCompleted TaskCreated
    TeammateIdle UserPromptExpansion InstructionsLoaded ConfigChange CwdChanged FileChanged WorktreeCreate
    WorktreeRemove Elicitation ElicitationResult
"""
CLAUDE_EVENTS: Final[Mapping[str, HookEventName | None]] = {
    "PreToolUse": HookEventName.BEFORE_TOOL,
    "PostToolUse": HookEventName.AFTER_TOOL,
    "PostToolUseFailure": HookEventName.AFTER_TOOL,
    "UserPromptSubmit": HookEventName.BEFORE_AGENT,
    "Stop": HookEventName.AFTER_AGENT,
    "PreCompact": HookEventName.PRE_COMPRESS,
    "PermissionRequest": HookEventName.NOTIFICATION,
    **dict.fromkeys(_WITHOUT_COUNTERPART.split()),
}
"""Claude Code's events, except those with the same name here; None: no counterpart."""

CLAUDE_TOOLS: Final[Mapping[str, str | None]] = {
    "Bash": "run_shell_command",
    "Edit": "replace",
    "Glob": "glob",
    "Grep": "search_file_content",
    "LS": "list_directory",
    "MultiEdit": "replace",
    "NotebookEdit": None,
    "Read": "read_file",
    "Task": "task",
    "TodoWrite": "todo_write",
    "WebFetch": "web_fetch",
    "WebSearch": "google_web_search",
    "Write": "write_file",
}
"""Claude Code's tools; None: no counterpart."""

_OF_THIS_AGENT: Final = "read_file write_file replace list_directory glob search_file_content run_shell_command"
_OF_LLXPRT_AND_GEMINI: Final = """
    activate_skill apply_patch ask_user ast_edit ast_grep ast_read_file check_async_tasks code_search
    codebase_investigator codesearch delegate_to_agent delete_line_range direct_web_fetch enter_plan_mode exa_web_search
    exit_plan_mode get_internal_docs google_web_fetch google_web_search grep_search insert_at_line list_subagents
    read_line_range read_many_files save_memory structural_analysis task todo_pause todo_read todo_write web_fetch
    write_todos
"""
KNOWN_TOOLS: Final = (*_OF_THIS_AGENT.split(), *_OF_LLXPRT_AND_GEMINI.split())
"""The tools that matchers are checked against. Tools of MCP servers and of other programs are not known."""

CLAUDE_FIELDS: Final[Mapping[str, str]] = {"updatedInput": "tool_input"}
"""Claude Code's fields of ``hookSpecificOutput``, except those with the same name here."""

FOREIGN_VARIABLES: Final[Mapping[str, str]] = {
    "CLAUDE_PLUGIN_ROOT": "In an extension's hooks.json write `${extensionPath}`, elsewhere the path itself.",
    "CLAUDE_PLUGIN_DATA": "Write the path itself.",
    "CLAUDE_SKILL_DIR": "Write the path itself.",
    "CLAUDE_ENV_FILE": "Not supported: a hook cannot change the agent's environment.",
    "CLAUDE_FILE_PATHS": "Read the path from the JSON on stdin: `jq -r .tool_input.file_path`.",
    "CLAUDE_TOOL_INPUT": "Read it from the JSON on stdin: `jq .tool_input`.",
    "CLAUDE_TOOL_OUTPUT": "Read it from the JSON on stdin: `jq .tool_response`.",
    "CLAUDE_TOOL_NAME": "Read it from the JSON on stdin: `jq -r .tool_name`.",
    "CLAUDE_CODE_REMOTE": "There is no such variable here.",
    "GEMINI_SESSION_ID": "Read it from the JSON on stdin: `jq -r .session_id`.",
    "GEMINI_CWD": "Write `$LLXPRT_PROJECT_DIR`, or nothing: hooks run in that folder.",
    "GEMINI_PLANS_DIR": "There is no such variable here.",
    "workspacePath": "Write `$LLXPRT_PROJECT_DIR`.",
    "/": "Write `/`.",
    "pathSeparator": "Write `/`.",
}
"""Variables that other agents set for hooks or replace in commands, and what to do here."""
