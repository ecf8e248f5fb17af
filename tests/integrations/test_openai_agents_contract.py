"""The contract of all integrations, run through the OpenAI Agents SDK."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from agents import (
    Agent,
    Model,
    ModelProvider,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseStreamEvent
from pydantic import TypeAdapter

from llxprt_hooks.config import Config
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.openai_agents import install, uninstall
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from tests.integrations.contract import (
    EFFECTS,
    TOOL_NAMES,
    Driver,
    Effect,
    Outcome,
    Request,
    Scenario,
    calls_of,
    check,
    check_declarations,
    pieces_of,
    ran_normally,
)

if TYPE_CHECKING:
    from tests.support.project import Project

TRANSLATOR = OpenAIResponsesTranslator()
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def shows_it(outcome: Outcome) -> None:
    assert (outcome.text, outcome.error) == ("hello", None)


class OpenAIAgentsDriver(Driver):
    """Runs a scenario through an agent of the SDK, whose model is scripted."""

    impossible: ClassVar = {"pre_compress": HookEventName.PRE_COMPRESS}
    partial: ClassVar = {
        # The SDK shows nothing, so there is nothing to hide.
        "after_tool_suppresses": lambda scenario, outcome: ran_normally(outcome),
        "after_model_suppresses": lambda scenario, outcome: shows_it(outcome),
    }

    def run(self, scenario: Scenario) -> Outcome:
        outcome = Outcome(runs=scenario.tools.runs)
        with installed(scenario) as hooks:
            asyncio.run(self._converse(scenario, outcome))
            outcome.stop_reason = hooks.stop_reason(scenario.session_id)
            hooks.end_session(scenario.session_id)
            hooks.hooks.sync.settle()
        return outcome

    async def _converse(self, scenario: Scenario, outcome: Outcome) -> None:
        provider = _Provider(scenario, outcome)
        tools: list[Any] = [
            function_tool(function, needs_approval=scenario.approval, strict_mode=False)
            for function in scenario.tools.functions
        ]
        agent = Agent(name="tester", instructions=scenario.system_prompt, tools=tools, model="first-model")
        session = SQLiteSession(scenario.session_id)
        options: Any = {"run_config": RunConfig(model_provider=provider), "session": session}
        try:
            if scenario.stream:
                streamed = Runner.run_streamed(agent, scenario.prompt, **options)
                async for event in streamed.stream_events():
                    if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                        outcome.shown.append(event.data.delta)
                outcome.text = str(streamed.final_output)
            else:
                result = await Runner.run(agent, scenario.prompt, **options)
                while result.interruptions:
                    state = result.to_state()
                    for item in result.interruptions:
                        state.approve(item)
                    result = await Runner.run(agent, state, **options)
                outcome.text = str(result.final_output)
        except Exception as error:
            outcome.error = error
        outcome.results = _results(await session.get_items())
        session.close()


@contextmanager
def installed(scenario: Scenario) -> Iterator[Any]:
    set_tracing_disabled(True)
    try:
        yield install(Config.load(scenario.project.root), aliases=scenario.aliases)
    finally:
        uninstall()


class _Provider(ModelProvider):
    def __init__(self, scenario: Scenario, outcome: Outcome) -> None:
        self.scenario = scenario
        self.outcome = outcome

    def get_model(self, model_name: str | None) -> Model:
        return _Model(self, model_name or "")


class _Model(Model):
    def __init__(self, provider: _Provider, name: str) -> None:
        self._provider = provider
        self._name = name

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return ModelResponse(output=self._answer(kwargs), usage=Usage(), response_id="r1")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        output = [item.model_dump() for item in self._answer(kwargs)]
        response = {**TRANSLATOR.blank_response({"model": self._name}), "output": output, "status": "completed"}
        for event in TRANSLATOR.wire.events(response):
            if event["type"] != "response.output_text.delta":
                yield EVENT.validate_python(event)
                continue
            for piece in pieces_of(event["delta"]):
                yield EVENT.validate_python({**event, "delta": piece})

    def _answer(self, sent: dict[str, Any]) -> list[Any]:
        scenario, requests = self._provider.scenario, self._provider.outcome.requests
        settings, items = sent["model_settings"], sent["input"]
        shown = TRANSLATOR.to_hook_llm_request({"input": items})["messages"]
        choice = settings.tool_choice
        named = {tool.name for tool in sent["tools"]} & TOOL_NAMES
        items = [] if isinstance(items, str) else items
        requests.append(
            Request(
                texts=[
                    ("system", sent["system_instructions"] or ""),
                    *((message["role"], message["content"]) for message in shown),
                ],
                results=_results(items),
                calls=[item["name"] for item in items if item.get("type") == "function_call"],
                allowed=frozenset(() if choice == "none" else {choice} & named or named),
                must_call=choice == "required" or choice in TOOL_NAMES,
                model=self._name,
                temperature=settings.temperature,
            )
        )
        turn = scenario.turn(len(requests) - 1)
        if isinstance(turn, str):
            answer = TRANSLATOR.from_hook_llm_response({"text": turn}, TRANSLATOR.blank_response({}))
            return list(Response.model_validate(answer).output)
        return [
            ResponseFunctionToolCall(
                type="function_call",
                name=call.name,
                arguments=json.dumps(call.args),
                call_id=f"{len(requests)}.{index}",
            )
            for index, call in enumerate(calls_of(turn))
        ]


def _results(items: list[Any]) -> list[str]:
    outputs = [item for item in items if isinstance(item, dict) and item.get("type") == "function_call_output"]
    return [_text(item["output"]) for item in sorted(outputs, key=lambda item: item["call_id"])]


def _text(output: Any) -> str:
    """The SDK sends a dict as Python writes it."""
    try:
        return json.dumps(ast.literal_eval(output))
    except (SyntaxError, ValueError):
        return str(output)


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, OpenAIAgentsDriver(), sandbox, caplog)


def test_declared_gaps() -> None:
    check_declarations(OpenAIAgentsDriver())
