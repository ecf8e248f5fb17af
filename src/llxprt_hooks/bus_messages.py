"""Hook requests and responses in all the shapes in which they may cross a message bus.

A request may be our own class, a flat mapping, or a mapping with its fields under ``payload``, with either spelling of
the type; the response takes the shape that the request had.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llxprt_hooks.bus import HookExecutionFailure, HookExecutionRequest, MessageBusType

if TYPE_CHECKING:
    from llxprt_hooks.bus import HookExecutionResponse, Message
    from llxprt_hooks.results import HookStageError


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
