"""The contract of all integrations, run through pydantic-ai."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.settings import ToolOrOutput
from pydantic_ai.tools import DeferredToolResults, Tool, ToolApproved

from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.pydantic_ai import HooksCapability
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
)

if TYPE_CHECKING:
    from tests.support.project import Project


def _held_back(scenario: Scenario, outcome: Outcome) -> None:
    """The answer is shown once, as the hook left it."""
    assert "".join(outcome.shown) == outcome.text == "This is fine. The key is [secret] here. Good bye"
    assert len(scenario.project.payloads("scrub")) == 1


class PydanticAIDriver(Driver):
    """Runs a scenario through an agent of pydantic-ai, whose model is scripted."""

    acts = True
    partial: ClassVar = {"after_model_streams_sentences": _held_back}
    impossible: ClassVar = {
        "pre_compress": HookEventName.PRE_COMPRESS,
        "acting_compression_blocked": HookEventName.PRE_COMPRESS,
        "acting_permission": HookEventName.BEFORE_TOOL,
    }

    def run(self, scenario: Scenario) -> Outcome:
        outcome = Outcome(runs=scenario.tools.runs)
        asyncio.run(self._converse(scenario, outcome))
        return outcome

    async def _converse(self, scenario: Scenario, outcome: Outcome) -> None:
        told = _Model(scenario, outcome)
        capability = HooksCapability.load(
            scenario.project.root,
            aliases=scenario.aliases,
            approver=scenario.approver,
            resolve_model=lambda name: told.named(name),
            metadata=scenario.metadata,
        )
        tools = [Tool(function, requires_approval=scenario.approval) for function in scenario.tools.functions]
        agent = Agent(
            told.named("first-model"),
            instructions=scenario.system_prompt,
            tools=tools,
            capabilities=[capability, HandleDeferredToolCalls(_approve)],
            retries=1,
            metadata={"user": scenario.asked_by} if scenario.asked_by else None,
        )
        messages: list[ModelMessage] = []
        try:
            if scenario.stream:
                async with agent.run_stream(scenario.prompt, conversation_id=scenario.session_id) as stream:
                    async for piece in stream.stream_text(delta=True, debounce_by=None):
                        outcome.shown.append(piece)
                    outcome.text, messages = await stream.get_output(), stream.all_messages()
            else:
                result = await agent.run(scenario.prompt, conversation_id=scenario.session_id)
                outcome.text, messages = result.output, result.all_messages()
        except Exception as error:
            outcome.error = error
        _read(messages, outcome)
        capability.end_session(scenario.session_id)
        await capability.hooks.settle()


async def _approve(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
    return DeferredToolResults(approvals={call.tool_call_id: ToolApproved() for call in requests.approvals})


class _Model:
    """Answers from the script, whatever model of it is asked."""

    def __init__(self, scenario: Scenario, outcome: Outcome) -> None:
        self.scenario = scenario
        self.outcome = outcome

    def named(self, name: str) -> FunctionModel:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
            turn = self.turn(messages, info, name)
            if isinstance(turn, str):
                for piece in pieces_of(turn):
                    yield piece
            for index, call in enumerate(calls_of(turn)):
                yield {index: DeltaToolCall(call.name, str(ToolCallPart(call.name, call.args).args_as_json_str()))}

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            turn = self.turn(messages, info, name)
            if isinstance(turn, str):
                return ModelResponse(parts=[TextPart(turn)])
            return ModelResponse(parts=[ToolCallPart(call.name, call.args) for call in calls_of(turn)])

        return FunctionModel(answer, stream_function=stream, model_name=name)

    def turn(self, messages: list[ModelMessage], info: AgentInfo, name: str) -> Any:
        settings = info.model_settings or {}
        choice = settings.get("tool_choice")
        names = choice.function_tools if isinstance(choice, ToolOrOutput) else choice
        self.outcome.requests.append(
            Request(
                texts=[
                    ("system", info.instructions or ""),
                    *(text for message in messages for text in _texts(message)),
                ],
                results=_results(messages),
                calls=[p.tool_name for m in messages for p in m.parts if isinstance(p, ToolCallPart)],
                allowed=frozenset() if names == "none" else frozenset(names) if isinstance(names, list) else TOOL_NAMES,
                must_call=choice == "required" or isinstance(choice, list),
                model=name,
                temperature=settings.get("temperature"),
            )
        )
        return self.scenario.turn(len(self.outcome.requests) - 1)


def _texts(message: ModelMessage) -> list[tuple[str, str]]:
    if isinstance(message, ModelResponse):
        return [("model", part.content) for part in message.parts if isinstance(part, TextPart)]
    texts = [part for part in message.parts if isinstance(part, (UserPromptPart, SystemPromptPart))]
    return [
        ("system" if isinstance(part, SystemPromptPart) else "user", "".join(map(str, part.content))) for part in texts
    ]


def _results(messages: list[ModelMessage]) -> list[str]:
    parts = [p for m in messages if isinstance(m, ModelRequest) for p in m.parts if isinstance(p, ToolReturnPart)]
    return [part.model_response_str(wrap_if_error=False) for part in parts]


def _read(messages: list[ModelMessage], outcome: Outcome) -> None:
    """Read from the history what the program is told."""
    outcome.results = _results(messages)
    for message in messages:
        marks = [message.metadata] if isinstance(message, ModelResponse) else []
        marks += [part.metadata for part in message.parts if isinstance(part, ToolReturnPart)]
        for mark in marks:
            said = (mark or {}).get("llxprt_hooks", {})
            outcome.suppressed = outcome.suppressed or "suppress_output" in said
            outcome.stop_reason = said.get("stop_reason", outcome.stop_reason)


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, PydanticAIDriver(), sandbox, caplog)


def test_declared_gaps() -> None:
    check_declarations(PydanticAIDriver())
