"""Hooks for the Anthropic client: Messages, synchronous and asynchronous.

::

    hooks = AnthropicHooks.load(".")
    client = hooks.wrap(Anthropic())
    with hooks.session("conversation-7"):
        message = client.messages.create(model=…, max_tokens=…, messages=messages, tools=…)
        results = hooks.run_tool_uses(message.content, {"read_file": read_file})

``wrap`` and ``middleware`` put the hooks above the HTTP client, where requests are not yet signed: they also work for
the clients of Bedrock and Vertex. ``http_client`` puts them below, for programs that take nothing but an HTTP client.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.text import from_extra
from llxprt_hooks.core import loops
from llxprt_hooks.core.engine.session import StopRequested
from llxprt_hooks.integrations.base import log
from llxprt_hooks.integrations.client import ClientHooks, Functions, MakeCall, ToolCall, content_of
from llxprt_hooks.integrations.http_call import Exchange, body_chunks, body_stream, without_body_headers
from llxprt_hooks.integrations.http_transport import is_hooked
from llxprt_hooks.model.access import field

with from_extra("anthropic"):
    import httpx2
    from anthropic import (
        Anthropic,
        AnthropicError,
        APIConnectionError,
        APIRequest,
        APIResponse,
        AsyncAnthropic,
        AsyncAPIResponse,
        DefaultAsyncHttpxClient,
        DefaultHttpxClient,
        Middleware,
    )
    from anthropic.lib.tools import (
        BetaAsyncBuiltinFunctionTool,
        BetaAsyncFunctionTool,
        BetaBuiltinFunctionTool,
        BetaFunctionTool,
        ToolError,
    )

if TYPE_CHECKING:
    from anthropic._base_client import BaseClient
    from anthropic._middleware import AsyncCallNext, CallNext

    from llxprt_hooks.core.protocol.tool_result import ToolResult
    from llxprt_hooks.hooks import Hooks

ClientT = TypeVar("ClientT", bound="BaseClient[Any, Any]")
ToolT = TypeVar("ToolT")

_undelivered: ContextVar[StopRequested | None] = ContextVar("llxprt_hooks_undelivered_stop", default=None)
"""A stop that a tool raised, which the SDK's tool runner takes for a failure of the tool."""


class AnthropicHooks(ClientHooks):
    """The hooks of a configuration, for Anthropic clients."""

    APIS: ClassVar[tuple[str, ...]] = ("anthropic-messages",)
    SDK_ERROR = AnthropicError

    def wrap(self, client: ClientT) -> ClientT:
        """Return a client like this one whose model calls have hooks. It uses the same connections."""
        unhooked: Any = client
        has_middleware = any(isinstance(m, _HooksMiddleware) and m.hooks is self for m in unhooked.middleware)
        if has_middleware or is_hooked(unhooked._client, self):
            return client
        wrapped: ClientT = unhooked.with_options(middleware=[*unhooked.middleware, self.middleware()])
        return wrapped

    def middleware(self) -> Middleware:
        """Return the hooks as middleware, for ``Anthropic(middleware=[…])``. The last one is nearest to the API."""
        return _HooksMiddleware(self)

    def http_client(self, **options: Any) -> httpx2.Client:
        """Return an HTTP client with hooks, for ``Anthropic(http_client=…)``; options are those of httpx2."""
        return self.hook_http_client(DefaultHttpxClient(**options))

    def async_http_client(self, **options: Any) -> httpx2.AsyncClient:
        """Return an HTTP client with hooks, for ``AsyncAnthropic(http_client=…)``."""
        return self.hook_http_client(DefaultAsyncHttpxClient(**options))

    def run_tool_uses(self, blocks: Iterable[object], functions: Functions) -> list[Any]:
        """Run the tool calls in ``message.content`` with their hooks, and return the blocks that answer them.

        Other blocks are ignored. ``functions`` are the program's tools by name; what they raise passes through.
        """
        return self.run_tools(_tool_uses(blocks), functions)

    async def arun_tool_uses(self, blocks: Iterable[object], functions: Functions) -> list[Any]:
        """Run the tool calls in ``message.content`` like ``run_tool_uses``, in parallel."""
        return await self.arun_tools(_tool_uses(blocks), functions)

    def tools(self, tools: Iterable[ToolT]) -> list[ToolT]:
        """Return tools for ``client.beta.messages.tool_runner``, with hooks around those that the runner calls.

        These are functions with ``@beta_tool`` or ``@beta_async_tool``, and the SDK's own tools with a ``call``.
        """
        hooked = [self._hooked(tool) for tool in tools]
        self.check_tools(tool.name for tool in hooked if isinstance(tool, _TOOLS))
        return hooked

    def hooked_call(self, method: str, path: str) -> MakeCall | None:
        if (stop := _undelivered.get()) is not None and self.translator_for(method, path) is not None:
            _undelivered.set(None)
            raise self.for_sdk(stop)
        return super().hooked_call(method, path)

    def _hooked(self, tool: ToolT) -> ToolT:
        if isinstance(tool, Mapping):
            return tool  # runs at the API
        if not isinstance(tool, _TOOLS):
            log.warning("%s runs without hooks: only function tools and the SDK's own have them", type(tool).__name__)
            return tool
        hooked: Any = copy.copy(tool)
        hooked.call = _hooked_call(self.hooks, self.hook_name(tool.name), tool.call)
        result: ToolT = hooked
        return result


_TOOLS = (BetaFunctionTool, BetaAsyncFunctionTool, BetaBuiltinFunctionTool, BetaAsyncBuiltinFunctionTool)


def _hooked_call(hooks: Hooks, name: str, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the method that the SDK's runners call. It validates the arguments, as hooks changed them."""

    async def call_async(arguments: Any) -> Any:
        async def run(final: dict[str, Any]) -> Any:
            return _listed(await call(final))

        with _stop_for_next_request():
            return _content(await hooks.run_tool(name, arguments, run))

    def call_sync(arguments: Any) -> Any:
        with _stop_for_next_request():
            return _content(hooks.sync.run_tool(name, arguments, lambda final: _listed(call(final))))

    return call_async if inspect.iscoroutinefunction(call) else call_sync


@contextmanager
def _stop_for_next_request() -> Iterator[None]:
    try:
        yield
    except StopRequested as stop:
        _undelivered.set(stop)
        raise


def _listed(outcome: Any) -> Any:
    return outcome if isinstance(outcome, str) else list(outcome)


def _content(result: ToolResult) -> Any:
    content = content_of(result, "text")
    if result.error is None:
        return content
    raise ToolError(content)


def _tool_uses(blocks: Iterable[object]) -> list[ToolCall]:
    return [_tool_use(block) for block in blocks if field(block, "type") == "tool_use"]


def _tool_use(block: object) -> ToolCall:
    arguments = field(block, "input")

    def answer(result: ToolResult) -> dict[str, Any]:
        error = {} if result.error is None else {"is_error": True}
        content = content_of(result, "text")
        return {"type": "tool_result", "tool_use_id": field(block, "id"), "content": content, **error}

    given = dict(arguments) if isinstance(arguments, Mapping) else None
    return ToolCall(field(block, "name"), given, answer, field(block, "id"))


class _HooksMiddleware(Middleware):
    def __init__(self, hooks: AnthropicHooks) -> None:
        self.hooks = hooks

    def handle(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        if (make := self._hooked_call(request)) is None:
            return call_next(request)
        exchange = _MiddlewareExchange(request, call_next, APIResponse, _parser())
        return loops.drive(make(request.json, exchange))

    async def handle_async(self, request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
        if (make := self._hooked_call(request)) is None:
            return await call_next(request)
        exchange = _MiddlewareExchange(request, call_next, AsyncAPIResponse, _async_parser())
        response: AsyncAPIResponse[Any] = await make(request.json, exchange)
        return response

    def _hooked_call(self, request: APIRequest) -> MakeCall | None:
        return self.hooks.hooked_call(request.method, request.url.partition("?")[0])


class _MiddlewareExchange(Exchange[Any]):
    def __init__(self, request: APIRequest, call_next: Callable[[APIRequest], Any], kind: Any, parser: object) -> None:
        self._request = request
        self._call_next = call_next
        self._kind = kind
        self._parser = parser

    async def send(self, body: Any | None) -> Any:
        return await resolve(self._call_next(self._request if body is None else self._request.copy(body=body)))

    async def read(self, response: Any) -> bytes:
        http_response = response.http_response
        read = http_response.read if self._kind is APIResponse else http_response.aread
        try:
            content: bytes = await resolve(read())
        except httpx2.TransportError as error:  # raise what the SDK raises for a connection that breaks, and retries
            raise self.failure(str(error)) from error
        return content

    def is_answer(self, response: Any) -> bool:
        return bool(response.http_response.is_success)

    def replay(self, response: Any) -> Any:
        return response  # its bytes stay in it

    def chunks(self, response: Any) -> AsyncGenerator[bytes, None]:
        return body_chunks(response.http_response, is_async=self._kind is not APIResponse)

    def streamed(self, chunks: AsyncGenerator[bytes, None], replaced: Any) -> Any:
        stream = body_stream(httpx2, chunks, is_async=self._kind is not APIResponse)
        return self._answered(replaced.http_response, stream=stream)

    def answer(self, content: bytes, content_type: str, replaced: Any | None) -> Any:
        if replaced is None:
            http_request = httpx2.Request(self._request.method, httpx2.URL(_ANY_URL).join(self._request.url))
            raw = httpx2.Response(200, headers={"content-type": content_type}, content=content, request=http_request)
            raw.elapsed = timedelta(0)
            return self._parsed(raw)
        return self._answered(replaced.http_response, content=content)

    def _answered(self, old: Any, **body: Any) -> Any:
        raw = httpx2.Response(
            old.status_code, headers=without_body_headers(old.headers.raw), request=old.request, **body
        )
        raw.elapsed = old.elapsed if "content" in body else timedelta(0)
        return self._parsed(raw)

    def _parsed(self, raw: httpx2.Response) -> Any:
        request = self._request
        return self._kind(
            raw=raw,
            cast_to=request.cast_to,
            client=self._parser,
            stream=request.stream,
            stream_cls=request.stream_cls,
            options=request.options,
            retries_taken=request.retries_taken,
        )

    def failure(self, message: str) -> Exception:
        return APIConnectionError(message=message, request=httpx2.Request("POST", _ANY_URL))


@cache
def _parser() -> Anthropic:
    """Return a client that sends nothing: it reads the answers of hooks, which are in the format of the API itself."""
    return Anthropic(api_key="unused", base_url=_ANY_URL, http_client=httpx2.Client(transport=httpx2.BaseTransport()))


@cache
def _async_parser() -> AsyncAnthropic:
    http_client = httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport())
    return AsyncAnthropic(api_key="unused", base_url=_ANY_URL, http_client=http_client)


_ANY_URL = "https://api.anthropic.com"
