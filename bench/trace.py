"""Trace three calls through the package: a tool call, a model call, and loading settings.

``python bench/trace.py`` prints how many functions and modules of the package each of them passes, how deep the stack
is where a hook's process is started, and how often the same thing is worked out: plans, requests, translators.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

PACKAGE = f"{os.sep}llxprt_hooks{os.sep}"
COUNTED = {
    "plan lookups": ("create_execution_plan",),
    "translators resolved": ("resolve_translator",),
    "requests read": ("read_request",),
}


class Trace:
    """The calls of functions of the package between ``start`` and ``stop``."""

    def __init__(self) -> None:
        self.clear()
        sys.addaudithook(self._note_start)

    def clear(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.frames = 0
        """Frames of the package on the stack when the process of a hook was started."""
        self._suspended: set[FrameType] = set()

    def start(self) -> None:
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    def stop(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note_start(self, event: str, arguments: object) -> None:
        if event == "subprocess.Popen":
            self.frames = max(self.frames, _package_frames(sys._getframe(1)))

    def _record(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        # For a profiler, resuming a coroutine is a call of its frame. Only the first one counts.
        if PACKAGE not in code.co_filename or frame in self._suspended:
            return
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_GENERATOR):
            self._suspended.add(frame)
        self.calls[code] += 1

    def figures(self) -> dict[str, Any]:
        named = {
            label: sum(count for code, count in self.calls.items() if code.co_name in names)
            for label, names in COUNTED.items()
        }
        return {
            "calls": self.calls.total(),
            "functions": len(self.calls),
            "modules": len({code.co_filename for code in self.calls}),
            "frames to the process": self.frames,
            **named,
        }


def _package_frames(frame: FrameType | None) -> int:
    frames = 0
    while frame is not None:
        frames += PACKAGE in frame.f_code.co_filename
        frame = frame.f_back
    return frames


def traced(work: Callable[[], object]) -> dict[str, Any]:
    trace = Trace()
    trace.start()  # first: the thread of the background loop, if there will be one, is then traced too
    try:
        work()  # with imports, caches and the first start, which are not what a call costs
        trace.clear()
        work()
    finally:
        trace.stop()
    return trace.figures()


def hook(*events: str) -> dict[str, Any]:
    group = {"hooks": [{"type": "command", "command": "/bin/true"}]}
    return {event: [group] for event in events}


def tool_call() -> dict[str, Any]:
    from llxprt_hooks import Config, Hooks

    hooks = Hooks(Config(enable_hooks=True, hooks=hook("BeforeTool")))

    async def call() -> object:
        return await hooks.run_tool("write_file", {"file_path": "a.txt"}, lambda args: "written")

    with asyncio.Runner() as runner:
        figures = traced(lambda: runner.run(call()))
    figures["frames to the process"] += 1  # `run_tool` itself, which has returned its coroutine by then
    return figures


def model_call() -> dict[str, Any]:
    import openai

    from llxprt_hooks import Config
    from llxprt_hooks.integrations.openai import OpenAIHooks

    message = {"role": "assistant", "content": "hello"}
    answer = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
    config = Config(enable_hooks=True, hooks=hook("BeforeToolSelection", "BeforeModel", "AfterModel"))
    plain = openai.OpenAI(api_key="none", base_url="http://localhost/v1", http_client=httpx.Client(transport=transport))
    client = OpenAIHooks(config=config).wrap(plain)
    tool: Any = {"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}
    return traced(
        lambda: client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], tools=[tool])
    )


def load() -> dict[str, Any]:
    from llxprt_hooks import Config

    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HOME": folder, "LLXPRT_TRUST_PROJECT_HOOKS": "1"}
        project = Path(folder, "project")
        settings = project / ".llxprt" / "settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"enableHooks": True, "hooks": hook("BeforeTool")}))

        def work() -> None:
            system = Config.load(project).get_hook_system()
            assert system is not None
            asyncio.run(system.initialize())

        return traced(work)


def main() -> None:
    figures = {"tool call": tool_call(), "model call": model_call(), "Config.load": load()}
    width = max(map(len, figures["tool call"]))
    print(" " * width, *(f"{name:>12}" for name in figures))
    for label in figures["tool call"]:
        print(f"{label:{width}}", *(f"{each[label]:12}" for each in figures.values()))


if __name__ == "__main__":
    main()
