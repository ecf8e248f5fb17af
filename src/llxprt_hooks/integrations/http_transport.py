"""Hooks around model calls over HTTP, for clients that let a program exchange their transport: httpx and httpx2.

Any other endpoint passes byte for byte. An SDK that retries sends a new request: the hooks run for each attempt.

Synchronous and asynchronous clients share the code: what a synchronous one awaits never waits (see ``portal.drive``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self, TypeVar

from llxprt_hooks.transport.model_exchange import AsyncExchange, Exchange, SyncExchange, json_body
from llxprt_hooks.triggers import portal

if TYPE_CHECKING:
    from llxprt_hooks.model import AnyTranslator

ResponseT = TypeVar("ResponseT")

# Clients take these methods from any object.


class HookedTransport:
    """A transport of a synchronous client, with hooks around the model calls."""

    def __init__(self, inner: Any, calls: ModelCalls) -> None:
        self.inner = inner
        self.calls = calls

    def handle_request(self, request: Any) -> Any:
        if not self.calls.are_hooked() or (translator := self.calls.translator_of(request)) is None:
            return self.inner.handle_request(request)
        exchange = SyncExchange(request, self.inner)
        request.read()
        return portal.drive(self.calls.make(translator, json_body(request.content), exchange))

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
        exchange = AsyncExchange(request, self.inner)
        await request.aread()
        return await self.calls.make(translator, json_body(request.content), exchange)

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
