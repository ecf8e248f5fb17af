"""Run the model proxy on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.http_server import LOOPBACK, Server, listen
from llxprt_hooks.integrations.proxy.model_http.app import ModelProxy
from llxprt_hooks.integrations.proxy.model_http.upstreams import APIS, check_not_this

if TYPE_CHECKING:
    from llxprt_hooks.hooks import Hooks
    from llxprt_hooks.integrations.proxy.model_http.app import KnownAgent

_GRACE_SECONDS: Final = 3
"""How long running calls may continue after the proxy was told to end."""


@dataclass(frozen=True, slots=True)
class RunningProxy:
    """A proxy that accepts connections."""

    base_urls: Mapping[str, str]
    """The base URL of each API, by the variable that its clients read."""
    is_bypassed: Callable[[], bool]
    """Whether there are hooks for model calls, and no request has come."""

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the variables for an agent; a proxy of the user's is not used for this machine."""
        direct = {
            name: ",".join(filter(None, [own.get(name), "127.0.0.1,localhost"])) for name in ("NO_PROXY", "no_proxy")
        }
        return {**direct, **self.base_urls}


@asynccontextmanager
async def serving(
    hooks: Hooks,
    upstreams: Mapping[str, str],
    *,
    host: str = LOOPBACK,
    port: int = 0,
    allowed_hosts: Iterable[str] = (),
    allowed_paths: Iterable[str] = (),
    agent: KnownAgent | None = None,
    client_metadata: bool = False,
) -> AsyncIterator[RunningProxy]:
    """Run a proxy on this event loop, on any free port if ``port`` is 0. Raises ``OSError`` if it cannot listen."""
    listening = listen(host, port)
    try:
        address, number = listening.getsockname()[:2]
        shown = _reachable(address)
        base_urls = {api.variable: f"http://{shown}:{number}{api.path}" for api in APIS if api.name in upstreams}
        for name, url in upstreams.items():
            check_not_this(name, url, host, number)
        proxy = ModelProxy(
            hooks,
            upstreams,
            host=host,
            allowed_hosts=allowed_hosts,
            allowed_paths=allowed_paths,
            agent=agent,
            client_metadata=client_metadata,
        )
    except BaseException:
        listening.close()
        raise
    server = Server(
        proxy, ws="none", date_header=False, timeout_keep_alive=120, timeout_graceful_shutdown=_GRACE_SECONDS
    )
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield RunningProxy(base_urls, proxy.is_bypassed)
    finally:
        server.should_exit = True
        await task
        listening.close()
        await proxy.close()


def _reachable(address: str) -> str:
    """Return the host of a URL for an address at which a proxy listens; all addresses include that of this machine."""
    address = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(address, address)  # noqa: S104 - it is compared, not used
    return f"[{address}]" if ":" in address else address
