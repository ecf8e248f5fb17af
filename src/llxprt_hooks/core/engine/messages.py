"""Hook requests and responses as messages, and the interface that the engine requires of a message bus.

A request may be our own class, a flat mapping, or a mapping with its fields under ``payload``, with either spelling of
the type. The response has the shape of the request (D-16). ``encode_message`` and ``decode_message`` convert messages
to bytes and back, for a bus between processes.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks.core.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import AggregatedHookResult, HookStageError
    from llxprt_hooks.events import HookEventName


class MessageBusType(StrEnum):
    """The kind of a message, in its ``type`` field."""

    HOOK_EXECUTION_REQUEST = "hook-execution-request"
    HOOK_EXECUTION_RESPONSE = "hook-execution-response"


@dataclass(frozen=True, slots=True)
class HookExecutionRequest:
    """Asks to run the hooks of an event. A missing correlation id is generated.

    ``input`` has the event's own fields; base fields come from the configuration.
    """

    event_name: HookEventName
    input: Mapping[str, Any]
    correlation_id: str = ""
    type: MessageBusType = MessageBusType.HOOK_EXECUTION_REQUEST


@dataclass(frozen=True, slots=True)
class HookExecutionFailure:
    """Why a request failed."""

    code: str
    """The stage, or what a bus between processes met.

    The stages are ``unsupported_event``, ``validation``, ``translation``, ``planning``, ``execution``, ``aggregation``
    and ``response_formatting``. A NATS bus reports ``no_responders``, ``timeout``, ``unavailable`` if the server cannot
    be reached or the request is too large for it, and ``bad_message``.
    """
    message: str
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HookExecutionResponse:
    """The answer to the request with the same correlation id.

    ``success`` tells whether all hooks worked, not what they decided. As a mapping, ``output`` has ``finalOutput``,
    ``allOutputs``, ``errors``, ``totalDuration`` and ``success``. ``error`` is set only if the request itself failed.
    """

    correlation_id: str
    success: bool
    output: AggregatedHookResult | None = None
    error: HookExecutionFailure | None = None
    type: MessageBusType = MessageBusType.HOOK_EXECUTION_RESPONSE


Message: TypeAlias = HookExecutionRequest | HookExecutionResponse | Mapping[str, Any]
"""A message class of this module, or the same as a plain mapping, flat or with its fields under ``payload``."""

Subscriber: TypeAlias = Callable[[Message], Awaitable[None] | None]
Unsubscribe: TypeAlias = Callable[[], Awaitable[None] | None]


class MessageBus(Protocol):
    """What the engine requires of a message bus. Each of its functions may be synchronous or a coroutine function.

    The hook system connects to the bus of its configuration as soon as it exists. If ``subscribe`` is a coroutine
    function, it does so in a task, for which ``await system.initialize()`` waits. A hook system that is created outside
    an event loop cannot start that task and logs a warning: then ``await system.connect(bus)``.
    """

    def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Unsubscribe | Awaitable[Unsubscribe]:
        """Call ``subscriber`` with each message of a type and await what it returns, if that is awaitable.

        Returns the function that ends the subscription.
        """

    def publish(self, message: Message) -> Awaitable[None] | None:
        """Deliver a message to all subscribers of its type."""


def message_channel(message: Message) -> str:
    """Return the type of a message; ``HOOK_EXECUTION_REQUEST`` is read as ``hook-execution-request``."""
    value = message.get("type") if isinstance(message, Mapping) else getattr(message, "type", None)
    if not isinstance(value, str):
        return ""
    return MessageBusType[value] if value in MessageBusType.__members__ else value


def message_correlation_id(message: Message) -> str:
    """Return the correlation id of a message of any shape; empty if it has none."""
    if not isinstance(message, Mapping):
        return message.correlation_id
    fields = message.get("payload", message)
    value = fields.get("correlationId") if isinstance(fields, Mapping) else None
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request of any shape, and the function that builds a response of the same shape."""

    event_name: Any
    input: Any
    correlation_id: str
    answer: Callable[[HookExecutionResponse], Message]


def read_request(message: Message) -> IncomingRequest:
    """Read a request; missing and malformed fields are reported later, by the event's validation."""
    if isinstance(message, HookExecutionRequest):
        fields = {"eventName": message.event_name, "input": message.input, "correlationId": message.correlation_id}
        return _incoming(fields, answer=lambda response: response)
    envelope = message if isinstance(message, Mapping) else {}
    by_name = envelope.get("type") in list(MessageBusType.__members__)  # a list, because the type may not be hashable
    response_type = MessageBusType.HOOK_EXECUTION_RESPONSE
    type_field = {"type": response_type.name if by_name else response_type.value}
    if "payload" in envelope:
        return _incoming(envelope["payload"], answer=lambda response: {**type_field, "payload": _fields_of(response)})
    return _incoming(envelope, answer=lambda response: {**type_field, **_fields_of(response)})


def read_response(message: Message) -> HookExecutionResponse:
    """Read a response of any shape; raises ``ValueError`` for anything else."""
    if isinstance(message, HookExecutionResponse):
        return message
    if not isinstance(message, Mapping) or message_channel(message) != MessageBusType.HOOK_EXECUTION_RESPONSE:
        raise ValueError(f"expected a message of type {MessageBusType.HOOK_EXECUTION_RESPONSE}, found {message!r:.80}")
    fields = message.get("payload", message)
    try:
        return _response(fields)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"malformed hook execution response: {fields!r:.80}") from error


def encode_message(message: Message, *, wrapped: bool = False) -> bytes:
    """Encode a message as JSON. Our own classes become flat or, if ``wrapped``, have their fields under ``payload``.

    >>> encode_message(HookExecutionResponse("c1", success=True))
    b'{"type":"hook-execution-response","correlationId":"c1","success":true}'
    """
    if isinstance(message, Mapping):
        return write_json(message)
    fields = _fields_of_request(message) if isinstance(message, HookExecutionRequest) else _fields_of(message)
    return write_json({"type": message.type.name, "payload": fields} if wrapped else {"type": message.type, **fields})


def encode_request(event_name: str, payload: bytes, correlation_id: str) -> bytes:
    """Encode a request whose input is JSON already.

    >>> encode_request("BeforeTool", b"{}", "c1")
    b'{"type":"hook-execution-request","eventName":"BeforeTool","correlationId":"c1","input":{}}'
    """
    head = {"type": MessageBusType.HOOK_EXECUTION_REQUEST, "eventName": event_name, "correlationId": correlation_id}
    return b'%s,"input":%s}' % (write_json(head)[:-1], payload)


def decode_message(data: bytes) -> Mapping[str, Any]:
    """Decode a message from JSON, keeping its shape; raises ``ValueError`` if it is not a JSON object."""
    message = read_json(data)
    if not isinstance(message, dict):
        raise ValueError(f"a message must be a JSON object, found {message!r:.80}")
    return message


def describe_failure(failure: HookStageError) -> HookExecutionFailure:
    """Return the ``error`` of a response for the stage that failed."""
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


def _fields_of_request(request: HookExecutionRequest) -> dict[str, Any]:
    given = request.input
    if isinstance(given, Mapping):
        given = {name: each.to_dict() if isinstance(each, ToolResult) else each for name, each in given.items()}
    fields = {"eventName": request.event_name, "input": given}
    return {**fields, "correlationId": request.correlation_id} if request.correlation_id else fields


def _response(fields: Mapping[str, Any]) -> HookExecutionResponse:
    from llxprt_hooks.core.engine.results import AggregatedHookResult

    output, error = fields.get("output"), fields.get("error")
    return HookExecutionResponse(
        correlation_id=fields["correlationId"],
        success=fields["success"] is True,
        output=None if output is None else AggregatedHookResult.from_dict(output),
        error=None if error is None else HookExecutionFailure(error["code"], error["message"], error.get("details")),
    )


def _fields_of(response: HookExecutionResponse) -> dict[str, Any]:
    fields: dict[str, Any] = {"correlationId": response.correlation_id, "success": response.success}
    if response.output is not None:
        fields["output"] = response.output.to_dict()
    if response.error is not None:
        error = response.error
        fields["error"] = {"code": error.code, "message": error.message, "details": dict(error.details or {})}
    return fields
