"""What the integrations of API clients share: model calls by HTTP, and tool results for the next request."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from llxprt_hooks._support.json_codec import MAX_DEPTH, is_too_deep, read_arguments
from llxprt_hooks.core import loops
from llxprt_hooks.core.engine.session import StopRequested, current_session
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.integrations.base import Integration
from llxprt_hooks.integrations.http_call import Exchange, call_model, called_api, claimed_caller
from llxprt_hooks.integrations.http_transport import hook_transports
from llxprt_hooks.integrations.unsupported import NOT_HONORED, UNSUPPORTED
from llxprt_hooks.model import AnyTranslator, TranslationError

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.lookup import ModelPlans
    from llxprt_hooks.hooks import HookSession

ResponseT = TypeVar("ResponseT")
ClientT = TypeVar("ClientT")

Functions: TypeAlias = Mapping[str, Callable[..., Any]]
"""The program's tools by name; they take the arguments that the model gives by keyword."""
MakeCall: TypeAlias = "Callable[[Any, Exchange[Any]], Coroutine[Any, Any, Any]]"
"""Makes a model call, given the body of its request."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call in an answer of the model, and how its result is sent back."""

    name: str
    arguments: dict[str, Any] | None
    """None if they are not valid."""
    answer: Callable[[ToolResult], Any]
    id: str | None


class ClientHooks(Integration):
    """Hooks for an API client. The program runs the tools, and has the conversation."""

    unsupported = UNSUPPORTED["openai"]  # anthropic has the same
    not_honored = NOT_HONORED["openai"]
    APIS: ClassVar[tuple[str, ...]]
    """The names of the translators."""
    SDK_ERROR: ClassVar[type[Exception]]
    """The base of the SDK's errors: it passes them to the program, and takes others for a broken connection."""

    @cached_property
    def _translators(self) -> list[AnyTranslator]:
        return [self.translator(name) for name in self.APIS]

    def known_caller(self, context: Any) -> dict[str, Any]:
        """Return what the request says about who asks."""
        return claimed_caller(context)

    def session(
        self, session_id: str, transcript_path: str = "", metadata: Mapping[str, Any] | None = None
    ) -> HookSession:
        """Return a session to enter, with ``with`` or ``async with``, around the calls of one conversation.

        In it, what a hook says after an answer reaches the next request, tools outside of a restriction do not run, and
        after a stop the model is not asked again. Outside of one, a stop raises ``StopRequested``.
        """
        return self.hooks.session(session_id, transcript_path, metadata)

    # Model calls.

    def hooked_call(self, method: str, path: str) -> MakeCall | None:
        """Return the function that makes a request as a model call with its hooks; None if no hook runs for it."""
        plans = self.model_plans(current_session(self.hooks.config))
        translator = None if plans is None else self.translator_for(method, path)
        return None if plans is None or translator is None else partial(self._make, plans, translator)

    def translator_for(self, method: str, path: str) -> AnyTranslator | None:
        """Return the translator of the API that a request calls. What ``called_api`` raises passes through the SDK."""
        try:
            return called_api(self.hooks.config, self._translators, method, path)
        except TranslationError as error:
            raise self.for_sdk(error) from None

    async def _make(
        self, plans: ModelPlans, translator: AnyTranslator, body: Any, exchange: Exchange[ResponseT]
    ) -> ResponseT:
        try:
            with self.asked_by(body):
                return await call_model(self.hooks.config, plans, translator, body, exchange)
        except (StopRequested, TranslationError) as error:
            raise self.for_sdk(error) from error.__cause__

    def for_sdk(self, error: Exception) -> Exception:
        """Return an error that passes through the SDK to the program."""
        if not isinstance(error, self.SDK_ERROR):
            kind = type(error)
            error.__class__ = type(kind.__name__, (kind, self.SDK_ERROR), {})
        return error

    def hook_http_client(self, client: ClientT) -> ClientT:
        """Put the hooks into an HTTP client of httpx or httpx2."""
        hook_transports(client, self)
        return client

    # Tool calls.

    def run_tools(self, calls: Iterable[ToolCall], functions: Functions) -> list[Any]:
        """Run the calls one after the other, and return what answers them."""
        self.check_tools(functions)
        return [call.answer(self._run_tool(call, functions)) for call in calls]

    async def arun_tools(self, calls: Iterable[ToolCall], functions: Functions) -> list[Any]:
        """Run the calls, in parallel on asyncio, and return what answers them."""
        self.check_tools(functions)
        runs = [self._arun_tool(call, functions) for call in calls]
        if not loops.runs_here():
            return [await run for run in runs]
        tasks = [asyncio.ensure_future(run) for run in runs]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    def _run_tool(self, call: ToolCall, functions: Functions) -> ToolResult:
        if (problem := _problem(call, functions)) is not None:
            return problem
        execute = executing(functions[call.name])
        return self.hooks.sync.run_tool(self.hook_name(call.name), call.arguments or {}, execute, tool_use_id=call.id)

    async def _arun_tool(self, call: ToolCall, functions: Functions) -> Any:
        if (problem := _problem(call, functions)) is not None:
            return call.answer(problem)
        execute = executing(functions[call.name])
        run = self.hooks.run_tool(self.hook_name(call.name), call.arguments or {}, execute, tool_use_id=call.id)
        return call.answer(await run)


def content_of(result: ToolResult, text_type: str) -> str | list[Any]:
    """Return the content of a result as these APIs have it: text, or a list of parts with the text of hooks added."""
    shown = content(result.llm_content) if result.replaced else result.llm_content  # hooks replace it by any JSON
    return (
        shown if isinstance(shown, str) else [*shown, *({"type": text_type, "text": text} for text in result.additions)]
    )


def content(value: Any) -> str | list[Any]:
    """Return what a tool returned as text, or as the list of an API's parts that it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, Mapping) and "type" in part for part in value):
        return value
    return "" if value is None else json.dumps(value, default=_plain, ensure_ascii=False)


def json_object(text: Any) -> dict[str, Any] | None:
    """Return the object in a text of JSON; None if it is something else. No text stands for no arguments."""
    try:
        value = read_arguments(text or "{}")
    except (TypeError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _problem(call: ToolCall, functions: Functions) -> ToolResult | None:
    """Return the result of a call that cannot be made. It fires no event."""
    if call.name not in functions:
        return ToolResult.failure(f"There is no tool {call.name}. Tools: {', '.join(functions)}.", "unknown_tool")
    if call.arguments is None:
        return ToolResult.failure(f"The arguments of {call.name} are not a JSON object.", "invalid_arguments")
    if is_too_deep(call.arguments, MAX_DEPTH - 1):  # some of them may be lost (``read_arguments``)
        return ToolResult.failure(f"The arguments of {call.name} are nested too deeply.", "invalid_arguments")
    return None


def executing(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    """Return a function that calls a tool; its result is what the model will see, and hooks see the same."""

    def execute(arguments: dict[str, Any]) -> Any:
        outcome = function(**arguments)
        return _awaited(outcome) if inspect.isawaitable(outcome) else tool_output(outcome)

    return execute


async def _awaited(outcome: Awaitable[Any]) -> Any:
    return tool_output(await outcome)


def tool_output(outcome: Any) -> Any:
    """Return what a tool returned, with the content that the model will see."""
    if isinstance(outcome, ToolResult):
        return replace(outcome, llm_content=content(outcome.llm_content))
    return content(outcome)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
