"""What the integrations for MCP servers share: the tools that hooks offer, tool calls, a stop for later calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine.results import ProcessedHookResult
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.base import Integration
from llxprt_hooks.integrations.mcp_questions import Caller, Questions, has_forms
from llxprt_hooks.integrations.mcp_results import effects, hook_tool_name, is_final, refusal, removed_by, tool_result
from llxprt_hooks.model import Restriction
from llxprt_hooks.model.restriction import combine
from llxprt_hooks.settings.matcher import own_names

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.core.protocol.tool_result import ToolResult
    from llxprt_hooks.model.format import HookToolConfig

ResultT = TypeVar("ResultT")

_REQUESTS_STAND_ALONE = "2026-07-28"
_UNCHANGED: HookToolConfig = {}
_RESERVED = "io.modelcontextprotocol/"
_INTERNAL = ("progressToken", "progress_token", "fastmcp")
CLIENT_INFO = f"{_RESERVED}clientInfo"
"""In ``_meta`` of a request since revision 2026-07-28."""


_CLIENT = ("name", "title", "version")


def claimed(meta: object, client: object) -> dict[str, Any]:
    """Return what ``_meta`` of a request has for hooks, which is all but the protocol's own keys, and who sent it.

    >>> claimed({"tenant": "acme", "progressToken": 7}, {"name": "editor", "version": "1", "icons": []})
    {'tenant': 'acme', 'client': {'name': 'editor', 'version': '1'}}
    """
    own = meta if isinstance(meta, Mapping) else {}
    said = {name: value for name, value in own.items() if name not in _INTERNAL and not name.startswith(_RESERVED)}
    sender = client if isinstance(client, Mapping) else own.get(CLIENT_INFO)
    known = {name: sender[name] for name in _CLIENT if name in sender} if isinstance(sender, Mapping) else {}
    return {**said, **({"client": known} if known else {})}


class McpIntegration(Integration):
    """Hooks of an MCP server. With ``server_name``, hooks see its tools as ``mcp__NAME__TOOL``."""

    def __init__(self, config: Config | None = None, *, server_name: str | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._server_name = server_name
        # A connection is not a session: no session event fires. It keeps a stop for the client's later calls.
        self._sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()
        self._decided: WeakKeyDictionary[Session, dict[str, bool]] = WeakKeyDictionary()
        """The tools that hooks have been asked about, and whether a client may see and call them."""
        self.questions = Questions()

    def known_caller(self, context: Any) -> dict[str, Any]:
        """Return what a client says about itself, and about this request."""
        handshake = context.session.client_params
        client = None if handshake is None else handshake.client_info.model_dump(mode="json", exclude_none=True)
        return claimed(context.meta, client)

    def hook_name(self, tool_name: Any) -> str:
        """Return the name under which hooks see a tool of the server."""
        return hook_tool_name(tool_name, self._server_name, self._aliases)

    def has_tool_hooks(self, tool_name: Any, session: Session | None = None) -> bool:
        return self.has_hooks(HookEventName.BEFORE_TOOL_SELECTION) or self.changes_results(tool_name, session)

    def changes_results(self, tool_name: Any, session: Session | None = None) -> bool:
        """Whether hooks may take part in a call of a tool, and not only decide whether it is offered."""
        return super().has_tool_hooks(tool_name, session)

    async def select(self, tool_names: Iterable[Any], session: Session | None) -> None:
        """Let BeforeToolSelection hooks decide which of these tools a client may see and call (D-146)."""
        plan = plan_for(self.hooks.config, HookEventName.BEFORE_TOOL_SELECTION)
        if plan is None or session is None:
            return
        names = [self.hook_name(name) for name in tool_names]
        shown: HookToolConfig = {"mode": "AUTO", "allowedFunctionNames": names}
        with session.active():
            decision = await plan.fire(
                {"llm_request": {"model": "", "messages": [], "config": {}, "toolConfig": shown}}
            )
        processed, output = ProcessedHookResult.of(decision), decision.final_output
        specific = (output.hook_specific_output if output is not None else None) or {}
        offered = Restriction.of(combine(shown, specific.get("toolConfig", _UNCHANGED)))
        decided = self._decided.setdefault(session, {})
        decided |= {name: any(map(offered.allows, (name, *own_names(name)))) for name in names}
        allowed = frozenset(name for name, is_offered in decided.items() if is_offered)
        session.restriction = Restriction(allowed, is_complete=False)  # prompts are in it, and only what was asked for
        if processed.should_stop:
            session.stop(processed.stop_reason or "", None)

    async def select_for_call(self, tool_name: Any, session: Session | None) -> None:
        """Ask hooks about a tool that the client has not listed."""
        if session is not None and self.hook_name(tool_name) not in self._decided.get(session, {}):
            await self.select([tool_name], session)

    def is_offered(self, tool_name: Any, session: Session | None) -> bool:
        """Whether a client may see a tool that hooks have been asked about."""
        if session is None:
            return True
        return session.stop_reason is None and session.restriction.allows(self.hook_name(tool_name))

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

        await self.select_for_call(tool_name, session)
        approver = self.questions.approver(caller)
        returned, result, refused = await self.run_tool(tool_name, arguments, run, show, session, approver=approver)
        if refused is not None:
            return make(refusal(refused))
        if result is None or (changed := effects(fields, result)) is None:
            return cast("ResultT", returned)
        removed = removed_by(changed)
        return make({name: value for name, value in {**fields, **changed}.items() if name not in removed})
