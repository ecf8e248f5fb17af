"""What the tests of the Claude Agent SDK share: its program without a network, and tools in this process."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import create_sdk_mcp_server, tool
from mcp.types import ToolAnnotations

if TYPE_CHECKING:
    from claude_agent_sdk import McpSdkServerConfig

    from tests.integrations.contract import Tools

PREFIX = "mcp__t__"
"""Before the names of the tools of a server that is called ``t``."""


def offline(url: str, home: Path) -> dict[str, str]:
    """Return the environment of the SDK's program: it knows only this API and this home."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "unused",
        "HOME": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def tool_server(tools: Tools) -> McpSdkServerConfig:
    """Return the tools of a scenario as a server of the SDK."""

    def made(function: Any) -> Any:
        names = inspect.signature(function).parameters
        types = {"data": "object"}
        properties = {name: {"type": types.get(name, "string")} for name in names}

        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            outcome = function(**arguments)
            text = outcome if isinstance(outcome, str) else json.dumps(outcome)
            return {"content": [{"type": "text", "text": text}]}

        schema = {"type": "object", "properties": properties}
        # Only tool calls that change nothing run in parallel.
        annotations = ToolAnnotations(read_only_hint=True)
        return tool(function.__name__, function.__doc__, schema, annotations=annotations)(call)

    return create_sdk_mcp_server("t", tools=[made(function) for function in tools.functions])


def text_of(content: Any) -> str:
    """Return the text of a message's content: text, or blocks."""
    if isinstance(content, str):
        return content
    return "\n\n".join(block.get("text", "") for block in content or () if isinstance(block, dict))
