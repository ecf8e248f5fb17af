"""A worker's side of HTTP: ``POST /v1/events``, ``GET /healthz``, ``GET /metrics``."""

from __future__ import annotations

import contextlib
import hmac
import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from llxprt_hooks.bus.hops import HEADER
from llxprt_hooks.engine.results import AggregatedHookResult, HookStageError, is_refusal
from llxprt_hooks.protocol.json_codec import read_json, write_json
from llxprt_hooks.serve.worker import LARGEST_MESSAGE

if TYPE_CHECKING:
    from starlette.requests import Request

    from llxprt_hooks.serve.worker import PolicyWorker

_STATUSES: Final[Mapping[str, int]] = {
    "validation": 400,
    "unsupported_event": 400,
    "translation": 400,
    "overloaded": 503,
    "disabled": 503,
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
        token: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        self._worker = worker
        self._listener = listener
        self._token = token
        self._is_draining = False
        config = uvicorn.Config(
            Starlette(
                routes=[
                    Route("/v1/events", self._events, methods=["POST"]),
                    Route("/healthz", self._health),
                    Route("/metrics", self._metrics),
                ]
            ),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._server = _Server(config)

    async def serve(self) -> None:
        """Answer requests until ``drain``, and those that have come by then."""
        await self._server.serve(sockets=[self._listener])

    def drain(self) -> None:
        """Take no new requests."""
        self._is_draining = True
        self._server.should_exit = True

    async def _health(self, request: Request) -> Response:
        return PlainTextResponse("draining\n" if self._is_draining else "ok\n", 503 if self._is_draining else 200)

    async def _metrics(self, request: Request) -> Response:
        if not self._may(request):
            return _refused(401, "unauthorized", "the token is missing or wrong")
        return PlainTextResponse(self._worker.metrics.text(), media_type="text/plain; version=0.0.4")

    async def _events(self, request: Request) -> Response:
        if not self._may(request):
            return _refused(401, "unauthorized", "the token is missing or wrong")
        # A page in a browser cannot send this type to another site without asking it first.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refused(415, "bad_message", "expected the content type application/json")
        body = await _body(request)
        if body is None:
            return _refused(413, "bad_message", f"the payload is larger than {LARGEST_MESSAGE} bytes")
        try:
            payload = read_json(body)
        except ValueError as error:
            return _refused(400, "bad_message", f"the payload is not valid JSON: {error}")
        if not isinstance(payload, dict):
            return _refused(400, "bad_message", "the payload must be an object")
        event_name = payload.get("hook_event_name")
        return _answer(await self._worker.fire(event_name, payload, request.headers.get(HEADER)))

    def _may(self, request: Request) -> bool:
        if self._token is None:
            return True
        given = request.headers.get("authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode())


class _Server(uvicorn.Server):
    """A server that leaves signals to the worker."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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


def _refused(status: int, code: str, message: str) -> Response:
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    content: dict[str, Any] = {"error": {"code": code, "message": message}}
    return JSONResponse(content, status, headers)


async def _body(request: Request) -> bytes | None:
    """Return the body; None if it is too large."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > LARGEST_MESSAGE:
            return None
        chunks.append(chunk)
    return b"".join(chunks)
