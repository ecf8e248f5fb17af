"""What hooks and approvals do to the messages between an MCP client and a server, whatever carries the messages.

A message is a line of JSON-RPC. The carrier of messages asks first whether hooks are concerned with one; if they are
not, it passes byte for byte. All others are handled on an event loop, and what is to be sent goes to two sinks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks.integrations.mcp_requests import REQUESTS
from llxprt_hooks.integrations.proxy.mcp.asked import send_request
from llxprt_hooks.integrations.proxy.mcp.calls import TAKEN, GuardedCalls
from llxprt_hooks.integrations.proxy.mcp.json_rpc import (
    CALL,
    INVALID_REQUEST,
    MAX_MESSAGE,
    NO_ID,
    PARSE_ERROR,
    Message,
    head_of,
    key_of,
    params_of,
    read,
    read_leniently,
)
from llxprt_hooks.integrations.proxy.mcp.offers import INITIALIZE, Offers
from llxprt_hooks.integrations.proxy.mcp.server import Link

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer, Sink

_TASK_RESULT: Final = "tasks/result"
_CANCELLED: Final = "notifications/cancelled"


def _call(function: Callable[..., object], *arguments: object) -> None:
    function(*arguments)


class GuardedConnection:
    """A connection of one client to a guarded server."""

    def __init__(
        self, server: GuardedServer, to_server: Sink, to_client: Sink, call_soon: Callable[..., None] = _call
    ) -> None:
        """``call_soon`` calls a function on the event loop, from any thread; without it, all is called there."""
        self._server = server
        self._link = Link(server, to_server, to_client, call_soon)
        self._offers = Offers(self._link)
        self._calls = GuardedCalls(self._link, self._offers)
        self.has_state = False
        """Whether the event loop has seen any message; set before it gets one."""

    async def finish(self, *, is_over: bool) -> None:
        """The server is gone: end the hooks of calls that it cannot get, let hooks see the results that it gave.

        With ``is_over``, end those too.
        """
        self._calls.server_has_gone(is_over=is_over)
        await self._link.server_has_gone()

    def watching(self, on_start: Callable[[asyncio.Task[None]], None]) -> AbstractContextManager[None]:
        """Report each task that starts in this block."""
        return self._link.watching(on_start)

    def is_own(self, ident: Any) -> bool:
        """Whether an id is one of those that this guard makes."""
        return self._link.is_ours(ident)

    # From the client.

    def concerns(self, line: bytes) -> bool:
        """Whether hooks are concerned with a message of the client. Call it for each one."""
        if not self._server.is_guarded:
            return False
        head = head_of(line)
        if head is None:
            return bool(line.strip())
        if head.method is None:
            return self._link.is_ours(head.id)
        if not head.is_reply:
            self._note_id(head.id)
        if head.method == INITIALIZE:
            self._link.introduce(params_of(read(line)[0]))
        if head.method == CALL:
            return self._server.is_hooked(head.tool, self._link.session) and self._link.await_later(key_of(head.id))
        if self._offers.concerns(head.method):
            return True
        return self.has_state and head.method in (_CANCELLED, _TASK_RESULT)

    def _note_id(self, ident: Any) -> None:
        self._link.note_id(ident)
        self._calls.reuse(key_of(ident))

    def from_client(self, line: bytes | None) -> None:
        """Handle a message of the client; None at the end of its input."""
        if line is None:
            self._link.client_has_gone()
            return
        try:
            message, problem = read(line)
        except ValueError:
            self._refuse(None, PARSE_ERROR, "it is not valid JSON")
            return
        if problem is not None:
            self._refuse(message, INVALID_REQUEST, problem)
            return
        for each in message if isinstance(message, list) else [message]:
            if "method" in each:
                self._note_id(each.get("id"))
        if isinstance(message, list):
            self._link.start(self._send_batch(message))
        else:
            self._handle(message, line)

    def too_large(self) -> None:
        """The client has sent a message that is larger than hooks can be asked about. It was dropped."""
        self._refuse(None, INVALID_REQUEST, f"it is larger than {MAX_MESSAGE >> 20} MiB")

    def _refuse(self, message: Any, code: int, problem: str) -> None:
        """Answer a message that hooks cannot check: the server may read it, and run a tool that they have not seen."""
        error = {"code": code, "message": f"llxprt-hooks: the message was not sent to the server: {problem}"}
        print(error["message"], file=sys.stderr)
        self._calls.await_no_more(message)
        requests = [each for each in (message if isinstance(message, list) else [message]) if isinstance(each, dict)]
        ids = [each["id"] for each in requests if key_of(each.get("id")) != NO_ID] or [None]
        answers = [{"jsonrpc": "2.0", "id": ident, "error": error} for ident in ids]
        self._link.to_client.write_later(write_json(answers if isinstance(message, list) else answers[0]) + b"\n")

    def _handle(self, message: Message, line: bytes) -> None:
        if self._calls.is_hooked(message):
            if self._calls.is_taken(key_of(message.get("id"))):
                self._refuse(message, INVALID_REQUEST, TAKEN)
            else:
                self._calls.begin(message, line)
        elif self._offers.is_use(message):
            self._link.start(self._offers.send_use(message, line))
        elif self._passes(message):
            self._calls.await_no_more(message)
            self._link.to_server.write_later(line)

    def _passes(self, message: Message) -> bool:
        """Take note of a message that is not a call; return whether the server gets it."""
        method, key, params = message.get("method"), key_of(message.get("id")), params_of(message)
        if method is None and self._link.is_ours(message.get("id")):
            self._link.answered(message)
            return False
        if method == _CANCELLED:
            return self._calls.cancel(key_of(params.get("requestId")))
        if method == _TASK_RESULT:
            self._calls.follow_task(params, key)
        elif key != NO_ID and (reply := self._offers.reply_to(method, params, key)) is not None:
            self._link.waiting[key] = reply
        return True

    async def _send_batch(self, batch: list[Message]) -> None:
        """Send a batch once the hooks of all its calls are done. Refused calls are answered in a batch of their own."""
        answers: list[Message] = []

        async def checked(message: Message) -> object:
            answer: Message | None = None
            if self._offers.is_use(message):
                answer = await self._offers.unavailable(message)
            elif message.get("method") != CALL:
                return message if self._passes(message) else None
            elif self._calls.is_hooked(message):
                if self._calls.is_taken(key_of(message.get("id"))):
                    error = {"code": INVALID_REQUEST, "message": f"llxprt-hooks: {TAKEN}"}
                    answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
                else:
                    answer, line = await self._calls.checked(message)
                    if answer is None:
                        return read_json(line) if line else None
            if answer is None:
                return message
            answers.append(answer)
            return None

        remaining = [each for each in await asyncio.gather(*map(checked, batch)) if each is not None]
        if any("id" in answer and answer["id"] is not None for answer in answers):
            self._link.to_client.write_later(write_json(answers) + b"\n")
        if remaining or not batch:
            self._link.to_server.write_later(write_json(remaining) + b"\n")

    # From the server.

    def is_awaited(self, line: bytes) -> bool:
        """Whether hooks are concerned with a message of the server."""
        self._offers.note_change(line)
        if not (self._link.waiting or self._calls.can_be_answered_again or self._server.guards_requests):
            return False
        head = head_of(line)
        if head is None:
            return bool(line.strip())
        if self._server.guards_requests and head.method in REQUESTS:
            return True
        if not head.is_reply:
            return False
        is_known = self._link.request_of(head.id) is not None or self._calls.was_answered(head.id)
        return is_known or not _has_valid_id(head.id)

    def from_server(self, line: bytes) -> None:
        """Handle a message of the server."""
        try:
            message, problem = read(line)
        except ValueError:
            message, problem = read_leniently(line), "it is not valid JSON"
        if problem is not None:
            key = self._link.request_of(message.get("id")) if isinstance(message, dict) else None
            self._calls.withhold(key, problem)
        elif isinstance(message, list):
            replies = [self._replied(each, write_json(each) + b"\n") for each in message]
            kept = [read_json(reply) for reply in replies if reply is not None]
            if kept or not message:
                self._link.to_client.write_later(line if kept == message else write_json(kept) + b"\n")
        elif (reply := self._replied(message, line)) is not None:
            self._link.to_client.write_later(reply)

    def _replied(self, message: Message, line: bytes) -> bytes | None:
        """Return the line for the client now; None if it is sent later, or not at all."""
        if self._server.guards_requests and message.get("method") in REQUESTS:
            self._link.start(send_request(self._link, message, line))
            return None
        is_reply = message.get("method") is None or "result" in message
        if not is_reply:
            return line
        ident = message.get("id")
        key = self._link.request_of(ident)
        if key is None and self._calls.was_answered(ident):
            key = self._calls.expect_again(ident)
        if key is None and not _has_valid_id(ident) and not ("error" in message and ident is None):
            self._calls.withhold(None, "the id of a reply is neither a string nor a number")
            return None
        if key is None:
            return line
        if self._calls.is_early(key):  # the client would take it for the result, which hooks are to see
            return None
        return self._link.waiting[key](message, line)


def _has_valid_id(ident: Any) -> bool:
    """Whether all clients compare an id in the same way. Some read `[1]` and `true` as a number, too."""
    return key_of(ident) != NO_ID
