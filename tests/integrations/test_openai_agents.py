"""Effects that only the OpenAI Agents SDK has. The effects of all frameworks are in the contract."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelBehaviorError,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    ToolExecutionConfig,
    WebSearchTool,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.run_internal import run_loop
from agents.testing import ScriptedModel
from agents.tool_context import ToolContext
from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

from llxprt_hooks import Config, deny, rewrite, stop
from llxprt_hooks.integrations.openai_agents import HookStopped, OpenAIAgentsHooks, install, patches, uninstall
from tests.integrations.openai_agents_support import NO_TOOL, Files, allow_only, call, results, say

if TYPE_CHECKING:
    from tests.support.api_server import APIServer


@pytest.fixture
def hooks() -> Iterator[OpenAIAgentsHooks]:
    set_tracing_disabled(True)
    yield install(Config(enable_hooks=True))
    uninstall()


async def test_an_agent_keeps_its_identity(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: None)
    hooks.hooks.on("BeforeModel", lambda payload: None)
    files = Files()
    agent = Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("done")]))
    result = await Runner.run(agent, "Go")
    assert result.last_agent is agent
    assert (result.final_output, files.written) == ("done", ["a.txt"])


def places() -> list[Any]:
    return [getattr(owner, name) for owner, name, _ in patches._REPLACEMENTS]


async def test_uninstall_puts_everything_back() -> None:
    before = places()
    installed = install(Config(enable_hooks=True))
    installed.hooks.on("BeforeTool", lambda payload: deny("no"))
    assert not any(now is then for now, then in zip(places(), before, strict=True))
    uninstall()
    assert places() == before
    files = Files()
    await Runner.run(Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("done")])), "Go")
    assert files.written == ["a.txt"]


async def test_uninstall_leaves_what_somebody_else_has_replaced_since(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = install(Config(enable_hooks=True))
    installed.hooks.on("BeforeTool", lambda payload: deny("no"))
    ours = run_loop.get_model

    def theirs(*args: Any) -> Any:
        return ours(*args)

    monkeypatch.setattr(run_loop, "get_model", theirs)
    uninstall()
    assert run_loop.get_model is theirs
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


async def test_hooks_that_are_enabled_after_they_were_installed_run(hooks: OpenAIAgentsHooks) -> None:
    installed = install(Config())
    files = Files()
    agent = Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("done"), call(), say("done")]))
    await Runner.run(agent, "Go")
    installed.hooks.on("BeforeTool", lambda payload: deny("no"))
    await Runner.run(agent, "Go")
    assert files.written == ["a.txt"]


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
    hooks.hooks.on("BeforeToolSelection", lambda payload: NO_TOOL)
    files = Files(needs_approval=True)
    model = ScriptedModel([call(), say("done")])
    result = await Runner.run(Agent("a", tools=[files.tool], model=model), "Go")
    assert (result.interruptions, files.written) == ([], [])
    assert "may not be called now" in results(model)[0]


async def test_a_tool_that_needs_approval_from_now_on_needs_it_with_hooks_too(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: None)
    files = Files()
    agent = Agent("a", tools=[files.tool], model=ScriptedModel([call(), say("done"), call(), say("done")]))
    await Runner.run(agent, "Go")
    files.tool.needs_approval = True
    result = await Runner.run(agent, "Go")
    assert (len(result.interruptions), files.written) == (1, ["a.txt"])


async def test_an_approval_is_not_waived_by_the_restriction_of_another_agent(hooks: OpenAIAgentsHooks) -> None:
    """A call that nobody was asked about because it is not allowed must not run after all."""

    def select(payload: dict[str, Any]) -> Any:
        return allow_only("helper") if "outer" in str(payload["llm_request"]["messages"]) else None

    hooks.hooks.on("BeforeToolSelection", select)
    files = Files(needs_approval=True)
    inner = Agent("inner", tools=[Files().tool], model=ScriptedModel([say("inner done")]))
    model = ScriptedModel([[*call("helper", input="please"), *call(call_id="c2")], say("done")])
    outer = Agent("outer", tools=[inner.as_tool("helper", "helps"), files.tool], model=model)
    one_by_one = RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))
    result = await Runner.run(outer, "outer", run_config=one_by_one)
    assert (result.interruptions, files.written) == ([], [])
    assert "write_file may not be called now" in results(model)[1]


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


async def test_what_hooks_say_about_an_answer_is_for_the_agent_that_gave_it(hooks: OpenAIAgentsHooks) -> None:
    answers = iter(["outer", "inner", "inner again", "outer again"])
    hooks.hooks.on("AfterModel", lambda payload: {"systemMessage": f"about {next(answers)}"})
    inner_model = ScriptedModel([call(), say("inner done")])
    inner = Agent("inner", tools=[Files().tool], model=inner_model)
    outer_model = ScriptedModel([call("ask_inner", input="please"), say("done")])
    outer = Agent("outer", tools=[inner.as_tool("ask_inner", "asks the inner agent")], model=outer_model)
    await Runner.run(outer, "Go")

    def told(model: ScriptedModel) -> list[list[str]]:
        texts = (str(each.input) for each in model.calls)
        return [[note for note in ("about outer", "about inner") if note in text] for text in texts]

    assert told(inner_model) == [[], ["about inner"]]
    assert told(outer_model) == [[], ["about outer"]]


async def test_the_agent_that_takes_over_has_hooks(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: deny("no"))
    files = Files()
    second = Agent("second", tools=[files.tool], model=ScriptedModel([call(), say("second done")]))
    take_over = [ResponseFunctionToolCall(type="function_call", name="transfer_to_second", arguments="{}", call_id="h")]
    first = Agent("first", handoffs=[second], model=ScriptedModel([take_over]))
    result = await Runner.run(first, "Go")
    assert (result.final_output, result.last_agent is second, files.written) == ("second done", True, [])


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_handoff_that_is_not_allowed_does_not_happen(hooks: OpenAIAgentsHooks, is_streamed: bool) -> None:
    hooks.hooks.on("BeforeToolSelection", lambda payload: allow_only("write_file"))
    second = Agent("second", model=ScriptedModel([say("second")]))
    take_over = [ResponseFunctionToolCall(type="function_call", name="transfer_to_second", arguments="{}", call_id="h")]
    model = ScriptedModel([take_over])
    first = Agent("first", handoffs=[handoff(second)], tools=[Files().tool], model=model)
    shown = []
    result: Any
    if is_streamed:
        result = Runner.run_streamed(first, "Go")
        async for event in result.stream_events():
            shown.append(str(event))
    else:
        result = await Runner.run(first, "Go")
    assert result.last_agent is first
    assert "transfer_to_second may not be called now" in result.final_output
    assert not any("arguments='{}'" in event for event in shown)
    assert model.last_call is not None
    assert model.last_call.handoffs == []


async def test_what_remains_of_a_streamed_answer_without_its_handoff_runs(hooks: OpenAIAgentsHooks) -> None:
    hooks.hooks.on("BeforeToolSelection", lambda payload: allow_only("write_file"))
    files = Files()
    second = Agent("second", model=ScriptedModel([say("second")]))
    model = ScriptedModel([[*call("transfer_to_second", "h"), *call()], say("done")])
    result = Runner.run_streamed(Agent("first", handoffs=[second], tools=[files.tool], model=model), "Go")
    async for _ in result.stream_events():
        pass
    assert (result.final_output, files.written) == ("done", ["a.txt"])


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


async def test_a_tool_that_reads_its_arguments_itself_gets_a_repeated_one_as_hooks_saw_it(
    hooks: OpenAIAgentsHooks,
) -> None:
    ran: list[str] = []

    async def invoke(context: Any, arguments: str) -> str:
        ran.append(arguments)
        return "ran"

    tool = FunctionTool("raw", "a tool", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
    hooks.hooks.on("BeforeTool", lambda payload: deny("no") if payload["tool_input"]["path"] == "secret" else None)
    twice = '{"path": "secret", "path": "a.txt"}'
    model = ScriptedModel(
        [[ResponseFunctionToolCall(type="function_call", name="raw", arguments=twice, call_id="c1")], say("done")]
    )
    await Runner.run(Agent("a", tools=[tool], model=model), "Go")
    assert ran == ['{"path": "a.txt"}']


@pytest.mark.parametrize("given", ["not JSON", "[1]", '{"path": '])
async def test_a_hook_does_not_make_a_call_of_arguments_that_are_not_valid(
    hooks: OpenAIAgentsHooks, given: str
) -> None:
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(path="b.txt"))
    seen: list[Any] = []
    hooks.hooks.on("AfterTool", seen.append)
    files = Files()
    broken = [ResponseFunctionToolCall(type="function_call", name="write_file", arguments=given, call_id="c1")]
    model = ScriptedModel([broken, say("done")])
    await Runner.run(Agent("a", tools=[files.tool], model=model), "Go")
    assert (files.written, seen) == ([], [])
    assert results(model) == ["The arguments of write_file are not a JSON object."]


@pytest.mark.parametrize("odd", ["[" * 100_000 + "]" * 100_000, "NaN"], ids=["deep", "NaN"])
async def test_no_value_next_to_an_argument_hides_it_from_hooks(hooks: OpenAIAgentsHooks, odd: str) -> None:
    """A model can nest values deeper than Python's reader, and the SDK accepts ``NaN``: neither reaches the tool."""
    hooks.hooks.on("BeforeTool", lambda payload: deny("no") if payload["tool_input"].get("path") == "secret" else None)
    files, text = Files(), f'{{"path": "secret", "x": {odd}}}'
    context: Any = ToolContext(None, tool_name="write_file", tool_call_id="c", tool_arguments=text)
    (tool,) = await Agent("a", tools=[files.tool]).get_all_tools(context)
    assert isinstance(tool, FunctionTool)

    result = await tool.on_invoke_tool(context, text)

    assert files.written == []
    assert "nested deeper than 64 levels" in result or "a number that hooks cannot be shown" in result


async def test_tools_that_hooks_do_not_see_are_reported_once(
    hooks: OpenAIAgentsHooks, caplog: pytest.LogCaptureFixture
) -> None:
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


# The API.


@pytest.mark.parametrize(
    ("mode", "names", "choice"),
    [
        ("AUTO", ["write_file", "count"], ("auto", ["count", "write_file"])),
        ("AUTO", ["write_file"], ("auto", ["write_file"])),
        ("ANY", ["write_file", "transfer_to_other"], ("required", ["transfer_to_other", "write_file"])),
    ],
)
@pytest.mark.requirement("HOOK-168")
async def test_the_responses_api_is_told_the_names_and_keeps_all_tools(
    hooks: OpenAIAgentsHooks, api_server: APIServer, mode: str, names: list[str], choice: Any
) -> None:
    allowed = {"hookSpecificOutput": {"toolConfig": {"mode": mode, "allowedFunctionNames": names}}}
    hooks.hooks.on("BeforeToolSelection", lambda payload: allowed)
    body = await sent_to(OpenAIResponsesModel, api_server, [Files().tool, count])
    assert [tool["name"] for tool in body["tools"]] == ["write_file", "count", "transfer_to_other"]
    sent = body["tool_choice"]
    assert (sent["type"], sent["mode"], sorted(tool["name"] for tool in sent["tools"])) == ("allowed_tools", *choice)
    assert body["safety_identifier"] == "u-1"


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
async def test_tools_are_left_out_where_the_api_cannot_be_told_names(
    hooks: OpenAIAgentsHooks, api_server: APIServer, kind: Any
) -> None:
    hooks.hooks.on("BeforeToolSelection", lambda payload: allow_only("write_file"))
    tools = [Files().tool, count, *([WebSearchTool()] if kind is OpenAIResponsesModel else [])]
    body = await sent_to(kind, api_server, tools)
    assert [tool.get("name") or tool["function"]["name"] for tool in body["tools"]] == ["write_file"]


@function_tool
def count(number: int) -> str:
    return str(number)


async def sent_to(kind: Any, api_server: APIServer, tools: list[Any]) -> Any:
    api_server.will_say("done")
    async with AsyncOpenAI(api_key="key", base_url=f"{api_server.url}/v1", max_retries=0) as client:
        other: Agent[Any] = Agent("other")
        settings = ModelSettings(extra_body={"safety_identifier": "u-1"})
        agent = Agent(
            "a", tools=tools, handoffs=[other], model=kind("m", openai_client=client), model_settings=settings
        )
        await Runner.run(agent, "Go")
    return api_server.requests[-1]
