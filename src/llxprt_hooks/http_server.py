"""An HTTP server inside of another program: it logs nothing, and leaves signals to that program."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


class Server(uvicorn.Server):
    """A server for an ASGI application; ``options`` are those of uvicorn."""

    def __init__(self, application: Any, **options: Any) -> None:
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            **options,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """Open a port; 0 is any free one. Raises ``OSError``."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening
