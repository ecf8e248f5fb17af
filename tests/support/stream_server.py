"""Servers on the event loop of a test, which leave no socket open when they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def stream_server(handle: Handler, path: Path | None = None, *, port: int = 0) -> AsyncIterator[int]:
    """Serve each connection on a local port, which is yielded, or on a Unix socket. At the end, wait for all of them.

    ``Server.wait_closed`` does not wait for connections before Python 3.12. A socket that is still open when the loop
    ends is collected as garbage in some later test, and fails that test.
    """
    connections: dict[asyncio.StreamWriter, asyncio.Future[None]] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections[writer] = asyncio.ensure_future(handle(reader, writer))

    if path:
        server = await asyncio.start_unix_server(accept, path)
    else:
        server = await asyncio.start_server(accept, "127.0.0.1", port)
    try:
        yield 0 if path else server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for _ in range(20):  # one that was just accepted is not known yet
            await asyncio.sleep(0)
        for writer in connections:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        await asyncio.gather(*connections.values(), return_exceptions=True)
