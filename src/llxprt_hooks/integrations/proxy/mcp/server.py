"""A server whose messages are guarded, and one connection to it as all parts of the guard see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.events import TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.mcp_calls import McpIntegration, claimed
from llxprt_hooks.integrations.mcp_questions import ask_message, has_forms
from llxprt_hooks.integrations.mcp_schemas import DeclaredSchemas
from llxprt_hooks.integrations.proxy.mcp.json_rpc import NO_ID, Key, Message, as_number, key_of
from llxprt_hooks.integrations.proxy.mcp.pinned import PinnedServer

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.settings.trust.mcp_pins import McpPins

_PATIENCE: Final = 5.0
"""Seconds that a server has to answer our own requests once its client has gone."""

Reply = Callable[[Message, bytes], bytes | None]
"""What handles the server's reply to a request: it returns the line for the client, if that is to be sent at once."""


class GuardedServer:
    """A server whose messages are guarded: what all its connections share."""

    def __init__(
        self,
        config: Config,
        *,
        server_name: str | None = None,
        aliases: Mapping[str, str] | None = None,
        pins: McpPins | None = None,
        checks_schemas: bool = True,
        client_metadata: bool = False,
    ) -> None:
        """With ``pins``, clients get only definitions that the user approved.

        With ``client_metadata``, hooks get to know what a client says about itself.
        """
        self.config = config
        metadata = (lambda said: claimed(*said)) if client_metadata else None
        self.integration = McpIntegration(config, server_name=server_name, aliases=aliases or {}, metadata=metadata)
        self.pinned = None if pins is None else PinnedServer(pins)
        self.schemas = DeclaredSchemas()
        self.checks_schemas = checks_schemas
        self.guards_requests = self.integration.has_hooks(HookEventName.BEFORE_MODEL)
        """Whether hooks see what the server asks the client's model and user."""
        self.selects = self.integration.has_hooks(HookEventName.BEFORE_TOOL_SELECTION)
        """Whether hooks decide what a client gets to see."""
        has_tool_hooks = self.selects or self.integration.has_hooks(*TOOL_EVENTS)
        self.is_guarded = has_tool_hooks or pins is not None or self.guards_requests

    def is_hooked(self, tool_name: Any, session: Session) -> bool:
        """Whether the calls of a tool are guarded."""
        is_guarded = self.pinned is not None or self.guards_requests
        return is_guarded or self.integration.has_tool_hooks(tool_name, session)


class Sink(Protocol):
    """Where messages to one side go."""

    def write_later(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """Send a message, without waiting; ``then`` is called when it is sent."""

    def close_later(self) -> None:
        """Send nothing more."""


class Passing:
    """A sink that passes each message on at once; ``close`` is called when nothing more is sent."""

    def __init__(self, send: Callable[[bytes], object], close: Callable[[], object] = lambda: None) -> None:
        self._send, self._close = send, close

    def write_later(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        self._send(line)
        if then is not None:
            then()

    def close_later(self) -> None:
        self._close()


class Link:
    """One connection: where its messages go, which requests wait for a reply, and what hooks are doing about it."""

    def __init__(self, server: GuardedServer, to_server: Sink, to_client: Sink, call_soon: Callable[..., None]) -> None:
        """``call_soon`` calls a function on the event loop, from any thread."""
        self.server, self.to_server, self.to_client, self.call_soon = server, to_server, to_client, call_soon
        # A connection is not a session: no session event fires. It keeps a stop for the calls that follow.
        self.session = Session(server.config, server.config.session_id, "")
        self.client: Any = None
        """What the client said about itself when it connected."""
        self.can_elicit = False
        """Whether the client said in its handshake that it can ask its user."""
        # Of the event loop; the thread of the server only looks whether something waits for a reply.
        self.waiting: dict[Key, Reply] = {}
        self._id_types: set[type] = set()
        """Of the ids of the client's requests that are numbers, or could be read as one."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_start: Callable[[asyncio.Task[None]], None] = lambda _: None
        self._questions: dict[str, asyncio.Future[Any]] = {}
        """What the client was asked, by the id of the request. The server does not know of it."""
        self._requests: set[asyncio.Future[Message]] = set()
        """What the server was asked. The client does not know of it."""
        self._prefix = f"llxprt-hooks-{uuid4().hex}-"

    # Whose reply is whose.

    def introduce(self, handshake: Message) -> None:
        """Take note of what a client says about itself."""
        self.can_elicit = has_forms(handshake.get("capabilities"))
        self.client = handshake.get("clientInfo")

    def note_id(self, ident: Any) -> None:
        """Take note of the id of a client's request, before the server can answer it."""
        key = key_of(ident)
        if key != NO_ID and not isinstance(as_number(key), str):
            self._id_types.add(str if isinstance(ident, str) else float)

    def await_later(self, key: Key) -> bool:
        """Expect no reply yet: what a server says about a call that it has not got is not its result."""
        if key != NO_ID:
            self.waiting.setdefault(key, ignored)
        return True

    def request_of(self, ident: Any) -> Key | None:
        """Return which of the requests that wait a reply is for.

        Clients may compare ids as numbers, so that `"2"` answers `2`: only one that uses both for requests surely
        does not (D-114).
        """
        key = key_of(ident)
        if key == NO_ID or key in self.waiting:
            return None if key == NO_ID else key
        if len(self._id_types) > 1:
            return None
        number = as_number(key)
        return next((each for each in list(self.waiting) if as_number(each) == number), None)

    # Questions of our own.

    async def elicit(self, question: dict[str, Any]) -> Any:
        """Ask the client's user; return what they did."""
        ident = f"{self._prefix}{uuid4().hex}"
        self._questions[ident] = answer = asyncio.get_running_loop().create_future()
        try:
            self.to_client.write_later(write_json(ask_message(ident, question)) + b"\n")
            result = (await answer).get("result")
        finally:
            del self._questions[ident]
        return result.get("action") if isinstance(result, dict) else None

    def is_ours(self, ident: Any) -> bool:
        """Whether a reply of the client is to a question of hooks."""
        return isinstance(ident, str) and ident.startswith(self._prefix)

    def answered(self, message: Message) -> None:
        """The client has replied to a question of hooks."""
        answer = self._questions.get(message["id"])
        if answer is not None and not answer.done():
            answer.set_result(message)

    async def ask_server(self, method: str, params: Message) -> Message:
        """Send a request of our own to the server; return its reply."""
        ident = f"{self._prefix}{uuid4().hex}"
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def replied(message: Message, _: bytes) -> None:
            if not reply.done():
                reply.set_result(message)

        self._requests.add(reply)
        self.waiting[key_of(ident)] = replied
        try:
            request = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
            self.to_server.write_later(write_json(request) + b"\n")
            return await reply
        finally:
            self._requests.discard(reply)
            self.waiting.pop(key_of(ident), None)

    # What hooks are doing.

    def start(self, coroutine: Any) -> asyncio.Task[None]:
        """Do something for this connection."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._on_start(task)
        return task

    @contextmanager
    def watching(self, on_start: Callable[[asyncio.Task[None]], None]) -> Iterator[None]:
        """Report each task that starts in this block."""
        before, self._on_start = self._on_start, on_start
        try:
            yield
        finally:
            self._on_start = before

    def client_has_gone(self) -> None:
        """The client sends nothing more: nobody answers questions, or waits for long."""
        for answer in self._questions.values():
            answer.set_exception(ConnectionError("it has closed the connection"))
        self.start(self._close_when_sent())
        asyncio.get_running_loop().call_later(_PATIENCE, self._give_up_asking)

    async def _close_when_sent(self) -> None:
        """Close the server's input when the calls that wait for hooks are sent."""
        while sending := {task for task in self._tasks if task is not asyncio.current_task()}:
            await asyncio.wait(sending)
        self.to_server.close_later()

    def _give_up_asking(self) -> None:
        """Wait no longer for replies of the server: nobody is there any more whom they are for."""
        for reply in self._requests:
            if not reply.done():
                reply.set_result({})

    async def server_has_gone(self) -> None:
        """Wait until hooks are done: nothing that the server was asked will be answered."""
        for request in self._requests:
            request.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def ignored(_: Message, __: bytes) -> None:
    """Handles a reply that no client should get."""
