"""A message bus within one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine.messages import Message, MessageBusType, Subscriber, message_channel

log = debug_logger("bus")


class InProcessMessageBus:
    """Delivers messages within one process. ``publish`` returns when every subscriber is done.

    It has no lock, so use it in one thread only.

    >>> bus = InProcessMessageBus()
    >>> unsubscribe = bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, print)
    """

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Subscriber]] = {}

    def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with each message of a type, until the returned function is called."""
        subscription: Subscriber = lambda message: subscriber(message)  # noqa: E731  # one object per subscription
        subscribers = self._subscribers.setdefault(message_type, [])
        subscribers.append(subscription)

        def unsubscribe() -> None:
            if subscription in subscribers:
                subscribers.remove(subscription)

        return unsubscribe

    async def publish(self, message: Message) -> None:
        """Deliver a message to all subscribers of its type; an exception in one does not affect the others."""
        subscribers = list(self._subscribers.get(message_channel(message), ()))
        if len(subscribers) == 1:
            await deliver(subscribers[0], message)
        elif subscribers:
            async with asyncio.TaskGroup() as group:
                for subscriber in subscribers:
                    group.create_task(deliver(subscriber, message))


async def deliver(subscriber: Subscriber, message: Message) -> None:
    """Call a subscriber and wait until it is done. An exception is logged."""
    try:
        await resolve(subscriber(message))
    except Exception:
        log.warning("a subscriber failed on a message of type %s", message_channel(message), exc_info=True)
