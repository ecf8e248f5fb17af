"""What the two integrations for MCP servers share: tool calls, and a stop that applies to a client's later calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.integrations.base import Integration
from llxprt_hooks.integrations.mcp_questions import Caller, Questions, has_forms
from llxprt_hooks.integrations.mcp_results import effects, hook_tool_name, is_final, refusal, removed_by, tool_result

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.core.protocol.tool_result import ToolResult

ResultT = TypeVar("ResultT")

_REQUESTS_STAND_ALONE = "2026-07-28"


class McpIntegration(Integration):
    """Hooks of an MCP server. With ``server_name``, hooks see its tools as ``mcp__NAME__TOOL``."""

    def __init__(self, config: Config | None = None, *, server_name: str | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._server_name = server_name
        # A connection is not a session: no session event fires. It keeps a stop for the client's later calls.
        self._sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()
        self.questions = Questions()

    def hook_name(self, tool_name: Any) -> str:
        """Return the name under which hooks see a tool of the server."""
        return hook_tool_name(tool_name, self._server_name, self._aliases)

    def session_of(self, context: Any) -> Session | None:
        """Return what hooks left for the client's calls, given the context of a request.

        Since revision 2026-07-28 each request stands alone. A server that is not reached over HTTP has one client.
        """
        config = self.hooks.config
        if not config.enable_hooks:
            return None
        client: Any = self
        if context is not None and (context.request is not None or context.protocol_version < _REQUESTS_STAND_ALONE):
            client = getattr(context.session, "_connection", self)
        if (session := self._sessions.get(client)) is None:
            session = Session(config, config.session_id, config.transcript_path)
            session = self._sessions.setdefault(client, session)
        return session

    def caller(self, context: Any, params: Mapping[str, Any]) -> Caller:
        """Return who made a call, given the context of its request, and how their user can be asked about it."""
        if context is None:
            return Caller()

        async def elicit(question: dict[str, Any]) -> Any:
            message, schema = question["message"], question["requestedSchema"]
            return (await context.session.elicit_form(message, schema, context.request_id)).action

        known = context.session.client_capabilities
        capabilities = None if known is None else known.model_dump(by_alias=True, exclude_none=True)
        stands_alone = context.protocol_version >= _REQUESTS_STAND_ALONE
        can_answer = has_forms(capabilities)
        return self.questions.caller(params, can_answer=can_answer, elicit=None if stands_alone else elicit)

    async def call(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        run: Callable[[dict[str, Any] | None], Any],
        session: Session | None,
        caller: Caller,
        *,
        as_json: Callable[[ResultT], dict[str, Any]],
        make: Callable[[dict[str, Any]], ResultT],
    ) -> ResultT:
        """Run a tool between its hooks. The framework's results are made from the fields that MCP sends, and back."""
        fields: dict[str, Any] = {}

        def show(returned: ResultT) -> ToolResult | None:
            fields.update(as_json(returned))
            return tool_result(fields) if is_final(fields) else None

        approver = self.questions.approver(caller)
        returned, result, refused = await self.run_tool(tool_name, arguments, run, show, session, approver=approver)
        if refused is not None:
            return make(refusal(refused))
        if result is None or (changed := effects(fields, result)) is None:
            return cast("ResultT", returned)
        removed = removed_by(changed)
        return make({name: value for name, value in {**fields, **changed}.items() if name not in removed})
