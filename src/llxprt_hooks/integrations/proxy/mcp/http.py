"""The MCP proxy for servers that are reached over HTTP ("streamable HTTP"): the same guard, between a client and a URL.

Each request of the client is an exchange. What it sends passes the guard, and so does each message of the server's
answer, whether that is one JSON text or a stream of events. Headers pass unchanged in both directions, tokens among
them; nothing of them is logged.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from llxprt_hooks._support.http_server import (
    LOOPBACK_NAMES,
    Server,
    host_name,
    is_own_host,
    is_own_origin,
    listen,
)
from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.executors.http import is_loopback
from llxprt_hooks.integrations.proxy.mcp.guard import GuardedConnection
from llxprt_hooks.integrations.proxy.mcp.json_rpc import head_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer

log = debug_logger("proxy")

Headers = list[tuple[bytes, bytes]]

SESSION_HEADER: Final = "mcp-session-id"
_JSON, _EVENTS = "application/json", "text/event-stream"
_WELL_KNOWN: Final = "/.well-known/"
"""Below it, a server says how a client gets a token."""
_MAX_BODY: Final = 64 * 1024**2
_MAX_SESSIONS: Final = 10_000
_CONNECT_SECONDS: Final = 30.0
_GRACE_SECONDS: Final = 3
_NOT_SENT: Final = frozenset(
    b"host origin expect content-length transfer-encoding accept-encoding connection keep-alive te trailer".split()
)
_NOT_RETURNED: Final = frozenset(b"content-length content-encoding transfer-encoding connection keep-alive".split())
_REFUSED: Final = -32000
_ACCEPTED: Final = 202

_exchange: ContextVar[_Exchange] = ContextVar("mcp_exchange")
_fields: ContextVar[bytes] = ContextVar("mcp_event_fields", default=b"")
"""The lines before the data of the event that is being handled, such as its id."""


class _ToServer:
    def write_later(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        _exchange.get().forward(line)
        if then is not None:
            then()

    def close_later(self) -> None:
        """Requests end by themselves."""


class _ToClient:
    def write_later(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        if line.strip():
            _exchange.get().deliver(_fields.get(), line)
        if then is not None:
            then()

    def close_later(self) -> None:
        """Answers end by themselves."""


def _call(function: Callable[..., object], *arguments: object) -> None:
    function(*arguments)


class McpHttpProxy:
    """The proxy, as an ASGI application."""

    def __init__(self, guarded: GuardedServer, upstream: str, *, host: str, allowed_hosts: Iterable[str] = ()) -> None:
        """``host`` is where it listens."""
        self._guarded = guarded
        self._upstream = httpx.URL(upstream)
        self._is_local = is_loopback(host)
        self._names = {*LOOPBACK_NAMES, host.lower(), *(name.lower() for name in allowed_hosts)}
        self._connections: OrderedDict[str, GuardedConnection] = OrderedDict()
        # A tool may work for minutes, so only the connection has a timeout.
        self.client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS), limits=httpx.Limits(max_connections=None)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if (problem := self._foreign(request)) is not None:
            return _error(403, problem)
        url = self._target(request)
        if url is None:
            return _error(404, f"not found; the server is at {self._upstream.path}")
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > _MAX_BODY:
                return _error(413, "the message is too large to be checked")
        if content and request.headers.get("content-encoding", "identity") != "identity":
            return _error(415, "a compressed message cannot be checked")
        exchange = _Exchange(self, request, url, self._connection(request))
        try:
            return await exchange.answer(bytes(content))
        except httpx.TransportError as error:
            return _error(502, f"cannot reach the MCP server: {str(error) or type(error).__name__}")

    def _target(self, request: Request) -> httpx.URL | None:
        """Return the address that a request is for; None if hooks would not see what is sent there."""
        path = request.url.path
        query = request.scope["query_string"]
        if path == self._upstream.path:
            return self._upstream.copy_with(query=query) if query else self._upstream
        is_public = request.method == "GET" and path.startswith(_WELL_KNOWN)
        return self._upstream.copy_with(path=path, query=query or None) if is_public else None

    def _foreign(self, request: Request) -> str | None:
        """Return what is wrong with a request that a web page of another site may have made."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not is_own_host(host, self._names, allow_addresses=not self._is_local):
            return f"the host {host_name(host)!r} is not a name of this proxy"
        if origin and not is_own_origin(origin, host, {*self._names, host_name(host)}):
            return "requests of web pages of other sites are refused"
        return None

    def _connection(self, request: Request) -> GuardedConnection:
        """Return what is known of a session. Without one, each request stands alone."""
        session = request.headers.get(SESSION_HEADER, "")
        known = self._connections.get(session)
        if request.method == "DELETE":
            self._connections.pop(session, None)
        return known or GuardedConnection(self._guarded, _ToServer(), _ToClient(), _call)

    def remember(self, session: str, connection: GuardedConnection) -> None:
        """Use a connection for all requests of a session."""
        self._connections[session] = connection
        self._connections.move_to_end(session)
        if len(self._connections) > _MAX_SESSIONS:
            self._connections.popitem(last=False)


class _Event(NamedTuple):
    fields: bytes
    """Lines of the event before its data, or all of it if it has no message."""
    message: bytes = b""

    def encoded(self) -> bytes:
        if not self.message:
            return self.fields + b"\n"
        lines = self.message.strip().split(b"\n")
        return self.fields + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


class _Exchange:
    """A request of the client, all that is sent to the server because of it, and what comes back."""

    def __init__(self, proxy: McpHttpProxy, request: Request, url: httpx.URL, connection: GuardedConnection) -> None:
        self._proxy, self._request, self._url, self._connection = proxy, request, url, connection
        self._headers: Headers = [
            *((name, value) for name, value in request.headers.raw if name.lower() not in _NOT_SENT),
            (b"accept-encoding", b"identity"),
        ]
        self._events: asyncio.Queue[_Event | None] = asyncio.Queue()
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
        headers = [] if head is None else _returned(head.headers.raw)
        if first is None:
            return _response(status, headers, b"")
        kind = _JSON if head is None else head.headers.get("content-type", "").partition(";")[0]
        if kind == _EVENTS or (first.message and _is_request(first.message)):
            return _streamed(self._encoded(first), status, headers)
        body = first.message or first.fields
        if content.lstrip().startswith(b"["):
            body = await self._joined(first)
        await self.close()
        return _response(status, headers, body, None if head is not None else _JSON)

    async def _joined(self, first: _Event) -> bytes:
        """Return the answers to a batch: those of the server and those in its place."""
        answers: list[object] = []
        event: _Event | None = first
        while event is not None:
            found = read_json(event.message) if event.message else []
            answers += found if isinstance(found, list) else [found]
            event = await self._events.get()
        return write_json(answers)

    def deliver(self, fields: bytes, message: bytes) -> None:
        """Send a message to the client."""
        self._events.put_nowait(_Event(fields, message))

    def forward(self, content: bytes) -> None:
        """Send something to the server; what it answers passes the guard."""
        self._track(asyncio.ensure_future(self._send(content)))

    async def _send(self, content: bytes) -> None:
        method, headers = ("POST", _as_post(self._headers)) if content else (self._request.method, self._headers)
        request = self._proxy.client.build_request(method, self._url, headers=headers, content=content or None)
        try:
            response = await self._proxy.client.send(request, stream=True)
        except httpx.TransportError as error:
            self._failure = error
            return
        try:
            if self._head is None or response.status_code != _ACCEPTED:
                self._head = response
            if session := response.headers.get(SESSION_HEADER):
                self._proxy.remember(session, self._connection)
            await self._pass_on(response, response.aiter_bytes())
        except httpx.TransportError as error:  # the stream ends; a client that can, resumes it
            log.warning("the answer of the MCP server is incomplete: %s", str(error) or type(error).__name__)
        finally:
            await response.aclose()

    async def _pass_on(self, response: httpx.Response, chunks: AsyncIterator[bytes]) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind == _EVENTS:
            async for event in _events(chunks):
                self._receive(event)
            return
        body = b"".join([chunk async for chunk in chunks])
        if kind == _JSON and response.is_success and body.strip():
            self._receive(_Event(b"", body))
        elif body:
            self._events.put_nowait(_Event(body))

    def _receive(self, event: _Event) -> None:
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
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = error
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if not self._tasks:
            self._events.put_nowait(None)

    async def _encoded(self, first: _Event) -> AsyncIterator[bytes]:
        event: _Event | None = first
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


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[_Event]:
    """Yield the events of a stream."""
    rest = b""
    fields: list[bytes] = []
    data: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif line:
                fields.append(line + b"\n")
            else:
                message = b"\n".join(data)
                is_message = bool(message.strip())
                blank = b"" if is_message or not data else b"data: \n"
                yield _Event(b"".join(fields) + blank, message if is_message else b"")
                fields, data = [], []


def _is_request(message: bytes) -> bool:
    head = head_of(message)
    return head is not None and head.method is not None and not head.is_reply


def _as_post(headers: Headers) -> Headers:
    """Return the headers of a request that is sent during another one."""
    own = {b"content-type": _JSON.encode(), b"accept": f"{_JSON}, {_EVENTS}".encode()}
    if any(name.lower() == b"content-type" for name, _ in headers):
        return headers
    return [*((name, value) for name, value in headers if name.lower() not in (*own, b"last-event-id")), *own.items()]


def _returned(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name, value) for name, value in raw if name.lower() not in _NOT_RETURNED]


def _response(status: int, headers: Headers, content: bytes, kind: str | None = None) -> Response:
    response = Response(content, status, media_type=kind)
    response.raw_headers = [*response.raw_headers, *headers]
    return response


def _streamed(content: AsyncIterator[bytes], status: int, headers: Headers) -> Response:
    response = StreamingResponse(content, status, media_type=_EVENTS)
    kept = [(name, value) for name, value in headers if name.lower() != b"content-type"]
    response.raw_headers = [*response.raw_headers, *kept]
    return response


def _error(status: int, problem: str) -> Response:
    error = {"code": _REFUSED, "message": f"llxprt-hooks: {problem}"}
    return Response(write_json({"jsonrpc": "2.0", "id": None, "error": error}), status, media_type=_JSON)


@asynccontextmanager
async def serving(
    guarded: GuardedServer, upstream: str, *, host: str, port: int, allowed_hosts: Iterable[str] = ()
) -> AsyncIterator[str]:
    """Run a proxy on this event loop; yields its URL. Raises ``OSError`` if it cannot listen."""
    listening = listen(host, port)
    proxy = McpHttpProxy(guarded, upstream, host=host, allowed_hosts=allowed_hosts)
    server = Server(proxy, ws="none", date_header=False, timeout_graceful_shutdown=_GRACE_SECONDS)
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    address, number = listening.getsockname()[:2]
    try:
        yield f"http://{f'[{address}]' if ':' in address else address}:{number}{httpx.URL(upstream).path}"
    finally:
        server.should_exit = True
        await task
        listening.close()
        await proxy.client.aclose()
