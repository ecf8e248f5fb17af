"""Hooks around model calls over HTTP, for clients that let a program exchange their transport: httpx and httpx2.

Any other endpoint passes byte for byte. An SDK that retries sends a new request: the hooks run for each attempt.

Synchronous and asynchronous clients share the code: what a synchronous one awaits never waits (see ``loops.drive``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from llxprt_hooks.core import loops
from llxprt_hooks.integrations.http_call import TransportExchange, json_body

if TYPE_CHECKING:
    from llxprt_hooks.integrations.client import ClientHooks


class HookedTransport:
    """A transport with hooks around the model calls. Clients take these methods, of either kind, from any object."""

    def __init__(self, inner: Any, hooks: ClientHooks) -> None:
        self.inner = inner
        self.hooks = hooks

    def handle_request(self, request: Any) -> Any:
        if (make := self.hooks.hooked_call(request.method, request.url.path)) is None:
            return self.inner.handle_request(request)
        request.read()
        exchange = TransportExchange(request, self.inner.handle_request, is_async=False)
        return loops.drive(make(json_body(request.content), exchange))

    async def handle_async_request(self, request: Any) -> Any:
        if (make := self.hooks.hooked_call(request.method, request.url.path)) is None:
            return await self.inner.handle_async_request(request)
        await request.aread()
        exchange = TransportExchange(request, self.inner.handle_async_request, is_async=True)
        return await make(json_body(request.content), exchange)

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        await self.inner.aclose()

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.inner.__exit__(*error)

    async def __aexit__(self, *error: object) -> None:
        await self.inner.__aexit__(*error)


def hook_transports(client: Any, hooks: ClientHooks) -> None:
    """Put hooks into the transports of an HTTP client, those of its proxies included."""
    client._transport = HookedTransport(client._transport, hooks)
    client._mounts = {pattern: inner and HookedTransport(inner, hooks) for pattern, inner in client._mounts.items()}


def is_hooked(client: Any, hooks: ClientHooks) -> bool:
    return getattr(client._transport, "hooks", None) is hooks


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
