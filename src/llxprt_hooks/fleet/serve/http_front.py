"""A worker's side of HTTP: ``POST /v1/events``, ``GET /healthz``, ``GET /metrics``."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from llxprt_hooks._support.http_server import LOOPBACK_NAMES, Server, is_own_host, is_own_origin
from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks.core.engine.results import AggregatedHookResult, HookStageError, is_refusal
from llxprt_hooks.core.protocol.headers import HOPS_HEADER, TIMEOUT_HEADER
from llxprt_hooks.fleet.serve.worker import MAX_MESSAGE, PolicyWorker

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from llxprt_hooks.fleet.serve.nats_front import NatsFront

MAX_CONNECTIONS: Final = 2048
"""At once, the idle ones too. The requests of more are refused."""

MAX_BYTES: Final = 128 * 1024 * 1024
"""Of all payloads that are being read or wait for their hooks."""

BODY_SECONDS: Final = 10.0
"""For a payload to arrive."""

_DRAIN_SECONDS: Final = 2.0
"""For payloads to arrive and for answers to be taken, while the worker drains."""

_KEEP_SECONDS: Final = 75
"""For an idle connection. Clients close theirs earlier, so that no request is sent on one that this side is closing."""

_CLOSE: Final = {"Connection": "close"}
"""For answers that need no token: an idle connection would take a place."""

_STATUSES: Final[Mapping[str, int]] = {
    "validation": 400,
    "unsupported_event": 400,
    "translation": 400,
    "overloaded": 503,
    "disabled": 503,
    "expired": 504,
    "loop": 508,
}
"""The status for the stage that failed; 500 for any other."""


class HttpFront:
    """Serves a worker on a socket that listens already."""

    def __init__(
        self,
        worker: PolicyWorker,
        listener: socket.socket,
        *,
        nats: NatsFront | None = None,
        token: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        self._worker = worker
        self._listener = listener
        self._nats = nats
        self._token = token
        self._names = {*LOOPBACK_NAMES, listener.getsockname()[0]}
        self._is_draining = False
        self._in_progress = 0
        self._bytes = 0
        self._reading: set[asyncio.Timeout] = set()
        self._routes = Starlette(
            routes=[
                Route("/v1/events", self._events, methods=["POST"]),
                Route("/healthz", self._health),
                Route("/metrics", self._metrics),
            ]
        )
        self._server = Server(
            self._answer,
            interface="asgi3",
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=_KEEP_SECONDS,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )

    async def serve(self) -> None:
        """Answer requests until ``drain``, and those that have come by then."""
        await self._server.serve(sockets=[self._listener])

    def drain(self) -> None:
        """Take no new requests, and do not wait long for the payloads of those that have come."""
        self._is_draining = True
        self._server.should_exit = True
        soon = asyncio.get_running_loop().time() + _DRAIN_SECONDS
        for reading in self._reading:
            if not reading.expired():
                reading.reschedule(min(reading.when() or soon, soon))

    async def drained(self, serving: asyncio.Task[None]) -> None:
        """Wait until ``serve`` has ended. A client that does not take its answer is not waited for."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _DRAIN_SECONDS
        while not serving.done() and loop.time() < end:
            await asyncio.wait((serving,), timeout=0.1)
            if self._in_progress:
                end = loop.time() + _DRAIN_SECONDS
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await serving

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer permitted requests, and questions about the worker's health."""
        if scope["type"] != "http":
            return
        refused = None if scope["path"] == "/healthz" else self._refusal(Request(scope))
        await (refused or self._routes)(scope, receive, send)

    async def _health(self, request: Request) -> Response:
        words, status = "ok", 200
        if self._is_draining:
            words, status = "draining", 503
        elif self._nats is not None and not self._nats.is_connected:
            words, status = "not connected to NATS", 503
        elif self._worker.metrics.canary:
            words, status = self._worker.metrics.canary, 503
        return PlainTextResponse(f"{words}\n", status, _CLOSE)

    async def _metrics(self, request: Request) -> Response:
        return PlainTextResponse(self._worker.metrics.text(), media_type="text/plain; version=0.0.4")

    async def _events(self, request: Request) -> Response:
        # A page in a browser cannot send this type to another site without asking it first.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refused(415, "bad_message", "expected the content type application/json")
        body = bytearray()
        self._in_progress += 1
        try:
            return await self._read(request, body) or await self._fire(request, body)
        finally:
            self._in_progress -= 1
            self._bytes -= len(body)

    async def _read(self, request: Request, body: bytearray) -> Response | None:
        """Read the payload of a request. Returns the answer if that fails."""
        reading = asyncio.timeout(_DRAIN_SECONDS if self._is_draining else BODY_SECONDS)
        self._reading.add(reading)
        try:
            async with reading:
                async for chunk in request.stream():
                    body += chunk
                    self._bytes += len(chunk)
                    if len(body) > MAX_MESSAGE:
                        return _refused(413, "bad_message", f"the payload is larger than {MAX_MESSAGE} bytes")
                    if self._bytes > MAX_BYTES:
                        return _refused(503, "overloaded", f"all payloads together have more than {MAX_BYTES} bytes")
        except TimeoutError:
            return _refused(408, "bad_message", "the payload did not arrive in time", **_CLOSE)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody gets it
        finally:
            self._reading.discard(reading)
        return None

    async def _fire(self, request: Request, body: bytearray) -> Response:
        try:
            payload = read_json(bytes(body))
        except ValueError as error:
            return _refused(400, "bad_message", f"the payload is not valid JSON: {error}")
        if not isinstance(payload, dict):
            return _refused(400, "bad_message", "the payload must be an object")
        event_name, headers = payload.get("hook_event_name"), request.headers
        result = await self._worker.fire(event_name, payload, headers.get(HOPS_HEADER), headers.get(TIMEOUT_HEADER))
        return _answer(result)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to somebody who may not ask; they do not keep a place, either.

        Without a token, only this machine can reach the worker, but so can every web page in a browser on it.
        """
        headers = request.headers
        if self._token is not None:
            given = headers.get("authorization", "")
            if hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                return None
            return _refused(401, "unauthorized", "the token is missing or wrong", **_CLOSE)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_own_host(host, self._names):
            message = "the host is not a name of this worker: ask it at 127.0.0.1, or start it with --token-env"
            return _refused(403, "forbidden", message, **_CLOSE)
        if origin and not is_own_origin(origin, host):
            return _refused(403, "forbidden", "cross-origin browser requests are not allowed", **_CLOSE)
        return None


def _answer(result: AggregatedHookResult) -> Response:
    """Return the final output, no content for no opinion, or why there is no decision.

    Beside the failure of a hook, only an output that blocks or stops is a decision: the failed one may be the guard.
    """
    output = result.final_output
    if output is not None and (not result.errors or is_refusal(output)):
        return Response(write_json(output.to_dict()), media_type="application/json")
    if not result.errors:
        return Response(status_code=204)
    error = next((each for each in result.errors if isinstance(each, HookStageError)), result.errors[0])
    code = error.stage if isinstance(error, HookStageError) else "hook_failed"
    return _refused(_STATUSES.get(code, 500), code, str(error))


def _refused(status: int, code: str, message: str, **headers: str) -> Response:
    headers |= {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status, {})
    content: dict[str, Any] = {"error": {"code": code, "message": message}}
    return JSONResponse(content, status, headers)
