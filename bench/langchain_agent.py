"""What hooks cost in a LangChain agent where no hook runs: `.venv-integrations/bin/python bench/langchain_agent.py`.

Each figure is what a method of the middleware adds to a call of LangChain's own handler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from engine import config_with, without_collector
from figures import MICROSECONDS, undisturbed
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.prebuilt.tool_node import ToolCallRequest
from table import table

from llxprt_hooks import Config
from llxprt_hooks.integrations.langchain import HooksMiddleware

ROUNDS, BATCHES, CALLS = 9, 20, 500


@tool
def write_file(file_path: str) -> str:
    """Write a file."""
    return file_path


CALL: Any = {"name": "write_file", "args": {"file_path": "a"}, "id": "c"}
TOOL_REQUEST: Any = ToolCallRequest(tool_call=CALL, tool=write_file, state={}, runtime=None)  # type: ignore[arg-type]
MODEL_REQUEST: Any = ModelRequest(
    model=FakeListChatModel(responses=["x"]), messages=[], state={"messages": [HumanMessage("go")]}
)
TOOL_RESULT = ToolMessage("done", tool_call_id="c")
MODEL_RESULT: Any = ModelResponse(result=[AIMessage("done")])


def seconds_of(call: Callable[[], Any]) -> float:
    started = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - started) / CALLS


async def async_seconds_of(call: Callable[[], Any]) -> float:
    started = time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.process_time() - started) / CALLS


def overhead(method: Callable[..., Any], request: Any, result: Any) -> float:
    def handler(_: Any) -> Any:
        return result

    taken = [
        (seconds_of(lambda: handler(request)), seconds_of(lambda: method(request, handler))) for _ in range(BATCHES)
    ]
    bare, hooked = map(undisturbed, zip(*taken, strict=True))
    return hooked - bare


async def async_overhead(method: Callable[..., Any], request: Any, result: Any) -> float:
    async def handler(_: Any) -> Any:
        return result

    taken = [
        (await async_seconds_of(lambda: handler(request)), await async_seconds_of(lambda: method(request, handler)))
        for _ in range(BATCHES)
    ]
    bare, hooked = map(undisturbed, zip(*taken, strict=True))
    return hooked - bare


def figures(hooks: HooksMiddleware, runner: asyncio.Runner) -> list[float]:
    return [
        overhead(hooks.wrap_tool_call, TOOL_REQUEST, TOOL_RESULT),
        runner.run(async_overhead(hooks.awrap_tool_call, TOOL_REQUEST, TOOL_RESULT)),
        overhead(hooks.wrap_model_call, MODEL_REQUEST, MODEL_RESULT),
        runner.run(async_overhead(hooks.awrap_model_call, MODEL_REQUEST, MODEL_RESULT)),
    ]


def main() -> None:
    unmatched = config_with(20)
    cases = {
        "hooks disabled": HooksMiddleware(Config(enable_hooks=False, hooks=unmatched.hooks)),
        "20 hooks, none matches": HooksMiddleware(unmatched),
    }
    rounds: dict[str, list[list[float]]] = {name: [] for name in cases}
    with asyncio.Runner() as runner, without_collector():
        for _ in range(ROUNDS):
            for name, hooks in cases.items():
                rounds[name].append(figures(hooks, runner))
    medians = {name: [median(each) for each in zip(*taken, strict=True)] for name, taken in rounds.items()}
    rows = [[name, *map(MICROSECONDS.write, taken)] for name, taken in medians.items()]
    print(table(["added to a call", "tool", "tool, async", "model", "model, async"], rows))


if __name__ == "__main__":
    main()
