"""A share of the requests on a subject, for as long as it is wanted.

nats-py subscribes again when a lost connection comes back, but not after a refusal: an error such as ``Authorization
Violation`` closes the client for good, and a subject that its user may no longer subscribe to becomes silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.fleet.nats_connection import QUEUE_GROUP, NatsUnavailableError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = debug_logger("bus")

_CHECK_SECONDS: Final = 0.5
"""Between two looks at the connection."""
_MAX_PAUSE: Final = 8.0
"""Seconds between two attempts to subscribe again."""
_DRAIN_TIMEOUT: Final = 5.0
"""Seconds for the server to confirm that no more requests come."""


class NatsSubscription:
    """Calls ``receive`` with each request, in a task, from ``open`` until ``close`` or ``drain``.

    ``connect`` returns a client.
    """

    client: Client

    def __init__(
        self,
        connect: Callable[[], Awaitable[Client]],
        subject: str,
        receive: Callable[[Msg], Coroutine[Any, Any, None]],
    ) -> None:
        self._connect = connect
        self._subject = subject
        self._receive = receive
        self._subscription: Subscription | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._error_before: Exception | None = None
        self.receiving: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Subscribe. Raises ``NatsUnavailableError`` without a server, and if the user may not subscribe."""
        self.client = await self._connect()
        try:
            await self._subscribe()
        except BaseException:
            await self.close()
            raise
        self._keeping = asyncio.create_task(self._keep())

    @property
    def is_active(self) -> bool:
        """Whether requests arrive."""
        return self._is_subscribed() and self.client.is_connected

    async def close(self) -> None:
        """Take no new requests. Those that wait in the client are dropped."""
        self._stop_keeping()
        if self._subscription is not None:
            with suppress(Exception):  # without a connection, or the second time
                await self._subscription.unsubscribe()

    async def drain(self) -> None:
        """Take no new requests, and call ``receive`` with those that have come."""
        self._stop_keeping()
        if self._subscription is None:
            return
        try:
            async with asyncio.timeout(_DRAIN_TIMEOUT):
                # The PING of `drain` may overtake its UNSUB, and a request that comes in between would be dropped.
                await self.client._send_unsubscribe(self._subscription._id)
                await self.client.flush()
                await self._subscription.drain()  # type: ignore[no-untyped-call]
        except Exception as error:  # without a connection, no new ones come either
            log.debug("%s: the subscription could not be ended: %s", self._subject, error)

    def _stop_keeping(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()

    async def _subscribe(self) -> None:
        self._error_before = self.client.last_error
        self._subscription = None
        self._subscription = await self.client.subscribe(self._subject, QUEUE_GROUP, cb=self._receive_in_task)
        # The first PING of nats-py may overtake the subscription. A refusal comes before the answer to the second.
        await self.client.flush()
        await self.client.flush()
        if self._is_refused():
            raise NatsUnavailableError(f"NATS does not allow this user to subscribe to `{self._subject}`")

    async def _receive_in_task(self, message: Msg) -> None:
        task = asyncio.create_task(self._receive(message))
        self.receiving.add(task)
        task.add_done_callback(self.receiving.discard)

    def _is_subscribed(self) -> bool:
        """Whether requests arrive, now or when a lost connection comes back."""
        return self._subscription is not None and not self.client.is_closed and not self._is_refused()

    def _is_refused(self) -> bool:
        error = self.client.last_error
        words = f'permissions violation for subscription to "{self._subject.lower()}"'
        return error is not self._error_before and words in str(error).lower()

    async def _keep(self) -> None:
        pause = _CHECK_SECONDS
        while True:
            await asyncio.sleep(pause)
            if self._is_subscribed():
                pause = _CHECK_SECONDS
                continue
            try:
                await self._subscribe_again()
                log.warning("%s: subscribed again", self._subject)
            except Exception as error:
                pause = min(2 * pause, _MAX_PAUSE)
                log.warning("%s: no requests arrive; trying again in %g s: %s", self._subject, pause, error)

    async def _subscribe_again(self) -> None:
        if self.client.is_closed:
            self.client = await self._connect()
        elif self._subscription is not None:
            with suppress(Exception):
                await self._subscription.unsubscribe()
        await self._subscribe()
