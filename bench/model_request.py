"""The line about large payloads: what a 1 MB model request costs over a tiny one, against encoding it."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from typing import TYPE_CHECKING, Any

import msgspec
from figures import TIMES, Line, middle, undisturbed

from llxprt_hooks import Config, GenerateContentParameters, fire_before_model_hook

if TYPE_CHECKING:
    from scene import Scene

MESSAGES = 100
TEXT = 'The quick brown fox says: "the cost of a hook is the cost of a process".\n' * 131
"""A message of an agent's conversation, about 10 KB, with characters that JSON has to escape."""


def model_request_line(scene: Scene, *, rounds: int, events: int) -> Line:
    """Tiny and large in turns; encoding is measured beside them."""
    line = Line("a 1 MB model request, over a tiny one, over encoding it", TIMES, 2.5)
    if importlib.util.find_spec("google.genai") is None:
        line.skipped = "google-genai is not installed"
        return line
    tiny, large = _request(1, "hello"), _request(MESSAGES, TEXT)
    hooks = {"BeforeModel": [{"hooks": [{"type": "command", "command": scene.plain}]}]}
    config = Config(working_dir=scene.folder, enable_hooks=True, hooks=hooks)
    payload = _payload(large)
    extra, encoding = [], []
    with asyncio.Runner() as runner:
        for _ in range(rounds + 1):
            times = [(runner.run(_fired(config, tiny)), runner.run(_fired(config, large))) for _ in range(events)]
            extra.append(undisturbed([large for _, large in times]) - undisturbed([tiny for tiny, _ in times]))
            encoding.append(undisturbed([_encoding(payload) for _ in range(events)]))
    line.rounds = [more / encoded for more, encoded in zip(extra[1:], encoding[1:], strict=True)]
    size = len(msgspec.json.encode(payload)) / 1e6
    line.beside = f"{middle(extra[1:])} more, encoding {size:.2f} MB {middle(encoding[1:])}"
    return line


def _request(messages: int, text: str) -> GenerateContentParameters:
    from google.genai import types

    roles = ("user", "model")
    contents = [types.Content(role=roles[i % 2], parts=[types.Part(text=text)]) for i in range(messages)]
    return GenerateContentParameters(model="gemini-2.5-pro", contents=contents, config=None)


def _payload(request: GenerateContentParameters) -> dict[str, Any]:
    """What the hook is sent of the request."""
    from llxprt_hooks.model import request_payload

    return {"hook_event_name": "BeforeModel", "llm_request": request_payload(request)}


async def _fired(config: Config, request: GenerateContentParameters) -> float:
    started = time.perf_counter()
    result = await fire_before_model_hook(config, request)
    elapsed = time.perf_counter() - started
    assert not result.blocked
    return elapsed


def _encoding(payload: dict[str, Any]) -> float:
    started = time.perf_counter()
    msgspec.json.encode(payload)
    return time.perf_counter() - started
