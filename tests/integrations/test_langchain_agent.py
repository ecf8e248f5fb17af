"""Agents of LangChain with hooks: tools, models, state and sessions."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from operator import add
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables.config import ContextThreadPoolExecutor, run_in_executor
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from llxprt_hooks import Approval, Hooks, ask, context, deny, replace_result, rewrite
from llxprt_hooks.integrations.approvals import OpenQuestions
from llxprt_hooks.integrations.langchain import HooksMiddleware
from tests.integrations.langchain_support import (
    NOTE,
    ScriptedModel,
    agent_of,
    calls,
    marks,
    middleware,
    model_of,
    results_in,
    run,
    says,
    write_file,
)
from tests.support.processes import until

if TYPE_CHECKING:
    from tests.support.project import Project

MODES = pytest.mark.parametrize("mode", ["sync", "async"])
STOP = {"continue": False, "stopReason": "budget used up"}
DENY = {"decision": "deny", "reason": "no keys here"}


# Tools.


@MODES
def test_rewritten_arguments_are_validated_again(sandbox: Project, mode: str) -> None:
    """A rewrite that does not fit the tool is an error for the model, as if the model had made it."""

    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    rewrites = [{"hookSpecificOutput": {"tool_input": given}} for given in ({"a": "40"}, {"a": "many"})]
    model = model_of(calls(("add", {"a": 1, "b": 2})), calls(("add", {"a": 1, "b": 2})), says("done"))
    hooks = middleware(sandbox, BeforeTool=sandbox.hook(says=rewrites))
    result = run(agent_of(model, hooks, tools=[add]), mode=mode)
    assert results_in(result)[0] == "42"
    assert "valid integer" in results_in(result)[1]
    assert result["messages"][1].tool_calls[0]["args"] == {"a": 1, "b": 2}, "the history keeps what was said"


@MODES
def test_context_keeps_the_type_of_a_result(sandbox: Project, mode: str) -> None:
    """Text is appended to text; a list of blocks gets a block; data in a `Command` stays."""

    @tool
    def picture() -> list[Any]:
        """Return blocks."""
        return [{"type": "text", "text": "a cat"}, {"type": "image", "base64": "aW1n", "mime_type": "image/png"}]

    @tool
    def handover(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Return a command."""
        return Command(update={"messages": [ToolMessage("handed over", tool_call_id=call_id)], "extra": [7]})

    @tool
    def pairs(call_id: Annotated[str, InjectedToolCallId]) -> list[Any]:
        """Return a list with a command."""
        return [Command(update={"messages": [ToolMessage("in a list", tool_call_id=call_id)], "extra": [8]})]

    seen: list[Any] = []

    class ExtraState(AgentState[Any]):
        extra: Annotated[list[int], add]

    class Extra(AgentMiddleware[Any, Any, Any]):
        state_schema = ExtraState

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            seen.append(handler(request))
            return seen[-1]

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            seen.append(await handler(request))
            return seen[-1]

    context = {"hookSpecificOutput": {"additionalContext": "keep it short"}, "systemMessage": "really"}
    hooks = middleware(sandbox, AfterTool=sandbox.hook(says=context))
    model = model_of(calls(NOTE, ("picture", {}), ("handover", {}), ("pairs", {})), says("done"))
    result = run(agent_of(model, hooks, Extra(), tools=[write_file, picture, handover, pairs]), mode=mode)
    text, blocks, command, listed = (message for message in result["messages"] if isinstance(message, ToolMessage))
    added = "keep it short\n\n[System] really"
    assert text.content == f"wrote hello to a.txt\n\n{added}"
    assert blocks.content[1]["base64"] == "aW1n"  # type: ignore[index]
    assert blocks.content[2] == {"type": "text", "text": added}
    assert command.content == f"handed over\n\n{added}"
    assert listed.content == f"in a list\n\n{added}"
    assert sorted(result["extra"]) == [7, 8]
    assert {type(outcome.update) for outcome in seen if isinstance(outcome, Command)} == {dict}


@MODES
def test_injected_arguments_are_neither_shown_nor_lost(sandbox: Project, mode: str) -> None:
    @tool
    def count(word: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Count messages."""
        return f"{word}: {len(state['messages'])} messages"

    says_input = {"hookSpecificOutput": {"tool_input": {"word": "now", "state": {"messages": []}}}}
    model = model_of(calls(("count", {"word": "so far"})), says("done"))
    hooks = middleware(sandbox, BeforeTool=sandbox.hook(says=says_input))
    result = run(agent_of(model, hooks, tools=[count]), mode=mode)
    assert results_in(result) == ["now: 2 messages"]
    assert sandbox.payloads()[0]["tool_input"] == {"word": "so far"}


@MODES
def test_an_unknown_tool_fires_no_event(sandbox: Project, mode: str) -> None:
    model = model_of(calls(("delete_everything", {})), says("done"))
    result = run(agent_of(model, middleware(sandbox, BeforeTool=sandbox.hook(), AfterTool=sandbox.hook())), mode=mode)
    assert "not a valid tool" in results_in(result)[0]
    assert sandbox.payloads() == []


@MODES
def test_a_tool_that_fails(sandbox: Project, mode: str) -> None:
    """What a tool raises passes through, and AfterTool does not fire."""

    @tool
    def crash() -> str:
        """Fail."""
        raise OSError("disk full")

    model = model_of(calls(("crash", {})), says("done"))
    agent = agent_of(model, middleware(sandbox, AfterTool=sandbox.hook()), tools=[crash])
    with pytest.raises(OSError, match="disk full"):
        run(agent, mode=mode)
    assert sandbox.payloads() == []


@MODES
def test_a_sync_call_runs_its_tool_in_the_callers_thread(sandbox: Project, mode: str) -> None:
    """Hooks run on another event loop, but a tool sees its own thread and what belongs to it."""
    seen: list[str] = []

    @tool
    def where() -> str:
        """Look."""
        seen.append(threading.current_thread().name)
        return "here"

    run(
        agent_of(
            model_of(calls(("where", {})), says("x")), middleware(sandbox, BeforeTool=sandbox.hook()), tools=[where]
        ),
        mode=mode,
    )
    assert "llxprt-hooks" not in seen[0]


def test_a_sync_agent_inside_a_running_loop(sandbox: Project) -> None:
    """As in a notebook."""
    agent = agent_of(model_of(calls(NOTE), says("done")), middleware(sandbox, BeforeTool=sandbox.hook(says=DENY)))

    async def main() -> dict[str, Any]:
        return run(agent)

    assert results_in(asyncio.run(main())) == ["no keys here"]


# Stops.


@MODES
def test_a_stop_outlives_nodes_before_the_model(sandbox: Project, mode: str) -> None:
    """Other middleware adds steps between the tools and the model."""

    class Between(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            return {"messages": [HumanMessage("reminder")]}

        async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            return self.before_model(state, runtime)

    model = model_of(calls(NOTE), says("done"))
    result = run(agent_of(model, middleware(sandbox, AfterTool=sandbox.hook(says=STOP)), Between()), mode=mode)
    assert len(model.sent) == 1
    assert result["hook_stop_reason"] == "budget used up"
    assert marks(result["messages"][-1]) == {"stop_reason": "budget used up"}


@MODES
def test_the_next_prompt_starts_again(sandbox: Project, mode: str) -> None:
    model = model_of(calls(NOTE), says("hello again"))
    hooks = middleware(sandbox, AfterTool=sandbox.hook(says=STOP))
    agent = agent_of(model, hooks, checkpointer=InMemorySaver())
    assert run(agent, mode=mode, thread="t")["hook_stop_reason"] == "budget used up"
    again = run(agent, "and now?", mode=mode, thread="t")
    assert again["messages"][-1].content == "hello again"
    assert again["hook_stop_reason"] is None


@MODES
def test_a_stop_of_a_tool_whose_result_is_the_answer(sandbox: Project, mode: str) -> None:
    """The run ends without the model. The stop is in the result, and over with the next prompt."""

    @tool(return_direct=True)
    def final() -> str:
        """Answer."""
        return "final answer"

    model = model_of(calls(("final", {})), says("hello again"))
    hooks = middleware(sandbox, AfterTool=sandbox.hook(says=STOP))
    agent = agent_of(model, hooks, tools=[final], checkpointer=InMemorySaver())
    result = run(agent, mode=mode, thread="t")
    assert result["messages"][-1].content == "final answer"
    assert result["hook_stop_reason"] == "budget used up"
    assert run(agent, "and now?", mode=mode, thread="t")["messages"][-1].content == "hello again"


@MODES
def test_a_stop_is_kept_while_another_call_waits_for_a_person(sandbox: Project, mode: str) -> None:
    """One call of an answer stops the run, another is interrupted. After the interruption, the stop still holds."""

    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("really?"))

    model = model_of(calls(NOTE, ("ask", {})), says("done"))
    stop = {"matcher": "write_file", "hooks": [{"type": "command", "command": sandbox.hook(says=STOP)}]}
    agent = agent_of(model, middleware(sandbox, AfterTool=stop), tools=[write_file, ask], checkpointer=InMemorySaver())
    assert "__interrupt__" in run(agent, mode=mode, thread="t")
    result = run(agent, Command(resume="yes"), mode=mode, thread="t")
    assert results_in(result) == ["wrote hello to a.txt", "yes"]
    assert len(model.sent) == 1
    assert result["hook_stop_reason"] == "budget used up"


@MODES
@pytest.mark.parametrize(
    "question", ["really?", {"name": {"first": "Ada"}}], ids=["text", "a name that is not a tool's"]
)
def test_a_tool_that_asks_a_person_starts_again(sandbox: Project, mode: str, question: Any) -> None:
    """LangGraph runs the whole call again when the run is resumed."""

    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt(question))

    hooks = middleware(sandbox, BeforeTool=sandbox.hook("before"), AfterTool=sandbox.hook("after"))
    agent = agent_of(model_of(calls(("ask", {})), says("done")), hooks, tools=[ask], checkpointer=InMemorySaver())
    assert "__interrupt__" in run(agent, mode=mode, thread="t")
    assert results_in(run(agent, Command(resume="yes"), mode=mode, thread="t")) == ["yes"]
    assert (len(sandbox.payloads("before")), len(sandbox.payloads("after"))) == (2, 1)


# Models.


@MODES
def test_a_changed_request_is_for_this_call_only(sandbox: Project, mode: str) -> None:
    changed = {
        "model": "scripted-2",
        "messages": [{"role": "user", "content": "my key is ***"}],
        "config": {"temperature": 0.5, "stopSequences": ["END"]},
    }
    model = model_of(says("done"))
    hooks = middleware(sandbox, BeforeModel=sandbox.hook(says={"hookSpecificOutput": {"llm_request": changed}}))
    result = run(agent_of(model, hooks, system_prompt="You are a test."), "my key is sesame", mode=mode)
    messages, settings = model.sent[0]
    assert [str(message.text) for message in messages] == ["You are a test.", "my key is ***"]
    assert (settings["model"], settings["temperature"], settings["stop"]) == ("scripted-2", 0.5, ["END"])
    assert result["messages"][0].content == "my key is sesame"
    assert sandbox.payloads()[0]["llm_request"]["messages"] == [{"role": "user", "content": "my key is sesame"}]


@MODES
def test_a_message_for_the_next_request_is_in_the_checkpoint(sandbox: Project, mode: str) -> None:
    """Another process, with the same checkpointer, delivers it; then it is gone."""
    saver = InMemorySaver()
    first = middleware(sandbox, AfterModel=sandbox.hook(says=[{"systemMessage": "be brief"}, None, None]))
    run(agent_of(model_of(says("one")), first, checkpointer=saver), mode=mode, thread="t")
    model = model_of(says("two"), says("three"))
    agent = agent_of(model, middleware(sandbox, AfterTool=sandbox.hook("unused")), checkpointer=saver)
    run(agent, "next", mode=mode, thread="t")
    run(agent, "and next", mode=mode, thread="t")
    texts = [[str(message.text) for message in messages] for messages, _ in model.sent]
    assert texts[0][-1] == "[System] be brief"
    assert "[System] be brief" not in texts[1]


class Weather(BaseModel):
    """The weather."""

    degrees: int


@MODES
@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_structured_output(sandbox: Project, mode: str, strategy: Any) -> None:
    """It is read from the answer that hooks have changed; a text that does not fit is the answer, without structure."""
    answer = calls(("Weather", {"degrees": 20})) if strategy is ToolStrategy else says('{"degrees": 20}')
    hooks = middleware(
        sandbox, AfterModel=sandbox.hook(says=[None, {"hookSpecificOutput": {"llm_response": {"text": "secret"}}}])
    )
    agent = agent_of(model_of(answer), hooks, response_format=strategy(Weather))
    assert run(agent, mode=mode)["structured_response"] == Weather(degrees=20)
    replaced = run(agent, mode=mode)
    assert replaced.get("structured_response") is None
    assert replaced["messages"][-1].content == "secret"


@MODES
def test_structured_output_that_is_wrong_by_itself(sandbox: Project, mode: str) -> None:
    agent = agent_of(
        model_of(says("no JSON")),
        middleware(sandbox, AfterModel=sandbox.hook()),
        response_format=ProviderStrategy(Weather),
    )
    with pytest.raises(Exception, match="Failed to parse structured output"):
        run(agent, mode=mode)


@MODES
def test_a_restriction_does_not_refuse_structured_output(sandbox: Project, mode: str) -> None:
    restrict = {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ["write_file"]}}}
    hooks = middleware(sandbox, BeforeToolSelection=sandbox.hook(says=restrict))
    agent = agent_of(model_of(calls(("Weather", {"degrees": 20}))), hooks, response_format=ToolStrategy(Weather))
    result = run(agent, mode=mode)
    assert result["structured_response"] == Weather(degrees=20)
    assert results_in(result) == ["Returning structured response: degrees=20"]


@MODES
def test_a_model_that_is_called_again(sandbox: Project, mode: str) -> None:
    """Middleware that follows may retry: hooks see every answer, and the effects of the last one count."""

    class Flaky(ScriptedModel):
        def _next(self, messages: Any, stop: Any, kwargs: Any) -> AIMessage:
            answer = super()._next(messages, stop, kwargs)
            if len(self.sent) == 1:
                raise ConnectionError("try again")
            return answer

    class Twice(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            await handler(request)
            return await handler(request)

    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    flaky = Flaky(answers=[says("done")], sent=[])
    hooks = middleware(sandbox, AfterModel=sandbox.hook())
    assert run(agent_of(flaky, hooks, retry), mode=mode)["messages"][-1].content == "done"
    assert len(sandbox.payloads()) == 1

    notes: list[dict[str, Any]] = [
        {"systemMessage": "first", "continue": False, "stopReason": "no"},
        {"systemMessage": "second"},
    ]
    model = model_of(says("done"))
    hooks = middleware(sandbox, AfterModel=sandbox.hook("twice", says=notes))
    agent = agent_of(model, Twice(), hooks, checkpointer=InMemorySaver())
    assert run(agent, mode=mode, thread="t").get("hook_stop_reason") is None
    run(agent, "next", mode=mode, thread="t")
    assert [str(message.text) for message in model.sent[-1][0]][-1] == "[System] second"
    assert len(sandbox.payloads("twice")) == 4


@MODES
def test_an_answer_of_other_middleware_is_shown_to_hooks(sandbox: Project, mode: str) -> None:
    """Also if it comes from middleware that follows and never asks the model."""

    class Canned(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return AIMessage("canned secret")

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return AIMessage("canned secret")

    replace = {"hookSpecificOutput": {"llm_response": {"text": "***"}}}
    hooks = middleware(sandbox, AfterModel=sandbox.hook(says=replace))
    agent = agent_of(model_of(says("done")), Canned(), hooks)
    assert run(agent, mode=mode)["messages"][-1].content == "***"


# Sessions, people, and events that nobody waits for.


@MODES
def test_eight_threads_at_once(sandbox: Project, mode: str) -> None:
    """The `thread_id` of a run is the session id of its hooks, whatever runs beside it."""
    deny_odd = 'case "$payload" in *\'"session_id":"thread-\'[1357]*) echo "odd thread" >&2; exit 2;; esac'
    hooks = middleware(sandbox, BeforeTool=sandbox.hook("tool", first=deny_odd), AfterModel=sandbox.hook("model"))
    threads = [f"thread-{number}" for number in range(8)]

    def agent() -> Any:
        return agent_of(model_of(calls(NOTE), says("done")), hooks, checkpointer=InMemorySaver())

    if mode == "sync":
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda thread: run(agent(), thread=thread), threads))
    else:

        async def main() -> list[Any]:
            given = {"messages": [HumanMessage("go")]}
            configs = [{"configurable": {"thread_id": thread}} for thread in threads]
            return await asyncio.gather(*(agent().ainvoke(given, config) for config in configs))

        results = asyncio.run(main())
    for number, result in enumerate(results):
        assert results_in(result) == ["odd thread" if number % 2 else "wrote hello to a.txt"]
    assert sorted(payload["session_id"] for payload in sandbox.payloads("tool")) == threads
    assert sorted(payload["session_id"] for payload in sandbox.payloads("model")) == sorted([*threads, *threads])


@MODES
def test_a_thread_that_another_process_began_is_resumed(sandbox: Project, mode: str) -> None:
    saver = InMemorySaver()
    run(agent_of(model_of(says("one")), HooksMiddleware(), checkpointer=saver), mode=mode, thread="t")
    hooks = middleware(sandbox, SessionStart=sandbox.hook())
    run(agent_of(model_of(says("two")), hooks, checkpointer=saver), mode=mode, thread="t")
    until(lambda: bool(sandbox.payloads()))
    assert sandbox.payloads()[0]["source"] == "resume"


def test_the_threads_that_are_remembered_are_those_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llxprt_hooks.integrations.langchain.middleware._MAX_SESSIONS", 2)
    hooks, started = HooksMiddleware(), []
    hooks.hooks.on("SessionStart", lambda payload: started.append(payload["session_id"]))
    agent = agent_of(model_of(*[says("x") for _ in range(5)]), hooks)
    for thread in ("busy", "old", "busy", "new", "busy"):
        run(agent, thread=thread)
    until(lambda: "new" in started)
    assert sorted(started) == ["busy", "new", "old"]
    assert list(hooks._sessions) == ["new", "busy"]


def test_nodes_only_where_there_are_agent_events(sandbox: Project) -> None:
    """Each node costs time in every run. Functions may be added until the agent is made."""
    model = model_of(says("x"))
    assert set(agent_of(model, middleware(sandbox, BeforeTool=sandbox.hook())).nodes) == {"__start__", "model", "tools"}
    late = HooksMiddleware(name="mine")
    late.hooks.on("BeforeAgent", lambda payload: None)
    assert {"mine.before_agent", "mine.after_agent"} <= set(agent_of(model, late).nodes)


def test_two_of_them_in_one_agent(sandbox: Project) -> None:
    first = HooksMiddleware(name="first")
    first.hooks.on("BeforeTool", lambda payload: deny("first says no"))
    second = middleware(sandbox, BeforeTool=sandbox.hook())
    result = run(agent_of(model_of(calls(NOTE), says("done")), second, first))
    assert results_in(result) == ["first says no"]
    assert sandbox.payloads() == []


@MODES
def test_notes_of_two_of_them(sandbox: Project, mode: str) -> None:
    """Each delivers its own messages for the next model call."""
    both = []
    for name in ("first", "second"):
        hooks = HooksMiddleware(name=name)
        hooks.hooks.on("AfterModel", lambda payload, name=name: {"systemMessage": f"from {name}"})
        both.append(hooks)
    model = model_of(calls(NOTE), says("done"))
    run(agent_of(model, both[1], both[0]), mode=mode)
    texts = [str(message.text) for message in model.sent[1][0]]
    assert sorted(texts[-2:]) == ["[System] from first", "[System] from second"]


class Strict(HooksMiddleware):
    """A subclass of a program."""

    def hook_name(self, tool_name: str) -> str:
        return f"strict_{tool_name}"


def test_a_subclass(sandbox: Project) -> None:
    hooks = Strict(hooks={}, working_dir=sandbox.root)
    hooks.hooks.on("BeforeAgent", lambda payload: None)
    hooks.hooks.on("BeforeTool", lambda payload: deny(payload["tool_name"]))
    assert results_in(run(agent_of(model_of(calls(NOTE), says("done")), hooks))) == ["strict_write_file"]


@MODES
@pytest.mark.parametrize("interrupt_mode", ["batched", "per_call"])
def test_a_person_is_asked(sandbox: Project, mode: str, interrupt_mode: Any) -> None:
    """Notification fires once for each call that waits, not again when the run is resumed."""
    hooks = middleware(sandbox, Notification=sandbox.hook("asked"), BeforeTool=sandbox.hook("tool"))
    person = hooks.notifying(HumanInTheLoopMiddleware({"write_file": True}, interrupt_mode=interrupt_mode))
    assert person.name == "HumanInTheLoopMiddleware"
    model = model_of(calls(NOTE), says("done"))
    agent = agent_of(model, hooks, person, checkpointer=InMemorySaver())
    asked = run(agent, mode=mode, thread="t")["__interrupt__"]
    assert len(asked) == 1
    assert sandbox.payloads("tool") == []
    approve: Any = {"type": "approve"}
    resume = {asked[0].id: approve} if interrupt_mode == "per_call" else {"decisions": [approve]}
    result = run(agent, Command(resume=resume), mode=mode, thread="t")
    assert results_in(result) == ["wrote hello to a.txt"]
    assert hooks.hooks.sync.settle() == 0
    (payload,) = sandbox.payloads("asked")
    assert (payload["notification_type"], payload["session_id"]) == ("ToolPermission", "t")
    assert payload["message"] == "write_file needs approval"
    assert payload["details"] == {"tool_name": "write_file", "tool_input": NOTE[1]}
    assert len(sandbox.payloads("tool")) == 1


# A graph of one's own.


class OwnState(MessagesState):
    hook_stop_reason: str


@MODES
def test_tool_node(sandbox: Project, mode: str) -> None:
    """Tools of a graph of one's own have hooks, and the graph can end on a stop."""
    answers: list[dict[str, Any]] = [{"hookSpecificOutput": {"tool_input": {"file_path": "b.txt"}}}, STOP]
    hooks = middleware(sandbox, BeforeTool=sandbox.hook(says=answers))
    model = model_of(calls(NOTE))

    def ask(state: OwnState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(OwnState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode([write_file], **hooks.tool_node()))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    graph.add_conditional_edges(
        "tools", lambda state: END if state.get("hook_stop_reason") else "model", ["model", END]
    )
    result = run(graph.compile(), mode=mode)
    assert results_in(result) == ["wrote hello to b.txt", "budget used up"]
    assert result["hook_stop_reason"] == "budget used up"
    assert marks(result["messages"][-1]) == {"blocked": True, "stop_reason": "budget used up"}


@MODES
def test_tool_node_of_a_graph_without_the_field(sandbox: Project, mode: str) -> None:
    """The stop is in the marks of the message."""
    hooks = middleware(sandbox, AfterTool=sandbox.hook(says=STOP))
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([write_file], **hooks.tool_node()))
    graph.add_edge(START, "tools")
    result = run(graph.compile(), {"messages": [calls(NOTE)]}, mode=mode)
    assert results_in(result) == ["wrote hello to a.txt"]
    assert marks(result["messages"][-1]) == {"stop_reason": "budget used up"}


# Settings.


# Hooks that act.


def acting(project: Project, **fields: Any) -> HooksMiddleware:
    """Return hooks with the profile ``full``; tests register functions."""
    return HooksMiddleware(working_dir=project.root, profile="full", **fields)


def asking(project: Project, *others: Any, **fields: Any) -> tuple[Any, HooksMiddleware]:
    """Return an agent that a hook lets ask before each tool, and the hooks."""
    hooks = acting(project, **fields)
    hooks.hooks.on("BeforeTool", lambda payload: ask("sure?"))
    model = model_of(calls(NOTE, *others), says("done"))
    return agent_of(model, hooks, checkpointer=InMemorySaver()), hooks


def question_of(result: dict[str, Any]) -> dict[str, Any]:
    [interrupt] = result["__interrupt__"]
    value: dict[str, Any] = interrupt.value
    return value


@MODES
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (True, "wrote hello to a.txt"),
        ({"decisions": [{"type": "approve"}]}, "wrote hello to a.txt"),
        ({"decisions": [{"type": "reject"}]}, "sure? (the answer was no)"),
        ("yes", "sure? (the answer was no)"),
        ({"decisions": []}, "sure? (the answer was no)"),
    ],
)
def test_a_hook_that_asks_interrupts_the_run(sandbox: Project, mode: str, answer: Any, expected: str) -> None:
    agent, _ = asking(sandbox)
    question = question_of(run(agent, mode=mode, thread="t"))
    assert question["action_requests"] == [{"name": NOTE[0], "args": NOTE[1], "description": "sure?"}]
    result = run(agent, Command(resume=answer), mode=mode, thread="t")
    assert results_in(result) == [expected]
    assert result["messages"][-1].text == "done"


def test_an_answer_counts_for_the_arguments_that_the_person_read(sandbox: Project) -> None:
    """Another hook changes them while the person thinks."""
    agent, hooks = asking(sandbox)
    run(agent, thread="t")
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(file_path="other.txt"))
    result = run(agent, Command(resume=True), thread="t")
    assert results_in(result) == ["sure? (nobody could be asked: the answer is for another call, or came too late)"]


def test_an_answer_counts_for_five_minutes(sandbox: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, _ = asking(sandbox)
    expires = question_of(run(agent, thread="t"))["llxprt_hooks"]["expires"]
    assert 0 < expires - time.time() <= 300
    monkeypatch.setattr("llxprt_hooks.integrations.approvals.time.time", lambda: expires + 1)
    assert "came too late" in results_in(run(agent, Command(resume=True), thread="t"))[0]


@pytest.mark.parametrize("returned", [True, False])
def test_another_process_needs_the_question_with_the_answer(sandbox: Project, returned: bool) -> None:
    agent, hooks = asking(sandbox)
    question = question_of(run(agent, thread="t"))
    hooks._questions = OpenQuestions()  # as in a process that has not asked
    answer = {"decisions": [{"type": "approve"}], **({"llxprt_hooks": question["llxprt_hooks"]} if returned else {})}
    result = run(agent, Command(resume=answer), thread="t")
    assert ("wrote" in results_in(result)[0]) is returned


def test_each_call_of_an_answer_is_asked_about(sandbox: Project) -> None:
    other = ("write_file", {"file_path": "b.txt", "content": "hello"})
    agent, _ = asking(sandbox, other)
    asked = run(agent, thread="t")["__interrupt__"]
    ids = {each.value["action_requests"][0]["args"]["file_path"]: each.id for each in asked}
    answers = {ids["a.txt"]: True, ids["b.txt"]: False}
    result = run(agent, Command(resume=answers), thread="t")
    assert results_in(result) == ["wrote hello to a.txt", "sure? (the answer was no)"]


def test_an_approver_of_the_program_is_asked_instead(sandbox: Project) -> None:
    agent, _ = asking(sandbox, approver=lambda request: Approval.FOR_SESSION)
    assert results_in(run(agent, thread="t")) == ["wrote hello to a.txt"]


def test_nobody_is_asked_without_a_checkpointer(sandbox: Project) -> None:
    hooks = acting(sandbox)
    hooks.hooks.on("BeforeTool", lambda payload: ask("sure?"))
    result = run(agent_of(model_of(calls(NOTE), says("done")), hooks))
    assert "the graph has no checkpointer" in results_in(result)[0]


def test_a_node_with_several_calls_asks_nobody(sandbox: Project) -> None:
    """Threads of one node could get each other's answers."""
    hooks = acting(sandbox)
    hooks.hooks.on("BeforeTool", lambda payload: ask("sure?"))
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool(write_file)], **hooks.tool_node()))
    graph.add_edge(START, "tools")
    result = run(graph.compile(checkpointer=InMemorySaver()), {"messages": [calls(NOTE, NOTE)]}, thread="t")
    assert ["several calls" in text for text in results_in(result)] == [True, True]


def test_a_refused_prompt_never_reaches_the_model(sandbox: Project) -> None:
    hooks = acting(sandbox)
    hooks.hooks.on("BeforeAgent", lambda payload: deny("no keys") if "sk-" in payload["prompt"] else None)
    model = model_of(says("hello"))
    agent = agent_of(model, hooks, checkpointer=InMemorySaver())
    refused = run(agent, "my key is sk-1", thread="t")
    assert refused["messages"][-1].text == "no keys"
    assert marks(refused["messages"][-1])["blocked"]
    assert run(agent, "hi", thread="t")["messages"][-1].text == "hello"
    assert [[message.text for message in sent] for sent, _ in model.sent] == [["hi"]]


def test_context_of_the_session_survives_a_refused_prompt(sandbox: Project) -> None:
    hooks = acting(sandbox)
    hooks.hooks.on("SessionStart", lambda payload: context("be brief"))
    hooks.hooks.on("BeforeAgent", lambda payload: deny("no") if payload["prompt"] == "bad" else None)
    model = model_of(says("hello"))
    agent = agent_of(model, hooks, checkpointer=InMemorySaver())
    for prompt in ("bad", "good", "better"):
        run(agent, prompt, thread="t")
    assert [message.text for message in model.sent[-1][0]] == ["good\n\nbe brief", "hello", "better"]


def test_a_conversation_is_cleared_before_the_next_prompt(sandbox: Project) -> None:
    hooks = acting(sandbox)
    hooks.hooks.on("AfterAgent", lambda payload: {"hookSpecificOutput": {"clearContext": True}})
    model = model_of(says("hello"))
    agent = agent_of(model, hooks, checkpointer=InMemorySaver())
    assert run(agent, "first", thread="t")["messages"][-1].text == "hello"
    run(agent, "second", thread="t")
    assert [message.text for message in model.sent[-1][0]] == ["second"]


def test_a_replaced_result_has_no_artifact_of_the_tool(sandbox: Project) -> None:
    hooks = acting(sandbox)
    hooks.hooks.on("AfterTool", lambda payload: replace_result("redacted"))

    @tool(response_format="content_and_artifact")
    def write_file(file_path: str, content: str) -> tuple[str, dict[str, str]]:
        """Write a file."""
        return "secret", {"raw": "secret"}

    result = run(agent_of(model_of(calls(NOTE), says("done")), hooks, tools=[write_file]))
    [message] = [each for each in result["messages"] if isinstance(each, ToolMessage)]
    assert (message.content, message.artifact, message.status) == ("redacted", None, "success")


def test_a_block_of_a_compression_that_cannot_be_honored_is_reported(
    sandbox: Project, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = acting(sandbox)
    hooks.hooks.on("PreCompress", lambda payload: deny("keep it"))
    assert hooks.summarizer(model_of(says("a summary"))).invoke("…").text == "a summary"
    assert "PreCompress: a hook's block has no effect (keep it): use hooks.compressing" in caplog.text


async def test_pools_of_langchain_inherit_a_session() -> None:
    seen: list[str] = []
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: seen.append(payload["session_id"]))

    def work(_: object = None) -> None:
        hooks.sync.run_tool("any", {}, str)

    async with hooks.session("here"):
        with ContextThreadPoolExecutor(1) as pool:
            pool.submit(work).result()
            list(pool.map(work, [1]))
        await run_in_executor(None, work)
    assert seen == ["here"] * 3
