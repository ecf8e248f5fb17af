"""What the two integrations for MCP servers share: tool names, and a stop that applies to a client's later calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakKeyDictionary

from llxprt_hooks.engine.session import Session
from llxprt_hooks.integrations.base import ConfigFields, Integration
from llxprt_hooks.transport.mcp_results import hook_tool_name
from llxprt_hooks.triggers.relevance import is_hooked

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.triggers.tool import HookedToolCall

_REQUESTS_STAND_ALONE = "2026-07-28"


class McpIntegration(Integration):
    """Hooks of an MCP server. With ``server_name``, hooks see its tools as ``mcp__NAME__TOOL``."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        server_name: str | None = None,
        aliases: Mapping[str, str] | None = None,
        **config_fields: Unpack[ConfigFields],
    ) -> None:
        super().__init__(config, aliases=aliases, **config_fields)
        self._server_name = server_name
        # A connection is not a session: no session event fires. It keeps a stop for the client's later calls.
        self._sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()

    def hook_name(self, tool_name: Any) -> str:
        """Return the name under which hooks see a tool of the server."""
        return hook_tool_name(tool_name, self._server_name, self._aliases)

    def is_hooked(self, tool_name: Any, client: object = None) -> bool:
        """Whether a call must be shown to hooks, or refused because a hook stopped the client."""
        session = self._sessions.get(client) if self._sessions and client is not None else None
        is_stopped = session is not None and session.stop_reason is not None
        return is_stopped or is_hooked(self.hooks.config, self.hook_name(tool_name))

    def client_of(self, context: Any) -> object:
        """Return what stays the same for the calls of a client, given the context of a request.

        Since revision 2026-07-28 each request stands alone. A server that is not reached over HTTP has one client.
        """
        if context is None or (context.request is None and context.protocol_version >= _REQUESTS_STAND_ALONE):
            return self
        return getattr(context.session, "_connection", self)

    def tool_call(self, client: object, tool_name: Any, arguments: dict[str, Any]) -> HookedToolCall:
        """Return the two halves of a client's call."""
        config = self.hooks.config
        session = self._sessions.setdefault(client, Session(config, config.session_id, ""))
        session.enter()
        try:
            return self.hooks.tool_call(self.hook_name(tool_name), arguments)
        finally:
            session.leave()
