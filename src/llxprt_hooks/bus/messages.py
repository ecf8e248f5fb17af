"""Requests for hooks and their responses, as messages, and what the engine asks of a message bus.

A request may be our own class, a flat mapping, or a mapping with its fields under ``payload``, with either spelling of
the type; the response takes the shape that the request had.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from llxprt_hooks.engine.results import AggregatedHookResult, HookStageError
    from llxprt_hooks.events import HookEventName


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


def message_channel(message: Message) -> str:
    """The type of a message; ``HOOK_EXECUTION_REQUEST`` is another spelling of ``hook-execution-request``."""
    value = message.get("type") if isinstance(message, Mapping) else getattr(message, "type", None)
    if not isinstance(value, str):
        return ""
    return MessageBusType[value] if value in MessageBusType.__members__ else value


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request, whichever shape it came in, and the way to answer it in that shape."""

    event_name: Any
    input: Any
    correlation_id: str
    answer: Callable[[HookExecutionResponse], Message]


def read_request(message: Message) -> IncomingRequest:
    """Read a request; what is missing or malformed is left to the event's own validation."""
    if isinstance(message, HookExecutionRequest):
        fields = {"eventName": message.event_name, "input": message.input, "correlationId": message.correlation_id}
        return _incoming(fields, answer=lambda response: response)
    envelope = message if isinstance(message, Mapping) else {}
    by_name = envelope.get("type") in list(MessageBusType.__members__)  # whatever it is, hashable or not
    response_type = MessageBusType.HOOK_EXECUTION_RESPONSE
    type_field = {"type": response_type.name if by_name else response_type.value}
    if "payload" in envelope:
        return _incoming(envelope["payload"], answer=lambda response: {**type_field, "payload": _fields_of(response)})
    return _incoming(envelope, answer=lambda response: {**type_field, **_fields_of(response)})


def describe_failure(failure: HookStageError) -> HookExecutionFailure:
    """The stage that failed, as the ``error`` of a response."""
    return HookExecutionFailure(failure.stage, str(failure), {**failure.details, "stage": failure.stage})


def _incoming(fields: Any, answer: Callable[[HookExecutionResponse], Message]) -> IncomingRequest:
    given = fields if isinstance(fields, Mapping) else {}
    correlation_id = given.get("correlationId")
    return IncomingRequest(
        event_name=given.get("eventName"),
        input=given.get("input"),
        correlation_id=correlation_id if isinstance(correlation_id, str) and correlation_id else str(uuid.uuid4()),
        answer=answer,
    )


def _fields_of(response: HookExecutionResponse) -> dict[str, Any]:
    fields: dict[str, Any] = {"correlationId": response.correlation_id, "success": response.success}
    if response.output is not None:
        fields["output"] = response.output.to_dict()
    if response.error is not None:
        error = response.error
        fields["error"] = {"code": error.code, "message": error.message, "details": dict(error.details or {})}
    return fields
