"""A worker's side of NATS: requests of a subject, of which each goes to one worker of the queue group."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from llxprt_hooks.bus.hops import HEADER
from llxprt_hooks.bus.messages import (
    HookExecutionFailure,
    HookExecutionResponse,
    decode_message,
    encode_message,
    read_request,
)
from llxprt_hooks.bus.nats_connection import QUEUE_GROUP, NatsAddress, open_nats_client
from llxprt_hooks.engine.bus_connection import response_to
from llxprt_hooks.logger import debug_logger

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from llxprt_hooks.serve.worker import PolicyWorker

log = debug_logger("bus")

_DRAIN_TIMEOUT: Final = 5.0
"""Seconds for the server to confirm that no more requests come."""


class NatsFront:
    """Takes requests from a subject and answers them."""

    _client: Client
    _subscription: Subscription

    def __init__(self, worker: PolicyWorker, address: NatsAddress, subject: str) -> None:
        self.address = address
        self.subject = subject
        self._worker = worker
        self._answering: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Take requests from now on. Raises ``NatsUnavailableError`` if there is no server."""
        self._client = await open_nats_client(self.address)
        self._subscription = await self._client.subscribe(self.subject, QUEUE_GROUP, cb=self._receive)
        await self._client.flush()

    async def drain(self) -> None:
        """Take no new requests, and answer those that have come."""
        try:
            async with asyncio.timeout(_DRAIN_TIMEOUT):
                await self._subscription.drain()  # type: ignore[no-untyped-call]
        except Exception as error:  # without a connection, no new ones come either
            log.debug("%s: the subscription could not be ended: %s", self.address, error)
        if self._answering:
            await asyncio.wait(self._answering)
        try:
            async with asyncio.timeout(_DRAIN_TIMEOUT):
                await self._client.flush()
                await self._client.close()
        except Exception as error:
            log.warning("%s: the last answers may not have been sent: %s", self.address, error)

    async def _receive(self, message: Msg) -> None:
        if not message.reply:
            log.warning("%s: a request without a reply subject is ignored", self.subject)
            return
        answering = asyncio.create_task(self._answer(message))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)

    async def _answer(self, message: Msg) -> None:
        data = await self._response(message)
        try:
            await message.respond(data)
        except Exception as error:
            log.warning("%s: an answer could not be sent: %s", self.subject, error)

    async def _response(self, message: Msg) -> bytes:
        try:
            request = decode_message(message.data)
        except ValueError as error:
            return _failure("", "bad_message", str(error))
        fire = partial(self._worker.fire, hops=(message.headers or {}).get(HEADER))
        response = encode_message(await response_to(request, fire))
        if len(response) > self._client.max_payload:
            words = f"the answer has {len(response)} bytes, more than NATS allows here ({self._client.max_payload})"
            return _failure(read_request(request).correlation_id, "response_too_large", words)
        return response


def _failure(correlation_id: str, code: str, message: str) -> bytes:
    return encode_message(HookExecutionResponse(correlation_id, False, error=HookExecutionFailure(code, message)))
