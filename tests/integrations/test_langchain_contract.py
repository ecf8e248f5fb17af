"""The contract of all integrations, through agents of LangChain with the real package for OpenAI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import httpx2
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import SecretStr

from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.langchain import HooksMiddleware
from tests.integrations.contract import EFFECTS, Driver, Effect, Outcome, Scenario, check, check_declarations
from tests.integrations.langchain_support import model_of, says
from tests.integrations.reference import MODEL, ChatModel

if TYPE_CHECKING:
    from tests.support.project import Project


class LangChainDriver(Driver):
    """An agent that is invoked, or streamed, synchronously."""

    acts = True
    impossible: ClassVar[Mapping[str, HookEventName]] = {"acting_permission": HookEventName.BEFORE_TOOL}

    def run(self, scenario: Scenario) -> Outcome:
        hooks = HooksMiddleware.load(
            scenario.project.root, aliases=scenario.aliases, approver=scenario.approver, metadata=scenario.metadata
        )
        api = ChatModel(scenario)
        agent = create_agent(
            openai_model(api),
            scenario.tools.functions,
            system_prompt=scenario.system_prompt,
            middleware=[*self.middleware(scenario, hooks), hooks],
            checkpointer=InMemorySaver(),
        )
        config: dict[str, Any] = {"configurable": {"thread_id": scenario.session_id}}
        if scenario.asked_by:
            config["metadata"] = {"user": scenario.asked_by}
        outcome = Outcome(runs=scenario.tools.runs, requests=api.requests)
        given: Any = {"messages": [{"role": "user", "content": scenario.prompt}]}
        try:
            result = self.start(agent, given, config, outcome if scenario.stream else None)
        except LookupError as error:  # a tool's own
            outcome.error = error
            return outcome
        if "__interrupt__" in result:
            approval: Any = Command(resume={"decisions": [{"type": "approve"}]})
            result = self.start(agent, approval, config, None)
        messages: list[BaseMessage] = result["messages"]
        hooks.end_session(scenario.session_id)
        assert hooks.hooks.sync.settle() == 0
        outcome.text = next((str(message.text) for message in reversed(messages) if isinstance(message, AIMessage)), "")
        outcome.results = [str(message.text) for message in messages if isinstance(message, ToolMessage)]
        outcome.stop_reason = result.get("hook_stop_reason")
        marks = [message.response_metadata.get("llxprt_hooks", {}) for message in messages]
        outcome.suppressed = any(mark.get("suppress_output") for mark in marks)
        return outcome

    def middleware(self, scenario: Scenario, hooks: HooksMiddleware) -> list[Any]:
        if scenario.approval:
            return [hooks.notifying(HumanInTheLoopMiddleware({"write_file": True}))]
        if scenario.compress:
            writer = hooks.summarizer(model_of(says("a summary")))
            middleware = SummarizationMiddleware(
                writer, summarizer=writer, trigger=("messages", 3), keep=("messages", 2)
            )
            return [hooks.compressing(middleware)]
        return []

    def start(self, agent: Any, given: Any, config: Any, streamed: Outcome | None) -> dict[str, Any]:
        if streamed is None:
            result: dict[str, Any] = agent.invoke(given, config)
            return result
        streamed.shown += [_shown(part) for part in agent.stream(given, config, stream_mode="messages")]
        values: dict[str, Any] = agent.get_state(config).values
        return values


class AsyncLangChainDriver(LangChainDriver):
    """The same, asynchronously."""

    def start(self, agent: Any, given: Any, config: Any, streamed: Outcome | None) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            if streamed is None:
                result: dict[str, Any] = await agent.ainvoke(given, config)
                return result
            streamed.shown += [_shown(part) async for part in agent.astream(given, config, stream_mode="messages")]
            values: dict[str, Any] = (await agent.aget_state(config)).values
            return values

        return asyncio.run(run())


def _shown(part: tuple[BaseMessage, Any]) -> str:
    return str(part[0].text) if isinstance(part[0], (AIMessage, AIMessageChunk)) else ""


def openai_model(api: ChatModel) -> ChatOpenAI:
    """Return LangChain's model of OpenAI, whose requests a scenario answers."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        if not body.get("stream"):
            return httpx2.Response(200, json=api.complete(body))
        events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in api.stream(body))
        return httpx2.Response(200, text=f"{events}data: [DONE]\n\n", headers={"content-type": "text/event-stream"})

    transport = httpx2.MockTransport(answer)
    return ChatOpenAI(
        model=MODEL,
        api_key=SecretStr("none"),
        http_client=httpx2.Client(transport=transport),
        http_async_client=httpx2.AsyncClient(transport=transport),
    )


DRIVERS = (LangChainDriver(), AsyncLangChainDriver())


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: type(driver).__name__)
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, driver: Driver, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, driver, sandbox, caplog)


def test_every_effect_can_be_had() -> None:
    check_declarations(LangChainDriver())
    assert not LangChainDriver.partial
    assert [*LangChainDriver.impossible] == ["acting_permission"]
