"""The steps of tool calls and model calls for synchronous callers: each runs on the background event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.tool import HookedToolCall, is_awaitable

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.core.protocol.tool_result import ToolResult

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class SyncToolCall:
    """A tool call in two steps, for synchronous callers that run the tool themselves."""

    def __init__(self, call: HookedToolCall) -> None:
        self._call = call

    @property
    def input(self) -> dict[str, Any]:
        """The arguments; after ``before()``, as hooks changed them."""
        return self._call.input

    @property
    def is_approved(self) -> bool:
        """After ``before()``: whether a hook that acts, or a person that one asked, said that the tool may run."""
        return self._call.is_approved

    def before(self) -> ToolResult | None:
        """Run the hooks before the call. If it returns None, run the tool with ``input``; else use the result."""
        return loops.drive(self._call.before())

    def not_run(self, result: ToolResult) -> ToolResult:
        """Return the result of a call that did not run after ``before()``, with what its hooks say to the model."""
        return self._call.not_run(result)

    def raised(self, error: Exception) -> ToolResult | None:
        """Run the hooks that act after a tool that raised. If it returns None, raise the error; else use the result."""
        return loops.drive(self._call.raised(error))

    def after(self, outcome: Any) -> ToolResult:
        """Run the hooks after the call, on what the tool returned."""
        return loops.drive(self._call.after(outcome))


class SyncModelCall(Generic[RequestT]):
    """A model call in two steps, for synchronous callers that call the model themselves."""

    def __init__(self, call: HookedModelCall[RequestT]) -> None:
        self._call = call

    @property
    def request(self) -> RequestT:
        """The request; after ``before()``, as hooks changed it."""
        return self._call.request

    @property
    def holds_back(self) -> bool:
        """Whether an AfterModel hook will see the answer: then show nothing before ``after()`` has returned."""
        return self._call.holds_back

    def before(self) -> ModelCallResult[Any] | None:
        """Run the hooks before the call. If it returns None, call the model with ``request``; else use the result."""
        return loops.drive(self._call.before())

    def after(self, response: ResponseT) -> ModelCallResult[ResponseT]:
        """Run the hooks after the call, on the complete answer."""
        return loops.drive(self._call.after(response))

    def passed_on(self) -> ModelCallResult[Any]:
        """Return the result of a call whose answer was shown as it arrived, which is allowed unless ``holds_back``."""
        return self._call.passed_on()


def resolved(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call a function for a synchronous caller; an awaitable is awaited on the background loop."""
    outcome = function(argument)
    return loops.run(resolve(outcome)) if is_awaitable(outcome) else outcome
