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
    RunState,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseStreamEvent
from pydantic import TypeAdapter

from llxprt_hooks.config import Config
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.openai_agents import HookStopped, install, uninstall
from llxprt_hooks.model.openai_responses import OpenAIResponsesTranslator
from tests.integrations.contract import (
    EFFECTS,
    NOTE,
    TOOL_NAMES,
    WROTE_NOTE,
    Call,
    Driver,
    Effect,
    Outcome,
    Request,
    Scenario,
    acting,
    calls_of,
    check,
    check_declarations,
    pieces_of,
    ran_normally,
    specific,
)

if TYPE_CHECKING:
    from tests.support.project import Project

TRANSLATOR = OpenAIResponsesTranslator()
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def shows_it(outcome: Outcome) -> None:
    assert (outcome.text, outcome.error) == ("hello", None)


class OpenAIAgentsDriver(Driver):
    """Runs a scenario through an agent of the SDK, whose model is scripted."""

    acts = True
    impossible: ClassVar = dict.fromkeys(("pre_compress", "acting_compression_blocked"), HookEventName.PRE_COMPRESS)
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
        agent, options = agent_of(scenario, outcome)
        session = options["session"] = SQLiteSession(scenario.session_id)
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


def agent_of(scenario: Scenario, outcome: Outcome) -> tuple[Agent[Any], dict[str, Any]]:
    """An agent with the scenario's tools, and the options with which it is run."""
    tools: list[Any] = [
        function_tool(function, needs_approval=scenario.approval, strict_mode=False)
        for function in scenario.tools.functions
    ]
    agent = Agent[Any](name="tester", instructions=scenario.system_prompt, tools=tools, model="first-model")
    about = {"user": scenario.asked_by} if scenario.asked_by else None
    return agent, {"run_config": RunConfig(model_provider=_Provider(scenario, outcome), trace_metadata=about)}


@contextmanager
def installed(scenario: Scenario) -> Iterator[Any]:
    set_tracing_disabled(True)
    try:
        config = Config.load(scenario.project.root, approver=scenario.approver)
        yield install(config, aliases=scenario.aliases, metadata=scenario.metadata)
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
        given = dict(zip(("system_instructions", "input", "model_settings", "tools"), args, strict=False))
        output = [item.model_dump() for item in self._answer({**given, **kwargs})]
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


CALL = Call("write_file", {"file_path": "b.txt", "content": "hello"})


@pytest.mark.parametrize("in_another_process", [False, True])
@pytest.mark.parametrize("approved", [True, False])
async def test_a_hook_asks_by_an_interruption(approved: bool, in_another_process: bool, sandbox: Project) -> None:
    rewritten = {} if in_another_process else specific(tool_input={"file_path": "a.txt"})
    acting(sandbox, True, BeforeTool=sandbox.hook(says={"decision": "ask", "reason": "sure?", **rewritten}))
    sandbox.approve()
    scenario = Scenario(project=sandbox, turns=[NOTE if in_another_process else CALL, "done"])
    outcome = Outcome()
    with installed(scenario) as hooks:
        agent, options = agent_of(scenario, outcome)
        result = await Runner.run(agent, "go", **options)
        [item] = result.interruptions
        request = hooks.request_of(item)
        assert (request.tool_input, request.reason) == (dict(NOTE.args), "sure?")
        state = result.to_state()
        (state.approve if approved else state.reject)(item)
        if not in_another_process:
            result = await Runner.run(agent, state, **options)
    if in_another_process:
        with installed(scenario):
            result = await Runner.run(agent, await RunState.from_json(agent, state.to_json()), **options)
    assert result.final_output == "done"
    assert scenario.tools.runs == (WROTE_NOTE if approved else [])


async def test_an_approval_counts_for_the_arguments_that_the_person_saw(sandbox: Project) -> None:
    """A hook gives the call other arguments when it runs."""
    says = [{"decision": "ask", "reason": "sure?", **specific(tool_input={"file_path": path})} for path in "abc"]
    acting(sandbox, True, BeforeTool=sandbox.hook(says=says))
    sandbox.approve()
    scenario, outcome = Scenario(project=sandbox, turns=[NOTE, "done"]), Outcome()
    with installed(scenario):
        agent, options = agent_of(scenario, outcome)
        result = await Runner.run(agent, "go", **options)
        state = result.to_state()
        state.approve(result.interruptions[0])
        await Runner.run(agent, state, **options)
    assert (scenario.tools.runs, outcome.requests[1].results) == ([], ["sure? (the answer was no)"])


async def test_an_approval_for_a_tool_does_not_answer_what_a_hook_asks_about_its_later_calls(sandbox: Project) -> None:
    acting(sandbox, True, BeforeTool=sandbox.hook(says={"decision": "ask", "reason": "sure?"}))
    sandbox.approve()
    scenario, outcome = Scenario(project=sandbox, turns=[NOTE, CALL, "done"]), Outcome()
    with installed(scenario):
        agent, options = agent_of(scenario, outcome)
        result = await Runner.run(agent, "go", **options)
        state = result.to_state()
        state.approve(result.interruptions[0], always_approve=True)
        await Runner.run(agent, state, **options)
    assert scenario.tools.runs == WROTE_NOTE
    assert outcome.requests[2].results[1].startswith("sure? (nobody could be asked")


@pytest.mark.parametrize("refusing", [True, False])
def test_prompts_of_streamed_runs_are_refused_and_extended(refusing: bool, sandbox: Project) -> None:
    says = {"decision": "block", "reason": "no"} if refusing else specific(additionalContext="It is Monday.")
    acting(sandbox, True, BeforeAgent=sandbox.hook(says=says))
    sandbox.approve()
    outcome = OpenAIAgentsDriver().run(Scenario(project=sandbox, turns=["hello"], stream=True))
    assert [request.texts[-1][1] for request in outcome.requests] == ([] if refusing else ["go\n\nIt is Monday."])
    assert isinstance(outcome.error, HookStopped) is refusing


def test_declared_gaps() -> None:
    check_declarations(OpenAIAgentsDriver())
