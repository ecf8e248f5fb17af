"""The lines about large payloads: what a 1 MB model request costs over a tiny one, in both views, over encoding it."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
from figures import TIMES, Line, middle, undisturbed

from llxprt_hooks import Config, GenerateContentParameters, fire_before_model_hook

if TYPE_CHECKING:
    from scene import Scene

MESSAGES = 100
TEXT = 'The quick brown fox says: "the cost of a hook is the cost of a process".\n' * 131
"""A message of an agent's conversation, about 10 KB, with characters that JSON has to escape."""


def model_request_lines(scene: Scene, *, rounds: int, events: int) -> list[Line]:
    """Tiny and large in turns, under each profile; encoding is measured beside them."""
    titles = {
        "standard": "a 1 MB model request, over a tiny one, over encoding it",
        "full": "the same in the full view, for a hook that acts",
    }
    lines = {profile: Line(title, TIMES, 2.5) for profile, title in titles.items()}
    for profile, line in lines.items():
        if importlib.util.find_spec("google.genai") is None:
            line.skipped = "google-genai is not installed"
        else:
            _measure(line, _config(scene, profile), profile == "full", rounds, events)
    return [*lines.values()]


def _config(scene: Scene, profile: str) -> Config:
    hooks = {"BeforeModel": [{"hooks": [{"type": "command", "command": scene.plain}]}]}
    return Config(working_dir=scene.folder, enable_hooks=True, hooks=hooks, profile=profile)


def _measure(line: Line, config: Config, full: bool, rounds: int, events: int) -> None:
    tiny, large = _request(1, "hello"), _request(MESSAGES, TEXT)
    payload = _payload(large, full)
    extra, processor, encoding = [], [], []
    with asyncio.Runner() as runner:
        for _ in range(rounds + 1):
            times = [(runner.run(_fired(config, tiny)), runner.run(_fired(config, large))) for _ in range(events)]
            tiny_times, large_times = zip(*times, strict=True)
            wall, own = (
                undisturbed([each[kind] for each in large_times]) - undisturbed([each[kind] for each in tiny_times])
                for kind in (0, 1)
            )
            extra.append(wall)
            processor.append(own)
            encoding.append(undisturbed([_encoding(payload) for _ in range(events)]))
    line.rounds = [more / encoded for more, encoded in zip(extra[1:], encoding[1:], strict=True)]
    own_share = median(own / encoded for own, encoded in zip(processor[1:], encoding[1:], strict=True))
    size = len(msgspec.json.encode(payload)) / 1e6
    line.beside = (
        f"{middle(extra[1:])} more, encoding {size:.2f} MB {middle(encoding[1:])}; "
        f"in our own processor time {TIMES.write(own_share)}"
    )


def _request(messages: int, text: str) -> GenerateContentParameters:
    from google.genai import types

    roles = ("user", "model")
    contents = [types.Content(role=roles[i % 2], parts=[types.Part(text=text)]) for i in range(messages)]
    return GenerateContentParameters(model="gemini-2.5-pro", contents=contents, config=None)


def _payload(request: GenerateContentParameters, full: bool) -> dict[str, Any]:
    """What the hook is sent of the request."""
    from llxprt_hooks.model import request_payload

    return {"hook_event_name": "BeforeModel", "llm_request": request_payload(request, full=full)}


async def _fired(config: Config, request: GenerateContentParameters) -> tuple[float, float]:
    """Seconds, and those of them in which this process had a processor."""
    started, began = time.perf_counter(), time.process_time()
    result = await fire_before_model_hook(config, request)
    taken = time.perf_counter() - started, time.process_time() - began
    assert not result.blocked
    return taken


def _encoding(payload: dict[str, Any]) -> float:
    started = time.perf_counter()
    msgspec.json.encode(payload)
    return time.perf_counter() - started
