"""A project made by ``llxprt-hooks init``, and events fired at it through the engine."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from llxprt_hooks import AggregatedHookResult, Config, DefaultHookOutput
from llxprt_hooks.cli.main import run_command_line
from tests.support.project import Project

READING = ("read_file", "list_directory", "glob", "search_file_content")


class RecipeProject(Project):
    """A project and its hooks."""

    def init(self, *recipes: str) -> Self:
        assert run_command_line(["init", "-C", str(self.root), *recipes]) == 0
        return self

    async def fire(self, event: str, session_id: str = "s1", **fields: Any) -> AggregatedHookResult:
        """Fire an event at the hooks as the settings have them; none of them may fail."""
        config = Config.load(self.root)
        system = config.get_hook_system()
        assert system is not None, config.settings
        await system.initialize()
        assert system.get_registry().problems == []
        handler = system.get_event_handler()
        result = await handler.fire_event(event, {"session_id": session_id, **fields}, keep_base_fields=True)
        assert result.errors == [], [(each.error, each.stderr) for each in result.results]
        return result

    async def output(self, event: str, **fields: Any) -> DefaultHookOutput:
        return (await self.fire(event, **fields)).final_output or DefaultHookOutput({})

    async def verdict(self, tool_name: str, **tool_input: Any) -> str | None:
        """Why a tool call is blocked, or None."""
        output = await self.output("BeforeTool", tool_name=tool_name, tool_input=tool_input)
        return output.get_effective_reason() if output.is_blocking_decision() else None

    async def context(self, tool_name: str, response: Mapping[str, Any] | None = None, **tool_input: Any) -> str:
        """What the model reads beside a tool's result."""
        fields = {"tool_name": tool_name, "tool_input": tool_input, "tool_response": response or {"llmContent": "done"}}
        return (await self.output("AfterTool", **fields)).get_additional_context() or ""

    async def try_sample(self, recipe: str, event: str) -> AggregatedHookResult:
        sample = json.loads((self.root / ".llxprt" / "hooks" / "samples" / f"{recipe}.json").read_text())
        return await self.fire(event, **sample)


def request(*texts: str, model: str = "m") -> dict[str, Any]:
    """A model request; the first message is the user's, then they take turns."""
    roles = ("user", "model")
    messages = [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]
    return {"model": model, "messages": messages}


def response(text: str, tokens: tuple[int, int] | None = None, finish: str = "STOP") -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [text]}, "finishReason": finish, "index": 0}
    answer: dict[str, Any] = {"text": text, "candidates": [candidate]}
    if tokens:
        answer["usageMetadata"] = {
            "promptTokenCount": tokens[0],
            "candidatesTokenCount": tokens[1],
            "totalTokenCount": sum(tokens),
        }
    return answer


class Service(ThreadingHTTPServer):
    """A service on this machine that keeps what it was sent."""

    def __init__(self, reply: Callable[[Any], tuple[int, bytes]]) -> None:
        self.reply = reply
        self.received: list[tuple[dict[str, str], Any]] = []
        self.arrived = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append((dict(self.headers), body))
        self.server.arrived.set()
        status, answer = self.server.reply(body)
        self.send_response(status)
        if status in (301, 302, 307):
            self.send_header("Location", answer.decode())
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(reply: Callable[[Any], tuple[int, bytes]]) -> Iterator[Service]:
    with Service(reply) as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def mode_of(path: Path) -> int:
    return os.stat(path).st_mode & 0o777
