"""What a server offers: its tools, prompts and resources, of which clients get what pins and hooks allow."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.integrations.mcp_results import OUTPUT_SCHEMA
from llxprt_hooks.integrations.proxy.mcp.json_rpc import INVALID_PARAMS, Key, Message, edited, params_of
from llxprt_hooks.settings.trust.mcp_pins import PROMPT, RESOURCE, TEMPLATE, TOOL

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.mcp.pinned import PinnedServer
    from llxprt_hooks.integrations.proxy.mcp.server import Link, Reply

INITIALIZE: Final = "initialize"
INTRODUCTIONS: Final = (INITIALIZE, "server/discover")
"""What a server answers with its name and its instructions."""
LIST: Final = "tools/list"


class Listing(NamedTuple):
    """A list of definitions that a server gives."""

    kind: str
    """Of what it lists, in pins."""
    field: str
    """Of the result, with the list."""
    named: str
    """The field of a definition that has its name."""
    shown: str = ""
    """How the names begin for hooks."""
    changed: bytes = b""
    """The notification that the list has changed."""


LISTINGS: Final = {
    LIST: Listing(TOOL, "tools", "name", changed=b"notifications/tools/list_changed"),
    "prompts/list": Listing(PROMPT, "prompts", "name", "prompt/", b"notifications/prompts/list_changed"),
    "resources/list": Listing(RESOURCE, "resources", "uri", "resource/", b"notifications/resources/list_changed"),
    "resources/templates/list": Listing(TEMPLATE, "resourceTemplates", "uriTemplate", "resource/"),
}
USES: Final = {
    "prompts/get": "prompts/list",
    "resources/read": "resources/list",
    "resources/subscribe": "resources/list",
}
"""The requests that use a prompt or a resource, and the list it is from."""

_MAX_SHOWN: Final = 12
_MAX_PAGES: Final = 500
"""Of a list that the proxy asks for: a server could go on forever."""


class Offers:
    """What one connection's client gets to see of a server."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._server, self._integration, self._pinned = link.server, link.server.integration, link.server.pinned
        self._chooses = link.server.selects or self._pinned is not None
        """Whether hooks or pins decide which prompts and resources the client gets."""
        self._tools: dict[str, None] = {}
        """Those of the server that the client has listed."""
        self._is_reported = False

    def concerns(self, method: Any) -> bool:
        """Whether a request is about what the server offers, and its reply may have to be changed."""
        if method in INTRODUCTIONS:
            return self._pinned is not None
        return method == LIST or (self._chooses and (method in LISTINGS or method in USES))

    def note_change(self, line: bytes) -> None:
        """Take note of a message of the server that says that a list has changed."""
        if (pinned := self._pinned) is not None and b"list_changed" in line:
            for listing in LISTINGS.values():
                if listing.changed and listing.changed in line:
                    self._link.call_soon(pinned.forget, listing.kind)

    def is_use(self, message: Message) -> bool:
        """Whether a message asks for a prompt or a resource, of which pins or hooks choose."""
        return self._chooses and message.get("method") in USES

    def reply_to(self, method: Any, params: Message, key: Key) -> Reply | None:
        """Return what handles the reply to a request; None if it passes unchanged."""
        if not self.concerns(method) or method in USES:
            return None
        if method in INTRODUCTIONS:
            return partial(self._introduced, key)
        return partial(self._listed, LISTINGS[method], key, params.get("cursor") is None)

    async def refused(self, params: Message) -> str | None:
        """Return why a tool may not be called, given what the server offers; None if hooks decide."""
        return await self._unapproved(LIST, params.get("name"), params)

    async def _unapproved(self, method: str, name: Any, params: Message) -> str | None:
        """Return why something in a list may not be used; None if it may."""
        if self._pinned is None:
            return None
        kind = LISTINGS[method].kind
        if not self._pinned.is_known(kind, name):
            await self._list(self._pinned, method, params)
        return self._pinned.refusal(kind, name)

    async def _list(self, pinned: PinnedServer, method: str, params: Message) -> None:
        """Ask the server for a list, on behalf of a client that uses something without having listed it."""
        listing, meta = LISTINGS[method], params.get("_meta")
        kept = (
            {name: value for name, value in meta.items() if name != "progressToken"} if isinstance(meta, dict) else {}
        )
        asked: Message = {"_meta": kept} if kept else {}
        for page in range(_MAX_PAGES):
            result = (await self._link.ask_server(method, asked)).get("result")
            if not isinstance(result, dict) or not isinstance(listed := result.get(listing.field), list):
                return
            if method == LIST:
                self._server.schemas.declare(listed)
            more_follow = result.get("nextCursor") not in (None, asked.get("cursor"))
            pinned.listed(listing.kind, listing.named, listed, is_first=page == 0, is_last=not more_follow)
            if not more_follow:
                return
            asked = {**asked, "cursor": result.get("nextCursor")}

    def _introduced(self, key: Key, message: Message, line: bytes) -> bytes:
        """The server's name and instructions; only approved instructions reach the client."""
        assert self._pinned is not None
        del self._link.waiting[key]
        result = message.get("result")
        removed = self._pinned.introduced(result) if isinstance(result, dict) else ()
        return edited(line, message, ("result",), {}, *removed) if removed else line

    def _listed(self, listing: Listing, key: Key, is_first: bool, message: Message, line: bytes) -> bytes | None:
        """A list; None if hooks first decide what in it the client gets."""
        del self._link.waiting[key]
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(listed := result.get(listing.field), list):
            return line
        more_follow = result.get("nextCursor") is not None
        if listing.kind == TOOL:
            self._server.schemas.declare(listed)
        if self._pinned is not None:
            approved = self._pinned.listed(
                listing.kind, listing.named, listed, is_first=is_first, is_last=not more_follow
            )
            if len(approved) < len(listed):
                listed = approved
                line = edited(line, message, ("result",), {listing.field: listed})
        if listing.kind == TOOL:
            names = [name_text(tool.get("name")) for tool in listed if isinstance(tool, dict)]
            self._integration.check_tools(names, more_follow=more_follow)
            self._warn_if_unguarded(names, more_follow=more_follow)
        if self._server.selects:
            with self._integration.asked_by((None, self._link.client)):
                self._link.start(self._send_list(listing, listed, message, line))
            return None
        return self._described(listing, listed, message, line)

    async def _send_list(self, listing: Listing, listed: list[Any], message: Message, line: bytes) -> None:
        await self._integration.select([_shown_name(listing, each) for each in listed], self._link.session)
        self._link.to_client.write_later(self._described(listing, listed, message, line))

    def _described(self, listing: Listing, listed: list[Any], message: Message, line: bytes) -> bytes:
        """Return a list with what hooks offer, without the output schemas of tools that have hooks."""
        kept = listed
        if listing.kind == TOOL or self._server.selects:
            kept = [each for each in listed if self._is_offered(_shown_name(listing, each))]
        if listing.kind == TOOL:
            kept = list(map(self._without_schema, kept))
        return line if kept == listed else edited(line, message, ("result",), {listing.field: kept})

    def _is_offered(self, name: str) -> bool:
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

    async def send_use(self, message: Message, line: bytes) -> None:
        """Send a request for a prompt or a resource, if it is approved and hooks offer it."""
        if (refused := await self.unavailable(message)) is None:
            self._link.to_server.write_later(line)
        elif refused["id"] is not None:
            self._link.to_client.write_later(write_json(refused) + b"\n")

    async def unavailable(self, message: Message) -> Message | None:
        """Return the answer to a request for a prompt or a resource that the client may not use; None if it may."""
        method, params = USES[message["method"]], params_of(message)
        name = name_text(params.get(LISTINGS[method].named))
        problem = await self._unapproved(method, name, params)
        if problem is None and self._server.selects:
            shown = f"{LISTINGS[method].shown}{name}"
            await self._integration.select_for_call(shown, self._link.session)
            problem = None if self._is_offered(shown) else f"`{shown}` is not available: hooks leave it out"
        if problem is None:
            return None
        error = {"code": INVALID_PARAMS, "message": f"llxprt-hooks: {problem}"}
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}


def _shown_name(listing: Listing, definition: Any) -> str:
    name = definition.get(listing.named) if isinstance(definition, dict) else None
    return f"{listing.shown}{name_text(name)}"
