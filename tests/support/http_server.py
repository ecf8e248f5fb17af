"""A real HTTP server for hooks of type ``http``: it answers as a test says, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What the server sends back."""

    body: bytes | str | dict[str, Any] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    declared_length: int | None = None
    """The length in the header, if it is not that of the body."""

    @property
    def data(self) -> bytes:
        if isinstance(self.body, dict):
            return json.dumps(self.body).encode()
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    port: int
    """The port of the client: the same for requests on one connection."""

    @property
    def payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = json.loads(self.body)
        return payload


class HookServer:
    """Answers every POST with ``answer``, or with what it returns for a request."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer: Answer | Callable[[Received], Answer] = Answer()
        self.received: list[Received] = []
        self.disconnected = threading.Event()
        """Set when a client went away before it had the whole answer."""


@contextmanager
def hook_server() -> Iterator[HookServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.path, headers, body, self.client_address[1])
            hooks.received.append(request)
            answer = hooks.answer(request) if callable(hooks.answer) else hooks.answer
            try:
                self._send(answer)
            except OSError:
                hooks.disconnected.set()
                self.close_connection = True

        def _send(self, answer: Answer) -> None:
            data = answer.data
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            length = len(data) if answer.declared_length is None else answer.declared_length
            self.send_header("content-length", str(length))
            deadline = time.monotonic() + answer.delay
            while time.monotonic() < deadline:
                time.sleep(0.02)
                self.connection.setblocking(False)
                try:
                    if self.connection.recv(1) == b"":
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                finally:
                    self.connection.setblocking(True)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    hooks = HookServer(f"http://127.0.0.1:{server.server_address[1]}/policy")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hooks
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
