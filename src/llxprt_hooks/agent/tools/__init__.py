"""The seven tools of the agent, under the names and with the parameters of LLxprt Code and Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from llxprt_hooks.agent.tools.files import LIST_DIRECTORY, READ_FILE, REPLACE, WRITE_FILE
from llxprt_hooks.agent.tools.search import GLOB, SEARCH_FILE_CONTENT
from llxprt_hooks.agent.tools.shell import RUN_SHELL_COMMAND
from llxprt_hooks.agent.tools.tool import Tool, ToolKind
from llxprt_hooks.agent.tools.workspace import Workspace

TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in (READ_FILE, WRITE_FILE, REPLACE, LIST_DIRECTORY, GLOB, SEARCH_FILE_CONTENT, RUN_SHELL_COMMAND)
    }
)

__all__ = ["TOOLS", "Tool", "ToolKind", "Workspace"]
