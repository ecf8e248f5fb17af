"""Agents of the OpenAI Agents SDK with hooks by public means only: decorated functions, and a client with hooks."""

from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI

from llxprt_hooks import deny, rewrite, stop
from llxprt_hooks.integrations.openai import OpenAIHooks
from tests.integrations.openai_agents_support import NO_TOOL
from tests.support.api_server import APIServer, Call


async def run(hooks: OpenAIHooks, server: APIServer, kind: type[Any] = OpenAIResponsesModel) -> tuple[str, list[str]]:
    """Run an agent in a session; return its answer, and the files that it wrote."""
    written: list[str] = []

    @function_tool
    @hooks.hooks.tool
    def write_file(path: str) -> str:
        """Write a file."""
        written.append(path)
        return f"wrote {path}"

    async with AsyncOpenAI(api_key="key", base_url=f"{server.url}/v1", max_retries=0) as client:
        model = kind("m", hooks.wrap(client))
        async with hooks.session("s1"):
            agent = Agent("a", tools=[write_file], model=model)
            result = await Runner.run(agent, "my key is sesame", run_config=RunConfig(tracing_disabled=True))
    return result.final_output, written


WRITE = [Call("write_file", {"path": "a.txt"})]


async def test_tools_have_hooks(api_server: APIServer) -> None:
    hooks = OpenAIHooks(hooks={})
    blocks = {"id_rsa": deny("no keys here"), "a.txt": rewrite(path="b.txt")}
    hooks.hooks.on("BeforeTool", lambda payload: blocks[payload["tool_input"]["path"]], matcher="^write_file$")
    api_server.will_say([Call("write_file", {"path": "id_rsa"}), *WRITE], "done")
    assert await run(hooks, api_server) == ("done", ["b.txt"])
    results = [item["output"] for item in api_server.requests[1]["input"] if "output" in item]
    assert results == ["no keys here", "wrote b.txt"]


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
async def test_models_have_hooks(api_server: APIServer, kind: type[Any]) -> None:
    hooks = OpenAIHooks(hooks={})
    request, response = {"messages": [{"role": "user", "content": "***"}]}, {"text": "redacted"}
    hooks.hooks.on("BeforeModel", lambda payload: {"hookSpecificOutput": {"llm_request": request}})
    hooks.hooks.on("AfterModel", lambda payload: {"hookSpecificOutput": {"llm_response": response}})
    assert await run(hooks, api_server, kind) == ("redacted", [])
    assert "sesame" not in str(api_server.requests)


async def test_a_stop_ends_the_run(api_server: APIServer) -> None:
    hooks = OpenAIHooks(hooks={})
    hooks.hooks.on("AfterTool", lambda payload: stop("enough"))
    api_server.will_say(WRITE, "went on")
    assert await run(hooks, api_server) == ("enough", ["a.txt"])
    assert len(api_server.requests) == 1


async def test_a_restriction_holds(api_server: APIServer) -> None:
    hooks = OpenAIHooks(hooks={})
    hooks.hooks.on("BeforeToolSelection", lambda payload: NO_TOOL)
    api_server.will_say(WRITE, "done")
    assert await run(hooks, api_server) == ("done", [])
