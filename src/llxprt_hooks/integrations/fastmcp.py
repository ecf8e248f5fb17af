"""Hooks for servers made with FastMCP::

    from fastmcp import FastMCP
    from llxprt_hooks.integrations.fastmcp import HooksMiddleware

    server = FastMCP("shop", middleware=[HooksMiddleware.load(".")])

With ``fastmcp.server.create_proxy(url)``, the same middleware puts hooks before a server that is reached over HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llxprt_hooks.integrations.extras import from_extra
from llxprt_hooks.integrations.mcp_calls import McpIntegration
from llxprt_hooks.integrations.unsupported import UNSUPPORTED
from llxprt_hooks.transport.mcp_results import STRUCTURED, effects, refusal, tool_result

with from_extra("fastmcp"):
    from fastmcp.server.middleware import Middleware
    from fastmcp.tools.base import InputRequiredToolResult, ToolResult
    from mcp_types import ContentBlock
    from pydantic import TypeAdapter

if TYPE_CHECKING:
    import mcp_types
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from fastmcp.tools import Tool


_CONTENT: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


class HooksMiddleware(McpIntegration, Middleware):
    """Runs hooks around each tool call of a server. What a tool raises passes through; AfterTool does not fire then."""

    unsupported = UNSUPPORTED["fastmcp"]

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        message, current = context.message, context.fastmcp_context
        client = self.client_of(None if current is None else current.request_context)
        if not self.is_hooked(message.name, client):
            return await call_next(context)
        arguments = message.arguments or {}
        call = self.tool_call(client, message.name, arguments)
        if (refused := await call.before()) is not None:
            return ToolResult(content=_blocks(refusal(refused)["content"]), is_error=True)
        if call.input is not arguments:
            context = context.copy(message=message.model_copy(update={"arguments": call.input}))
        result = await call_next(context)
        if isinstance(result, InputRequiredToolResult):
            return result
        shown = _as_json(result)
        changed = effects(shown, await call.after(tool_result(shown)))
        if changed is None:
            return result
        return ToolResult(content=_blocks(changed["content"]), meta=result.meta, is_error=result.is_error)

    async def on_list_tools(
        self,
        context: MiddlewareContext[mcp_types.ListToolsRequest],
        call_next: CallNext[mcp_types.ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        tools = await call_next(context)
        self.check_aliases(tool.name for tool in tools)
        return [self._described(tool) for tool in tools]

    def _described(self, tool: Tool) -> Tool:
        if tool.output_schema is None or not self.is_hooked(tool.name):
            return tool
        return tool.model_copy(update={"output_schema": None})


def _as_json(result: ToolResult) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "content": [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content],
        "isError": result.is_error,
    }
    return shown if result.structured_content is None else {**shown, STRUCTURED: result.structured_content}


def _blocks(content: list[dict[str, Any]]) -> list[Any]:
    return [_CONTENT.validate_python(block) for block in content]
