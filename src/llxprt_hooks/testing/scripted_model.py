"""A model on this machine that calls tools by a script, over the APIs of OpenAI, Anthropic and Gemini."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple

from llxprt_hooks.testing.model_apis import Call, Json, api_of, arguments, continued, is_streamed, turns, written


class Moment(NamedTuple):
    """Where a conversation is when the model answers."""

    turn: int
    """How often the model has called tools in it."""
    offered: Sequence[str]
    """The tools that it may call."""
    called: Sequence[str]
    """The tools that it has called so far, in all conversations of the dialogue."""


Step = Callable[[Moment], Sequence[str]]
"""The tools that the model calls next."""


class Request(NamedTuple):
    """What the agent asked the model."""

    body: str
    is_streamed: bool


class Dialogue(NamedTuple):
    """What a model and an agent said to each other."""

    turns: list[list[Call]]
    """The calls in each answer that has any."""
    results: dict[str, str]
    """What the agent sent back, by the id of the call."""
    requests: list[Request]
    offered: Json
    """The tools that it offered, each with the JSON Schema of its arguments."""

    @property
    def calls(self) -> list[Call]:
        return [call for calls in self.turns for call in calls]


class ScriptedModel:
    """Answers each request with the calls of a script, and then with a text."""

    def __init__(self) -> None:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send("application/json", b'{"object": "list", "data": [], "models": []}')

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                self._send(*model._answer(self.path.partition("?")[0], body))

            def _send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._lock = threading.Lock()
        self._numbers = count(1)
        self.play(lambda moment: ())

    def play(self, step: Step, *, text: str = "", arguments: Json | None = None) -> Dialogue:
        """Begin a new dialogue, in which the model follows a script, with a text before each call and these arguments
        in it, beside those that it must have."""
        with self._lock:
            self._step, self._text, self._arguments = step, text, arguments or {}
            self._known: dict[str, tuple[int, Json]] = {}
            """By the id of an answer, for requests that continue there: its turn, and the tools that were offered."""
            self._dialogue = Dialogue([], {}, [], {})
            return self._dialogue

    @contextmanager
    def running(self) -> Iterator[ScriptedModel]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()

    def _answer(self, path: str, body: bytes) -> tuple[str, bytes]:
        api = api_of(path)
        try:
            request: Json = json.loads(body or b"{}")
        except ValueError:
            request = {}
        if api is None or not isinstance(request, dict):
            return "application/json", b'{"object": "list", "data": [], "input_tokens": 1, "totalTokens": 1}'
        with self._lock:
            dialogue = self._dialogue
            dialogue.requests.append(Request(body.decode("utf-8", "replace"), is_streamed(path, request)))
            dialogue.results.update({result.id: result.text for result in api.results(request)})
            turn, schemas = self._known.get(continued(request), (0, {}))
            turn, schemas = turn + turns(request), dict(api.tools(request)) or schemas
            dialogue.offered.update(schemas)
            moment = Moment(turn, list(schemas), [call.name for call in dialogue.calls])
            calls = [
                Call(f"call_{next(self._numbers)}", name, {**arguments(schemas[name]), **self._arguments})
                for name in self._step(moment)
                if name in schemas
            ]
            if calls:
                dialogue.turns.append(calls)
            response = api.answer(self._text if calls else "done", calls)
            response["id"] = f"resp_{next(self._numbers)}"
            self._known[response["id"]] = turn + bool(calls), schemas
        return written(api, path, request, response)
