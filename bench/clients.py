"""The lines about what hooks cost a client that has them: disabled, and with hooks none of which is for a model call.

A call of the whole client takes a thousand times as long, and its own scatter would hide what is measured here. So the
transports of the HTTP client, and the middleware, are called as the client calls them, with and without hooks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx2
from engine import BATCHES, config_with, without_collector
from figures import MICROSECONDS, Line, undisturbed

from llxprt_hooks import Config
from llxprt_hooks.integrations.anthropic import AnthropicHooks
from llxprt_hooks.integrations.http_transport import HookedTransport
from llxprt_hooks.integrations.openai import OpenAIHooks

RESPONSE = httpx2.Response(200)
REQUEST: Any = httpx2.Request("POST", "https://api.openai.com/v1/responses", json={"model": "m", "input": "hi"})
MIDDLEWARE_REQUEST: Any = SimpleNamespace(method="POST", url="https://api.anthropic.com/v1/messages")
"""What Anthropic's middleware reads of a request that has no hooks."""


class Transport:
    """A transport that answers at once."""

    def handle_request(self, request: Any) -> Any:
        return RESPONSE

    async def handle_async_request(self, request: Any) -> Any:
        return RESPONSE


def client_lines(*, rounds: int, calls: int) -> list[Line]:
    """Each kind of client, bare and with hooks in turns."""
    lines = []
    with without_collector():
        for name, budget, config in (
            ("hooks disabled", 1e-6, Config(enable_hooks=False, hooks=config_with(10).hooks)),
            ("enabled, nothing matches, 10 hooks", 5e-6, config_with(10)),
        ):
            for kind, taken in _kinds(config):
                line = Line(f"{name}: {kind} over the bare one", MICROSECONDS, budget)
                line.rounds = [_overhead(taken, calls) for _ in range(rounds + 1)][1:]
                lines.append(line)
    return lines


Batch = Callable[[int], float]


def _kinds(config: Config) -> list[tuple[str, tuple[Batch, Batch]]]:
    bare, middleware = Transport(), AnthropicHooks(config).middleware()
    hooked = HookedTransport(bare, OpenAIHooks(config))
    return [
        ("a request of OpenAI", (_sync(bare.handle_request), _sync(hooked.handle_request))),
        (
            "a request of AsyncOpenAI",
            (_async(bare.handle_async_request), _async(hooked.handle_async_request)),
        ),
        (
            "a request of Anthropic",
            (_sync(bare.handle_request), _sync(lambda _: middleware.handle(MIDDLEWARE_REQUEST, bare.handle_request))),
        ),
    ]


def _overhead(taken: tuple[Batch, Batch], calls: int) -> float:
    """Seconds that hooks add to a call."""
    pairs = [(taken[0](max(1, calls // BATCHES)), taken[1](max(1, calls // BATCHES))) for _ in range(BATCHES)]
    bare, hooked = map(undisturbed, zip(*pairs, strict=True))
    return hooked - bare


def _sync(handle: Callable[[Any], Any]) -> Batch:
    def batch(calls: int) -> float:
        started = time.process_time()
        for _ in range(calls):
            handle(REQUEST)
        return (time.process_time() - started) / calls

    return batch


def _async(handle: Callable[[Any], Any]) -> Batch:
    async def run(calls: int) -> float:
        started = time.process_time()
        for _ in range(calls):
            await handle(REQUEST)
        return (time.process_time() - started) / calls

    return lambda calls: asyncio.run(run(calls))
