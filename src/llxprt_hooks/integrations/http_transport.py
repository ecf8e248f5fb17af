"""Hooks around model calls over HTTP, for clients that let a program exchange their transport: httpx and httpx2.

A model call is JSON on its way out and bytes on its way back, whichever method of an SDK makes it:

- A request that hooks leave alone, an answer that they leave alone, an error and any other endpoint pass byte for byte.
- Without an AfterModel hook an answer is passed on as it arrives. With one, it is read to its end first. A stream that
  ends too early then raises, and nothing of it is shown.
- An SDK that retries sends a new request: the hooks run for each attempt.

Synchronous and asynchronous clients share the code: what a synchronous one awaits never waits (see ``portal.drive``).
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from llxprt_hooks.model.wire.sse import encode_json
from llxprt_hooks.triggers import portal

if TYPE_CHECKING:
    from llxprt_hooks.hooks import Hooks
    from llxprt_hooks.model import AnyTranslator
    from llxprt_hooks.model.wire import Wire

ResponseT = TypeVar("ResponseT")

STREAM, JSON = "text/event-stream; charset=utf-8", "application/json"
# Headers that describe the bytes of a body.
BODY_HEADERS = (b"content-length", b"content-encoding", b"transfer-encoding")


class Exchange(ABC, Generic[ResponseT]):
    """One HTTP request and its response, in the types of a library."""

    @abstractmethod
    async def send(self, body: Any | None) -> ResponseT:
        """Send the request as it is, or with another body."""

    @abstractmethod
    def is_answer(self, response: ResponseT) -> bool:
        """Whether a response has a status that says success."""

    @abstractmethod
    async def read(self, response: ResponseT) -> bytes:
        """Read the body of a response to its end, and decompress it."""

    @abstractmethod
    def replay(self, response: ResponseT) -> ResponseT:
        """Return a response that was read, as it arrived."""

    @abstractmethod
    def answer(self, content: bytes, content_type: str, replaced: ResponseT | None) -> ResponseT:
        """Return a response with another body than the one that it replaces, if there is one."""

    @abstractmethod
    def failure(self, message: str) -> Exception:
        """Return the error of a connection that broke."""


async def call_model(hooks: Hooks, translator: AnyTranslator, body: Any, exchange: Exchange[ResponseT]) -> ResponseT:
    """Make a model call with its hooks. The answer to a request that hooks block is their reason."""
    wire: Wire = translator.wire  # type: ignore[assignment]  # a translator without one has no HTTP API
    call = hooks.model_call(body, translator=translator)
    if (result := await call.before()) is not None:
        answer = result.response
        if answer is None:
            reason = result.reason or result.stop_reason or ""
            answer = translator.reason_response(call.request, reason)
        return exchange.answer(*_encoded(wire, answer, body), None)
    response = await exchange.send(None if call.request is body else call.request)
    if not exchange.is_answer(response):
        return response
    if not call.holds_back:
        call.passed_on()
        return response
    content = await exchange.read(response)
    if wire.is_streamed(body):
        assembler = wire.assembler(call.request)
        assembler.feed(content)
        if (error := assembler.error) is not None:
            return exchange.answer(encode_json(error, error.get("type")), STREAM, response)
        answer = assembler.response
    else:
        answer = _json(content)
    if answer is None:
        raise exchange.failure("the answer ended before it was complete; nothing of it was used")
    result = await call.after(answer)
    if result.response is None or result.response is answer:
        return exchange.replay(response)
    return exchange.answer(*_encoded(wire, result.response, call.request), response)


def _encoded(wire: Wire, answer: Mapping[str, Any], request: Mapping[str, Any]) -> tuple[bytes, str]:
    if wire.is_streamed(request):
        return b"".join(wire.write(answer, request)), STREAM
    return json.dumps(answer).encode(), JSON


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


# The transports of httpx and httpx2. They take these methods from any object.


class HookedTransport:
    """A transport of a synchronous client, with hooks around the model calls."""

    def __init__(self, inner: Any, calls: ModelCalls) -> None:
        self.inner = inner
        self.calls = calls

    def handle_request(self, request: Any) -> Any:
        if not self.calls.are_hooked() or (translator := self.calls.translator_of(request)) is None:
            return self.inner.handle_request(request)
        exchange = _SyncExchange(request, self.inner)
        request.read()
        return portal.drive(self.calls.make(translator, _body(request), exchange))

    def close(self) -> None:
        self.inner.close()

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.inner.__exit__(*error)


class HookedAsyncTransport:
    """A transport of an asynchronous client, with hooks around the model calls."""

    def __init__(self, inner: Any, calls: ModelCalls) -> None:
        self.inner = inner
        self.calls = calls

    async def handle_async_request(self, request: Any) -> Any:
        if not self.calls.are_hooked() or (translator := self.calls.translator_of(request)) is None:
            return await self.inner.handle_async_request(request)
        exchange = _AsyncExchange(request, self.inner)
        await request.aread()
        return await self.calls.make(translator, _body(request), exchange)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.inner.__aexit__(*error)


class ModelCalls(ABC):
    """What the transports need to know about the hooks of a client."""

    @abstractmethod
    def are_hooked(self) -> bool:
        """Whether hooks have a say in a model call that is made now."""

    @abstractmethod
    def translator_of(self, request: Any) -> AnyTranslator | None:
        """Return the translator for an HTTP request; None if it is not a model call."""

    @abstractmethod
    async def make(self, translator: AnyTranslator, body: Any, exchange: Exchange[ResponseT]) -> ResponseT:
        """Make a model call with its hooks."""


def _body(request: Any) -> Any:
    """Return the JSON of a request; what is not JSON stays as it is, and the translator rejects it."""
    try:
        return json.loads(request.content)
    except ValueError:
        return request.content


class _TransportExchange(Exchange[Any]):
    def __init__(self, request: Any, transport: Any) -> None:
        self._request = request
        self._transport = transport
        self._library: Any = sys.modules[type(request).__module__.partition(".")[0]]
        self._raw = b""

    def is_answer(self, response: Any) -> bool:
        return bool(response.is_success)

    def replay(self, response: Any) -> Any:
        return self._response(response.status_code, response.headers, self._raw, response.extensions)

    def answer(self, content: bytes, content_type: str, replaced: Any | None) -> Any:
        length = (b"content-length", str(len(content)).encode())
        if replaced is None:
            return self._response(200, [(b"content-type", content_type.encode()), length], content, {})
        headers = [*without_body_headers(replaced.headers.raw), length]
        return self._response(replaced.status_code, headers, content, replaced.extensions)

    def failure(self, message: str) -> Exception:
        error: Exception = self._library.RemoteProtocolError(message, request=self._request)
        return error

    def _response(self, status: int, headers: Any, content: bytes, extensions: Any) -> Any:
        stream = self._library.ByteStream(content)
        return self._library.Response(status, headers=headers, stream=stream, extensions=extensions)

    def _outgoing(self, body: Any | None) -> Any:
        request = self._request
        if body is None:
            return request
        headers = without_body_headers(request.headers.raw)
        content = json.dumps(body).encode()
        return self._library.Request(
            request.method, request.url, headers=headers, content=content, extensions=request.extensions
        )

    def _decoded(self, response: Any) -> bytes:
        whole = self._library.Response(response.status_code, headers=response.headers, content=self._raw)
        content: bytes = whole.content
        return content


class _SyncExchange(_TransportExchange):
    async def send(self, body: Any | None) -> Any:
        return self._transport.handle_request(self._outgoing(body))

    async def read(self, response: Any) -> bytes:
        try:
            self._raw = b"".join(response.stream)
        finally:
            response.close()
        return self._decoded(response)


class _AsyncExchange(_TransportExchange):
    async def send(self, body: Any | None) -> Any:
        return await self._transport.handle_async_request(self._outgoing(body))

    async def read(self, response: Any) -> bytes:
        try:
            self._raw = b"".join([chunk async for chunk in response.stream])
        finally:
            await response.aclose()
        return self._decoded(response)


def without_body_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a message whose body is replaced."""
    return [(name, value) for name, value in headers if name.lower() not in BODY_HEADERS]


def hook_transports(client: Any, calls: ModelCalls) -> None:
    """Put hooks into the transports of an HTTP client, those of its proxies included."""
    kind = HookedAsyncTransport if hasattr(client, "aclose") else HookedTransport
    client._transport = kind(client._transport, calls)
    client._mounts = {pattern: inner and kind(inner, calls) for pattern, inner in client._mounts.items()}


def is_hooked(client: Any, calls: ModelCalls) -> bool:
    """Whether an HTTP client has these hooks."""
    return getattr(client._transport, "calls", None) is calls


def borrow(client: Any) -> Any:
    """Return a copy of an HTTP client that uses the same connections. Closing it closes the original, too.

    The SDKs close their own HTTP client when it is no longer referenced. The copy keeps the original alive, and leaves
    the connections of an original that is still used alone.
    """
    kind = type(client)

    def close(self: Any) -> None:
        kind.close(self)
        client.close()

    async def aclose(self: Any) -> None:
        await kind.aclose(self)
        await client.aclose()

    closing = {"aclose": aclose} if hasattr(kind, "aclose") else {"close": close}
    copied: Any = object.__new__(type(kind.__name__, (kind,), {**closing, "__del__": lambda self: None}))
    vars(copied).update(vars(client))
    return copied
