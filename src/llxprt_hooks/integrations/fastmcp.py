"""Hooks for servers made with FastMCP::

    from fastmcp import FastMCP
    from llxprt_hooks.integrations.fastmcp import HooksMiddleware

    server = FastMCP("shop", middleware=[HooksMiddleware.load(".")])

With ``fastmcp.server.create_proxy(url)``, the same middleware puts hooks before a server that is reached over HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.text import from_extra
from llxprt_hooks.integrations.mcp_calls import McpIntegration
from llxprt_hooks.integrations.mcp_questions import AskClient
from llxprt_hooks.integrations.mcp_results import STRUCTURED
from llxprt_hooks.integrations.unsupported import UNSUPPORTED

with from_extra("fastmcp"):
    from fastmcp.server.middleware import Middleware
    from fastmcp.tools.base import InputRequiredToolResult, ToolResult
    from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

if TYPE_CHECKING:
    import mcp_types
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from fastmcp.tools import Tool


class HooksMiddleware(McpIntegration, Middleware):
    """Runs hooks around each tool call of a server. What a tool raises passes through, unless a hook replaces it."""

    unsupported = UNSUPPORTED["fastmcp"]

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        if not self.hooks.config.enable_hooks:
            return await call_next(context)
        message, request = context.message, _request_of(context)
        session = self.session_of(request)
        if not self.has_tool_hooks(message.name, session):
            return await call_next(context)
        given = message.model_dump(mode="json", by_alias=True, include={"input_responses", "request_state"})
        caller = self.caller(request, given)

        def run(changed: dict[str, Any] | None) -> Any:
            if changed is None and not caller.is_answer:
                return call_next(context)
            fields = message.model_dump(by_alias=True, exclude={"input_responses", "request_state"})
            arguments = message.arguments if changed is None else changed
            final = CallToolRequestParams.model_validate({**fields, **caller.passed_on, "arguments": arguments})
            return call_next(context.copy(message=final))

        arguments = message.arguments or {}
        try:
            with self.asked_by(request):
                return await self.call(message.name, arguments, run, session, caller, as_json=_as_json, make=_made)
        except AskClient as asked:
            return InputRequiredToolResult(InputRequiredResult.model_validate(asked.result))

    async def on_list_tools(
        self,
        context: MiddlewareContext[mcp_types.ListToolsRequest],
        call_next: CallNext[mcp_types.ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        tools = await call_next(context)
        request = _request_of(context)
        names, session = [tool.name for tool in tools], self.session_of(request)
        self.check_tools(names)
        with self.asked_by(request):
            await self.select(names, session)
        return [self._described(tool) for tool in tools if self.is_offered(tool.name, session)]

    def _described(self, tool: Tool) -> Tool:
        if tool.output_schema is None or not self.changes_results(tool.name):
            return tool
        return tool.model_copy(update={"output_schema": None})


def _request_of(context: MiddlewareContext[Any]) -> Any:
    current = context.fastmcp_context
    return None if current is None else current.request_context


def _as_json(result: ToolResult) -> dict[str, Any]:
    if isinstance(result, InputRequiredToolResult):
        return {"resultType": "input_required"}
    shown: dict[str, Any] = {
        "content": [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content],
        "isError": result.is_error,
        "_meta": result.meta,
    }
    return shown if result.structured_content is None else {**shown, STRUCTURED: result.structured_content}


def _made(fields: dict[str, Any]) -> ToolResult:
    result = CallToolResult.model_validate(fields)
    return ToolResult(
        content=result.content, structured_content=result.structured_content, meta=result.meta, is_error=result.is_error
    )
