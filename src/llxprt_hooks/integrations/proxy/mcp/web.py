"""What the MCP proxy's ways to serve clients over HTTP share: which requests are for it, and how it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from llxprt_hooks._support import http_server
from llxprt_hooks._support.http_server import (
    LOOPBACK_NAMES,
    host_name,
    is_own_host,
    is_own_origin,
    listen,
)
from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.core.executors.http import is_loopback
from llxprt_hooks.integrations.proxy.mcp.json_rpc import MAX_MESSAGE, head_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

Headers = list[tuple[bytes, bytes]]

SESSION_HEADER: Final = "mcp-session-id"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
_REFUSED: Final = -32000


class TooLargeError(Exception):
    """A message is larger than hooks can be asked about."""

    def __init__(self) -> None:
        super().__init__("a message is too large to be checked")


class Front(ABC):
    """An ASGI application that guards what is behind it."""

    def __init__(self, path: str, *, host: str, allowed_hosts: Iterable[str] = ()) -> None:
        """``path`` is where the MCP server is, ``host`` where the proxy listens."""
        self.path = path
        self._is_local = is_loopback(host)
        self._names = {*LOOPBACK_NAMES, host.lower(), *(name.lower() for name in allowed_hosts)}

    @abstractmethod
    async def answer(self, request: Request, content: bytes) -> Response:
        """Answer a request that is for this proxy."""

    @abstractmethod
    async def close(self) -> None:
        """End what is behind it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._checked(request)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _checked(self, request: Request) -> Response:
        if (problem := self._foreign(request)) is not None:
            return error(403, problem)
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_MESSAGE:
                return error(413, "the message is too large to be checked")
        if content and request.method != "POST":
            return error(400, "only a POST can have a body")
        if content and set(request.headers.getlist("content-encoding")) - {"identity"}:
            return error(415, "a compressed message cannot be checked")
        return await self.answer(request, bytes(content))

    def _foreign(self, request: Request) -> str | None:
        """Return what is wrong with a request that a web page of another site may have made."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not is_own_host(host, self._names, allow_addresses=not self._is_local):
            return f"the host {host_name(host)!r} is not a name of this proxy"
        if origin and not is_own_origin(origin, host, {*self._names, host_name(host)}):
            return "cross-origin browser requests are not allowed"
        return None


class Event(NamedTuple):
    """An event of a stream, or a whole answer."""

    fields: bytes
    """Lines of the event before its data, or all of it if it has no message."""
    message: bytes = b""

    def encoded(self) -> bytes:
        """Return the event as it is sent."""
        if not self.message:
            return self.fields + b"\n"
        lines = self.message.strip().splitlines()
        return self.fields + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


async def events_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """Yield the events of a stream, as clients read it. Raises ``TooLargeError`` for one that is too large."""
    rest, is_first = bytearray(), True
    fields: list[bytes] = []
    data: list[bytes] = []
    size = 0
    async for chunk in chunks:
        is_ended = rest.endswith(b"\r") or b"\n" in chunk or b"\r" in chunk
        rest += chunk
        lines: list[bytes] = []
        if is_ended:  # or else a long line that comes in pieces would be copied for each of them
            end = len(rest) - rest.endswith(b"\r")  # the next chunk may begin with the rest of this line's end
            *lines, begun = bytes(rest[:end]).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            rest[:end] = begun
        for line in lines:
            if is_first:
                line, is_first = line.removeprefix(BOM_UTF8), False
            size += len(line)
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif line:
                fields.append(line + b"\n")
            else:
                message = b"\n".join(data)
                is_message = bool(message.strip())
                blank = b"" if is_message or not data else b"data: \n"
                yield Event(b"".join(fields) + blank, message if is_message else b"")
                fields, data, size = [], [], 0
        if size + len(rest) > MAX_MESSAGE:
            raise TooLargeError


def is_request(message: bytes) -> bool:
    """Whether a message asks or tells something, unlike a reply."""
    head = head_of(message)
    return head is not None and head.method is not None and not head.is_reply


def plain(status: int, headers: Headers, content: bytes, kind: str | None = None) -> Response:
    """Return an answer with these headers."""
    response = Response(content, status, media_type=kind)
    response.raw_headers = [*response.raw_headers, *headers]
    return response


def streamed(content: AsyncIterator[bytes], status: int = 200, headers: Iterable[tuple[bytes, bytes]] = ()) -> Response:
    """Return an answer that is a stream of events."""
    response = StreamingResponse(content, status, media_type=EVENTS)
    kept = [(name, value) for name, value in headers if name.lower() != b"content-type"]
    response.raw_headers = [*response.raw_headers, *kept]
    return response


def error(status: int, problem: str, code: int = _REFUSED) -> Response:
    """Return the answer to a request that the proxy refuses."""
    found = {"code": code, "message": f"llxprt-hooks: {problem}"}
    return Response(write_json({"jsonrpc": "2.0", "id": None, "error": found}), status, media_type=JSON)


@asynccontextmanager
async def serving(front: Front, *, host: str, port: int) -> AsyncIterator[str]:
    """Run a proxy on this event loop; yields its URL. Raises ``OSError`` if it cannot listen."""
    listening = listen(host, port)
    address, number = listening.getsockname()[:2]
    try:
        async with http_server.serving(front, listening):
            yield f"http://{f'[{address}]' if ':' in address else address}:{number}{front.path}"
    finally:
        await front.close()
