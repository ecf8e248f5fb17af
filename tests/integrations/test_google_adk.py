"""Effects that only Google's Agent Development Kit has. The effects of all frameworks are in the contract."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from pydantic import PrivateAttr

from llxprt_hooks import Config, context, deny, rewrite, stop
from llxprt_hooks.core.calls import sessions
from llxprt_hooks.integrations.google_adk import HooksPlugin

if TYPE_CHECKING:
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
    events: list[Event] = []
    async with aclosing(runner.run_async(user_id="u", session_id="s1", new_message=message)) as running:
        async for event in running:
            events.append(event)
            assert len(events) < 100, "the run does not end"
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


@pytest.mark.parametrize("max_iterations", [None, 3])
@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "BeforeTool", "AfterTool"])
async def test_a_stop_ends_a_loop(plugin: HooksPlugin, event: str, max_iterations: int | None) -> None:
    plugin.hooks.on(event, lambda payload: stop("enough"))
    ended: list[Any] = []
    plugin.hooks.on("AfterAgent", ended.append)
    model = Model(answers=[call(), say("never")])
    inner = LlmAgent(name="inner", model=model, tools=[Files().write_file])
    after = LlmAgent(name="after", model=Model(answers=[say("never")]))
    loop = LoopAgent(name="loop", sub_agents=[inner, after], max_iterations=max_iterations)
    events = await run(LoopAgent(name="outer", sub_agents=[loop]), plugin)
    assert texts(events) == ["enough"]
    assert len(model._requests) == (0 if event == "BeforeModel" else 1)
    assert [payload["prompt_response"] for payload in ended] == ["enough"]


async def test_a_stop_ends_a_sequence_and_is_shown_once(plugin: HooksPlugin) -> None:
    plugin.hooks.on("AfterTool", lambda payload: stop("enough"))
    models = [Model(answers=[call(), say("never")]), Model(answers=[say("never")]), Model(answers=[say("never")])]
    agents: list[Any] = [
        LlmAgent(name=f"a{number}", model=model, tools=[Files().write_file]) for number, model in enumerate(models)
    ]
    agents[-1] = LoopAgent(name="loop", sub_agents=[agents[-1]])
    events = await run(SequentialAgent(name="all", sub_agents=agents), plugin)
    assert texts(events) == ["enough"]
    assert [len(model._requests) for model in models] == [1, 0, 0]


async def test_a_stop_ends_a_loop_beside_the_agent_that_it_is_about(plugin: HooksPlugin) -> None:
    """The stopped agent is not a direct part of the parallel one, which therefore does not end the others."""
    plugin.hooks.on("AfterTool", lambda payload: stop("enough"))
    model = Model(answers=[call(), say("never")])
    stopped = SequentialAgent(name="sequence", sub_agents=[LlmAgent(name="a", model=model, tools=[Files().write_file])])

    class Busy(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
            await asyncio.sleep(0)
            for event in list[Event]():
                yield event

    loop = LoopAgent(name="loop", sub_agents=[Busy(name="busy")])
    events = await run(ParallelAgent(name="both", sub_agents=[stopped, loop]), plugin)
    assert texts(events) == ["enough"]


async def test_what_hooks_say_about_an_answer_is_for_the_agent_that_gave_it(plugin: HooksPlugin) -> None:
    """Agents that run in parallel, and one that is a tool, have histories of their own."""

    def about(payload: dict[str, Any]) -> dict[str, Any]:
        return {"systemMessage": f"about {payload['llm_request']['model']}"}

    plugin.hooks.on("AfterModel", about)
    inner_model = Model(model="inner", answers=[call("read_file"), say("inner done")])
    inner = LlmAgent(name="inner", model=inner_model, tools=[read_file])
    models = {
        "one": Model(model="one", answers=[call("read_file"), call("inner", request="please"), say("done")]),
        "two": Model(model="two", answers=[call("read_file"), call("read_file"), say("done")]),
    }
    agents: list[Any] = [
        LlmAgent(name=name, model=model, tools=[read_file, AgentTool(inner)]) for name, model in models.items()
    ]
    await run(ParallelAgent(name="both", sub_agents=agents), plugin)

    def told(model: Model) -> list[list[str]]:
        sent = [str(request.contents) for request in model._requests]
        return [[name for name in ("one", "two", "inner") if f"about {name}" in text] for text in sent]

    assert told(models["one"]) == [[], ["one"], ["one"]]
    assert told(models["two"]) == [[], ["two"], ["two"]]
    assert told(inner_model) == [[], ["inner"]]


async def test_a_message_for_the_next_request_waits_for_the_next_run(plugin: HooksPlugin) -> None:
    plugin.hooks.on("AfterModel", lambda payload: {"systemMessage": "be brief"})
    model = Model(answers=[say("one"), say("two")])
    runner = of_runner(LlmAgent(name="a", model=model), plugin)
    await prompt(runner, "s1")
    await prompt(runner, "s1")
    assert ["be brief" in str(request.contents) for request in model._requests] == [False, True]


async def test_calls_with_the_same_id_keep_their_own_results(plugin: HooksPlugin) -> None:
    seen: list[Any] = []
    plugin.hooks.on("BeforeTool", lambda payload: None)
    plugin.hooks.on("AfterTool", seen.append)
    both = asyncio.Barrier(2)

    async def meet(path: str) -> str:
        """Wait until both calls run."""
        await both.wait()
        return path

    parts = [
        types.Part(function_call=types.FunctionCall(id="call_0", name="meet", args={"path": path}))
        for path in ("a", "b")
    ]
    await run(LlmAgent(name="a", model=Model(answers=[parts, say("done")]), tools=[meet]), plugin)
    shown = [(each["tool_input"]["path"], each["tool_response"]["llmContent"]) for each in seen]
    assert sorted(shown) == [("a", "a"), ("b", "b")]


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


class GeminiModel(Gemini):
    """A model of Google's, as far as the framework knows."""

    model: str = "projects/p/locations/l/endpoints/1"
    _requests: list[Any] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append(llm_request)
        yield LlmResponse(content=types.Content(role="model", parts=say("done")))


def read_file(path: str) -> str:
    """Read a file."""
    return path


def only(*names: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": [*names]}}}


@pytest.mark.parametrize("is_named", [True, False])
async def test_names_are_sent_to_gemini_and_left_out_for_other_models(plugin: HooksPlugin, is_named: bool) -> None:
    """The class of the model decides: other clients have models with such names, too."""
    plugin.hooks.on("BeforeToolSelection", lambda payload: only("write_file"))
    scripted: Any = GeminiModel() if is_named else Model(model="gemini/gemini-3-pro", answers=[say("done")])
    await run(LlmAgent(name="a", model=scripted, tools=[Files().write_file, read_file]), plugin)
    config = scripted._requests[0].config
    declared = [function.name for tool in config.tools for function in tool.function_declarations]
    assert declared == (["write_file", "read_file"] if is_named else ["write_file"])
    calling = config.tool_config.function_calling_config
    names = ["write_file"] if is_named else None
    assert (calling.mode.value, calling.allowed_function_names) == ("VALIDATED" if is_named else "AUTO", names)


async def test_without_an_allowed_tool_other_models_get_none(plugin: HooksPlugin) -> None:
    plugin.hooks.on("BeforeToolSelection", lambda payload: only("unknown"))
    scripted = Model(answers=[say("done")])
    await run(LlmAgent(name="a", model=scripted, tools=[read_file]), plugin)
    assert (scripted._requests[0].config.tools, scripted._requests[0].config.tool_config) == ([], None)


@pytest.mark.parametrize("allowed", ["run_shell_command", "write_file"])
async def test_a_tool_with_an_alias_runs_if_it_is_allowed_by_one_of_its_names(allowed: str) -> None:
    plugin = HooksPlugin(Config(enable_hooks=True), aliases={"write_file": "run_shell_command"})
    fired: list[Any] = []
    plugin.hooks.on("BeforeTool", fired.append)
    plugin.hooks.on("BeforeToolSelection", lambda payload: only(allowed))
    files = Files()
    answers = [[*call(), *call("read_file")], say("done")]
    model = Model(answers=answers)
    events = await run(LlmAgent(name="a", model=model, tools=[files.write_file, read_file]), plugin)
    assert (files.written, [payload["tool_name"] for payload in fired]) == (["a.txt"], ["run_shell_command"])
    assert "read_file may not be called now. Allowed tools: run_shell_command." in str(results(events))


# Sessions and runs.


def of_runner(agent: Any, plugin: HooksPlugin) -> InMemoryRunner:
    return InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[plugin]))


async def prompt(runner: InMemoryRunner, session_id: str) -> list[Event]:
    known = await runner.session_service.get_session(app_name="app", user_id="u", session_id=session_id)
    if known is None:
        await runner.session_service.create_session(app_name="app", user_id="u", session_id=session_id)
    message = types.Content(role="user", parts=[types.Part(text="Go")])
    return [event async for event in runner.run_async(user_id="u", session_id=session_id, new_message=message)]


async def test_hooks_run_in_a_session_that_was_forgotten_or_ended(
    plugin: HooksPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_REMEMBERED", 1)
    plugin.hooks.on("BeforeTool", lambda payload: deny("no"), matcher="write_file")
    files = Files()

    async def others() -> str:
        """Run other sessions."""
        for number in range(3):
            quick = LlmAgent(name="b", model=Model(answers=[say("other")]))
            await prompt(of_runner(quick, plugin), f"other{number}")
        plugin.end_session("s1")
        return "ok"

    model = Model(answers=[call("others", x=1), call(), say("done")])
    events = await prompt(of_runner(LlmAgent(name="a", model=model, tools=[others, files.write_file]), plugin), "s1")
    assert (files.written, {"error": "no"} in results(events)) == ([], True)


async def test_a_stop_holds_while_another_run_of_the_session_begins(plugin: HooksPlugin) -> None:
    plugin.hooks.on("AfterTool", lambda payload: stop("enough"), matcher="halt")

    async def halt() -> str:
        """Halt."""
        return "halted"

    async def slow() -> str:
        """Run another prompt of the same session, after the stop."""
        await is_stopped.wait()
        await asyncio.create_task(prompt(of_runner(other, plugin), "s1"))
        return "slow"

    is_stopped = asyncio.Event()

    class Observer(BasePlugin):
        async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
            is_stopped.set()

    other = LlmAgent(name="b", model=Model(answers=[say("other")]))
    model = Model(answers=[[*call("slow"), *call("halt")], say("went on")])
    agent = LlmAgent(name="a", model=model, tools=[halt, slow])
    events = await run(agent, plugin, Observer("observer"))
    assert texts(events)[-1] == "enough"


async def test_a_stop_inside_of_an_agent_that_is_a_tool_ends_the_run(plugin: HooksPlugin) -> None:
    fired: list[Any] = []
    for event in ("SessionStart", "BeforeAgent", "BeforeTool"):
        plugin.hooks.on(event, fired.append)
    plugin.hooks.on("BeforeTool", lambda payload: stop("enough"), matcher="write_file")
    inner = LlmAgent(name="inner", model=Model(answers=[call(), say("inner done")]), tools=[Files().write_file])
    outer_model = Model(answers=[call("inner", request="please"), say("went on")])
    events = await run(LlmAgent(name="outer", model=outer_model, tools=[AgentTool(inner)]), plugin)
    assert texts(events)[-1] == "enough"
    assert sorted(payload["hook_event_name"] for payload in fired) == [
        "BeforeAgent",
        "BeforeTool",
        "BeforeTool",
        "SessionStart",
    ]
    assert {payload["session_id"] for payload in fired} == {"s1"}


async def test_nothing_is_kept_of_a_run_that_fails(plugin: HooksPlugin) -> None:
    plugin.hooks.on("BeforeModel", lambda payload: None)
    with pytest.raises(IndexError):
        await run(LlmAgent(name="a", model=Model(answers=[])), plugin)
    assert plugin._runs == {}


async def test_nothing_is_kept_of_a_run_that_is_cancelled(plugin: HooksPlugin) -> None:
    plugin.hooks.on("BeforeTool", lambda payload: None)
    is_waiting = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        is_waiting.set()
        await asyncio.Event().wait()
        return "never"

    agent = LlmAgent(name="a", model=Model(answers=[call("wait", x=1)]), tools=[wait])
    task = asyncio.create_task(run(agent, plugin))
    await is_waiting.wait()
    assert len(plugin._runs) == 1
    task.cancel()
    await asyncio.wait([task])
    del task
    gc.collect()
    assert plugin._runs == {}


async def test_precompress_belongs_to_the_session_of_the_events(plugin: HooksPlugin) -> None:
    seen: list[Any] = []
    plugin.hooks.on("PreCompress", seen.append)

    class Summarizer(BaseEventsSummarizer):
        async def maybe_summarize_events(self, *, events: list[Event]) -> None:
            return None

    agent = LlmAgent(name="a", model=Model(answers=[say("done")]))
    compaction = EventsCompactionConfig(
        summarizer=plugin.summarizer(Summarizer()), compaction_interval=1, overlap_size=0
    )
    app = App(name="app", root_agent=agent, plugins=[plugin], events_compaction_config=compaction)
    await prompt(InMemoryRunner(app=app), "s1")
    await plugin.hooks.settle()
    assert [payload["session_id"] for payload in seen] == ["s1"]


# Models and results.


class Twice(BaseLlm):
    """Answers with two complete responses: a text, then a call. Then with a text."""

    model: str = "twice"
    _count: list[int] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._count.append(1)
        parts = [say("a secret"), call()] if len(self._count) == 1 else [say("done")]
        for each in parts:
            yield LlmResponse(content=types.Content(role="model", parts=each))


async def test_all_complete_responses_of_a_model_pass_the_hooks(plugin: HooksPlugin) -> None:
    seen: list[Any] = []

    def check(payload: dict[str, Any]) -> Any:
        seen.append(payload["llm_response"])
        return {"hookSpecificOutput": {"llm_response": {"text": "***"}}}

    plugin.hooks.on("AfterModel", check)
    files = Files()
    events = await run(LlmAgent(name="a", model=Twice(), tools=[files.write_file]), plugin)
    assert (len(seen), files.written) == (2, [])
    assert set(texts(events)) == {"***"}


async def test_binary_results_and_arguments_that_are_not_json_reach_hooks(plugin: HooksPlugin) -> None:
    class Prepare(BasePlugin):
        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
            tool_args["raw"] = b"\xff"

    seen: list[Any] = []
    plugin.hooks.on("AfterTool", seen.append)
    plugin.hooks.on("BeforeTool", lambda payload: rewrite(path="b"))
    given: list[Any] = []

    def screenshot(path: str, raw: Any = None) -> dict[str, Any]:
        """Take a picture."""
        given.append((path, raw))
        return {"picture": b"\x89PNG\xff"}

    model = Model(answers=[call("screenshot", path="a"), say("done")])
    await run(LlmAgent(name="a", model=model, tools=[screenshot]), Prepare("prepare"), plugin)
    assert given == [("b", b"\xff")]
    assert "iVBOR_8=" in str(seen[0]["tool_response"]) or "iVBOR/8=" in str(seen[0]["tool_response"])


async def test_text_of_hooks_does_not_break_a_result_for_a_program(plugin: HooksPlugin) -> None:
    plugin.hooks.on("AfterTool", lambda payload: context("2 rows"))

    def query() -> dict[str, Any]:
        """Query."""
        return {"result": '{"rows": 2}'}

    model = Model(answers=[[types.Part(function_call=types.FunctionCall(name="query", args={}))], say("done")])
    events = await run(LlmAgent(name="a", model=model, tools=[query]), plugin)
    assert results(events) == [{"result": '{"rows": 2}', "additional_context": "2 rows"}]


async def test_parallel_agents_whose_calls_have_the_same_id(plugin: HooksPlugin) -> None:
    seen: list[Any] = []
    plugin.hooks.on("AfterTool", seen.append)
    agents: list[Any] = []
    for name in ("one", "two"):
        part = types.Part(function_call=types.FunctionCall(id="call_1", name="write_file", args={"path": name}))
        agents.append(LlmAgent(name=name, model=Model(answers=[[part], say("done")]), tools=[Files().write_file]))
    await run(ParallelAgent(name="both", sub_agents=agents), plugin)
    assert sorted(payload["tool_input"]["path"] for payload in seen) == ["one", "two"]


class LiveConnection(BaseLlmConnection):
    async def send_history(self, history: list[types.Content]) -> None: ...

    async def send_content(self, content: types.Content) -> None: ...

    async def send_realtime(self, blob: types.Blob) -> None: ...

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=call()))
        yield LlmResponse(content=types.Content(role="model", parts=say("live")), turn_complete=True)
        await asyncio.Event().wait()

    async def close(self) -> None: ...


class LiveModel(Model):
    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        yield LiveConnection()


@pytest.mark.parametrize(("event", "warnings"), [("AfterModel", 1), ("AfterTool", 0)])
async def test_a_live_session_has_tool_hooks_and_is_reported_if_there_are_model_hooks(
    plugin: HooksPlugin, caplog: pytest.LogCaptureFixture, event: str, warnings: int
) -> None:
    seen: list[Any] = []
    plugin.hooks.on(event, lambda payload: seen.append(payload["hook_event_name"]))
    plugin.hooks.on("BeforeTool", lambda payload: deny("no"))
    files = Files()
    agent = LlmAgent(name="live", model=LiveModel(answers=[]), tools=[files.write_file])
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[plugin]))
    session = await runner.session_service.create_session(app_name="app", user_id="u", session_id="s1")
    queue = LiveRequestQueue()
    queue.send_content(types.Content(role="user", parts=say("hi")))
    seen_events: list[Event] = []
    async with aclosing(runner.run_live(session=session, live_request_queue=queue)) as events:
        async for answer in events:
            seen_events.append(answer)
            if "live" in texts(seen_events) and results(seen_events):
                break
    await runner.close()
    assert (seen, files.written, results(seen_events)) == ([], [], [{"error": "no"}])
    assert sum("model hooks don't run" in record.getMessage() for record in caplog.records) == warnings
