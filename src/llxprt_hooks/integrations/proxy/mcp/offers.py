"""What a server offers: its tools, prompts and resources, of which clients get what pins and hooks allow."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.integrations.mcp_results import OUTPUT_SCHEMA
from llxprt_hooks.integrations.proxy.mcp.json_rpc import INVALID_PARAMS, Key, Message, edited, params_of

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.mcp.server import Link, Reply

INITIALIZE: Final = "initialize"
INTRODUCTIONS: Final = (INITIALIZE, "server/discover")
"""What a server answers with its name and its instructions."""
LIST: Final = "tools/list"
LIST_CHANGED: Final = b"notifications/tools/list_changed"
NAMED_LISTS: Final = {
    "prompts/list": ("prompts", "name", "prompt/"),
    "resources/list": ("resources", "uri", "resource/"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", "resource/"),
}
"""What else a server lists: the field with the list, the field with a name in it, and how the name begins for hooks."""
NAMED_USES: Final = {
    "prompts/get": ("name", "prompt/"),
    "resources/read": ("uri", "resource/"),
    "resources/subscribe": ("uri", "resource/"),
}

_MAX_SHOWN: Final = 12


class Offers:
    """What one connection's client gets to see of a server."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._server, self._integration, self._pinned = link.server, link.server.integration, link.server.pinned
        self._tools: dict[str, None] = {}
        """Those of the server that the client has listed."""
        self._is_reported = False

    def concerns(self, method: Any) -> bool:
        """Whether a request is about what the server offers, and its reply may have to be changed."""
        if method in INTRODUCTIONS:
            return self._pinned is not None
        return method == LIST or (self._server.selects and (method in NAMED_LISTS or method in NAMED_USES))

    def is_use(self, message: Message) -> bool:
        """Whether a message asks for a prompt or a resource, of which hooks choose."""
        return self._server.selects and message.get("method") in NAMED_USES

    def reply_to(self, method: Any, params: Message, key: Key) -> Reply | None:
        """Return what handles the reply to a request; None if it passes unchanged."""
        if not self.concerns(method) or method in NAMED_USES:
            return None
        if method == LIST:
            return partial(self._listed, key, params.get("cursor") is None)
        return partial(self._introduced if method in INTRODUCTIONS else partial(self._listed_by_name, method), key)

    async def refused(self, params: Message) -> str | None:
        """Return why a tool may not be called, given what the server offers; None if hooks decide."""
        if self._pinned is None:
            return None
        if not self._pinned.is_known(params.get("name")):
            await self._list_tools(params)
        return self._pinned.refusal(params.get("name"))

    async def _list_tools(self, params: Message) -> None:
        """Ask the server for its tools, on behalf of a client that calls one without having listed it."""
        assert self._pinned is not None
        meta = params.get("_meta")
        kept = (
            {name: value for name, value in meta.items() if name != "progressToken"} if isinstance(meta, dict) else {}
        )
        asked: Message = {"_meta": kept} if kept else {}
        is_first, more_follow = True, True
        while more_follow:
            result = (await self._link.ask_server(LIST, asked)).get("result")
            if not isinstance(result, dict) or not isinstance(tools := result.get("tools"), list):
                return
            self._server.schemas.declare(tools)
            more_follow = result.get("nextCursor") not in (None, asked.get("cursor"))
            self._pinned.listed(tools, is_first=is_first, is_last=not more_follow)
            asked, is_first = {**asked, "cursor": result.get("nextCursor")}, False

    def _introduced(self, key: Key, message: Message, line: bytes) -> bytes:
        """The server's name and instructions; only approved instructions reach the client."""
        assert self._pinned is not None
        del self._link.waiting[key]
        result = message.get("result")
        removed = self._pinned.introduced(result) if isinstance(result, dict) else ()
        return edited(line, message, ("result",), {}, *removed) if removed else line

    # Tools.

    def _listed(self, key: Key, is_first: bool, message: Message, line: bytes) -> bytes | None:
        """A list of tools; None if hooks first decide which of them the client gets."""
        del self._link.waiting[key]
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(tools := result.get("tools"), list):
            return line
        self._server.schemas.declare(tools)
        more_follow = result.get("nextCursor") is not None
        if self._pinned is not None:
            approved = self._pinned.listed(tools, is_first=is_first, is_last=not more_follow)
            if len(approved) < len(tools):
                tools = approved
                line = edited(line, message, ("result",), {"tools": tools})
        names = [name_text(tool.get("name")) for tool in tools if isinstance(tool, dict)]
        self._integration.check_tools(names, more_follow=more_follow)
        self._warn_if_unguarded(names, more_follow=more_follow)
        if self._server.selects:
            with self._integration.asked_by((None, self._link.client)):
                self._link.start(self._send_list(names, tools, message, line))
            return None
        return self._described(tools, message, line)

    async def _send_list(self, names: list[str], tools: list[Any], message: Message, line: bytes) -> None:
        await self._integration.select(names, self._link.session)
        self._link.to_client.write_later(self._described(tools, message, line))

    def _described(self, tools: list[Any], message: Message, line: bytes) -> bytes:
        """Return the list with the tools that hooks offer, without the output schemas of those that have hooks."""
        listed = [self._without_schema(tool) for tool in tools if self._is_offered(tool)]
        return line if listed == tools else edited(line, message, ("result",), {"tools": listed})

    def _is_offered(self, tool: Any) -> bool:
        name = tool.get("name") if isinstance(tool, dict) else None
        return self._integration.is_offered(name, self._link.session)

    def _without_schema(self, tool: Any) -> Any:
        if not isinstance(tool, dict) or OUTPUT_SCHEMA not in tool:
            return tool
        if not self._integration.changes_results(tool.get("name")):
            return tool
        return {name: value for name, value in tool.items() if name != OUTPUT_SCHEMA}

    def _warn_if_unguarded(self, names: list[str], *, more_follow: bool) -> None:
        """Say once that hooks for tools are configured, but none for a tool of this server."""
        self._tools |= dict.fromkeys(names)
        is_hooked = partial(self._server.is_hooked, session=self._link.session)
        if more_follow or self._is_reported or not self._tools or any(map(is_hooked, self._tools)):
            return
        self._is_reported = True
        shown = ", ".join(map(self._integration.hook_name, list(self._tools)[:_MAX_SHOWN]))
        more = f" and {len(self._tools) - _MAX_SHOWN} more" if len(self._tools) > _MAX_SHOWN else ""
        message = f"llxprt-hooks: no hook matches a tool of this server, so nothing is checked: {shown}{more}"
        print(escape_for_terminal(message), file=sys.stderr)

    # Prompts and resources.

    async def send_use(self, message: Message, line: bytes) -> None:
        """Send a request for a prompt or a resource, if hooks offer it."""
        if (refused := await self.unselected(message)) is None:
            self._link.to_server.write_later(line)
        elif refused["id"] is not None:
            self._link.to_client.write_later(write_json(refused) + b"\n")

    async def unselected(self, message: Message) -> Message | None:
        """Return the answer to a request for a prompt or a resource that hooks leave out; None if they offer it."""
        field, prefix = NAMED_USES[message["method"]]
        name = f"{prefix}{name_text(params_of(message).get(field))}"
        await self._integration.select_for_call(name, self._link.session)
        if self._integration.is_offered(name, self._link.session):
            return None
        error = {"code": INVALID_PARAMS, "message": f"llxprt-hooks: `{name}` is not available: hooks leave it out"}
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}

    def _listed_by_name(self, method: str, key: Key, message: Message, line: bytes) -> bytes | None:
        """A list of prompts or resources, of which hooks choose."""
        del self._link.waiting[key]
        field, named, prefix = NAMED_LISTS[method]
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(listed := result.get(field), list):
            return line
        names = [f"{prefix}{name_text(each.get(named) if isinstance(each, dict) else None)}" for each in listed]
        self._link.start(self._send_selected(field, names, listed, message, line))
        return None

    async def _send_selected(
        self, field: str, names: list[str], listed: list[Any], message: Message, line: bytes
    ) -> None:
        await self._integration.select(names, self._link.session)
        named = zip(names, listed, strict=True)
        offered = [each for name, each in named if self._integration.is_offered(name, self._link.session)]
        changed = line if len(offered) == len(listed) else edited(line, message, ("result",), {field: offered})
        self._link.to_client.write_later(changed)
