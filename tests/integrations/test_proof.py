"""``prove`` with real frameworks, streamed or not: every way is guarded, and an agent without hooks is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from llxprt_hooks import Config
from llxprt_hooks.testing import Scene, prove

Agent = Callable[[Scene, bool, bool], Coroutine[Any, Any, None]]
"""An agent with the tool of the scene, and a tool that starts another agent: whether it streams, and whether that other
agent has hooks."""

INSIDE = "in the agent that delegate starts"


async def langchain(scene: Scene, streams: bool, guards: bool) -> None:
    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI

    from llxprt_hooks.integrations.langchain import HooksMiddleware

    def canary() -> str:
        """Look something up."""
        return scene.tool()

    async def delegate() -> str:
        """Let another agent look it up."""
        return str((await inner.ainvoke(prompt))["messages"][-1].content)

    prompt: Any = {"messages": [HumanMessage("hello")]}
    model = ChatOpenAI(base_url=scene.openai_url, api_key=lambda: "none", model="m", streaming=streams)
    middleware = HooksMiddleware(hooks=scene.hooks)
    inner = create_agent(model, [canary], middleware=[middleware] if guards else [])
    outer = create_agent(model, [canary, delegate], middleware=[middleware])
    if not streams:
        await outer.ainvoke(prompt)
        return
    async for _ in outer.astream(prompt, stream_mode="messages"):
        pass


async def pydantic_ai(scene: Scene, streams: bool, guards: bool) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from llxprt_hooks.integrations.pydantic_ai import HooksCapability

    async def canary() -> str:
        return scene.tool()

    async def delegate() -> str:
        return (await inner.run("hello")).output

    model = AnthropicModel("m", provider=AnthropicProvider(api_key="none", base_url=scene.anthropic_url))
    capability = HooksCapability(hooks=scene.hooks)
    inner: Agent[None, str] = Agent(model, tools=[canary], capabilities=[capability] if guards else [])
    outer: Agent[None, str] = Agent(model, tools=[canary, delegate], capabilities=[capability])
    if not streams:
        await outer.run("hello")
        return
    async with outer.run_stream_events("hello") as events:
        async for _ in events:
            pass


async def openai_agents(scene: Scene, streams: bool, guards: bool) -> None:
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    from llxprt_hooks.integrations.openai_agents import install, uninstall

    @function_tool
    def canary() -> str:
        return scene.tool()

    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=scene.openai_url, api_key="none") as client:
        model = OpenAIResponsesModel("m", client)
        inner = Agent("inner", tools=[canary], model=model)
        outer = Agent("outer", tools=[canary, inner.as_tool("delegate", "Let another agent do it.")], model=model)
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


async def google_adk(scene: Scene, streams: bool, guards: bool) -> None:
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig
    from google.adk.apps import App
    from google.adk.models import Gemini
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.agent_tool import AgentTool
    from google.genai import types

    from llxprt_hooks.integrations.google_adk import HooksPlugin

    def canary() -> str:
        """Look something up."""
        return scene.tool()

    model = Gemini(model="gemini-m", base_url=scene.gemini_url)
    inner = LlmAgent(name="delegate", model=model, tools=[canary])
    outer = LlmAgent(name="outer", model=model, tools=[canary, AgentTool(inner, include_plugins=guards)])
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


LEAKS: dict[Agent, int] = {langchain: 2, pydantic_ai: 2, openai_agents: 6, google_adk: 2}
"""The ways that leak if not all is guarded: those with the inner agent, except where hooks are installed for all."""


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "none")


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")  # ADK's AgentTool itself
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", LEAKS, ids=lambda agent: agent.__name__)
def test_all_calls_of_an_agent_are_guarded(agent: Agent, streams: bool) -> None:
    found = prove(lambda scene: agent(scene, streams, True), tool="canary", through=["delegate"])

    assert [each.way for each in found][-1] == INSIDE
    assert all(each.seen_model_calls == each.model_calls for each in found)


@pytest.mark.parametrize("agent", LEAKS, ids=lambda agent: agent.__name__)
def test_an_agent_without_hooks_is_found(agent: Agent) -> None:
    with pytest.raises(AssertionError, match=f"{INSIDE}: 1 of 1 calls bypassed the guard: canary") as caught:
        prove(lambda scene: agent(scene, False, False), tool="canary", through=["delegate"])

    assert str(caught.value).count("bypassed the guard") == LEAKS[agent]
