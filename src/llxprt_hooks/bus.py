"""The message bus: hooks by request, for programs whose parts talk through messages."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from llxprt_hooks.logger import debug_logger

if TYPE_CHECKING:
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.results import AggregatedHookResult

log = debug_logger("bus")


class MessageBusType(StrEnum):
    """What a message is about, in the ``type`` field that every message has."""

    HOOK_EXECUTION_REQUEST = "hook-execution-request"
    HOOK_EXECUTION_RESPONSE = "hook-execution-response"


@dataclass(frozen=True, slots=True)
class HookExecutionRequest:
    """Asks for the hooks of an event. Without a correlation id one is made up."""

    event_name: HookEventName
    input: Mapping[str, Any]
    correlation_id: str = ""
    type: MessageBusType = MessageBusType.HOOK_EXECUTION_REQUEST


@dataclass(frozen=True, slots=True)
class HookExecutionFailure:
    """Why a request could not be carried out."""

    code: str
    message: str
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HookExecutionResponse:
    """The answer to the request with the same correlation id.

    ``success`` is that of ``output``, execution health; ``error`` is set when the request itself failed.
    """

    correlation_id: str
    success: bool
    output: AggregatedHookResult | None = None
    error: HookExecutionFailure | None = None
    type: MessageBusType = MessageBusType.HOOK_EXECUTION_RESPONSE


Message: TypeAlias = HookExecutionRequest | HookExecutionResponse | Mapping[str, Any]
"""A message class of this module, or the same as a plain mapping, flat or with its fields under ``payload``."""

Subscriber: TypeAlias = Callable[[Message], Awaitable[None] | None]
Unsubscribe: TypeAlias = Callable[[], None]


class MessageBus(Protocol):
    """What the engine asks of a message bus; a subscriber that returns an awaitable is to be awaited."""

    def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Unsubscribe:
        """Call ``subscriber`` with each message of a type, until the returned function is called."""

    async def publish(self, message: Message) -> None:
        """Hand a message to all subscribers of its type."""


class InProcessMessageBus:
    """A message bus within one process. ``publish`` returns when every subscriber is done.

    >>> bus = InProcessMessageBus()
    >>> unsubscribe = bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, print)
    """

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Subscriber]] = {}

    def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Unsubscribe:
        """Call ``subscriber`` with each message of a type, until the returned function is called."""
        subscription: Subscriber = lambda message: subscriber(message)  # noqa: E731  # one object per subscription
        subscribers = self._subscribers.setdefault(message_type, [])
        subscribers.append(subscription)

        def unsubscribe() -> None:
            if subscription in subscribers:
                subscribers.remove(subscription)

        return unsubscribe

    async def publish(self, message: Message) -> None:
        """Hand a message to all subscribers of its type; one that raises harms nobody else."""
        subscribers = list(self._subscribers.get(message_channel(message), ()))
        if len(subscribers) == 1:
            await _deliver(subscribers[0], message)
        elif subscribers:
            async with asyncio.TaskGroup() as group:
                for subscriber in subscribers:
                    group.create_task(_deliver(subscriber, message))


def message_channel(message: Message) -> str:
    """The type of a message; ``HOOK_EXECUTION_REQUEST`` is another spelling of ``hook-execution-request``."""
    value = message.get("type") if isinstance(message, Mapping) else getattr(message, "type", None)
    if not isinstance(value, str):
        return ""
    return MessageBusType[value] if value in MessageBusType.__members__ else value


async def _deliver(subscriber: Subscriber, message: Message) -> None:
    try:
        outcome = subscriber(message)
        if inspect.isawaitable(outcome):
            await outcome
    except Exception:
        log.warning("a subscriber failed on a message of type %s", message_channel(message), exc_info=True)
