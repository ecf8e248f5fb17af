"""Run the model proxy on an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks._support import http_server
from llxprt_hooks._support.http_server import LOOPBACK, listen
from llxprt_hooks.integrations.proxy.model_http.upstreams import APIS, check_not_this

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.model_http.app import ModelProxy


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
async def serving(proxy: ModelProxy, *, port: int = 0) -> AsyncIterator[RunningProxy]:
    """Run a proxy on this event loop, on any free port if ``port`` is 0. Raises ``OSError`` if it cannot listen."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(proxy.close)
        listening = stack.enter_context(listen(proxy.host, port))
        address, number = listening.getsockname()[:2]
        shown = _reachable(address)
        base_urls = {api.variable: f"http://{shown}:{number}{api.path}" for api in APIS if api.name in proxy.upstreams}
        for name, url in proxy.upstreams.items():
            check_not_this(name, url, proxy.host, number)
        await stack.enter_async_context(http_server.serving(proxy, listening, timeout_keep_alive=120))
        yield RunningProxy(base_urls, proxy.is_bypassed)


def _reachable(address: str) -> str:
    """Return the host of a URL for an address at which a proxy listens; all addresses include that of this machine."""
    address = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(address, address)  # noqa: S104 - it is compared, not used
    return f"[{address}]" if ":" in address else address
