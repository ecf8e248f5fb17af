"""Hooks in the OpenAI Agents SDK: what is special about it; the effects themselves are in the contract."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import agents.run
import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelBehaviorError,
    RunConfig,
    Runner,
    SQLiteSession,
    WebSearchTool,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.agent import AgentBase
from agents.run_internal import run_loop
from agents.testing import ScriptedModel
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel

from llxprt_hooks import Config, deny, rewrite, stop
from llxprt_hooks.integrations.openai_agents import HookStopped, OpenAIAgentsHooks, install, uninstall


def say(text: str) -> list[Any]:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])]


def call(name: str = "write_file", call_id: str = "c1", **args: Any) -> list[Any]:
    arguments = json.dumps(args or {"path": "a.txt"})
    return [ResponseFunctionToolCall(type="function_call", name=name, arguments=arguments, call_id=call_id)]


def results(model: ScriptedModel) -> list[str]:
    assert model.last_call is not None
    return [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]


@pytest.fixture
def hooks() -> Iterator[OpenAIAgentsHooks]:
    set_tracing_disabled(True)
    yield install(Config(enable_hooks=True))
    uninstall()


class Files:
    """A tool, and what it did."""

    def __init__(self, needs_approval: Any = False) -> None:
        self.written: list[str] = []

        @function_tool(needs_approval=needs_approval)
        def write_file(path: str) -> str:
            self.written.append(path)
            return f"wrote {path}"

        self.tool = write_file


async def test_an_agent_keeps_its_identity(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: None)
    hooks.hooks.on("BeforeModel", lambda payload: None)
    files = Files()
    agent = Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("done")]))
    result = await Runner.run(agent, "Go")
    assert result.last_agent is agent
    assert (result.final_output, files.written) == ("done", ["a.txt"])


async def test_uninstall_puts_everything_back() -> None:
    before = (agents.run.DEFAULT_AGENT_RUNNER, AgentBase.get_all_tools, run_loop.get_model)
    installed = install(Config(enable_hooks=True))
    installed.hooks.on("BeforeTool", lambda payload: deny("no"))
    assert agents.run.DEFAULT_AGENT_RUNNER is not before[0]
    uninstall()
    assert (agents.run.DEFAULT_AGENT_RUNNER, AgentBase.get_all_tools, run_loop.get_model) == before
    files = Files()
    await Runner.run(Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("done")])), "Go")
    assert files.written == ["a.txt"]


@pytest.mark.usefixtures("own_loop")
def test_installing_twice_hooks_once(hooks: OpenAIAgentsHooks) -> None:
    again = install(Config(enable_hooks=True))
    seen: list[Any] = []
    again.hooks.on("BeforeTool", seen.append)
    agent = Agent("a", tools=[Files().tool], model=ScriptedModel([call(), say("done")]))
    Runner.run_sync(agent, "Go")
    assert len(seen) == 1


def test_a_release_without_the_places_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(run_loop, "get_model")
    with pytest.raises(RuntimeError, match="cannot be installed"):
        install(Config(enable_hooks=True))


async def test_disabled_hooks_replace_nothing() -> None:
    before = AgentBase.get_all_tools
    install(Config())
    assert AgentBase.get_all_tools is before
    uninstall()


# Approval.


async def test_a_policy_still_sees_the_arguments_that_it_needs(hooks: OpenAIAgentsHooks) -> None:
    """A policy that looks at arguments asks a person for the same calls as without hooks."""

    async def only_secrets(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return "secret" in arguments["path"]

    async def asked(path: str) -> tuple[int, list[str]]:
        files = Files(only_secrets)
        model = ScriptedModel([call(path=path), say("done")])
        result = await Runner.run(Agent("a", tools=[files.tool], model=model), "Go")
        return len(result.interruptions), files.written

    with_hooks = []
    hooks.hooks.on("BeforeTool", lambda payload: None)
    for path in ("secret", "plain"):
        with_hooks.append(await asked(path))
    uninstall()
    assert with_hooks == [await asked(path) for path in ("secret", "plain")] == [(1, []), (0, ["plain"])]


async def test_arguments_that_cannot_be_inspected_still_need_approval(hooks: OpenAIAgentsHooks) -> None:
    """Arguments that validation changes are not what a policy looked at: the SDK then asks a person."""

    async def never(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return False

    @function_tool(needs_approval=never)
    def count(number: int = 3) -> str:
        return str(number)

    async def asked() -> int:
        agent = Agent("a", tools=[count], model=ScriptedModel([call("count", number="7"), say("done")]))
        return len((await Runner.run(agent, "Go")).interruptions)

    hooks.hooks.on("BeforeTool", lambda payload: None)
    with_hooks = await asked()
    uninstall()
    assert with_hooks == await asked() == 1


async def test_arguments_are_rewritten_after_a_policy_has_seen_them(hooks: OpenAIAgentsHooks) -> None:
    async def never(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return False

    hooks.hooks.on("BeforeTool", lambda payload: rewrite(path="b.txt"))
    files = Files(never)
    await Runner.run(Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("done")])), "Go")
    assert files.written == ["b.txt"]


async def test_a_restricted_call_asks_nobody(hooks: OpenAIAgentsHooks) -> None:
    none = {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}}
    hooks.hooks.on("BeforeToolSelection", lambda payload: none)
    files = Files(needs_approval=True)
    model = ScriptedModel([call(), say("done")])
    result = await Runner.run(Agent("a", tools=[files.tool], model=model), "Go")
    assert (result.interruptions, files.written) == ([], [])
    assert "may not be called now" in results(model)[0]


# Several agents.


async def test_agents_that_are_tools_have_hooks_too(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: deny("no"), matcher="write_file")
    seen: list[Any] = []
    hooks.hooks.on("BeforeTool", seen.append)
    files = Files()
    inner_model = ScriptedModel([call(), say("inner done")])
    inner = Agent("inner", tools=[files.tool], model=inner_model)
    tool = inner.as_tool("ask_inner", "asks the inner agent")
    outer = Agent("outer", tools=[tool], model=ScriptedModel([call("ask_inner", input="please"), say("done")]))
    await Runner.run(outer, "Go", session=SQLiteSession("s1"))
    assert (files.written, results(inner_model)) == ([], ["no"])
    assert [(payload["tool_name"], payload["session_id"]) for payload in seen] == [
        ("ask_inner", "s1"),
        ("write_file", "s1"),
    ]


async def test_the_agent_that_takes_over_has_hooks(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: deny("no"))
    files = Files()
    second = Agent("second", tools=[files.tool], model=ScriptedModel([call(), say("second done")]))
    take_over = [ResponseFunctionToolCall(type="function_call", name="transfer_to_second", arguments="{}", call_id="h")]
    first = Agent("first", handoffs=[second], model=ScriptedModel([take_over]))
    result = await Runner.run(first, "Go")
    assert (result.final_output, result.last_agent is second, files.written) == ("second done", True, [])


async def test_a_handoff_that_is_not_allowed_does_not_happen(hooks: OpenAIAgentsHooks) -> None:
    allowed = {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["write_file"]}}}
    hooks.hooks.on("BeforeToolSelection", lambda payload: allowed)
    second = Agent("second", model=ScriptedModel([say("second")]))
    take_over = [ResponseFunctionToolCall(type="function_call", name="transfer_to_second", arguments="{}", call_id="h")]
    model = ScriptedModel([take_over])
    first = Agent("first", handoffs=[handoff(second)], tools=[Files().tool], model=model)
    result = await Runner.run(first, "Go")
    assert result.last_agent is first
    assert "transfer_to_second may not be called now" in result.final_output
    assert model.last_call is not None
    assert model.last_call.handoffs == []


# Other ways to run, other tools.


@pytest.mark.usefixtures("own_loop")
def test_run_sync(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: deny("no"))
    files = Files()
    model = ScriptedModel([call(), say("done")])
    assert Runner.run_sync(Agent("a", tools=[files.tool], model=model), "Go").final_output == "done"
    assert (files.written, results(model)) == ([], ["no"])


async def test_the_model_of_a_run_configuration_has_hooks(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeModel", lambda payload: deny("no model"))
    model = ScriptedModel([say("done")])
    result = await Runner.run(Agent("a"), "Go", run_config=RunConfig(model=model))
    assert (result.final_output, model.calls) == ("no model", ())


async def test_a_run_with_structured_output_raises(hooks: OpenAIAgentsHooks) -> None:
    class Answer(BaseModel):
        number: int

    hooks.hooks.on("BeforeModel", lambda payload: stop("enough"))
    with pytest.raises(HookStopped, match="enough"):
        await Runner.run(Agent("a", output_type=Answer, model=ScriptedModel([])), "Go")


async def test_a_tool_that_is_not_a_decorated_function(hooks: OpenAIAgentsHooks) -> None:
    ran: list[str] = []

    async def invoke(context: Any, arguments: str) -> str:
        ran.append(arguments)
        return "ran"

    tool = FunctionTool("raw", "a tool", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
    hooks.hooks.on("BeforeTool", lambda payload: deny("no") if payload["tool_input"] == {"input": "not JSON"} else None)
    broken = [ResponseFunctionToolCall(type="function_call", name="raw", arguments="not JSON", call_id="c1")]
    model = ScriptedModel([broken, call("raw", "c2", x=1), say("done")])
    await Runner.run(Agent("a", tools=[tool], model=model), "Go")
    assert (ran, results(model)) == (['{"x": 1}'], ["no", "ran"])


async def test_what_hooks_do_not_see_is_said_once(hooks: OpenAIAgentsHooks, caplog: pytest.LogCaptureFixture) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: None)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await Runner.run(Agent("a", tools=[WebSearchTool()], model=ScriptedModel([say("done")])), "Go")
    assert caplog.text.count("hooks do not see the calls of web_search") == 1


async def test_a_stream_that_breaks_off_shows_nothing(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("AfterModel", lambda payload: None)
    complete = ScriptedModel([say("a secret")])
    events = []
    run = Runner.run_streamed(Agent("a", model=complete), "Go")
    async for event in run.stream_events():
        if event.type == "raw_response_event":
            events.append(event.data)
    cut = ScriptedModel([{"stream_events": [event for event in events if event.type != "response.completed"]}])
    shown = []
    broken = Runner.run_streamed(Agent("a", model=cut), "Go")

    async def show() -> None:
        async for event in broken.stream_events():
            if event.type == "raw_response_event":
                shown.append(event.data)

    with pytest.raises(ModelBehaviorError, match="before the answer was complete"):
        await show()
    assert shown == []
