"""What a server asks its client's model or user: sent, refused or answered, as hooks decide."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.integrations.mcp_requests import REQUESTS, HookedRequest, hooked_request
from llxprt_hooks.integrations.proxy.mcp.json_rpc import Message, edited, params_of

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.mcp.server import Link


async def send_request(link: Link, message: Message, line: bytes) -> None:
    """Send a server's request to the client, unless hooks refuse it or answer in the client's place."""
    hooked = await _hooked(link, message)
    if hooked.answer is not None:
        answer = {"jsonrpc": "2.0", "id": message.get("id"), **hooked.answer}
        link.to_server.write_later(write_json(answer) + b"\n")
        return
    changes = {name: value for name, value in hooked.params.items() if value is not params_of(message).get(name)}
    link.to_client.write_later(edited(line, message, ("params",), changes) if changes else line)


async def hooked_questions(link: Link, asked: Message) -> tuple[Message, str | None]:
    """Show hooks what a result asks the client; return the questions, and why they are not to be sent."""
    known = {name: each for name, each in asked.items() if isinstance(each, dict) and each.get("method") in REQUESTS}
    hooked = {name: await _hooked(link, each) for name, each in known.items()}
    if any(each.answer is not None for each in hooked.values()):
        reasons = (each.reason for each in hooked.values() if each.reason)
        return asked, next(reasons, "hooks answer in the client's place")
    return {**asked, **{name: {**known[name], "params": each.params} for name, each in hooked.items()}}, None


async def _hooked(link: Link, request: Message) -> HookedRequest:
    config, method = link.server.integration.hooks.config, request["method"]
    hooked = await hooked_request(config, link.session, method, params_of(request))
    if hooked.reason:
        reason = f"llxprt-hooks: {method} of the server was refused: {hooked.reason}"
        print(escape_for_terminal(reason), file=sys.stderr)
    return hooked
