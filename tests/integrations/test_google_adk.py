"""Hooks in Google's Agent Development Kit: what is special about it; the effects themselves are in the contract."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from pydantic import PrivateAttr

from llxprt_hooks import Config, context, deny, rewrite, stop
from llxprt_hooks.integrations.google_adk import HooksPlugin

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning"),
]


class Model(BaseLlm):
    """Answers with these parts, one list for each request, and keeps the requests."""

    model: str = "scripted"
    answers: list[list[types.Part]]
    _requests: list[Any] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append(llm_request)
        yield LlmResponse(content=types.Content(role="model", parts=self.answers[len(self._requests) - 1]))


def say(text: str) -> list[types.Part]:
    return [types.Part(text=text)]


def call(name: str = "write_file", **args: Any) -> list[types.Part]:
    return [types.Part(function_call=types.FunctionCall(name=name, args=args or {"path": "a.txt"}))]


class Files:
    """A tool, and what it did."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write_file(self, path: str) -> dict[str, Any]:
        """Write a file."""
        self.written.append(path)
        return {"status": "ok", "result": f"wrote {path}"}


@pytest.fixture
def plugin() -> HooksPlugin:
    return HooksPlugin(Config(enable_hooks=True))


async def run(agent: Any, *plugins: BasePlugin, prompt: str = "Go") -> list[Event]:
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=list(plugins)))
    await runner.session_service.create_session(app_name="app", user_id="u", session_id="s1")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    events = [event async for event in runner.run_async(user_id="u", session_id="s1", new_message=message)]
    await runner.close()
    return events


def results(events: list[Event]) -> list[Any]:
    return [response.response for event in events for response in event.get_function_responses()]


def texts(events: list[Event]) -> list[str]:
    parts = [part for event in events for part in (event.content.parts if event.content else None) or []]
    return [part.text for part in parts if part.text]


async def test_sub_agents_have_hooks(plugin: HooksPlugin) -> None:
    plugin.hooks.on("BeforeTool", lambda payload: deny("no"), matcher="write_file")
    files = Files()
    second = LlmAgent(name="second", model=Model(answers=[call(), say("second done")]), tools=[files.write_file])
    transfer = call("transfer_to_agent", agent_name="second")
    first = LlmAgent(name="first", model=Model(answers=[transfer]), sub_agents=[second])
    events = await run(first, plugin)
    assert files.written == []
    assert {"error": "no"} in results(events)
    assert texts(events)[-1] == "second done"


async def test_an_agent_that_is_a_tool_has_hooks(plugin: HooksPlugin) -> None:
    seen: list[Any] = []
    plugin.hooks.on("BeforeTool", seen.append)
    plugin.hooks.on("BeforeTool", lambda payload: deny("no"), matcher="write_file")
    files = Files()
    inner = LlmAgent(name="inner", model=Model(answers=[call(), say("inner done")]), tools=[files.write_file])
    outer_model = Model(answers=[call("inner", request="please"), say("done")])
    outer = LlmAgent(name="outer", model=outer_model, tools=[AgentTool(inner)])
    await run(outer, plugin)
    assert files.written == []
    assert [payload["tool_name"] for payload in seen] == ["inner", "write_file"]


async def test_the_restriction_of_an_agent_is_not_that_of_a_parallel_one(plugin: HooksPlugin) -> None:
    none = {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}}
    plugin.hooks.on("BeforeToolSelection", lambda payload: none if payload["llm_request"]["model"] == "one" else None)
    files = {"one": Files(), "two": Files()}
    agents: list[Any] = [
        LlmAgent(name=name, model=Model(model=name, answers=[call(), say("done")]), tools=[tools.write_file])
        for name, tools in files.items()
    ]
    await run(ParallelAgent(name="both", sub_agents=agents), plugin)
    assert (files["one"].written, files["two"].written) == ([], ["a.txt"])


async def test_after_a_stop_no_other_agent_starts(plugin: HooksPlugin) -> None:
    plugin.hooks.on("BeforeTool", lambda payload: stop("enough"), matcher="write_file")
    inner_model = Model(answers=[call(), say("never")])
    inner = LlmAgent(name="inner", model=inner_model, tools=[Files().write_file])
    events = await run(inner, plugin)
    assert texts(events)[-1] == "enough"
    assert len(inner_model._requests) == 1
    assert events[-1].custom_metadata == {"llxprt_hooks": {"stop_reason": "enough", "blocked": True}}


async def test_a_tool_that_does_not_exist_fires_no_event(plugin: HooksPlugin) -> None:
    seen: list[Any] = []
    plugin.hooks.on("BeforeTool", seen.append)
    agent = LlmAgent(name="a", model=Model(answers=[call("unknown"), say("done")]), tools=[Files().write_file])
    await run(agent, plugin)
    assert seen == []


async def test_a_question_for_confirmation_fires_no_after_tool(plugin: HooksPlugin) -> None:
    before: list[Any] = []
    after: list[Any] = []
    asked: list[Any] = []
    plugin.hooks.on("BeforeTool", before.append)
    plugin.hooks.on("AfterTool", after.append)
    plugin.hooks.on("Notification", asked.append)
    files = Files()
    tool = FunctionTool(files.write_file, require_confirmation=True)
    await run(LlmAgent(name="a", model=Model(answers=[call()]), tools=[tool]), plugin)
    assert (files.written, len(before), after) == ([], 1, [])
    assert [payload["details"]["tool_input"] for payload in asked] == [{"path": "a.txt"}]


async def test_text_of_hooks_joins_the_text_in_a_result(plugin: HooksPlugin) -> None:
    plugin.hooks.on("AfterTool", lambda payload: context("2 lines"))
    agent = LlmAgent(name="a", model=Model(answers=[call(), say("done")]), tools=[Files().write_file])
    assert results(await run(agent, plugin)) == [{"status": "ok", "result": "wrote a.txt\n\n2 lines"}]


async def test_hooks_see_what_other_plugins_left(plugin: HooksPlugin) -> None:
    class Rename(BasePlugin):
        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
            tool_args["path"] = "renamed"

    seen: list[Any] = []
    plugin.hooks.on("BeforeTool", seen.append)
    plugin.hooks.on("BeforeTool", lambda payload: rewrite(path=payload["tool_input"]["path"] + "!"))
    files = Files()
    agent = LlmAgent(name="a", model=Model(answers=[call(), say("done")]), tools=[files.write_file])
    await run(agent, Rename("rename"), plugin)
    assert (seen[0]["tool_input"], files.written) == ({"path": "renamed"}, ["renamed!"])


@pytest.mark.parametrize(("model", "is_named"), [("gemini-3-pro", True), ("other", False)])
async def test_names_are_sent_to_gemini_and_left_out_for_other_models(
    plugin: HooksPlugin, model: str, is_named: bool
) -> None:
    only = {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["write_file"]}}}
    plugin.hooks.on("BeforeToolSelection", lambda payload: only)

    def read_file(path: str) -> str:
        """Read a file."""
        return path

    scripted = Model(model=model, answers=[say("done")])
    tools: list[Callable[..., Any]] = [Files().write_file, read_file]
    await run(LlmAgent(name="a", model=scripted, tools=list(tools)), plugin)
    config = scripted._requests[0].config
    declared = [function.name for tool in config.tools for function in tool.function_declarations]
    assert declared == (["write_file", "read_file"] if is_named else ["write_file"])
    if is_named:
        calling = config.tool_config.function_calling_config
        assert (calling.mode.value, calling.allowed_function_names) == ("VALIDATED", ["write_file"])


async def test_disabled_hooks_do_nothing() -> None:
    plugin = HooksPlugin(Config())
    files = Files()
    agent = LlmAgent(name="a", model=Model(answers=[call(), say("done")]), tools=[files.write_file])
    assert texts(await run(agent, plugin)) == ["done"]
    assert files.written == ["a.txt"]
