"""A request to the model proxy, and the response that goes back, byte for byte."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from urllib.parse import unquote

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.integrations.http_call import UnseenError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

log = debug_logger("proxy")

T = TypeVar("T")
Headers: TypeAlias = list[tuple[bytes, bytes]]

SESSION_HEADER: Final = "x-llxprt-session-id"
MAX_REQUEST: Final = 256 * 1024**2
"""Bytes of a model call that hooks are shown, decompressed. The APIs accept less."""
_PIECE: Final = 16 * 1024
"""Bytes that are decompressed at once."""
_MAX_ESCAPES: Final = 8
_WITHOUT_BODY: Final = ("GET", "HEAD", "OPTIONS", "DELETE")
_OVERRIDES: Final = frozenset(("x-http-method-override", "x-http-method", "x-method-override"))
"""Headers from which some servers take the method."""
_HOP_BY_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split()
)


class Incoming(Request):
    """One request of a client."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        query: bytes = scope["query_string"]
        self.raw_target: bytes = scope["raw_path"] + (b"?" + query if query else b"")
        self._is_read = asyncio.Event()

    def is_below(self, path: str) -> bool:
        """Whether the request is for a base URL with this path."""
        return (self.raw_target.partition(b"?")[0] + b"/").startswith(f"{path}/".encode())

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that a server may take it for: whatever can have a body may count as POST somewhere."""
        is_read_only = self.method in _WITHOUT_BODY and not self.has_body and _OVERRIDES.isdisjoint(self.headers.keys())
        return (self.method,) if is_read_only else (self.method, "POST")

    @property
    def has_body(self) -> bool:
        return self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers

    def forwarded_headers(self, *without: bytes) -> Headers:
        """Return the headers that are for the API. The length of a chunked body is not one: it may be wrong."""
        length = [b"content-length"] if "transfer-encoding" in self.headers else []
        return _end_to_end(self.headers.raw, (b"host", b"expect", SESSION_HEADER.encode(), *length, *without))

    def readable_headers(self) -> Headers:
        """Return the headers of a request whose answer is read here, so without compression that cannot be."""
        encoding = b"gzip" if "gzip" in self.headers.get("accept-encoding", "") else b"identity"
        return [*self.forwarded_headers(b"accept-encoding"), (b"accept-encoding", encoding)]

    async def stream(self) -> AsyncGenerator[bytes, None]:
        async for chunk in super().stream():
            yield chunk
        self._is_read.set()

    async def content(self) -> bytes:
        """Return the whole body. Raises ``UnseenError`` if it is too large for hooks."""
        content = bytearray()
        async for chunk in self.stream():
            content += chunk
            _check_size(content)
        return bytes(content)

    def decompressed(self, content: bytes) -> bytes:
        """Return a body without its compression; as it is if that is unknown. Some bytes can become a thousand."""
        encoding = self.headers.get("content-encoding")
        if not encoding:
            return content
        pieces = (content[start : start + _PIECE] for start in range(0, len(content), _PIECE))
        decoded = bytearray()
        try:
            for piece in httpx.Response(200, headers={"content-encoding": encoding}, content=pieces).iter_bytes():
                decoded += piece
                _check_size(decoded)
        except httpx.DecodingError:
            return content
        return bytes(decoded)

    async def while_connected(self, work: Awaitable[T]) -> T | None:
        """Await something, and cancel it if the client goes away; then return None."""
        working = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self._has_left())
        try:
            await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_done = working.done()
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)
        try:
            return working.result() if is_done else None
        except ClientDisconnect:
            return None

    async def _has_left(self) -> None:
        # Only one can wait for messages, so until the body is read, reading it finds out.
        if self.has_body:
            await self._is_read.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass


class PassedOn(StreamingResponse):
    """A response of the API, sent on as it arrives; ``location``: where it redirects to, as the client reaches it."""

    def __init__(self, response: httpx.Response, location: bytes | None) -> None:
        super().__init__(response.aiter_raw(), response.status_code)
        redirect = [] if location is None else [(b"location", location)]
        self.raw_headers = _end_to_end(response.headers.raw, dict(redirect)) + redirect
        self._response = response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except httpx.TransportError as error:  # the server breaks the connection, so the client notices
            what = str(error) or type(error).__name__
            log.warning("the answer of %s is incomplete: %s", self._response.url.host, what)
        finally:
            await self._response.aclose()


def normalized(path: str) -> str:
    """Return a path as the most lenient server reads it: hooks must not miss a model call because of its spelling.

    >>> normalized("//V1/x/../messages;v=2/"), normalized("/v1/%256dessages")
    ('/v1/messages', '/v1/messages')

    Raises ``UnseenError`` if escapes are nested so deeply that it does not come to an end.
    """
    for _ in range(_MAX_ESCAPES):
        path, former = unquote(path), path
        if path == former:
            break
    else:
        raise UnseenError("a request was not sent, because its path is escaped many times over")
    segments: list[str] = []
    for written in path.lower().replace("\\", "/").split("/"):
        segment = re.split(r"[;?#\s\0]", written, maxsplit=1)[0]
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments)


def _check_size(content: bytearray) -> None:
    if len(content) > MAX_REQUEST:
        size = f"{MAX_REQUEST // 1024**2} MiB"
        raise UnseenError(f"a request of more than {size} was not sent, because hooks would have to read it")


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], without: Iterable[bytes]) -> Headers:
    """Return the headers that are not only for the next connection."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = {word.strip().lower() for name, value in lowered if name == b"connection" for word in value.split(b",")}
    dropped = {*_HOP_BY_HOP, *named, b"transfer-encoding", *without}
    return [(name, value) for name, value in lowered if name not in dropped]
