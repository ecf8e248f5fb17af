"""Hooks for servers made with the ``mcp`` package::

    from mcp.server import MCPServer
    from llxprt_hooks.integrations.mcp import HooksMiddleware

    server = MCPServer("shop", middleware=[HooksMiddleware.load(".")])

For a low-level ``Server``, append the middleware to ``server.middleware``.
"""

from __future__ import annotations

from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.text import from_extra
from llxprt_hooks.integrations.mcp_calls import McpIntegration
from llxprt_hooks.integrations.mcp_questions import RESPONSES, STATE, AskClient
from llxprt_hooks.integrations.mcp_results import OUTPUT_SCHEMA
from llxprt_hooks.integrations.unsupported import UNSUPPORTED

with from_extra("mcp"):
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS, CallToolResult
    from pydantic import BaseModel

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from llxprt_hooks.core.engine.session import Session


class HooksMiddleware(McpIntegration):
    """Runs hooks around each tool call of a server, before its arguments are validated."""

    unsupported = UNSUPPORTED["mcp"]

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call":
            return await self._call(ctx, call_next)
        result = await call_next(ctx)
        if ctx.method != "tools/list":
            return result
        with self.asked_by(ctx):
            return await self._listed(result, self.session_of(ctx))

    async def _call(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        name: Any = params.get("name")
        given, session = params.get("arguments"), self.session_of(ctx)
        if not self.has_tool_hooks(name, session):
            return await call_next(ctx)
        if not isinstance(given, (dict, NoneType)):
            raise MCPError(INVALID_PARAMS, "`arguments` of tools/call must be an object")

        caller = self.caller(ctx, params)

        def run(changed: dict[str, Any] | None) -> Any:
            if changed is None and not caller.is_answer:
                return call_next(ctx)
            kept = {name: value for name, value in params.items() if name not in (RESPONSES, STATE)}
            arguments = {} if changed is None else {"arguments": changed}
            return call_next(replace(ctx, params={**kept, **caller.passed_on, **arguments}))

        make = CallToolResult.model_validate
        try:
            with self.asked_by(ctx):
                return await self.call(name, given or {}, run, session, caller, as_json=_as_json, make=make)
        except AskClient as asked:
            return asked.result

    async def _listed(self, result: HandlerResult, session: Session | None) -> HandlerResult:
        """A list of the tools that hooks offer, without the output schemas of those that have hooks."""
        listed = _as_json(result)
        names: list[Any] = [tool.get("name") for tool in listed.get("tools", ())]
        self.check_tools(names, more_follow=listed.get("nextCursor") is not None)
        if not any(map(self.has_tool_hooks, names)):
            return result
        await self.select(names, session)
        offered = [tool for tool in listed["tools"] if self.is_offered(tool.get("name"), session)]
        return {**listed, "tools": [self._described(tool) for tool in offered]}

    def _described(self, tool: dict[str, Any]) -> dict[str, Any]:
        if not self.changes_results(tool.get("name")):
            return tool
        return {name: value for name, value in tool.items() if name != OUTPUT_SCHEMA}


def _as_json(result: HandlerResult) -> dict[str, Any]:
    """Return a result as it is sent."""
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return result or {}
