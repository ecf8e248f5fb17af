"""The same few calls through each client: Chat Completions, Responses and Messages, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import anthropic
import openai

from llxprt_hooks.integrations.anthropic import AnthropicHooks
from llxprt_hooks.integrations.openai import OpenAIHooks

if TYPE_CHECKING:
    from llxprt_hooks import Hooks
    from llxprt_hooks.integrations.client import ClientHooks
    from tests.support.api_server import APIServer


class Driver(ABC):
    """One API of one client."""

    integration: ClassVar[type[ClientHooks]] = OpenAIHooks
    KINDS: ClassVar[tuple[Any, Any]] = (openai.OpenAI, openai.AsyncOpenAI)
    """The synchronous and the asynchronous client."""
    PATH = "/v1"

    def __init__(self, server: APIServer, *, is_async: bool, by_http: bool, clients: ClientHooks | None = None) -> None:
        self.server = server
        self.clients = clients or self.integration(session_id="the configuration's")
        self.hooks: Hooks = self.clients.hooks
        self._is_async = is_async
        self._runner = asyncio.Runner()
        self.client: Any = self._client(self.clients, by_http)

    def run(self, outcome: Any) -> Any:
        """Wait for what an asynchronous client returns."""
        return self._runner.run(_awaited(outcome)) if inspect.isawaitable(outcome) else outcome

    def close(self) -> None:
        self.run(self.client.close())
        self._runner.close()

    def _client(self, clients: Any, by_http: bool) -> Any:
        options: dict[str, Any] = {"api_key": "key", "base_url": f"{self.server.url}{self.PATH}", "max_retries": 0}
        kind = self.KINDS[self._is_async]
        if by_http:
            http_client: Any = clients.async_http_client() if self._is_async else clients.http_client()
            return kind(http_client=http_client, **options)
        return clients.wrap(kind(**options))

    def create(self, prompt: str = "hi", **options: Any) -> Any:
        """Call the model; return the SDK's response."""
        return self.run(self.create_call(prompt, **options))

    @abstractmethod
    def text(self, response: Any) -> str:
        """Return the text of a response."""

    @abstractmethod
    def text_of_event(self, event: Any) -> str: ...

    @abstractmethod
    def stream_text(self, prompt: str = "hi") -> str:
        """Call the model with the SDK's helper for streams; return the final text."""

    @abstractmethod
    def raw(self, prompt: str = "hi") -> Any:
        """Call the model; return the SDK's raw response."""

    @abstractmethod
    def tools(self, *names: str) -> dict[str, Any]:
        """Return the arguments that declare tools."""

    @abstractmethod
    def run_tools(self, response: Any, functions: dict[str, Any]) -> list[Any]: ...

    @abstractmethod
    def texts(self, request: dict[str, Any]) -> list[str]:
        """Return the texts in a request as it was sent."""

    def ask(self, prompt: str = "hi", **options: Any) -> str:
        return self.text(self.create(prompt, **options))

    def stream(self, prompt: str = "hi", **options: Any) -> list[Any]:
        """Call the model; return all events of the stream."""

        async def collected() -> list[Any]:
            return [event async for event in await self.create_call(prompt, stream=True, **options)]

        if self._is_async:
            events: list[Any] = self._runner.run(collected())
            return events
        return list(self.create(prompt, stream=True, **options))

    def streamed(self, prompt: str = "hi") -> str:
        return "".join(map(self.text_of_event, self.stream(prompt)))

    @abstractmethod
    def create_call(self, prompt: str, **options: Any) -> Any:
        """Call the model; return what the client returns."""

    def streamed_bytes(self, prompt: str = "hi") -> bytes:
        """Call the model with a streamed response; return the bytes of the body."""

        async def collected() -> bytes:
            async with self.with_streaming_response(prompt) as response:
                return b"".join([chunk async for chunk in response.iter_bytes()])

        if self._is_async:
            content: bytes = self._runner.run(collected())
            return content
        with self.with_streaming_response(prompt) as response:
            return b"".join(response.iter_bytes())

    @abstractmethod
    def with_streaming_response(self, prompt: str) -> Any: ...


class ChatTexts:
    """The texts in the answers of Chat Completions."""

    def text(self, response: Any) -> str:
        return response.choices[0].message.content or ""

    def text_of_event(self, event: Any) -> str:
        return "".join(choice.delta.content or "" for choice in event.choices)


class ResponsesTexts:
    """The texts in the answers of Responses."""

    def text(self, response: Any) -> str:
        return str(response.output_text)

    def text_of_event(self, event: Any) -> str:
        return event.delta if event.type == "response.output_text.delta" else ""


class MessagesTexts:
    """The texts in the answers of Messages."""

    def text(self, response: Any) -> str:
        return "".join(block.text for block in response.content if block.type == "text")

    def text_of_event(self, event: Any) -> str:
        return event.delta.text if event.type == "content_block_delta" and event.delta.type == "text_delta" else ""


class ChatDriver(ChatTexts, Driver):
    def create_call(self, prompt: str, **options: Any) -> Any:
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": prompt}]
        return self.client.chat.completions.create(model="m", messages=messages, **options)

    def stream_text(self, prompt: str = "hi") -> str:
        def call() -> Any:
            messages = [{"role": "user", "content": prompt}]
            return self.client.chat.completions.stream(model="m", messages=messages)

        completion = self.run(_final(call, "get_final_completion")) if self._is_async else _sync_final(call())
        return self.text(completion)

    def raw(self, prompt: str = "hi") -> Any:
        messages = [{"role": "user", "content": prompt}]
        return self.run(self.client.chat.completions.with_raw_response.create(model="m", messages=messages))

    def with_streaming_response(self, prompt: str) -> Any:
        messages = [{"role": "user", "content": prompt}]
        api = self.client.chat.completions.with_streaming_response
        return api.create(model="m", messages=messages, stream=True)

    def tools(self, *names: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        return {
            "tools": [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names],
        }

    def run_tools(self, response: Any, functions: dict[str, Any]) -> list[Any]:
        run = self.clients.arun_tool_calls if self._is_async else self.clients.run_tool_calls  # type: ignore[attr-defined]
        results: list[Any] = self.run(run(response.choices[0].message.tool_calls, functions))
        return results

    def texts(self, request: dict[str, Any]) -> list[str]:
        return [message["content"] for message in request["messages"]]


class ResponsesDriver(ResponsesTexts, Driver):
    def create_call(self, prompt: str, **options: Any) -> Any:
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": prompt}]
        return self.client.responses.create(model="m", input=messages, **options)

    def stream_text(self, prompt: str = "hi") -> str:
        def call() -> Any:
            return self.client.responses.stream(model="m", input=prompt)

        response = (
            self.run(_final(call, "get_final_response"))
            if self._is_async
            else _sync_final(call(), "get_final_response")
        )
        return self.text(response)

    def raw(self, prompt: str = "hi") -> Any:
        return self.run(self.client.responses.with_raw_response.create(model="m", input=prompt))

    def with_streaming_response(self, prompt: str) -> Any:
        return self.client.responses.with_streaming_response.create(model="m", input=prompt, stream=True)

    def tools(self, *names: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        return {
            "tools": [{"type": "function", "name": name, "parameters": schema, "strict": False} for name in names],
        }

    def run_tools(self, response: Any, functions: dict[str, Any]) -> list[Any]:
        run = self.clients.arun_tool_calls if self._is_async else self.clients.run_tool_calls  # type: ignore[attr-defined]
        results: list[Any] = self.run(run(response.output, functions))
        return results

    def texts(self, request: dict[str, Any]) -> list[str]:
        given = request["input"]
        return [given] if isinstance(given, str) else [item["content"] for item in given]


class MessagesDriver(MessagesTexts, Driver):
    integration = AnthropicHooks
    KINDS = (anthropic.Anthropic, anthropic.AsyncAnthropic)
    PATH = ""

    def create_call(self, prompt: str, **options: Any) -> Any:
        messages = [{"role": "user", "content": prompt}]
        return self.client.messages.create(model="m", max_tokens=100, system="be brief", messages=messages, **options)

    def stream_text(self, prompt: str = "hi") -> str:
        def call() -> Any:
            messages = [{"role": "user", "content": prompt}]
            return self.client.messages.stream(model="m", max_tokens=100, messages=messages)

        name = "get_final_message"
        return self.text(self.run(_final(call, name)) if self._is_async else _sync_final(call(), name))

    def raw(self, prompt: str = "hi") -> Any:
        messages = [{"role": "user", "content": prompt}]
        raw = self.client.messages.with_raw_response
        return self.run(raw.create(model="m", max_tokens=100, messages=messages))

    def with_streaming_response(self, prompt: str) -> Any:
        messages = [{"role": "user", "content": prompt}]
        api = self.client.messages.with_streaming_response
        return api.create(model="m", max_tokens=100, messages=messages, stream=True)

    def tools(self, *names: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        return {"tools": [{"name": name, "input_schema": schema} for name in names]}

    def run_tools(self, response: Any, functions: dict[str, Any]) -> list[Any]:
        run = self.clients.arun_tool_uses if self._is_async else self.clients.run_tool_uses  # type: ignore[attr-defined]
        results: list[Any] = self.run(run(response.content, functions))
        return results

    def texts(self, request: dict[str, Any]) -> list[str]:
        return [request["system"], *(message["content"] for message in request["messages"])]


async def _awaited(outcome: Any) -> Any:
    return await outcome


async def _final(call: Any, method: str) -> Any:
    async with call() as stream:
        return await getattr(stream, method)()


def _sync_final(manager: Any, method: str = "get_final_completion") -> Any:
    with manager as stream:
        return getattr(stream, method)()


DRIVERS: dict[str, tuple[type[Driver], bool, bool]] = {
    f"{name}-{'async' if is_async else 'sync'}{'-http' if by_http else ''}": (kind, is_async, by_http)
    for name, kind in (("chat", ChatDriver), ("responses", ResponsesDriver), ("messages", MessagesDriver))
    for is_async in (False, True)
    for by_http in ((False, True) if kind is MessagesDriver else (False,))
}
"""For openai, ``http_client`` and ``wrap`` make the same HTTP client. For anthropic, ``wrap`` uses middleware."""


@contextmanager
def driving(name: str, server: APIServer) -> Iterator[Driver]:
    kind, is_async, by_http = DRIVERS[name]
    driver = kind(server, is_async=is_async, by_http=by_http)
    try:
        yield driver
    finally:
        driver.close()
