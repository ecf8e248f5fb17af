"""Sessions, restrictions and stops of several runs of the OpenAI Agents SDK, and what is stored of an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    Model,
    RunConfig,
    RunHooks,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.run import AgentRunner
from agents.testing import ScriptedModel
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from llxprt_hooks import Config, context, deny, stop
from llxprt_hooks.core.calls import sessions
from llxprt_hooks.integrations.openai_agents import OpenAIAgentsHooks, install, uninstall
from tests.integrations.openai_agents_support import Files, allow_only, call, results, say


@pytest.fixture
def hooks() -> Iterator[OpenAIAgentsHooks]:
    set_tracing_disabled(True)
    yield install(Config(enable_hooks=True))
    uninstall()


# Several runs.


async def test_a_stop_holds_while_another_run_of_the_session_begins(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: stop("enough"), matcher="halt")
    is_stopped, may_go_on = asyncio.Event(), asyncio.Event()

    @function_tool
    async def slow() -> str:
        await may_go_on.wait()
        return "slow"

    @function_tool
    async def halt() -> str:
        return "never"

    model = ScriptedModel([[*call("slow", "c1"), *call("halt", "c2")], say("went on")])

    class Stopped(RunHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            is_stopped.set()  # the tool that goes on has not ended

    agent = Agent("a", tools=[halt, slow], model=model)
    first = asyncio.create_task(Runner.run(agent, "Go", session=SQLiteSession("s1"), hooks=Stopped()))
    await is_stopped.wait()
    other = await Runner.run(Agent("b", model=ScriptedModel([say("other")])), "Go", session=SQLiteSession("s1"))
    may_go_on.set()
    assert (other.final_output, (await first).final_output) == ("other", "enough")


async def test_a_group_of_traces_is_not_a_session(hooks: OpenAIAgentsHooks) -> None:
    """A nested run gets the configuration of the outer one: it fires no events of its own, and a stop ends both."""
    fired: list[Any] = []
    for event in ("SessionStart", "BeforeAgent"):
        hooks.hooks.on(event, fired.append)
    hooks.hooks.on("BeforeTool", lambda payload: stop("enough"), matcher="write_file")
    inner = Agent("inner", tools=[Files().tool], model=ScriptedModel([call(), say("inner done")]))
    outer_model = ScriptedModel([call("ask_inner", input="please"), say("went on")])
    outer = Agent("outer", tools=[inner.as_tool("ask_inner", "asks")], model=outer_model)
    config = RunConfig(group_id="group")
    result = await Runner.run(outer, "Go", run_config=config, session=SQLiteSession("s1"))
    await hooks.hooks.settle()
    assert result.final_output == "enough"
    events = sorted((payload["hook_event_name"], payload["session_id"]) for payload in fired)
    assert events == [("BeforeAgent", "s1"), ("SessionStart", "s1")]


async def test_hooks_run_in_a_session_that_was_forgotten(
    hooks: OpenAIAgentsHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_REMEMBERED", 1)
    started: list[Any] = []
    hooks.hooks.on("SessionStart", started.append)
    hooks.hooks.on("BeforeTool", lambda payload: deny("no"), matcher="write_file")
    files = Files()

    @function_tool
    async def others() -> str:
        for number in range(3):
            quick = Agent("b", model=ScriptedModel([say("other")]))
            task = asyncio.create_task(Runner.run(quick, "Go", session=SQLiteSession(f"other{number}")))
            await task
        hooks.end_session("s1")
        return "ok"

    model = ScriptedModel([call("others"), call(call_id="c2"), say("done")])
    await Runner.run(Agent("a", tools=[others, files.tool], model=model), "Go", session=SQLiteSession("s1"))
    assert (files.written, results(model)) == ([], ["ok", "no"])


async def test_runs_without_a_session_push_no_session_out(
    hooks: OpenAIAgentsHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_REMEMBERED", 1)
    started: list[Any] = []
    hooks.hooks.on("SessionStart", started.append)
    for session in (SQLiteSession("s1"), None, None, SQLiteSession("s1")):
        await Runner.run(Agent("a", model=ScriptedModel([say("done")])), "Go", session=session)
    await hooks.hooks.settle()
    assert [payload["session_id"] for payload in started] == ["s1"]


async def test_a_run_that_is_resumed_without_a_session_continues_in_its_own(hooks: OpenAIAgentsHooks) -> None:
    seen: list[Any] = []
    hooks.hooks.on("BeforeModel", seen.append)
    hooks.hooks.on("AfterModel", lambda payload: {"systemMessage": "be brief"})
    files = Files(needs_approval=True)
    model = ScriptedModel([call(), say("done")])
    agent = Agent("a", tools=[files.tool], model=model)
    result = await Runner.run(agent, "Go")
    state: RunState[Any] = result.to_state()
    state.approve(result.interruptions[0])
    await Runner.run(agent, state)
    assert files.written == ["a.txt"]
    assert len({payload["session_id"] for payload in seen}) == 1
    assert model.last_call is not None
    assert "be brief" in str(model.last_call.input)


# Other ways to run a tool.


async def test_a_runner_of_its_own_has_hooks(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: stop("enough"))
    files = Files()
    agent: Agent[Any] = Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("went on")]))
    result = await AgentRunner().run(agent, "Go")
    assert (result.final_output, files.written) == ("enough", [])


async def test_a_stop_outside_of_a_run_refuses_the_call(
    hooks: OpenAIAgentsHooks, caplog: pytest.LogCaptureFixture
) -> None:
    """As in realtime sessions: the reason is not an error of the tool, after which the model tries again."""
    hooks.hooks.on("BeforeTool", lambda payload: stop("enough"))
    files = Files()
    (tool,) = await Agent("a", tools=[files.tool]).get_all_tools(ToolContextStub())
    assert isinstance(tool, FunctionTool)
    given: Any = ToolContext(None, tool_name="write_file", tool_call_id="c1", tool_arguments="{}")
    assert await tool.on_invoke_tool(given, '{"path": "a.txt"}') == "enough"
    assert files.written == []
    assert "outside of a run" in caplog.text


def ToolContextStub() -> Any:
    return ToolContext(None, tool_name="", tool_call_id="c", tool_arguments="{}")


async def test_tools_that_a_class_of_agents_adds_have_hooks(hooks: OpenAIAgentsHooks) -> None:
    files = Files()

    class Extended(Agent[Any]):
        async def get_all_tools(self, run_context: Any) -> list[Any]:
            return [*await super().get_all_tools(run_context), files.tool]

    hooks.hooks.on("BeforeTool", lambda payload: deny("no"))
    model = ScriptedModel([call(), say("done")])
    await Runner.run(Extended("a", model=model), "Go")
    assert (files.written, results(model)) == ([], ["no"])


@pytest.mark.parametrize("allowed", ["run_shell_command", "write_file"])
async def test_a_tool_with_an_alias_runs_if_it_is_allowed_by_one_of_its_names(
    hooks: OpenAIAgentsHooks, allowed: str
) -> None:
    aliased = install(Config(enable_hooks=True), aliases={"write_file": "run_shell_command"})
    aliased.hooks.on("BeforeToolSelection", lambda payload: allow_only(allowed))
    fired: list[Any] = []
    aliased.hooks.on("BeforeTool", fired.append)
    files = Files()

    @function_tool
    def other() -> str:
        return "never"

    model = ScriptedModel([[*call(), *call("other", "c2")], say("done")])
    await Runner.run(Agent("a", tools=[files.tool, other], model=model), "Go")
    assert [payload["tool_name"] for payload in fired] == ["run_shell_command"]
    assert files.written == ["a.txt"]
    assert "other may not be called now. Allowed tools: run_shell_command." in results(model)[1]
    assert model.last_call is not None
    assert [tool.name for tool in model.last_call.tools] == ["write_file"]


async def test_text_of_hooks_does_not_break_a_result_with_a_schema(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("AfterTool", lambda payload: context("2 rows"), matcher="query")

    async def invoke(given: Any, arguments: str) -> str:
        return '{"rows": 2}'

    schema: Any = {"type": "object", "properties": {}}
    tool = FunctionTool("query", "a tool", schema, invoke, strict_json_schema=False, output_json_schema=schema)
    model = ScriptedModel([call("query"), say("done")])
    await Runner.run(Agent("a", tools=[tool], model=model), "Go")
    assert json.loads(results(model)[0]) == {"rows": 2}
    assert model.last_call is not None
    assert "2 rows" in str(model.last_call.input)


async def test_a_program_that_calls_a_refused_tool_gets_json(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: deny("no"))

    async def invoke(given: Any, arguments: str) -> str:
        return "{}"

    schema: Any = {"type": "object", "properties": {}}
    tool = FunctionTool("query", "a tool", schema, invoke, strict_json_schema=False, output_json_schema=schema)
    (hooked,) = hooks.tools_of([tool])
    caller: Any = {"type": "program", "caller_id": "p"}
    given: Any = ToolContext(
        None,
        tool_name="query",
        tool_call_id="c1",
        tool_arguments="{}",
        tool_call=ResponseFunctionToolCall.model_validate({**call("query")[0].model_dump(), "caller": caller}),
    )
    assert isinstance(hooked, FunctionTool)
    assert await hooked.on_invoke_tool(given, "{}") == '{"error":"no"}'


async def test_hooks_see_the_name_of_the_model_that_is_called(hooks: OpenAIAgentsHooks) -> None:
    seen: list[Any] = []
    hooks.hooks.on("BeforeModel", seen.append)
    model: Any = ScriptedModel([say("done")])
    model.model = "small"
    await Runner.run(Agent("a", model="large"), "Go", run_config=RunConfig(model=model))
    assert seen[0]["llm_request"]["model"] == "small"


# What is stored of an answer that a hook changed.


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_changed_answer_does_not_refer_to_the_one_that_the_server_keeps(
    hooks: OpenAIAgentsHooks, is_streamed: bool
) -> None:
    hooks.hooks.on("AfterModel", lambda payload: {"hookSpecificOutput": {"llm_response": {"text": "***"}}})
    agent = Agent("a", model=ScriptedModel([say("a secret")]))
    if is_streamed:
        streamed = Runner.run_streamed(agent, "Go")
        async for _ in streamed.stream_events():
            pass
        result: Any = streamed
    else:
        result = await Runner.run(agent, "Go")
    assert (result.final_output, result.last_response_id) == ("***", None)
    assert result.raw_responses[-1].output[0].id != "m"


@pytest.mark.parametrize(("event", "is_kept"), [("AfterModel", False), ("BeforeModel", True)])
async def test_a_trace_does_not_keep_what_a_hook_may_take_out(
    hooks: OpenAIAgentsHooks, event: str, is_kept: bool
) -> None:
    hooks.hooks.on(event, lambda payload: None)
    model = ScriptedModel([say("done")])
    set_tracing_disabled(False)
    try:
        await Runner.run(Agent("a", model=model), "Go")
    finally:
        set_tracing_disabled(True)
    assert model.last_call is not None
    assert model.last_call.tracing.include_data() is is_kept


class Failing(Model):
    """A stream that fails after a part of the answer."""

    def __init__(self, events: list[Any]) -> None:
        self._events = events

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        for event in self._events:
            if event.type == "response.completed":
                yield event.model_copy(update={"type": "response.failed"})
            else:
                yield event


async def test_a_failure_does_not_show_a_part_of_the_answer(hooks: OpenAIAgentsHooks) -> None:
    async def shown(model: Model) -> list[Any]:
        events: list[Any] = []
        run = Runner.run_streamed(Agent("a", model=model), "Go")
        try:
            async for event in run.stream_events():
                if event.type == "raw_response_event":
                    events.append(event.data)
        except Exception:
            assert events
        return events

    complete = await shown(ScriptedModel([say("a secret")]))
    hooks.hooks.on("AfterModel", lambda payload: None)
    events = await shown(Failing(complete))
    assert [event.type for event in events] == ["response.failed"]
    assert "a secret" not in str(events)
