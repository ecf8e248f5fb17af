"""The contract of all integrations, run through Google's Agent Development Kit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from pydantic import PrivateAttr

from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.google_adk import HooksPlugin
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
    specific,
)

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest

    from tests.support.project import Project

pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL:UserWarning")
CONFIRM = "adk_request_confirmation"


def _rest_is_in_the_complete_answer(scenario: Scenario, outcome: Outcome) -> None:
    """What follows the last sentence is only in the complete answer, which ends every stream of this framework."""
    assert [piece for piece in outcome.shown if piece] == ["This is fine. ", "The key is [secret] here. "]
    assert outcome.text == "This is fine. The key is [secret] here. Good bye"


class GoogleADKDriver(Driver):
    """Runs a scenario through an app, whose model is scripted."""

    acts = True
    partial: ClassVar = {"after_model_streams_sentences": _rest_is_in_the_complete_answer}
    impossible: ClassVar[dict[str, HookEventName]] = dict.fromkeys(
        ("acting_continuation", "acting_continuation_limit", "acting_answer_stops", "acting_context_cleared"),
        HookEventName.AFTER_AGENT,
    )

    def __init__(self, *, confirmed: bool = True, then: str | None = None) -> None:
        self.confirmed = confirmed
        self.then = then
        """The user's second prompt."""
        self.asked: list[dict[str, Any]] = []

    def run(self, scenario: Scenario) -> Outcome:
        outcome = Outcome(runs=scenario.tools.runs)
        asyncio.run(self._converse(scenario, outcome))
        return outcome

    async def _converse(self, scenario: Scenario, outcome: Outcome) -> None:
        plugin = HooksPlugin.load(
            scenario.project.root, aliases=scenario.aliases, approver=scenario.approver, metadata=scenario.metadata
        )
        tools = [
            FunctionTool(function, require_confirmation=scenario.approval) for function in scenario.tools.functions
        ]
        model = _Model(model="first-model")
        model.script(scenario, outcome)
        agent = LlmAgent(name="tester", model=model, instruction=scenario.system_prompt, tools=list(tools))
        compaction = None
        if scenario.compress:
            summarizer = plugin.summarizer(_Nothing())
            compaction = EventsCompactionConfig(summarizer=summarizer, compaction_interval=1, overlap_size=0)
        app = App(name="contract", root_agent=agent, plugins=[plugin], events_compaction_config=compaction)
        runner = InMemoryRunner(app=app)
        await runner.session_service.create_session(
            app_name="contract", user_id=scenario.asked_by or "u", session_id=scenario.session_id
        )
        message: types.Content | None = types.Content(role="user", parts=[types.Part(text=scenario.prompt)])
        try:
            while message is not None:
                message = await self._turn(runner, scenario, message, outcome)
            if self.then is not None:
                then = types.Content(role="user", parts=[types.Part(text=self.then)])
                await self._turn(runner, scenario, then, outcome)
        except Exception as error:
            outcome.error = error
        await runner.close()

    async def _turn(
        self, runner: InMemoryRunner, scenario: Scenario, message: types.Content, outcome: Outcome
    ) -> types.Content | None:
        """Run one message; return the approvals of the user, if the agent asks for them."""
        config = RunConfig.model_validate({"streaming_mode": "sse"}) if scenario.stream else RunConfig()
        approvals = []
        async for event in runner.run_async(
            user_id=scenario.asked_by or "u", session_id=scenario.session_id, new_message=message, run_config=config
        ):
            _read(event, outcome)
            for call in event.get_function_calls():
                if call.name == CONFIRM:
                    self.asked.append((call.args or {})["toolConfirmation"])
                    answer = {"confirmed": self.confirmed}
                    response = types.FunctionResponse(id=call.id, name=CONFIRM, response=answer)
                    approvals.append(types.Part(function_response=response))
        return types.Content(role="user", parts=approvals) if approvals else None


def _read(event: Event, outcome: Outcome) -> None:
    text = "".join(part.text or "" for part in (event.content.parts if event.content else None) or [])
    if event.partial:
        outcome.shown.append(text)
        return
    if text:
        outcome.text = text
        if not outcome.shown:
            outcome.shown.append(text)
    for response in event.get_function_responses():
        if response.name != CONFIRM and "requires confirmation" not in str(response.response):
            outcome.results.append(_result(response.response))
    said = (event.custom_metadata or {}).get("llxprt_hooks", {})
    outcome.suppressed = outcome.suppressed or "suppress_output" in said
    outcome.stop_reason = said.get("stop_reason", outcome.stop_reason)


def _result(response: dict[str, Any] | None) -> str:
    values = list((response or {}).values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(response)


class _Nothing(BaseEventsSummarizer):
    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        return None


class _Model(BaseLlm):
    _scenario: Any = PrivateAttr()
    _outcome: Any = PrivateAttr()

    def script(self, scenario: Scenario, outcome: Outcome) -> None:
        self._scenario, self._outcome = scenario, outcome

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        turn = self._note(llm_request)
        parts = [types.Part(function_call=types.FunctionCall(name=c.name, args=c.args)) for c in calls_of(turn)]
        if isinstance(turn, str):
            if stream:
                for piece in pieces_of(turn):
                    yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=piece)]), partial=True)
            parts = [types.Part(text=turn)]
        yield LlmResponse(content=types.Content(role="model", parts=parts), finish_reason=types.FinishReason.STOP)

    def _note(self, sent: LlmRequest) -> Any:
        config, requests = sent.config, self._outcome.requests
        parts = [(content.role, part) for content in sent.contents for part in content.parts or []]
        results = [part.function_response for _, part in parts if part.function_response]
        calls = [part.function_call.name for _, part in parts if part.function_call]
        calling = config.tool_config.function_calling_config if config.tool_config else None
        tools: list[Any] = list(config.tools or [])
        declared: set[str] = {function.name for tool in tools for function in tool.function_declarations or []}
        mode = calling.mode.value if calling and calling.mode else ""
        named = set(calling.allowed_function_names or declared) if calling else declared
        requests.append(
            Request(
                texts=[
                    ("system", str(config.system_instruction or "")),
                    *((role or "user", part.text) for role, part in parts if part.text),
                ],
                results=[_result(result.response) for result in results if result.name in TOOL_NAMES],
                calls=[name for name in calls if name in TOOL_NAMES],
                allowed=frozenset() if mode == "NONE" else frozenset(named & declared),
                must_call=mode == "ANY",
                model=sent.model or "",
                temperature=config.temperature,
            )
        )
        return self._scenario.turn(len(requests) - 1)


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, GoogleADKDriver(), sandbox, caplog)


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_hook_asks_by_the_frameworks_confirmation(confirmed: bool, sandbox: Project) -> None:
    rewritten = specific(tool_input={"file_path": "a.txt"})
    acting(sandbox, True, BeforeTool=sandbox.hook(says={"decision": "ask", "reason": "sure?", **rewritten}))
    sandbox.approve()
    driver = GoogleADKDriver(confirmed=confirmed)
    call = Call("write_file", {"file_path": "b.txt", "content": "hello"})
    outcome = driver.run(Scenario(project=sandbox, turns=[call, "done"]))
    assert [asked["payload"]["tool_input"] for asked in driver.asked] == [dict(NOTE.args)]
    assert driver.asked[0]["hint"].startswith("sure?")
    assert outcome.runs == (WROTE_NOTE if confirmed else [])
    assert outcome.results == ["wrote a.txt" if confirmed else "sure? (the answer was no)"]


def test_an_approval_counts_for_the_arguments_that_the_person_saw(sandbox: Project) -> None:
    """A hook gives the call other arguments when it is run again with the answer."""
    says = [{"decision": "ask", "reason": "sure?", **specific(tool_input={"file_path": path})} for path in "abc"]
    acting(sandbox, True, BeforeTool=sandbox.hook(says=says))
    sandbox.approve()
    outcome = GoogleADKDriver().run(Scenario(project=sandbox, turns=[NOTE, "done"]))
    assert (outcome.runs, outcome.results) == ([], ["sure? (the answer was no)"])


def test_a_refused_prompt_is_not_part_of_the_conversation(sandbox: Project) -> None:
    says = [{"decision": "block", "reason": "no secrets"}, None]
    acting(sandbox, True, BeforeAgent=sandbox.hook(says=says))
    sandbox.approve()
    scenario = Scenario(project=sandbox, turns=["hello"], prompt="the key is 7")
    outcome = GoogleADKDriver(then="go on").run(scenario)
    assert [("the key is 7" in request.text, "go on" in request.text) for request in outcome.requests] == [
        (False, True)
    ]


def test_declared_gaps() -> None:
    check_declarations(GoogleADKDriver())
