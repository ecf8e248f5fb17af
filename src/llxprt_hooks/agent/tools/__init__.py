"""The seven tools of the agent, under the names and with the parameters of LLxprt Code and Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from llxprt_hooks.agent.tools.files import list_directory, read_file, replace, write_file
from llxprt_hooks.agent.tools.search import glob, search_file_content
from llxprt_hooks.agent.tools.shell import run_shell_command
from llxprt_hooks.agent.tools.tool import Tool, ToolKind
from llxprt_hooks.agent.tools.workspace import Workspace

TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in (read_file, write_file, replace, list_directory, glob, search_file_content, run_shell_command)
    }
)

__all__ = ["TOOLS", "Tool", "ToolKind", "Workspace"]
