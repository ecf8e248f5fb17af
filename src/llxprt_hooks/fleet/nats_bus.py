"""A message bus over NATS. It uses the subject of NATS hooks and policy workers, so each can answer the other."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine.in_process_bus import deliver
from llxprt_hooks.core.engine.messages import (
    HookExecutionFailure,
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
    decode_message,
    encode_message,
    message_channel,
    message_correlation_id,
    read_request,
    read_response,
)
from llxprt_hooks.fleet.nats_connection import (
    DEFAULT_SUBJECT,
    NatsAddress,
    NatsUnavailableError,
    nats_client,
    subject_problem,
    workers_may_return,
)
from llxprt_hooks.fleet.nats_subscription import NatsSubscription
from llxprt_hooks.settings.nats_address import server_problem

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from llxprt_hooks.core.engine.messages import Message, Subscriber

log = debug_logger("bus")

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds."""


class NatsMessageBus:
    """Carries hook requests to one subscriber of a subject, on any machine, and its response back.

    ``publish`` of a request returns when the subscribers of this bus have the response. If there is none in time, or
    nobody listens, they get one with an ``error``. The bus belongs to the event loop that it is used on.
    """

    def __init__(
        self,
        servers: str | Iterable[str],
        *,
        subject: str = DEFAULT_SUBJECT,
        credentials: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        addresses = (servers,) if isinstance(servers, str) else tuple(servers)
        problems = [*map(server_problem, addresses), subject_problem(subject)]
        if problem := next((each for each in problems if each), "" if addresses else "`servers` is empty"):
            raise ValueError(problem)
        self._address = NatsAddress(addresses, credentials)
        self._subject = subject
        self._timeout = timeout
        self._subscribers: list[Subscriber] = []
        self._requests: dict[str, tuple[Msg, str]] = {}
        """Requests that have come and are not answered yet, and the ids that their senders gave them, by our own id."""

    async def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Callable[[], Awaitable[None]]:
        """Call ``subscriber`` with each message of a type: responses to the requests of this bus, or requests.

        Of all subscribers to requests, on all machines, one gets each.
        """
        if message_type is MessageBusType.HOOK_EXECUTION_RESPONSE:
            return self._subscribe_to_responses(subscriber)

        receive = partial(self._receive, subscriber)
        subscription = NatsSubscription(partial(nats_client, self._address), self._subject, receive)
        await subscription.open()
        return subscription.close

    async def publish(self, message: Message) -> None:
        """Send a request and deliver its response, or send the response to a request that came over this bus."""
        channel = message_channel(message)
        if channel == MessageBusType.HOOK_EXECUTION_RESPONSE:
            await self._respond(message)
        elif channel == MessageBusType.HOOK_EXECUTION_REQUEST:
            response = await self._request(_with_correlation_id(message))
            await asyncio.gather(*(deliver(subscriber, response) for subscriber in list(self._subscribers)))

    def _subscribe_to_responses(self, subscriber: Subscriber) -> Callable[[], Awaitable[None]]:
        subscription: Subscriber = lambda message: subscriber(message)  # noqa: E731  # one object per subscription
        self._subscribers.append(subscription)

        async def unsubscribe() -> None:
            if subscription in self._subscribers:
                self._subscribers.remove(subscription)

        return unsubscribe

    async def _request(self, message: Message) -> Message:
        """Return the response of the process that answers, or a response that says why there is none."""
        try:
            async with asyncio.timeout(self._timeout):
                response = decode_message(await self._answer(encode_message(message)))
            if message_correlation_id(response) != message_correlation_id(message):
                raise ValueError("it has the correlation id of another request")
            return read_response(response) if isinstance(message, HookExecutionRequest) else response
        except ModuleNotFoundError:
            raise  # the message names the missing extra
        except NatsUnavailableError as error:
            failure = HookExecutionFailure("unavailable", str(error))
        except TimeoutError:
            failure = HookExecutionFailure("timeout", f"no response within {self._timeout:g} s")
        except ValueError as error:
            failure = HookExecutionFailure("bad_message", f"the response cannot be read: {error}")
        except Exception as error:
            from nats.errors import NoRespondersError

            nobody = isinstance(error, NoRespondersError)
            words = f"nobody answers `{self._subject}` at {self._address}" if nobody else str(error)
            failure = HookExecutionFailure("no_responders" if nobody else "unavailable", words)
        request = read_request(message)
        return request.answer(HookExecutionResponse(request.correlation_id, success=False, error=failure))

    async def _answer(self, request: bytes) -> bytes:
        client = await nats_client(self._address)
        from nats.errors import NoRespondersError

        while True:
            try:
                return (await client.request(self._subject, request, timeout=self._timeout)).data
            except NoRespondersError:
                if not await workers_may_return(self._address):
                    raise

    async def _receive(self, subscriber: Subscriber, message: Msg) -> None:
        try:
            request = _with_correlation_id(decode_message(message.data))
        except ValueError as error:
            failure = HookExecutionFailure("bad_message", str(error))
            await message.respond(encode_message(HookExecutionResponse("", success=False, error=failure)))
            return
        # Agents choose their ids, and two may choose the same: each request gets one of our own until it is answered.
        own_id = str(uuid.uuid4())
        self._requests[own_id] = message, message_correlation_id(request)
        try:
            await deliver(subscriber, _renamed(request, own_id))
        finally:
            self._requests.pop(own_id, None)

    async def _respond(self, message: Message) -> None:
        request, correlation_id = self._requests.pop(message_correlation_id(message), (None, ""))
        if request is None:
            log.debug("a response is dropped: no request over this bus has its correlation id")
            return
        await request.respond(encode_message(_renamed(message, correlation_id)))


def _with_correlation_id(message: Message) -> Message:
    """Return a request with an id, made up where it has none."""
    return message if message_correlation_id(message) else _renamed(message, str(uuid.uuid4()))


def _renamed(message: Message, correlation_id: str) -> Message:
    """Return a message of any shape with another id."""
    if not isinstance(message, Mapping):
        return replace(message, correlation_id=correlation_id)
    payload = message.get("payload")
    if isinstance(payload, Mapping):
        return {**message, "payload": {**payload, "correlationId": correlation_id}}
    return {**message, "correlationId": correlation_id}
