"""What hooks cost in the frameworks where no hook runs: `.venv-integrations/bin/python bench/integrations.py [--json]`.

Each figure is what an integration adds to one call of a tool or of a model: the time of the function that the framework
calls with hooks, less that of what it calls without them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import agents
from agents import FunctionTool, RunConfig
from agents.run_internal import run_loop
from agents.testing import ScriptedModel
from engine import config_with, without_collector
from figures import MICROSECONDS, Line, undisturbed
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.prebuilt.tool_node import ToolCallRequest
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import WrapperToolset
from table import table

from llxprt_hooks import Config
from llxprt_hooks.integrations import fastmcp, google_adk, langchain, openai_agents, pydantic_ai
from llxprt_hooks.integrations.openai_agents import patches

ROUNDS, BATCHES, CALLS = 7, 15, 300
BUDGETS = {"hooks disabled": 1.0, "20 hooks, none matches": 5.0}

Call = Callable[[], Awaitable[Any]]
Pair = tuple[str, Call, Call]


async def nothing(*_: Any, **__: Any) -> Any:
    return None


async def seconds_of(call: Call) -> float:
    started = time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.process_time() - started) / CALLS


async def added(bare: Call, hooked: Call) -> float:
    taken = [(await seconds_of(bare), await seconds_of(hooked)) for _ in range(BATCHES)]
    without, with_hooks = map(undisturbed, zip(*taken, strict=True))
    return with_hooks - without


def of_langchain(config: Config) -> Iterator[Pair]:
    @tool
    def write_file(file_path: str) -> str:
        """Write a file."""
        return file_path

    hooks = langchain.HooksMiddleware(config)
    call: Any = {"name": "write_file", "args": {"file_path": "a"}, "id": "c"}
    asked: Any = ToolCallRequest(tool_call=call, tool=write_file, state={}, runtime=None)  # type: ignore[arg-type]
    model: Any = FakeListChatModel(responses=["x"])
    request: Any = ModelRequest(model=model, messages=[], state={"messages": [HumanMessage("go")]})
    result, answer = ToolMessage("done", tool_call_id="c"), ModelResponse(result=[AIMessage("done")])

    async def run(_: Any) -> Any:
        return result

    async def ask(_: Any) -> Any:
        return answer

    yield "LangChain: tool", lambda: run(asked), lambda: hooks.awrap_tool_call(asked, run)
    yield "LangChain: model", lambda: ask(request), lambda: hooks.awrap_model_call(request, ask)


def of_openai_agents(config: Config) -> Iterator[Pair]:
    async def write_file(context: Any, given: str) -> str:
        return "done"

    bare = FunctionTool("write_file", "", {"type": "object", "properties": {}}, write_file, strict_json_schema=False)

    async def listed(*_: Any) -> Any:
        return [bare]

    # With a method of its own: the list of any other agent was hooked before.
    own_kind = type("Own", (agents.Agent,), {"get_all_tools": listed})
    agent: Any = own_kind("a", model=ScriptedModel([]))
    hooks = openai_agents.OpenAIAgentsHooks(config)
    (hooked,) = hooks.tools_of([bare]) if config.enable_hooks else (bare,)
    assert isinstance(hooked, FunctionTool)
    run_config, invoke = RunConfig(), hooked.on_invoke_tool
    given: Any = SimpleNamespace(tool_call=None, tool_call_id="c")

    async def choose(get_model: Any) -> None:
        get_model(agent, run_config)

    # What is replaced is measured on its own: listing tools takes the SDK a hundred times as long.
    get_model = patches._choosing_model(run_loop.get_model, hooks)
    list_tools = patches._listing_tools(listed, hooks)
    yield "OpenAI Agents: tool", lambda: write_file(given, "{}"), lambda: invoke(given, "{}")
    yield "OpenAI Agents: model", lambda: choose(run_loop.get_model), lambda: choose(get_model)
    yield "OpenAI Agents: each tool of a turn", lambda: listed(agent, None), lambda: list_tools(agent, None)


def of_pydantic_ai(config: Config) -> Iterator[Pair]:
    class Tools(WrapperToolset[Any]):
        def __init__(self) -> None: ...

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return "done"

    context: Any = SimpleNamespace(conversation_id="c", run_id="r", tool_call_id="t")
    capability = asyncio.run(pydantic_ai.HooksCapability(config).for_run(context))
    tools, model, arguments = Tools(), TestModel(), {"file_path": "a"}
    hooked = capability.get_wrapper_toolset(tools) or tools

    async def choose() -> None:
        capability.get_wrapper_model(model)

    unused: Any = None
    yield (
        "pydantic-ai: tool",
        lambda: tools.call_tool("write_file", arguments, context, unused),
        lambda: hooked.call_tool("write_file", arguments, context, unused),
    )
    yield "pydantic-ai: model", nothing, choose


def of_google_adk(config: Config) -> Iterator[Pair]:
    plugin = google_adk.HooksPlugin(config)
    invocation: Any = Invocation()
    asyncio.run(plugin.before_run_callback(invocation_context=invocation))
    context: Any = ADKContext()
    context.get_invocation_context = lambda: invocation
    written: Any = SimpleNamespace(name="write_file")
    arguments, request, answer = {"file_path": "a"}, LlmRequest(), LlmResponse()

    async def run_tool() -> None:
        await plugin.before_tool_callback(tool=written, tool_args=arguments, tool_context=context)
        await plugin.after_tool_callback(tool=written, tool_args=arguments, tool_context=context, result={})

    async def ask_model() -> None:
        await plugin.before_model_callback(callback_context=context, llm_request=request)
        await plugin.after_model_callback(callback_context=context, llm_response=answer)

    yield "Google ADK: tool", nothing, run_tool
    yield "Google ADK: model", nothing, ask_model


class ADKContext:
    """What the plugin reads of a tool's context, which it refers to weakly."""

    invocation_id, branch, agent_name, function_call_id = "i", None, "a", "c"
    actions = SimpleNamespace(requested_tool_confirmations={})


class Invocation:
    invocation_id = "i"
    live_request_queue = None
    session = SimpleNamespace(id="s")
    user_content = None


def of_fastmcp(config: Config) -> Iterator[Pair]:
    hooks = fastmcp.HooksMiddleware(config)
    current = SimpleNamespace(request_context=None)
    request: Any = SimpleNamespace(message=SimpleNamespace(name="write_file", arguments={}), fastmcp_context=current)
    yield "FastMCP: tool", lambda: nothing(request), lambda: hooks.on_call_tool(request, nothing)


FRAMEWORKS = (of_langchain, of_openai_agents, of_pydantic_ai, of_google_adk, of_fastmcp)


def figures(config: Config, runner: asyncio.Runner) -> dict[str, list[float]]:
    """Seconds added to each kind of call, in every round."""
    pairs = [pair for framework in FRAMEWORKS for pair in framework(config)]
    rounds = [[runner.run(added(bare, hooked)) for _, bare, hooked in pairs] for _ in range(ROUNDS)]
    return {name: taken for (name, *_), *taken in zip(pairs, *rounds, strict=True)}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("llxprt_hooks").setLevel(logging.ERROR)  # that no matcher matches is meant
    unmatched = config_with(20)
    cases = [Config(enable_hooks=False, hooks=unmatched.hooks), unmatched]
    with asyncio.Runner() as runner, without_collector():
        taken = [figures(config, runner) for config in cases]
    lines = [
        Line(f"{case}: {name} over the bare one", MICROSECONDS, budget * 1e-6, rounds=rounds)
        for (case, budget), by_name in zip(BUDGETS.items(), taken, strict=True)
        for name, rounds in by_name.items()
    ]
    if sys.argv[1:] == ["--json"]:
        print(json.dumps([line.to_dict() for line in lines]))
    else:
        print(table(("added to a call", "figure", "middle half", "budget", "", ""), [line.cells() for line in lines]))


if __name__ == "__main__":
    main()
