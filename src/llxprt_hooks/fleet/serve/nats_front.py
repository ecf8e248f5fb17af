"""A worker's side of NATS: requests of a subject, of which each goes to one worker of the queue group."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine.bus_connection import response_to
from llxprt_hooks.core.engine.messages import (
    HookExecutionFailure,
    HookExecutionResponse,
    decode_message,
    encode_message,
    read_request,
)
from llxprt_hooks.core.protocol.headers import HOPS_HEADER, TIMEOUT_HEADER
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client
from llxprt_hooks.fleet.nats_subscription import NatsSubscription

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from llxprt_hooks.fleet.serve.worker import PolicyWorker

log = debug_logger("bus")

_CLOSE_TIMEOUT: Final = 5.0
"""Seconds for the server to take the last answers."""


class NatsFront:
    """Takes requests from a subject and answers them."""

    def __init__(self, worker: PolicyWorker, address: NatsAddress, subject: str) -> None:
        self.address = address
        self.subject = subject
        self._worker = worker
        self._subscription = NatsSubscription(partial(open_nats_client, address), subject, self._receive)

    @property
    def is_connected(self) -> bool:
        return self._subscription.is_active

    async def start(self) -> None:
        """Start serving. Raises ``NatsUnavailableError`` if no server accepts the subscription."""
        await self._subscription.open()

    async def drain(self) -> None:
        """Take no new requests, and answer those that have come."""
        await self._subscription.drain()
        if self._subscription.receiving:
            await asyncio.wait(self._subscription.receiving)
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._subscription.client.flush()
                await self._subscription.client.close()
        except Exception as error:
            log.warning("%s: the last answers may not have been sent: %s", self.address, error)

    async def _receive(self, message: Msg) -> None:
        if not message.reply:
            log.warning("%s: a request without a reply subject is ignored", self.subject)
            return
        data = await self._response(message)
        try:
            # Not with `message.respond`: its client may have been closed since, and another one opened.
            await self._subscription.client.publish(message.reply, data)
        except Exception as error:
            log.warning("%s: an answer could not be sent: %s", self.subject, error)

    async def _response(self, message: Msg) -> bytes:
        try:
            request = decode_message(message.data)
        except ValueError as error:
            return _failure("", "bad_message", str(error))
        headers = message.headers or {}
        fire = partial(self._worker.fire, hops=headers.get(HOPS_HEADER), patience=headers.get(TIMEOUT_HEADER))
        response = encode_message(await response_to(request, fire))
        limit = self._subscription.client.max_payload
        if len(response) > limit:
            words = f"the answer has {len(response)} bytes, more than NATS allows here ({limit})"
            return _failure(read_request(request).correlation_id, "response_too_large", words)
        return response


def _failure(correlation_id: str, code: str, message: str) -> bytes:
    return encode_message(HookExecutionResponse(correlation_id, False, error=HookExecutionFailure(code, message)))
