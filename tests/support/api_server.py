"""A server on this machine that speaks Chat Completions, Responses and Messages, and records what it is asked."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from llxprt_hooks.model import resolve_translator

TRANSLATORS = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/messages": "anthropic-messages",
    ":rawPredict": "anthropic-messages",
    ":streamRawPredict": "anthropic-messages",
}
ENCODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@dataclass
class Call:
    """A call of a tool in the model's answer."""

    name: str
    arguments: dict[str, Any]
    number: int = 0
    """Of all calls that the server has been told to make: programs drop a call whose id they know already."""


@dataclass
class Reply:
    """How the server answers one request. ``cut`` ends the body after so many bytes, as if it was complete."""

    answer: str | list[Call] = "the model's answer"
    status: int = 200
    encoding: str = ""
    cut: int | None = None
    drop: bool = False
    """Close the connection in the middle of the body."""
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


class APIServer:
    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.sent: list[bytes] = []
        self.paths: list[str] = []
        self.pieces = False
        """Stream texts in one piece per word."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet for head and body: no delayed acknowledgement

            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers["content-length"])))

            def _answer(self, body: bytes) -> None:
                server.bodies.append(body)
                server.paths.append(self.path)
                request = json.loads(body or b"{}")
                server.requests.append(request)
                reply = server.replies.pop(0) if server.replies else Reply()
                kind, content = _content(self.path.partition("?")[0], request, reply)
                if server.pieces and kind == "text/event-stream":
                    content = b"".join(map(_in_pieces, content.splitlines(keepends=True)))
                content = ENCODERS.get(reply.encoding, bytes)(content)
                self.send_response(reply.status)
                self.send_header("content-type", kind)
                self.send_header("x-request-id", "request-1")
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.encoding:
                    self.send_header("content-encoding", reply.encoding)
                shown = content[: reply.cut]
                length = len(content) if reply.drop else len(shown)
                self.send_header("content-length", str(length))
                self.end_headers()
                server.sent.append(shown)
                self.wfile.write(shown)
                if reply.drop:
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def will_say(self, *replies: Reply | str | list[Call]) -> None:
        """Set the answers to the next requests."""
        self.replies = [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]
        answers = [reply.answer for reply in self.replies if not isinstance(reply.answer, str)]
        for number, call in enumerate(call for answer in answers for call in answer):
            call.number = number

    @contextmanager
    def running(self) -> Iterator[APIServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()


def _content(path: str, request: dict[str, Any], reply: Reply) -> tuple[str, bytes]:
    if reply.body is not None:
        return "text/event-stream" if reply.body.startswith(b"event: ") else "application/json", reply.body
    if reply.status != 200:
        return "application/json", json.dumps({"error": {"message": "sorry", "type": "overloaded_error"}}).encode()
    name = next((name for end, name in TRANSLATORS.items() if path.endswith(end)), None)
    if name is None:
        return "application/json", json.dumps({"object": "list", "data": [], "model": "e", "input_tokens": 7}).encode()
    translator = resolve_translator(name)
    assert translator.wire is not None
    response = {**(translator.blank_response(request) or {}), **ANSWERS[name](reply.answer)}
    if request.get("stream"):
        return "text/event-stream", b"".join(translator.wire.write(response, request))
    return "application/json", json.dumps(response).encode()


def _in_pieces(line: bytes) -> bytes:
    """Return a line of a stream; one with text as several, one for each word."""
    data = json.loads(line[6:]) if line.startswith(b"data: {") else {}
    choices = data.get("choices") or [{}]
    delta = choices[0].get("delta") or data.get("delta")
    texts = (delta.get("content") or delta.get("text")) if isinstance(delta, dict) else delta
    if not texts or data.get("type") == "response.function_call_arguments.delta":
        return line
    encoded = json.dumps(texts)[1:-1].encode()
    event = f"event: {data['type']}\n".encode() if "type" in data else b""
    words = [word + b" " for word in encoded.split(b" ")]
    words[-1] = words[-1][:-1]
    return (b"\n" + event).join(line.replace(encoded, word) for word in words)


def _chat(answer: str | list[Call]) -> dict[str, Any]:
    if isinstance(answer, str):
        message: dict[str, Any] = {"role": "assistant", "content": answer}
    else:
        calls = [
            {
                "id": f"call_{call.number}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in answer
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    reason = "stop" if isinstance(answer, str) else "tool_calls"
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def _responses(answer: str | list[Call]) -> dict[str, Any]:
    if isinstance(answer, str):
        part = {"type": "output_text", "text": answer, "annotations": [], "logprobs": []}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        return {"id": "resp_1", "output": [item], "status": "completed"}
    calls = [
        {
            "id": f"fc_{call.number}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{call.number}",
            "name": call.name,
            "arguments": json.dumps(call.arguments),
        }
        for call in answer
    ]
    return {"id": "resp_1", "output": calls, "status": "completed"}


def _messages(answer: str | list[Call]) -> dict[str, Any]:
    if isinstance(answer, str):
        content: list[dict[str, Any]] = [{"type": "text", "text": answer}]
    else:
        content = [
            {"type": "tool_use", "id": f"call_{call.number}", "name": call.name, "input": call.arguments}
            for call in answer
        ]
    reason = "end_turn" if isinstance(answer, str) else "tool_use"
    return {"id": "msg_1", "content": content, "stop_reason": reason, "stop_sequence": None}


ANSWERS = {"openai-chat": _chat, "openai-responses": _responses, "anthropic-messages": _messages}
