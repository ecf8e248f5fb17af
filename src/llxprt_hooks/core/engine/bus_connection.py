"""Hook requests by message: each one on a bus is answered with one response of the same shape (DELTA-HEVT-001, 002)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks.core.engine.messages import (
    HookExecutionResponse,
    MessageBusType,
    describe_failure,
    read_request,
)
from llxprt_hooks.core.engine.results import HookStageError

if TYPE_CHECKING:
    import logging

    from llxprt_hooks.core.engine.messages import Message, MessageBus, Unsubscribe
    from llxprt_hooks.core.engine.results import AggregatedHookResult

Fire = Callable[[Any, Any], Awaitable["AggregatedHookResult"]]
"""Runs the hooks of an event, given by name, on an input, and never raises."""


class BusConnection:
    """The subscription to one message bus, from its creation until it is closed."""

    def __init__(self, bus: MessageBus, fire: Fire, log: logging.Logger) -> None:
        self.bus = bus
        self._fire = fire
        self._log = log
        self._is_closed = False
        self._opening: asyncio.Future[Unsubscribe] | None = None
        subscription = bus.subscribe(MessageBusType.HOOK_EXECUTION_REQUEST, self._answer)
        self._unsubscribe = self._open(subscription) if inspect.isawaitable(subscription) else subscription

    @property
    def is_opening(self) -> bool:
        """Whether there is something to wait for in ``opened``."""
        return self._opening is not None

    async def opened(self) -> None:
        """Wait until the bus has accepted the subscription."""
        if self._opening is not None and not self._is_closed:
            await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Answer nothing from now on, and wait until the bus has ended the subscription."""
        self._is_closed = True
        await resolve(self._unsubscribe())

    def close_soon(self) -> None:
        """Answer nothing from now on, and end the subscription: now, or where that takes awaiting, in a task."""
        self._is_closed = True
        try:
            ending = self._unsubscribe()
        except Exception:
            self._log.warning(_NOT_ENDED, exc_info=True)
            return
        if not inspect.isawaitable(ending):
            return
        try:
            self._ending = asyncio.get_running_loop().create_task(close_connection(ending, self._log))
        except RuntimeError:
            self._log.warning(
                "the subscription to the message bus was not ended: it ends asynchronously and no event loop is "
                "running; await `disconnect` instead of calling `dispose`"
            )
            _drop(ending)

    def _open(self, subscription: Awaitable[Unsubscribe]) -> Unsubscribe:
        """Let the bus subscribe in a task. Returns the function that ends the subscription once there is one."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            _drop(subscription)
            raise RuntimeError(
                "it subscribes asynchronously and no event loop is running; `await system.connect(bus)` in one"
            ) from None
        opening = self._opening = asyncio.ensure_future(subscription)

        async def unsubscribe() -> None:
            await resolve((await opening)())

        return unsubscribe

    async def _answer(self, message: Message) -> None:
        if self._is_closed:
            return
        response = await response_to(message, self._fire)
        try:
            await resolve(self.bus.publish(response))
        except Exception:
            correlation_id = read_request(message).correlation_id
            self._log.warning("the response to request %s was not published", correlation_id, exc_info=True)


async def response_to(message: Message, fire: Fire) -> Message:
    """Return the response to a request, in the shape of the request."""
    request = read_request(message)
    aggregated = await fire(request.event_name, request.input)
    failure = next((error for error in aggregated.errors if isinstance(error, HookStageError)), None)
    response = HookExecutionResponse(
        correlation_id=request.correlation_id,
        success=aggregated.success,
        output=aggregated,
        error=None if failure is None else describe_failure(failure),
    )
    try:
        return request.answer(response)
    except Exception as error:
        failure = HookStageError("response_formatting", f"the result could not be serialized: {error}")
        return request.answer(
            HookExecutionResponse(request.correlation_id, success=False, error=describe_failure(failure))
        )


def _drop(awaitable: Awaitable[object]) -> None:
    """Give up what will not be awaited, without the warning of Python."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()


async def close_connection(closing: Awaitable[object], log: logging.Logger) -> None:
    """Wait until a connection is closed; a bus that fails at it is logged."""
    try:
        await closing
    except Exception:
        log.warning(_NOT_ENDED, exc_info=True)


_NOT_ENDED = "the subscription to the message bus could not be ended"
