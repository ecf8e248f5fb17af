"""The MCP proxy for servers that are reached over HTTP ("streamable HTTP"): the same guard, between a client and a URL.

Each request of the client is an exchange. What it sends passes the guard, and so does each message of the server's
answer, whether that is one JSON text or a stream of events. Headers pass in both directions, tokens among them; nothing
of them is logged. Only where a server names itself as what tokens are for, the proxy is named instead.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextvars import ContextVar
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import httpx

from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.integrations.proxy.mcp.guard import GuardedConnection
from llxprt_hooks.integrations.proxy.mcp.json_rpc import MAX_MESSAGE, as_number, key_of, replies_in, replies_of
from llxprt_hooks.integrations.proxy.mcp.resource import ProtectedResource, takes_only_assertions, without_mark
from llxprt_hooks.integrations.proxy.mcp.server import Passing
from llxprt_hooks.integrations.proxy.mcp.web import (
    EVENTS,
    JSON,
    SESSION_HEADER,
    Event,
    Front,
    Headers,
    TooLargeError,
    error,
    events_of,
    is_request,
    plain,
    streamed,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer

log = debug_logger("proxy")

NameT = TypeVar("NameT")
KnownT = TypeVar("KnownT")

_MAX_SESSIONS: Final = 10_000
CONNECT_SECONDS: Final = 30.0
_ISSUER_SECONDS: Final = 5.0
_NOT_SENT: Final = frozenset(
    b"host origin expect content-length transfer-encoding accept-encoding connection keep-alive te trailer".split()
)
_NOT_RETURNED: Final = frozenset(b"content-length content-encoding transfer-encoding connection keep-alive".split())
_ACCEPTED: Final = 202
_CHALLENGE: Final = b"www-authenticate"
_RESUMED: Final = "last-event-id"

_exchange: ContextVar[_Exchange] = ContextVar("mcp_exchange")
_fields: ContextVar[bytes] = ContextVar("mcp_event_fields", default=b"")
"""The lines before the data of the event that is being handled, such as its id."""


def _to_server(line: bytes) -> None:
    _exchange.get().forward(line)


def _to_client(line: bytes) -> None:
    if line.strip():
        _exchange.get().deliver(_fields.get(), line)


class _Conversation(NamedTuple):
    """What is known of the messages around a request."""

    connection: GuardedConnection
    asked: frozenset[Any] | None = None
    """The ids, as numbers, of what may be answered in it; None if that can be anything, because it has a session."""

    def expects(self, message: bytes) -> bool:
        """Whether a message answers nothing that was asked elsewhere, of which nobody knows here if it has hooks."""
        asked, is_own = self.asked, self.connection.is_own
        if asked is None:
            return True
        try:
            replies = replies_of(read_json(message))
        except ValueError:  # too deep, for example: a client may be able to read it
            return False
        return all(as_number(key) in asked or is_own(key[1]) for key in replies)


class McpHttpProxy(Front):
    """The proxy before a URL."""

    def __init__(
        self,
        guarded: GuardedServer,
        upstream: str,
        *,
        host: str,
        allowed_hosts: Iterable[str] = (),
        keep_resource: bool = False,
    ) -> None:
        """``host`` is where it listens. With ``keep_resource``, clients get tokens for the server's own URL."""
        self._guarded = guarded
        self._upstream = httpx.URL(upstream)
        super().__init__(self._upstream.path, host=host, allowed_hosts=allowed_hosts)
        self._resource = ProtectedResource(upstream, is_kept=keep_resource)
        self._connections: OrderedDict[str, GuardedConnection] = OrderedDict()
        self._streams: OrderedDict[int, _Conversation] = OrderedDict()
        """Without a session: where a stream can be resumed, by the hashes of its events' ids, which may be long."""
        # A tool may work for minutes, so only the connection has a timeout.
        self.client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # a client's are not for the next one
        )

    async def close(self) -> None:
        await self.client.aclose()

    async def answer(self, request: Request, content: bytes) -> Response:
        path, query = request.url.path, request.scope["query_string"]
        try:
            if path == self.path:
                url = self._upstream.copy_with(query=query) if query else self._upstream
                return await _Exchange(self, request, url, self._conversation(request, content)).answer(content)
            if self._resource.passes(request.method, path, request.headers.get("content-type", ""), content):
                return await self._authorization(request, content)
        except TooLargeError as large:
            return error(502, f"the answer of the MCP server was not passed on: {large}")
        except httpx.TransportError as failure:
            return error(502, f"cannot reach the MCP server: {str(failure) or type(failure).__name__}")
        return error(404, f"not found; the server is at {self.path}")

    async def _authorization(self, request: Request, content: bytes) -> Response:
        """Pass on a request about getting a token."""
        path = request.url.path
        query, is_from_challenge = without_mark(request.scope["query_string"])
        url = self._upstream.copy_with(path=path, query=query or None)
        sent = self.client.build_request(request.method, url, headers=passed_on(request), content=content or None)
        found = await self.client.send(sent, stream=True)
        try:
            own = await body_of(found)
        finally:
            await found.aclose()
        body = self._resource.description(path, own, own_origin(request))
        if body is not own and not is_from_challenge and await self._needs_own_url(own):
            body = own
        return plain(found.status_code, self.returned(found, request), body)

    async def _needs_own_url(self, description: bytes) -> bool:
        """Whether tokens for a server have to name its own URL, because others sign it."""
        if (url := self._resource.issuer_metadata(description)) is None:
            return False
        try:
            async with asyncio.timeout(_ISSUER_SECONDS), self.client.stream("GET", url) as found:
                return found.is_success and takes_only_assertions(await body_of(found))
        except (httpx.HTTPError, httpx.InvalidURL, TooLargeError, TimeoutError):
            return False

    def returned(self, response: httpx.Response, request: Request) -> Headers:
        """Return the headers that the client gets."""
        return [
            (name, self._resource.challenge(value, own_origin(request)) if name.lower() == _CHALLENGE else value)
            for name, value in response.headers.raw
            if name.lower() not in _NOT_RETURNED
        ]

    def _conversation(self, request: Request, content: bytes) -> _Conversation:
        """Return what is known of a session. Without one, each request stands alone."""
        session = request.headers.get(SESSION_HEADER, "")
        if not session and (resumed := self._streams.get(hash(request.headers.get(_RESUMED, "")))):
            return resumed
        known = self._connections.get(session)
        if request.method == "DELETE":
            self._connections.pop(session, None)
        asked = None if session or not self._guarded.is_guarded else _ids_in(content)
        return _Conversation(known or GuardedConnection(self._guarded, Passing(_to_server), Passing(_to_client)), asked)

    def remember(self, session: str, connection: GuardedConnection) -> None:
        """Use a connection for all requests of a session."""
        _keep(self._connections, session, connection)

    def remember_event(self, fields: bytes, conversation: _Conversation) -> None:
        """Use what is known of a stream for the rest of it, too, if a client resumes it after an event."""
        for line in fields.splitlines():
            name, _, value = line.partition(b":")
            if name == b"id" and (event := value.strip(b" \t")):  # HTTP allows no spaces around it
                for sent in {event.decode("latin-1"), event.decode(errors="replace")}:  # clients differ in that
                    _keep(self._streams, hash(sent), conversation)


def _keep(known: OrderedDict[NameT, KnownT], name: NameT, what: KnownT) -> None:
    known[name] = what
    known.move_to_end(name)
    if len(known) > _MAX_SESSIONS:
        known.popitem(last=False)


def _ids_in(content: bytes) -> frozenset[Any]:
    """Return the ids of the requests that a client sends, as numbers."""
    try:
        found = read_json(content)
    except ValueError:
        return frozenset()
    messages = found if isinstance(found, list) else [found]
    return frozenset(as_number(key_of(each.get("id"))) for each in messages if isinstance(each, dict))


class _Exchange:
    """A request of the client, all that is sent to the server because of it, and what comes back."""

    def __init__(self, proxy: McpHttpProxy, request: Request, url: httpx.URL, conversation: _Conversation) -> None:
        self._proxy, self._request, self._url = proxy, request, url
        self._conversation, self._connection = conversation, conversation.connection
        self._headers = passed_on(request)
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._head: httpx.Response | None = None
        """The server's answer to the request itself."""
        self._failure: BaseException | None = None

    async def answer(self, content: bytes) -> Response:
        _exchange.set(self)
        if self._request.method == "POST" and self._connection.concerns(content):
            self._handle(self._connection.from_client, content)
        else:
            self.forward(content)
        first = await self._events.get()
        if self._failure is not None:
            await self.close()
            raise self._failure
        head = self._head
        status = 202 if head is None and first is None else 200 if head is None else head.status_code
        headers = [] if head is None else self._proxy.returned(head, self._request)
        if first is None:
            return plain(status, headers, b"")
        kind = JSON if head is None else kind_of(head)
        if kind == EVENTS or (first.message and is_request(first.message)):
            return streamed(self._encoded(first), status, headers)
        body = first.message or first.fields
        if content.lstrip().startswith(b"["):
            body = await self._joined(first)
        await self.close()
        return plain(status, headers, body, None if head is not None else JSON)

    async def _joined(self, first: Event) -> bytes:
        """Return the answers to a batch: those of the server and those in its place."""
        answers: list[object] = []
        event: Event | None = first
        while event is not None:
            found = read_json(event.message) if event.message else []
            answers += found if isinstance(found, list) else [found]
            event = await self._events.get()
        return write_json(answers)

    def deliver(self, fields: bytes, message: bytes) -> None:
        """Send a message to the client."""
        self._events.put_nowait(Event(fields, message))

    def forward(self, content: bytes) -> None:
        """Send something to the server; what it answers passes the guard."""
        self._track(asyncio.ensure_future(self._send(content)))

    async def _send(self, content: bytes) -> None:
        method, headers = ("POST", _as_post(self._headers)) if content else (self._request.method, self._headers)
        request = self._proxy.client.build_request(method, self._url, headers=headers, content=content or None)
        try:
            response = await self._proxy.client.send(request, stream=True)
        except httpx.TransportError as failure:
            self._failure = failure
            return
        try:
            if self._head is None or response.status_code != _ACCEPTED:
                self._head = response
            if session := response.headers.get(SESSION_HEADER):
                self._proxy.remember(session, self._connection)
            await self._pass_on(response)
        except httpx.TransportError as failure:  # the stream ends; a client that can, resumes it
            log.warning("the answer of the MCP server is incomplete: %s", str(failure) or type(failure).__name__)
        finally:
            await response.aclose()

    async def _pass_on(self, response: httpx.Response) -> None:
        kind = kind_of(response)
        if kind == EVENTS:
            async for event in events_of(response.aiter_bytes()):
                self._receive(event)
            return
        body = await body_of(response)
        if (kind == JSON and response.is_success and body.strip()) or replies_in(body):
            self._receive(Event(b"", body), is_refusal=not response.is_success)
        elif body:
            self._events.put_nowait(Event(body))

    def _receive(self, event: Event, *, is_refusal: bool = False) -> None:
        if self._conversation.asked is not None:
            self._proxy.remember_event(event.fields, self._conversation)
        if event.message and not (is_refusal or self._conversation.expects(event.message)):
            log.warning("a message of the MCP server was not passed on: it answers nothing that it was sent for")
            return
        if not event.message or not self._connection.is_awaited(event.message):
            self._events.put_nowait(event)
            return
        before = _fields.set(event.fields)
        self._handle(self._connection.from_server, event.message)
        _fields.reset(before)

    def _handle(self, function: Callable[[bytes], None], message: bytes) -> None:
        """Let the guard handle a message. The exchange lasts until all that this starts is done."""
        self._connection.has_state = True
        with self._connection.watching(self._track):
            function(message)
        self._end_if_idle()

    def _track(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failure = failure
            log.warning("the answer of the MCP server is incomplete: %s", failure)
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if not self._tasks:
            self._events.put_nowait(None)

    async def _encoded(self, first: Event) -> AsyncIterator[bytes]:
        event: Event | None = first
        try:
            while event is not None:
                yield event.encoded()
                event = await self._events.get()
        finally:
            await self.close()

    async def close(self) -> None:
        """The client has its answer, or is gone."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def passed_on(request: Request) -> Headers:
    """Return the headers of the client that the server gets."""
    kept = [(name, value) for name, value in request.headers.raw if name.lower() not in _NOT_SENT]
    return [*kept, (b"accept-encoding", b"identity")]


def kind_of(response: httpx.Response) -> str:
    """Return the type of an answer, without its parameters. Some clients look for that of a stream anywhere in it."""
    kind = response.headers.get("content-type", "").lower()
    return EVENTS if EVENTS in kind else kind.partition(";")[0].strip()


async def body_of(response: httpx.Response) -> bytes:
    """Read an answer. Raises ``TooLargeError`` for one that is too large."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_MESSAGE:
            raise TooLargeError
    return bytes(body)


def own_origin(request: Request) -> str:
    """Return the scheme, host and port at which the client reaches this proxy."""
    return f"{request.url.scheme}://{request.headers['host']}"


def _as_post(headers: Headers) -> Headers:
    """Return the headers of a request that is sent during another one."""
    own = {b"content-type": JSON.encode(), b"accept": f"{JSON}, {EVENTS}".encode()}
    if any(name.lower() == b"content-type" for name, _ in headers):
        return headers
    return [*((name, value) for name, value in headers if name.lower() not in (*own, b"last-event-id")), *own.items()]
