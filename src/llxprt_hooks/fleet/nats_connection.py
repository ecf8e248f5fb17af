"""Connections to NATS, one for each event loop, list of servers and credentials. Hooks, buses and workers share them.

A connection is opened when it is first needed. If it is lost, it is opened again in the background, for as long as the
event loop runs. nats-py is imported when the first one is opened.
"""

from __future__ import annotations

import asyncio
import math
import re
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import from_extra
from llxprt_hooks.core.loops import PerLoop
from llxprt_hooks.process import call_blocking, no_fork

if TYPE_CHECKING:
    from nats.aio.client import Client

log = debug_logger("bus")

CONNECT_TIMEOUT: Final = 2
"""Seconds to wait for a server to answer, for a lost connection to come back, and then for those of workers."""
_RECONNECT_WAIT: Final = 0.5
"""Seconds between two attempts to reconnect to the same server."""

DEFAULT_SUBJECT: Final = "llxprt.hooks"
"""The subject of hook requests, unless settings or a command line name another."""

QUEUE_GROUP: Final = "llxprt-hooks"
"""Of the subscribers in this group, one gets each request."""

_SUBJECT: Final = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")


class NatsAddress(msgspec.Struct, frozen=True):
    """Where NATS is, and the path of a file with credentials: a ``.creds`` file, or the seed of an NKey."""

    servers: tuple[str, ...]
    credentials: str | None = None

    def __str__(self) -> str:
        return ", ".join(self.servers)


class NatsUnavailableError(ConnectionError):
    """No server could be reached, or none accepted the credentials."""


def subject_problem(subject: str) -> str | None:
    """Return why nothing can be sent to a subject; else None.

    >>> subject_problem("llxprt.hooks"), subject_problem("llxprt.>")
    (None, '`llxprt.>` is not a subject: expected words with dots between them, such as `llxprt.hooks`')
    """
    if _SUBJECT.fullmatch(subject):
        return None
    return f"`{subject}` is not a subject: expected words with dots between them, such as `{DEFAULT_SUBJECT}`"


async def nats_client(address: NatsAddress) -> Client:
    """Return a client that is connected. It is shared: do not close it.

    Raises ``NatsUnavailableError`` after a few seconds without a connection, and ``ModuleNotFoundError`` with the name
    of the extra if nats-py is not installed.
    """
    connection = await _connections.get(address)
    if connection.client.is_closed:  # by the server, for example because it does not accept the credentials any more
        _connections.forget(address)
        connection = await _connections.get(address)
    if not connection.client.is_connected:
        await connection.wait_until_connected()
    return connection.client


async def workers_may_return(address: NatsAddress) -> bool:
    """Whether to retry although nobody answered: right after an outage, workers may not have reconnected yet.

    Waits a moment if so. Calls that waited for the connection are sent as soon as it is back.
    """
    connection = await _connections.get(address)
    if asyncio.get_running_loop().time() > connection.came_back + CONNECT_TIMEOUT:
        return False
    await asyncio.sleep(_RECONNECT_WAIT / 10)
    return True


async def open_nats_client(address: NatsAddress) -> Client:
    """Return a client of its own, for a caller that closes or drains it."""
    return (await _opened(address)).client


class _Connection:
    client: Client

    def __init__(self, address: NatsAddress) -> None:
        self.address = address
        self._latest_error = ""
        self._connected = asyncio.Event()
        self.came_back = -math.inf
        """When the connection was lost and came back, by the clock of the event loop; in between, infinity."""

    async def open(self) -> None:
        make_client = call_blocking(_imported_client)
        credentials = call_blocking(lambda: _credential_options(self.address.credentials))
        self.client = make_client()
        try:
            await self.client.connect(
                list(self.address.servers),
                name="llxprt-hooks",
                error_cb=self._report,
                disconnected_cb=self._disconnected,
                reconnected_cb=self._reconnected,
                connect_timeout=CONNECT_TIMEOUT,
                # Every server is tried twice before this fails.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                **credentials,
            )
        except BaseException as error:
            if self.client._transport is not None:  # not `client.close`, which can hang after a failed TLS handshake
                self.client._transport.close()  # type: ignore[no-untyped-call]
            if not isinstance(error, Exception):
                raise
            raise self._unavailable(error) from error
        self.client.options |= {"max_reconnect_attempts": -1, "reconnect_time_wait": _RECONNECT_WAIT}
        self._connected.set()

    async def wait_until_connected(self) -> None:
        """Wait for a lost connection to come back, not for long: a request would be sent late to a worker."""
        try:
            await asyncio.wait_for(self._connected.wait(), CONNECT_TIMEOUT)
        except TimeoutError as error:
            raise self._unavailable(error) from error

    async def _report(self, error: Exception) -> None:
        self._latest_error = str(error) or type(error).__name__
        log.debug("%s: %s", self.address, self._latest_error)
        if isinstance(error, ssl.SSLError) and not self._connected.is_set() and not self.client.is_reconnecting:
            raise error  # out of `connect`, which would hang

    async def _disconnected(self) -> None:
        self._connected.clear()
        self.came_back = math.inf
        log.debug("%s: disconnected", self.address)

    async def _reconnected(self) -> None:
        log.debug("%s: connected again", self.address)
        self.came_back = asyncio.get_running_loop().time()
        self._connected.set()

    def _unavailable(self, error: Exception) -> NatsUnavailableError:
        reason = self._latest_error or str(error) or type(error).__name__
        return NatsUnavailableError(f"cannot connect to NATS at {self.address}: {reason}")


async def _opened(address: NatsAddress) -> _Connection:
    connection = _Connection(address)
    await connection.open()
    return connection


_connections: Final = PerLoop(_opened, lambda connection: connection.client.close())


def _imported_client() -> type[Client]:
    with from_extra("nats", "NATS"), no_fork:
        from nats.aio.client import Client
    connect_command = Client._connect_command  # fails here if another nats-py has none

    class CarefulClient(Client):
        """Refuses plain-text servers for `tls://` addresses; nats-py would send its credentials first."""

        def _connect_command(self) -> bytes:
            # The first message of every connection, and the one with the credentials. TLS has started by now, or never.
            server, transport = self._current_server, self._transport
            assert server, "it is connected"
            assert transport, "it is connected"
            if server.uri.scheme == "tls" and not self._server_info.get("tls_required"):
                transport.close()  # type: ignore[no-untyped-call]
                raise NatsUnavailableError("the server does not offer TLS, which `tls://` asks for")
            # nats-py makes the reader of a TLS connection like any other, so asyncio would warn at the end of each.
            writer = getattr(transport, "_io_writer", None)
            if writer is not None and writer.get_extra_info("sslcontext") is not None:
                writer.transport.get_protocol()._over_ssl = True
            return connect_command(self)

    return CarefulClient


def _credential_options(path: str | None) -> dict[str, Any]:
    """Return the options of nats-py for a file with credentials. It reads the file for each connection."""
    if path is None:
        return {}
    try:
        text = Path(path).read_text()
    except (OSError, ValueError) as error:
        raise NatsUnavailableError(f"the credentials for NATS cannot be read: {error}") from error
    if "BEGIN NATS USER JWT" in text and "BEGIN USER NKEY SEED" in text:
        return {"user_credentials": path}
    if text.strip().startswith("SU"):
        return {"nkeys_seed": path}
    raise NatsUnavailableError(f"{path} contains neither credentials of a NATS user nor the seed of an NKey")
