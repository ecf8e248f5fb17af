"""One model call over HTTP with its hooks, for API clients and the model proxy.

A model call is JSON on its way out and bytes on its way back, whichever program makes it:

- A request that hooks leave alone, an answer that they leave alone, and an error pass byte for byte.
- Without an AfterModel hook an answer is passed on as it arrives. With one, it is read to its end first. A stream that
  ends too early then raises, and nothing of it is shown. If the hooks take sentences, the text is passed on as they
  leave it (D-151).
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks.core.calls.lookup import ModelPlans, enforces
from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
from llxprt_hooks.core.calls.sentences import SentenceEvents
from llxprt_hooks.core.calls.stream import in_this_thread
from llxprt_hooks.core.engine.session import Sessionless, current_session
from llxprt_hooks.model import AnyTranslator, TranslationError
from llxprt_hooks.model.wire.sse import encode_json

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.core.calls.sentences import Finish
    from llxprt_hooks.model.wire import Wire

ResponseT = TypeVar("ResponseT")

STREAM, JSON = "text/event-stream; charset=utf-8", "application/json"
_USERS = ("user", "safety_identifier")
# Headers that describe the bytes of a body.
BODY_HEADERS = (b"content-length", b"content-encoding", b"transfer-encoding")


class UnseenError(TranslationError):
    """A request was not sent, because it or its answer cannot be passed to the hooks that are configured for it."""


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
    def chunks(self, response: ResponseT) -> AsyncGenerator[bytes, None]:
        """Read the body of a response piece by piece, decompressed, and close it."""

    @abstractmethod
    def streamed(self, chunks: AsyncGenerator[bytes, None], replaced: ResponseT) -> ResponseT:
        """Build a response whose body is read while it is made, based on the one that it replaces."""

    @abstractmethod
    def replay(self, response: ResponseT) -> ResponseT:
        """Return a response that was read, as it arrived."""

    @abstractmethod
    def answer(self, content: bytes, content_type: str, replaced: ResponseT | None) -> ResponseT:
        """Build a response with a new body, based on the one that it replaces, if there is one."""

    @abstractmethod
    def failure(self, message: str) -> Exception:
        """Return the error of a connection that broke."""


Refuse = Callable[["ModelCallResult[Any]", str], str | None]
"""Returns why an answer may not call a tool, given the result of its hooks and the tool's name; None if it may."""


async def call_model(
    config: Config,
    plans: ModelPlans,
    translator: AnyTranslator,
    body: Any,
    exchange: Exchange[ResponseT],
    *,
    refuse: Refuse | None = None,
) -> ResponseT:
    """Make a model call with its hooks. The answer to a request that hooks block is their reason.

    ``refuse`` is for callers that cannot refuse the tool calls of an answer later: what may not run is not in it.
    """
    wire: Wire = translator.wire  # type: ignore[assignment]  # a translator without one has no HTTP API
    session = current_session(config) or Sessionless()
    call = HookedModelCall(config, body, translator=translator, session=session, plans=plans)
    if (result := await call.before()) is not None:
        answer = result.response
        if answer is None:
            reason = result.reason or result.stop_reason or ""
            answer = translator.reason_response(call.request, reason)
        return exchange.answer(*_encoded(wire, answer, body), None)
    is_restricted = call.request is not body and call.restriction.allowed is not None
    restricts_answer = refuse is not None and is_restricted
    judges_answer = call.holds_back and not call.observes_answers_only
    if wire.answers_later(call.request) and (restricts_answer or judges_answer):
        raise UnseenError(
            "a request with `background` was not sent: hooks could not be shown the answer, which is fetched later"
        )
    reads_answer = call.holds_back or restricts_answer
    response = await exchange.send(None if call.request is body else call.request)
    if not exchange.is_answer(response):
        return response
    if not reads_answer:
        call.passed_on()
        return response

    async def finish(answer: Any) -> ModelCallResult[Any]:
        result = await call.after(answer)
        final = answer if result.response is None else result.response
        if refuse is not None:
            translator.read_response(final)
            final = wire.without_calls(final, partial(refuse, result))
        return replace(result, response=final)

    if call.streams_sentences and wire.is_streamed(body) and wire.has_one_answer(call.request):
        return exchange.streamed(_sentences(call, wire, exchange, response, finish), response)
    content = await exchange.read(response)
    if wire.is_streamed(body):
        assembler = wire.assembler(call.request)
        assembler.feed(content)
        if (error := assembler.error) is not None:
            return exchange.answer(encode_json(error, error.get("type")), STREAM, response)
        answer = assembler.response
    else:
        answer = json_body(content)
    if answer is None or answer is content:
        raise exchange.failure("the answer ended before it was complete; nothing of it was used")
    final: Any = (await finish(answer)).response
    if final is answer:
        return exchange.replay(response)
    return exchange.answer(*_encoded(wire, final, call.request), response)


def claimed_caller(body: Any) -> dict[str, Any]:
    """Return what a request says about who asks: ``metadata`` and the fields in which these APIs have a user.

    >>> claimed_caller({"user": "ada", "metadata": {"tenant": "acme"}, "model": "m"})
    {'tenant': 'acme', 'user': 'ada'}
    """
    given = body if isinstance(body, Mapping) else {}
    metadata = given.get("metadata")
    users = {name: given[name] for name in _USERS if isinstance(given.get(name), str)}
    return {**(metadata if isinstance(metadata, Mapping) else {}), **users}


async def _sentences(
    call: HookedModelCall[Any], wire: Wire, exchange: Exchange[ResponseT], response: ResponseT, finish: Finish
) -> AsyncGenerator[bytes, None]:
    """Yield the body of a streamed answer with the text that hooks have left in it."""
    events = SentenceEvents(call, wire)
    is_own = True
    try:
        async with aclosing(exchange.chunks(response)) as chunks, aclosing(events.stream(chunks, finish)) as released:
            async for event in released:
                is_own = isinstance(event, bytes)
                yield event if is_own else wire.encode(event)
    except (ConnectionAbortedError, TranslationError) as error:
        raise exchange.failure(str(error)) from error
    if not is_own:
        yield wire.END


def called_api(config: Config, translators: Iterable[AnyTranslator], method: str, path: str) -> AnyTranslator | None:
    """Return the translator of the API that a request calls; None if it is not a model call.

    Raises ``UnseenError`` for a request by which hooks would miss a prompt or an answer that they are for (D-91).
    """
    by_wire = {translator.wire: translator for translator in translators if translator.wire is not None}
    for wire, translator in by_wire.items():
        if wire.matches(method, path):
            return translator
    for bypass in (bypass for wire in by_wire for bypass in wire.bypasses):
        if bypass.matches(method, path) and any(enforces(config, event) for event in bypass.events):
            raise UnseenError(bypass.reason)
    return None


def _encoded(wire: Wire, answer: Mapping[str, Any], request: Mapping[str, Any]) -> tuple[bytes, str]:
    if wire.is_streamed(request):
        return b"".join(wire.write(answer, request)), STREAM
    return json.dumps(answer).encode(), JSON


def without_body_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a message whose body is replaced."""
    return [(name, value) for name, value in headers if name.lower() not in BODY_HEADERS]


def json_body(content: bytes) -> Any:
    """Return JSON; what is not JSON stays as it is, and the translator rejects it."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content


# Requests and responses of httpx and httpx2.


def body_stream(library: Any, chunks: AsyncGenerator[bytes, None], *, is_async: bool) -> Any:
    """Return a body of one of these libraries that is read while it is made."""
    if is_async:
        methods = {"__aiter__": lambda self: chunks, "aclose": lambda self: chunks.aclose()}
        return type("ReleasedStream", (library.AsyncByteStream,), methods)()
    pieces = in_this_thread(chunks)
    methods = {"__iter__": lambda self: pieces, "close": lambda self: pieces.close()}
    return type("ReleasedStream", (library.SyncByteStream,), methods)()


async def body_chunks(response: Any, *, is_async: bool) -> AsyncGenerator[bytes, None]:
    """Read the body of a response of one of these libraries piece by piece, decompressed, and close it."""
    try:
        if is_async:
            async for chunk in response.aiter_bytes():
                yield chunk
        else:
            for chunk in response.iter_bytes():
                yield chunk
    finally:
        await resolve(response.aclose() if is_async else response.close())


class TransportExchange(Exchange[Any]):
    """A request that is sent by a method of a transport, synchronous or not. What is not, never waits."""

    def __init__(self, request: Any, send: Callable[[Any], Any], *, is_async: bool) -> None:
        self._request = request
        self._send = send
        self._is_async = is_async
        self._library: Any = sys.modules[type(request).__module__.partition(".")[0]]
        self._raw = b""

    async def send(self, body: Any | None) -> Any:
        return await resolve(self._send(self._outgoing(body)))

    def is_answer(self, response: Any) -> bool:
        return bool(response.is_success)

    async def read(self, response: Any) -> bytes:
        try:
            self._raw = b"".join([chunk async for chunk in response.stream] if self._is_async else response.stream)
        finally:
            await resolve(response.aclose() if self._is_async else response.close())
        return self._decoded(response)

    def chunks(self, response: Any) -> AsyncGenerator[bytes, None]:
        readable = self._library.Response(response.status_code, headers=response.headers, stream=response.stream)
        return body_chunks(readable, is_async=self._is_async)

    def streamed(self, chunks: AsyncGenerator[bytes, None], replaced: Any) -> Any:
        stream = body_stream(self._library, chunks, is_async=self._is_async)
        headers = without_body_headers(replaced.headers.raw)
        return self._library.Response(
            replaced.status_code, headers=headers, stream=stream, extensions=replaced.extensions
        )

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
        try:
            whole = self._library.Response(response.status_code, headers=response.headers, content=self._raw)
        except self._library.DecodingError as error:
            raise self.failure("the answer cannot be decompressed; nothing of it was used") from error
        content: bytes = whole.content
        return content
