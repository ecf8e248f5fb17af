"""``prove`` with real frameworks, streamed or not: every way is guarded, and an agent without hooks is found."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config
from llxprt_hooks.testing import CanaryError, Outcome, Scene, prove
from tests.support.processes import until

Agent = Callable[[Scene, bool, bool, str], Coroutine[Any, Any, None]]
"""An agent with the tool of the scene, a tool that starts another agent, and the tools of an MCP server: whether it
streams, whether that other agent has hooks, and the URL of the server."""

SERVER = Path(__file__).with_name("mcp_tools_server.py")
ERROR, MCP, BACKGROUND = "again after an error", "a tool of an MCP server", "in the background"
INSIDE = "in the agent that delegate starts"


async def langchain(scene: Scene, streams: bool, guards: bool, server: str) -> None:
    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage
    from langchain_core.tools import StructuredTool, ToolException
    from langchain_openai import ChatOpenAI

    from llxprt_hooks.integrations.langchain import HooksMiddleware

    def canary() -> str:
        """Look something up."""
        try:
            return scene.tool()
        except CanaryError as error:
            raise ToolException(str(error)) from error

    async def delegate() -> str:
        """Let another agent look it up."""
        return str((await inner.ainvoke(prompt))["messages"][-1].content)

    prompt: Any = {"messages": [HumanMessage("hello")]}
    model = ChatOpenAI(base_url=scene.openai_url, api_key=lambda: "none", model="m", streaming=streams)
    middleware = HooksMiddleware(hooks=scene.hooks)
    tool = StructuredTool.from_function(canary, handle_tool_error=True)
    inner = create_agent(model, [tool], middleware=[middleware] if guards else [])
    outer = create_agent(model, [tool, delegate], middleware=[middleware])
    if not streams:
        await outer.ainvoke(prompt)
        return
    async for _ in outer.astream(prompt, stream_mode="messages"):
        pass


async def pydantic_ai(scene: Scene, streams: bool, guards: bool, server: str) -> None:
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from llxprt_hooks.integrations.pydantic_ai import HooksCapability

    async def canary() -> str:
        try:
            return scene.tool()
        except CanaryError as error:
            raise ModelRetry(str(error)) from error

    async def delegate() -> str:
        return (await inner.run("hello")).output

    model = AnthropicModel("m", provider=AnthropicProvider(api_key="none", base_url=scene.anthropic_url))
    capability = HooksCapability(hooks=scene.hooks)
    inner: Agent[None, str] = Agent(model, tools=[canary], capabilities=[capability] if guards else [])
    outer: Agent[None, str] = Agent(
        model, tools=[canary, delegate], toolsets=[MCPToolset(server)], capabilities=[capability]
    )
    if not streams:
        await outer.run("hello")
        return
    async with outer.run_stream_events("hello") as events:
        async for _ in events:
            pass


async def openai_agents(scene: Scene, streams: bool, guards: bool, server: str) -> None:
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from agents.mcp import MCPServerStreamableHttp
    from openai import AsyncOpenAI

    from llxprt_hooks.integrations.openai_agents import install, uninstall

    @function_tool
    def canary() -> str:
        return scene.tool()

    set_tracing_disabled(True)
    async with (
        AsyncOpenAI(base_url=scene.openai_url, api_key="none") as client,
        MCPServerStreamableHttp({"url": server}) as connected,
    ):
        model = OpenAIResponsesModel("m", client)
        inner = Agent("inner", tools=[canary], model=model)
        delegate = inner.as_tool("delegate", "Let another agent do it.")
        outer = Agent("outer", tools=[canary, delegate], mcp_servers=[connected], model=model)
        if guards:
            install(Config(hooks=scene.hooks, enable_hooks=True))
        try:
            if not streams:
                await Runner.run(outer, "hello")
                return
            async for _ in Runner.run_streamed(outer, "hello").stream_events():
                pass
        finally:
            uninstall()


async def google_adk(scene: Scene, streams: bool, guards: bool, server: str) -> None:
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig
    from google.adk.apps import App
    from google.adk.models import Gemini
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
    from google.genai import types

    from llxprt_hooks.integrations.google_adk import HooksPlugin

    def canary() -> str:
        """Look something up."""
        return scene.tool()

    model = Gemini(model="gemini-m", base_url=scene.gemini_url)
    inner = LlmAgent(name="delegate", model=model, tools=[canary])
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=server))
    outer = LlmAgent(name="outer", model=model, tools=[canary, AgentTool(inner, include_plugins=guards), toolset])
    plugin = HooksPlugin(Config(hooks=scene.hooks, enable_hooks=True))
    runner = InMemoryRunner(app=App(name="app", root_agent=outer, plugins=[plugin]))
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s1")
    running: AsyncIterator[Any] = runner.run_async(
        user_id="u",
        session_id="s1",
        new_message=types.Content(role="user", parts=[types.Part(text="hello")]),
        run_config=RunConfig.model_validate({"streaming_mode": "sse" if streams else None}),
    )
    async for _ in running:
        pass
    await runner.close()


async def openai_client(scene: Scene, streams: bool, guards: bool, server: str) -> None:
    from openai import AsyncOpenAI

    from llxprt_hooks.integrations.openai import OpenAIHooks

    integration = OpenAIHooks(hooks=scene.hooks)
    bare = AsyncOpenAI(base_url=scene.openai_url, api_key="none")
    client = integration.wrap(bare)

    def canary() -> str:
        try:
            return scene.tool()
        except CanaryError as error:
            return f"error: {error}"

    async def converse(*functions: Callable[[], Any], guards: bool) -> str:
        names = {function.__name__: function for function in functions}
        tools: Any = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]
        messages: list[Any] = [{"role": "user", "content": "hello"}]
        while True:
            asked: Any = {"model": "m", "messages": messages, "tools": tools}
            if streams:
                async with client.chat.completions.stream(**asked) as stream:
                    message = (await stream.get_final_completion()).choices[0].message
            else:
                message = (await client.chat.completions.create(**asked)).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            messages.append(message)
            if guards:
                messages += await integration.arun_tool_calls(message.tool_calls, names)
            else:
                ran = [(call.id, names[call.function.name]()) for call in message.tool_calls]
                messages += [{"role": "tool", "tool_call_id": key, "content": text} for key, text in ran]

    async def delegate() -> str:
        return await converse(canary, guards=guards)

    async with bare:
        await converse(canary, delegate, guards=True)


async def anthropic_client(scene: Scene, streams: bool, guards: bool, server: str) -> None:
    from anthropic import AsyncAnthropic, beta_async_tool

    from llxprt_hooks.integrations.anthropic import AnthropicHooks

    integration = AnthropicHooks(hooks=scene.hooks)
    bare = AsyncAnthropic(base_url=scene.anthropic_url, api_key="none")
    client = integration.wrap(bare)

    @beta_async_tool
    async def canary() -> str:
        """Look something up."""
        return scene.tool()

    @beta_async_tool
    async def delegate() -> str:
        """Let another agent look it up."""
        return await converse(integration.tools([canary]) if guards else [canary])

    async def converse(tools: Any) -> str:
        asked: Any = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
        if not streams:
            message = await client.beta.messages.tool_runner(**asked, tools=tools).until_done()
            return str(message.content)
        async for stream in client.beta.messages.tool_runner(**asked, tools=tools, stream=True):
            async for _ in stream:
                pass
        return "done"

    async with bare:
        await converse(integration.tools([canary, delegate]))


LEAKS: dict[Agent, int] = {
    langchain: 2,
    pydantic_ai: 2,
    openai_agents: 8,
    google_adk: 2,
    openai_client: 2,
    anthropic_client: 2,
}
"""The ways that leak if not all is guarded: those with the inner agent, except where hooks are installed for all."""

WITHOUT: dict[Agent, list[str]] = {
    langchain: [MCP],
    google_adk: [ERROR],
    openai_client: [MCP],
    anthropic_client: [MCP],
}
"""The ways that these agents do not have, beside work in the background: ADK ends when a tool raises."""


async def claude(scene: Scene, home: Path) -> None:
    """The program of the Claude Agent SDK. Its agents in agents work in the background of a session, so it has none."""
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, tool

    from llxprt_hooks.integrations.claude_agent_sdk import hooked
    from tests.integrations.claude_support import offline

    @tool("canary", "Look something up.", {})
    async def canary(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": scene.tool()}]}

    options = ClaudeAgentOptions(
        cwd=home,
        env=offline(scene.anthropic_url, home),
        mcp_servers={"t": create_sdk_mcp_server("t", tools=[canary])},
        tools=["Bash", "Read"],
        allowed_tools=["mcp__t__canary", "Bash", "Read"],
        setting_sources=[],
        model="model-1",
        thinking={"type": "disabled"},
    )
    async with (
        hooked(options, Config(hooks=scene.hooks, enable_hooks=True)) as options,
        ClaudeSDKClient(options) as client,
    ):
        await client.query("hello")
        async for _ in client.receive_response():
            pass


def test_all_calls_of_the_program_of_the_claude_agent_sdk_are_guarded(tmp_path: Path) -> None:
    found = prove(lambda scene: claude(scene, tmp_path), tool="mcp__t__canary", failing="mcp__t__canary")

    assert [each.way for each in found if not each.is_guarded] == ["in another agent"]
    assert all(each.seen_model_calls == each.model_calls == each.streamed for each in found)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "none")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an MCP server that has the tool ``lookup``."""
    ran = tmp_path_factory.mktemp("server") / "ran"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), str(ran), str(port)], stderr=subprocess.DEVNULL)

    def answers() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    until(answers)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait()


@pytest.mark.filterwarnings(
    "ignore:The `plugins` argument is deprecated:DeprecationWarning",  # ADK's AgentTool itself
    "ignore:Accessing `Tool.:DeprecationWarning",  # ADK's McpToolset, where pydantic-ai has imported FastMCP
)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", LEAKS, ids=lambda agent: agent.__name__)
def test_all_calls_of_an_agent_are_guarded(agent: Agent, streams: bool, server: str) -> None:
    mcp = None if MCP in WITHOUT.get(agent, []) else "lookup"
    found = prove(lambda scene: agent(scene, streams, True, server), tool="canary", through=["delegate"], mcp=mcp)

    not_tried = [each.way for each in found if each.outcome is Outcome.NOT_TRIED]
    assert not_tried == [*WITHOUT.get(agent, []), BACKGROUND]
    assert [each.way for each in found][-1] == INSIDE
    assert all(each.seen_model_calls == each.model_calls for each in found)
    assert all(bool(each.streamed) is streams for each in found if each.calls)


@pytest.mark.parametrize("agent", LEAKS, ids=lambda agent: agent.__name__)
def test_an_agent_without_hooks_is_found(agent: Agent, server: str) -> None:
    mcp = None if MCP in WITHOUT.get(agent, []) else "lookup"
    with pytest.raises(AssertionError, match=f"{INSIDE}: 1 of 1 calls bypassed the guard: canary") as caught:
        prove(lambda scene: agent(scene, False, False, server), tool="canary", through=["delegate"], mcp=mcp)

    assert str(caught.value).count("bypassed the guard") == LEAKS[agent]
