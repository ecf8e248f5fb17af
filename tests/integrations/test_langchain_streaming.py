"""What streams, callbacks and tracers are told: with an AfterModel hook, only the answer as the hook left it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockingError, blockbuster_ctx
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.globals import set_llm_cache
from langchain_core.messages import HumanMessage
from langchain_core.tracers.context import collect_runs
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from llxprt_hooks.integrations.langchain import HooksMiddleware
from tests.integrations.langchain_support import (
    NOTE,
    agent_of,
    calls,
    marks,
    middleware,
    model_of,
    results_in,
    run,
    says,
)

if TYPE_CHECKING:
    from tests.support.project import Project

MODES = pytest.mark.parametrize("mode", ["sync", "async"])
GIVEN = {"messages": [HumanMessage("go")]}
REPLACE = {"hookSpecificOutput": {"llm_response": {"text": "my key is ***"}}}
SECRET = "my key is QXJZ and more"


class Recorder(BaseCallbackHandler):
    """Records everything that callbacks are told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.tokens: list[str] = []
        self.tools: list[Any] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.told.append(f"start {args} {kwargs}")
        self.tools.append(kwargs["invocation_params"].get("tools"))

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.tokens.append(str(token))

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.told.append(f"end {args} {kwargs}")


def streamed(agent: Any, mode: str, config: Any, stream_mode: Any) -> list[Any]:
    if mode == "sync":
        return list(agent.stream(GIVEN, config, stream_mode=stream_mode))

    async def collect() -> list[Any]:
        return [part async for part in agent.astream(GIVEN, config, stream_mode=stream_mode)]

    return asyncio.run(collect())


def test_nothing_is_in_streamed_events_either(sandbox: Project) -> None:
    agent = agent_of(model_of(says(SECRET)), middleware(sandbox, AfterModel=sandbox.hook(says=REPLACE)))

    async def collect() -> list[Any]:
        return [event async for event in agent.astream_events(GIVEN, version="v2")]

    events = asyncio.run(collect())
    assert "QXJZ" not in str(events)
    chunks = [event["data"]["chunk"].content for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(chunks) == "my key is ***"


@MODES
def test_an_answer_that_hooks_leave_alone_is_streamed_in_its_pieces(sandbox: Project, mode: str) -> None:
    recorder = Recorder()
    model = model_of(calls(NOTE, text="one two"), says("three four"))
    agent = agent_of(model, middleware(sandbox, AfterModel=sandbox.hook()))
    parts = streamed(agent, mode, {"callbacks": [recorder]}, "messages")
    texts = [message.content for message, _ in parts if message.type == "AIMessageChunk" and message.content]
    assert texts == ["one ", "two", "three ", "four"]
    assert [message.content for message, _ in parts if message.type == "tool"] == ["wrote hello to a.txt"]


@MODES
def test_a_suppressed_answer_is_marked_in_the_stream(sandbox: Project, mode: str) -> None:
    """With its calls, which are still run."""
    agent = agent_of(
        model_of(calls(NOTE, text="hidden"), says("done")),
        middleware(sandbox, AfterModel=sandbox.hook(says=[{"suppressOutput": True}])),
    )
    parts = streamed(agent, mode, {}, "messages")
    first = parts[0][0]
    assert (first.content, marks(first)) == ("hidden", {"suppress_output": True})
    assert first.tool_calls[0]["args"] == NOTE[1]
    assert "wrote hello to a.txt" in [message.content for message, _ in parts]


@MODES
def test_tokens_are_counted_once(sandbox: Project, mode: str) -> None:
    agent = agent_of(model_of(says("done")), middleware(sandbox, AfterModel=sandbox.hook()))
    with get_usage_metadata_callback() as usage:
        run(agent, mode=mode)
    assert usage.usage_metadata["scripted"]["total_tokens"] == 5


@MODES
def test_tracers_of_the_context_are_told_the_changed_answer(sandbox: Project, mode: str) -> None:
    agent = agent_of(model_of(says(SECRET)), middleware(sandbox, AfterModel=sandbox.hook(says=REPLACE)))
    with collect_runs() as collected:
        run(agent, mode=mode)
    traced = str([(run.inputs, run.outputs, run.child_runs) for run in collected.traced_runs])
    assert "my key is ***" in traced
    assert "QXJZ" not in traced


@pytest.fixture
def cache() -> Iterator[InMemoryCache]:
    cache = InMemoryCache()
    set_llm_cache(cache)
    yield cache
    set_llm_cache(None)


@MODES
def test_a_cached_answer_is_shown_to_hooks(sandbox: Project, mode: str, cache: InMemoryCache) -> None:
    """The cache has the answer of the model, and none of the hooks."""
    model = model_of(says("done"))
    agent = agent_of(model, middleware(sandbox, AfterModel=sandbox.hook(says=[None, REPLACE])))
    given = {"messages": [HumanMessage("go", id="same")]}
    answers = [run(agent, given, mode=mode)["messages"][-1].content for _ in range(2)]
    assert answers == ["done", "my key is ***"]
    assert len(model.sent) == 1
    assert len(cache._cache) == 1


# Blocking calls on the event loop, which `langgraph dev` forbids.


def test_hooks_hold_where_blocking_is_forbidden(sandbox: Project) -> None:
    """Every event, asynchronously, while blocking calls on the loop raise. A guard must not fail open there."""
    events = ("SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "PreCompress", "Notification")
    sandbox.configure(
        **{event: sandbox.hook(event) for event in events},
        BeforeTool=sandbox.hook("tool", says=[{"decision": "deny", "reason": "no keys here"}]),
        AfterTool=sandbox.hook("after"),
        BeforeModel=sandbox.hook("before"),
        AfterModel=sandbox.hook("answer", says=[None, None, REPLACE]),
        BeforeToolSelection=sandbox.hook("selection"),
    )
    sandbox.approve()
    hooks = HooksMiddleware.load(sandbox.root)
    person = hooks.notifying(HumanInTheLoopMiddleware({"write_file": True}))
    writer = hooks.summarizer(model_of(says("a summary")))
    summary = SummarizationMiddleware(writer, summarizer=writer, trigger=("messages", 5), keep=("messages", 2))
    model = model_of(calls(NOTE), calls(NOTE), says(SECRET))
    agent = agent_of(model, hooks, person, summary, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}

    async def main() -> dict[str, Any]:
        with blockbuster_ctx():
            with pytest.raises(BlockingError):
                time.sleep(0.001)
            given: Any = GIVEN
            while True:
                result: dict[str, Any] = await agent.ainvoke(given, config)
                if "__interrupt__" not in result:
                    break
                given = Command(resume={"decisions": [{"type": "approve"}]})
            hooks.end_session("t")
            assert await hooks.hooks.settle() == 0
            return result

    result = asyncio.run(main())
    assert "wrote hello to a.txt" in results_in(result)
    assert result["messages"][-1].content == "my key is ***"
    assert sandbox.payloads("tool")[0]["session_id"] == "t"
    assert len(sandbox.payloads("tool")) == 2
    assert len(sandbox.payloads("after")) == 1
    assert len(sandbox.payloads("before")) == len(sandbox.payloads("selection")) == 3
    assert {event: bool(sandbox.payloads(event)) for event in events} == dict.fromkeys(events, True)
