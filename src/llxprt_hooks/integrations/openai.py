"""Hooks for the OpenAI client: Chat Completions and Responses, synchronous and asynchronous.

::

    hooks = OpenAIHooks.load(".")
    client = hooks.wrap(OpenAI())
    with hooks.session("conversation-7"):
        message = client.chat.completions.create(model=…, messages=messages, tools=…).choices[0].message
        messages += [message, *hooks.run_tool_calls(message.tool_calls, {"read_file": read_file})]

The hooks are in the HTTP client, so ``create``, ``parse``, ``stream`` and the raw responses all have them. Batches,
background responses and stored answers raise if hooks would have to be shown them (D-91). Realtime and other websockets
do not go through the HTTP client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from llxprt_hooks._support.text import from_extra
from llxprt_hooks.integrations.base import argument_as_json
from llxprt_hooks.integrations.client import ClientHooks, Functions, ToolCall, content_of, json_object, tool_output
from llxprt_hooks.integrations.http_transport import borrow, is_hooked
from llxprt_hooks.model.access import field

with from_extra("openai"):
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI, OpenAIError

if TYPE_CHECKING:
    import httpx2
    from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction

    from llxprt_hooks.core.protocol.tool_result import ToolResult

ClientT = TypeVar("ClientT", bound=OpenAI | AsyncOpenAI)
FunctionT = TypeVar("FunctionT", bound="RegisteredFunction | AsyncRegisteredFunction")


class OpenAIHooks(ClientHooks):
    """The hooks of a configuration, for OpenAI clients and for APIs that are compatible with theirs."""

    APIS: ClassVar[tuple[str, ...]] = ("openai-chat", "openai-responses")
    SDK_ERROR = OpenAIError

    def wrap(self, client: ClientT) -> ClientT:
        """Return a client like this one whose model calls have hooks. It uses the same connections."""
        unhooked: Any = client
        if is_hooked(unhooked._client, self):
            return client
        wrapped: ClientT = unhooked.with_options(http_client=self.hook_http_client(borrow(unhooked._client)))
        return wrapped

    def http_client(self, **options: Any) -> httpx2.Client:
        """Return an HTTP client with hooks, for ``OpenAI(http_client=…)``; options are those of ``httpx2.Client``."""
        return self.hook_http_client(DefaultHttpxClient(**options))

    def async_http_client(self, **options: Any) -> httpx2.AsyncClient:
        """Return an HTTP client with hooks, for ``AsyncOpenAI(http_client=…)``."""
        return self.hook_http_client(DefaultAsyncHttpxClient(**options))

    def run_tool_calls(self, calls: Iterable[object] | None, functions: Functions) -> list[Any]:
        """Run the tool calls of an answer with their hooks, and return what answers them in the next request.

        ``calls`` are ``message.tool_calls`` of Chat Completions, or ``response.output`` of Responses, in which other
        items are ignored. ``functions`` are the program's tools by name; what they raise passes through.
        """
        return self.run_tools(_tool_calls(calls), functions)

    async def arun_tool_calls(self, calls: Iterable[object] | None, functions: Functions) -> list[Any]:
        """Run the tool calls of an answer like ``run_tool_calls``, in parallel."""
        return await self.arun_tools(_tool_calls(calls), functions)

    def functions(self, functions: Iterable[FunctionT]) -> list[FunctionT]:
        """Return functions for ``ResponsesToolRunner`` or ``AsyncResponsesToolRunner``, with hooks around them."""
        hooked = [self._hooked(function) for function in functions]
        self.check_tools(function.tool["name"] for function in hooked)
        return hooked

    def _hooked(self, function: FunctionT) -> FunctionT:
        from openai.lib.responses_tool_runner import AsyncRegisteredFunction

        name = self.hook_name(function.tool["name"])
        registered: Any = function
        execute: Callable[[Any], Any] = registered.execute

        async def call_async(arguments: Any) -> Any:
            given, typed = _as_json(arguments)

            async def run(final: dict[str, Any]) -> Any:
                return tool_output(await execute(typed(final)))

            return content_of(await self.hooks.run_tool(name, given, run), "input_text")

        def call(arguments: Any) -> Any:
            given, typed = _as_json(arguments)
            result = self.hooks.sync.run_tool(name, given, lambda final: tool_output(execute(typed(final))))
            return content_of(result, "input_text")

        hooked: FunctionT = replace(
            registered, execute=call_async if isinstance(function, AsyncRegisteredFunction) else call
        )
        return hooked


def _as_json(arguments: Any) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    """Return arguments as hooks see them, and what makes the function's own type of them, which validates them."""
    if isinstance(arguments, dict):
        return arguments, lambda final: final
    given: dict[str, Any] = argument_as_json(arguments)
    return given, lambda final: arguments if final is given else type(arguments).model_validate(final)


def _tool_calls(calls: Iterable[object] | None) -> list[ToolCall]:
    return [call for item in calls or () if (call := _tool_call(item)) is not None]


def _tool_call(item: object) -> ToolCall | None:
    """Return a call of a function or a custom tool; None for other items of a response."""
    kind = field(item, "type")
    if kind in ("function_call", "custom_tool_call"):

        def output(result: ToolResult) -> dict[str, Any]:
            content = content_of(result, "input_text")
            return {"type": f"{kind}_output", "call_id": field(item, "call_id"), "output": content}

        return _of(item, "arguments" if kind == "function_call" else "input", output, field(item, "call_id"))

    def message(result: ToolResult) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": field(item, "id"), "content": content_of(result, "text")}

    if (function := field(item, "function")) is not None:
        return _of(function, "arguments", message, field(item, "id"))
    if (custom := field(item, "custom")) is not None:
        return _of(custom, "input", message, field(item, "id"))
    return None


def _of(call: object, arguments: str, answer: Callable[[ToolResult], dict[str, Any]], call_id: str | None) -> ToolCall:
    """Return a call; a custom tool has a text as its input, which hooks see as an argument."""
    text = field(call, arguments)
    given = json_object(text) if arguments == "arguments" else {"input": text}
    return ToolCall(field(call, "name"), given, answer, call_id)
