"""An HTTP server inside of another program, and which requests are meant for it."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Container, Iterator
from contextlib import asynccontextmanager, contextmanager
from operator import itemgetter
from typing import Any, Final
from urllib.parse import urlsplit

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK: Final = "127.0.0.1"
LOOPBACK_NAMES: Final = frozenset({"localhost", LOOPBACK, "::1"})


HEADER_SECONDS: Final = 10.0
"""For the headers of a request to arrive, from the opening of the connection or from their first byte."""

_GRACE_SECONDS: Final = 3
"""How long running requests may continue after their server was told to end."""

MAX_WAITING: Final = 128
"""Connections of one address that have not sent a request's headers. For one more, the oldest is closed."""


class _Connection(H11Protocol):
    """A connection that does not last if no request comes: nobody can take all places without saying who they are."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(HEADER_SECONDS, self.transport.abort)
            self._make_room()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _make_room(self) -> None:
        if len(self.connections) <= MAX_WAITING:
            return
        waiting = [
            (each._waiting.when(), each.transport)
            for each in self.connections
            if isinstance(each, _Connection) and each._waiting and each._address == self._address
        ]
        if len(waiting) > MAX_WAITING:
            min(waiting, key=itemgetter(0))[1].abort()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""


class Server(uvicorn.Server):
    """A server for an ASGI application; ``options`` are those of uvicorn. It logs no requests.

    Signals are left to the program, unless ``handles_signals``: then SIGINT and SIGTERM end the server.
    """

    def __init__(self, application: Any, *, handles_signals: bool = False, **options: Any) -> None:
        config = uvicorn.Config(
            application,
            http=_Connection,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            **options,
        )
        super().__init__(config)
        self._handles_signals = handles_signals

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if not self._handles_signals:
            yield
            return
        with super().capture_signals():
            yield


@asynccontextmanager
async def serving(application: Any, listening: socket.socket, **options: Any) -> AsyncIterator[None]:
    """Answer the requests to a port on this event loop meanwhile. Running ones have a moment to end; it is closed."""
    server = Server(application, ws="none", date_header=False, timeout_graceful_shutdown=_GRACE_SECONDS, **options)
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield
    finally:
        server.should_exit = True
        await task
        listening.close()


def listen(host: str, port: int) -> socket.socket:
    """Open a port; 0 is any free one. Raises ``OSError``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:  # the address, which Python adds to the words, is in every message already
        if error.errno is None or error.errno <= 0:  # a name that cannot be looked up
            raise
        raise OSError(error.errno, os.strerror(error.errno)) from error


# Every site on the internet can make a browser send requests to this machine. A page can give a name of its own the
# address of this machine, so requests must be for a name of the server. The browser adds the page's origin itself.


def is_own_host(host: str, names: Container[str], *, port: int | None = None, allow_addresses: bool = False) -> bool:
    """Whether a ``Host`` header names this server, at ``port`` if that is given.

    ``allow_addresses`` is for a server that other machines use: a page cannot be reached by an address that is not
    its own.
    """
    name, given = _name_and_port(f"//{host}")
    is_named = name in names or (allow_addresses and _is_address(name))
    return is_named and port in (None, given)


def is_own_origin(origin: str, host: str, names: Container[str] = ()) -> bool:
    """Whether an ``Origin`` header is that of a page which the server at ``host`` has served, or one of ``names``."""
    return origin == f"http://{host}" or _name_and_port(origin)[0] in names


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without its port; empty if it has none."""
    return _name_and_port(f"//{host}")[0]


def _name_and_port(url: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port
    except ValueError:
        return "", None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
