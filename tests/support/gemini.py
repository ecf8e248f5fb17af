"""The Gemini API on a loopback socket: it says what it was told to say, keeps what it was sent, and can fail."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

Chunks = list[dict[str, Any]]


class End(StrEnum):
    """How the answer to a request ends."""

    COMPLETE = "complete"
    """As HTTP has it. Chunks without a finish reason then look like an orderly, but early end."""
    TORN = "torn"
    """The connection is closed in the middle of the body."""
    RESET = "reset"
    """The connection is reset in the middle of the body."""
    HELD = "held"
    """Nothing more comes until the client goes."""


@dataclass(frozen=True)
class Reply:
    """What the server does with one request."""

    chunks: Sequence[dict[str, Any] | str] = ()
    """In the API's JSON, or a text that is sent as it is."""
    end: End = End.COMPLETE
    status: int = 200
    body: bytes = b""
    """Sent in place of the chunks where the status is an error."""


def answer(*pieces: str | dict[str, Any] | list[dict[str, Any]], tokens: tuple[int, int] = (7, 3)) -> Chunks:
    """A complete answer, streamed in a chunk a piece: a text, a part, or several parts."""
    chunks = unfinished(*pieces)
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    prompt, candidates = tokens
    chunks[-1]["usageMetadata"] = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": candidates,
        "totalTokenCount": prompt + candidates,
    }
    return chunks


def unfinished(*pieces: str | dict[str, Any] | list[dict[str, Any]]) -> Chunks:
    """The beginning of an answer, whose end never came."""
    return [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": _parts(piece)}}], "modelVersion": "test-1"}
        for piece in pieces
    ]


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A part in which the model calls a tool."""
    return {"functionCall": {"name": tool, "args": args}}


def refusal(status: int, message: str, name: str) -> Reply:
    """An error as the Gemini API words it."""
    body = json.dumps({"error": {"code": status, "message": message, "status": name}})
    return Reply(status=status, body=body.encode())


@dataclass(frozen=True)
class Received:
    """One request that reached the server."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def contents(self) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = self.body["contents"]
        return contents

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Role and text of every text part, in order."""
        return [
            (content["role"], part["text"]) for content in self.contents for part in content["parts"] if "text" in part
        ]

    @property
    def results(self) -> list[dict[str, Any]]:
        """The function responses of the last content, in order."""
        return [part["functionResponse"] for part in self.contents[-1]["parts"] if "functionResponse" in part]

    @property
    def calling(self) -> dict[str, Any] | None:
        """The function calling configuration."""
        tool_config = self.body.get("toolConfig")
        return tool_config["functionCallingConfig"] if tool_config else None

    @property
    def tools(self) -> set[str]:
        """The names of all declared tools."""
        return {each["name"] for tool in self.body["tools"] for each in tool["functionDeclarations"]}


class Gemini:
    """A server that is up; ``requests`` are those that it has received so far."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = list(replies)
        self._server = _Server(self)
        self._lock = threading.Lock()
        self.requests: list[Received] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def used(self) -> tuple[list[Received], int]:
        """What was received, and how many replies nobody asked for."""
        return list(self.requests), len(self._replies)

    def take(self, received: Received) -> Reply:
        with self._lock:
            self.requests.append(received)
            if self._replies:
                return self._replies.pop(0)
        return refusal(400, "the test has planned no reply to this request", "INVALID_ARGUMENT")

    @contextmanager
    def running(self) -> Iterator[Gemini]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, gemini: Gemini) -> None:
        self.gemini = gemini
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    _ENDS: ClassVar[dict[End, str]] = {
        End.COMPLETE: "_complete",
        End.TORN: "_tear",
        End.RESET: "_reset",
        End.HELD: "_hold",
    }

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.gemini.take(Received(self.path, dict(self.headers), body))
        if reply.status != 200:
            self._refuse(reply)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in reply.chunks:
            data = chunk if isinstance(chunk, str) else json.dumps(chunk)
            self._send(f"data: {data}\r\n\r\n".encode())
        getattr(self, self._ENDS[reply.end])()

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""

    def _refuse(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def _send(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _complete(self) -> None:
        self._send(b"")

    def _tear(self) -> None:
        self.close_connection = True

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _hold(self) -> None:
        self.connection.recv(1)  # comes back when the client has gone
        self.close_connection = True


def _parts(piece: str | dict[str, Any] | list[dict[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(piece, str):
        return [{"text": piece}]
    return piece if isinstance(piece, list) else [piece]
