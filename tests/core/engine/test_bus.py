"""Hooks by message: requests and responses on a message bus, in every shape, through every failure."""

from __future__ import annotations

import asyncio
import json
import typing
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from llxprt_hooks import (
    AggregatedHookResult,
    Config,
    ExecutionPlan,
    GenerateContentParameters,
    HookEventName,
    HookExecutionRequest,
    HookExecutionResponse,
    HookExecutionResult,
    HookFormat,
    InProcessMessageBus,
    MessageBusType,
    ToolResult,
    fire_before_tool_hook,
)
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.runner import HookRunner
from tests.support.engine_project import EngineProject, system_of
from tests.support.processes import lives

if typing.TYPE_CHECKING:
    from google.genai.types import GenerateContentResponse

    from llxprt_hooks.core.engine.messages import Message, Subscriber
    from llxprt_hooks.settings.definitions import HookSet
    from tests.support.engine_project import EngineProject, Ready, Texts

Connected = Callable[..., Config]

REQUEST, RESPONSE = MessageBusType.HOOK_EXECUTION_REQUEST, MessageBusType.HOOK_EXECUTION_RESPONSE

TOOL_INPUT = {"tool_name": "glob", "tool_input": {"pattern": "*"}}
LLM_REQUEST = {"messages": [{"role": "user", "content": "hi"}]}
LLM_RESPONSE = {"candidates": [{"content": {"role": "model", "parts": ["hello"]}}]}

VALID: dict[str, dict[str, Any]] = {
    "BeforeTool": TOOL_INPUT,
    "AfterTool": {**TOOL_INPUT, "tool_response": {"llmContent": "x"}},
    "BeforeAgent": {"prompt": "do it"},
    "AfterAgent": {"prompt": "do it", "prompt_response": "done", "stop_hook_active": False},
    "BeforeModel": {"llm_request": LLM_REQUEST},
    "AfterModel": {"llm_request": LLM_REQUEST, "llm_response": LLM_RESPONSE},
    "BeforeToolSelection": {"llm_request": LLM_REQUEST},
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "exit"},
    "PreCompress": {"trigger": "auto"},
    "Notification": {"notification_type": "ToolPermission", "message": "May I?", "details": {}},
}


class Recorded(InProcessMessageBus):
    """A real bus with a note of every response on it."""

    def __init__(self) -> None:
        super().__init__()
        self.responses: list[Any] = []
        self.subscribe(RESPONSE, self.responses.append)

    async def ask(self, message: Message) -> Any:
        """Publish a request; the one response to it."""
        await self.publish(message)
        (response,) = self.responses
        self.responses.clear()
        return response


@pytest.fixture
def bus() -> Recorded:
    return Recorded()


@pytest.fixture
def connected(project: EngineProject, bus: Recorded) -> Any:
    """A hook system on the bus."""

    def connected(events: dict[str, Any], **options: Any) -> Any:
        config = project.config(events, message_bus=bus, **options)
        assert config.get_hook_system() is not None
        return config

    return connected


def flat(
    event: Any = "BeforeTool", given: Any = None, kind: Any = "hook-execution-request", **fields: Any
) -> dict[str, Any]:
    return {"type": kind, "eventName": event, "input": VALID[event] if given is None else given, **fields}


def wrapped(
    event: Any = "BeforeTool", given: Any = None, kind: Any = "HOOK_EXECUTION_REQUEST", **fields: Any
) -> dict[str, Any]:
    return {"type": kind, "payload": {"eventName": event, "input": given or VALID[event], **fields}}


# The path of a request.


@pytest.mark.requirement("DELTA-HEVT-001", "DELTA-HEVT-002", "DELTA-HPAY-001")
@pytest.mark.parametrize("event", HookEventName)
async def test_a_request_runs_the_hooks_of_its_event_and_is_answered(
    project: EngineProject, bus: Recorded, connected: Connected, event: HookEventName
) -> None:
    connected({event: project.hook(says={"reason": "seen"})})
    response = await bus.ask(flat(event, correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", True)
    assert response["output"]["finalOutput"]["reason"] == "seen"
    assert "error" not in response
    payload = project.payload()
    assert {name: payload[name] for name in VALID[event]} == VALID[event]
    assert (payload["session_id"], payload["hook_event_name"]) == ("s1", event)


def test_the_table_of_valid_inputs_is_complete() -> None:
    assert VALID.keys() == set(HookEventName)


@pytest.mark.requirement("DELTA-HEVT-001", "HOOK-206")
async def test_a_request_may_be_the_first_event_of_all(
    project: EngineProject, bus: Recorded, connected: Connected
) -> None:
    config = connected({"BeforeTool": project.hook()})
    assert not system_of(config).get_status().initialized
    assert (await bus.ask(flat()))["success"] is True
    assert system_of(config).get_status().initialized
    assert project.runs() == 1


@pytest.mark.requirement("DELTA-HFAIL-003")
async def test_a_request_without_matching_hooks_is_an_empty_success(
    project: EngineProject, bus: Recorded, connected: Connected
) -> None:
    connected({"AfterTool": project.hook()})
    response = await bus.ask(flat(correlationId="c1"))
    assert response == {
        "type": "hook-execution-response",
        "correlationId": "c1",
        "success": True,
        "output": {"success": True, "finalOutput": None, "allOutputs": [], "errors": [], "totalDuration": 0},
    }


@pytest.mark.requirement("DELTA-HEVT-002")
@pytest.mark.parametrize(
    ("options", "success", "blocking"),
    [
        ({"says": {"decision": "deny", "reason": "no"}}, True, True),
        ({"exit_code": 2, "stderr": "no"}, False, True),
        ({"exit_code": 1, "stderr": "broken"}, False, False),
    ],
)
async def test_success_means_that_hooks_ran_well_and_error_that_the_request_was_wrong(
    project: EngineProject, bus: Recorded, connected: Connected, options: dict[str, Any], success: bool, blocking: bool
) -> None:
    connected({"BeforeTool": project.hook(**options)})
    response = await bus.ask(HookExecutionRequest(HookEventName.BEFORE_TOOL, TOOL_INPUT, "c1"))
    assert (response.success, response.output.success) == (success, success)
    assert response.error is None
    final = response.output.final_output
    assert (final is not None and final.is_blocking_decision()) is blocking


async def test_requests_at_the_same_time_are_each_answered_with_their_own_id(
    project: EngineProject, bus: Recorded, connected: Connected
) -> None:
    connected({"BeforeTool": 'printf "{\\"reason\\": \\"$(cat | wc -c)\\"}"'})
    inputs = [{"tool_name": "glob", "tool_input": {"n": "x" * i}} for i in range(10)]
    await asyncio.gather(*(bus.publish(flat(given=given, correlationId=str(i))) for i, given in enumerate(inputs)))
    lengths = {
        int(response["correlationId"]): int(response["output"]["finalOutput"]["reason"]) for response in bus.responses
    }
    assert [lengths[i] - lengths[0] for i in range(10)] == list(range(10))


# Shapes.


@pytest.mark.requirement("DELTA-HBUS-001", "DELTA-HEVT-002")
@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("hook-execution-request", "hook-execution-response"),
        ("HOOK_EXECUTION_REQUEST", "HOOK_EXECUTION_RESPONSE"),
        (REQUEST, "hook-execution-response"),
    ],
)
async def test_a_response_has_the_shape_and_the_spelling_of_its_request(
    project: EngineProject, bus: Recorded, connected: Connected, kind: str | MessageBusType, answer: str
) -> None:
    connected({"BeforeTool": project.hook(says={"reason": "seen"})})
    response = await bus.ask(flat(kind=kind, correlationId="c1"))
    assert response.keys() == {"type", "correlationId", "success", "output"}
    assert response["type"] == answer
    response = await bus.ask(wrapped(kind=kind, correlationId="c2"))
    assert response.keys() == {"type", "payload"}
    assert response["type"] == answer
    assert response["payload"].keys() == {"correlationId", "success", "output"}
    assert response["payload"]["correlationId"] == "c2"
    assert project.runs() == 2


@pytest.mark.requirement("DELTA-HBUS-001", "DELTA-HEVT-002")
async def test_a_request_of_our_class_is_answered_with_our_class(
    project: EngineProject, bus: Recorded, connected: Connected
) -> None:
    connected({"BeforeTool": project.hook(says={"reason": "seen"})})
    response = await bus.ask(HookExecutionRequest(HookEventName.BEFORE_TOOL, TOOL_INPUT, "c1"))
    assert isinstance(response, HookExecutionResponse)
    assert (response.type, response.correlation_id, response.success) == (RESPONSE, "c1", True)
    assert isinstance(response.output, AggregatedHookResult)
    assert response.output.final_output is not None
    assert response.output.final_output.reason == "seen"


# Correlation.


@pytest.mark.requirement("DELTA-HBUS-003")
@pytest.mark.parametrize("fields", [{}, {"correlationId": None}, {"correlationId": ""}, {"correlationId": 7}])
@pytest.mark.parametrize("shape", [flat, wrapped])
async def test_a_request_without_a_usable_correlation_id_gets_a_fresh_one(
    project: EngineProject, bus: Recorded, connected: Connected, shape: Callable[..., Any], fields: dict[str, Any]
) -> None:
    connected({})
    ids = []
    for _ in range(2):
        response = await bus.ask(shape(**fields))
        ids.append(response.get("payload", response)["correlationId"])
    assert [str(uuid.UUID(each)) for each in ids] == ids
    assert len(set(ids)) == 2


# Model data.


@pytest.fixture
def forms(llm_request: GenerateContentParameters, llm_response: GenerateContentResponse) -> dict[str, tuple[Any, Any]]:
    """The same request and response as SDK objects, as the Gemini API's JSON, and in hook format."""
    shown = {
        "messages": [{"role": "user", "content": "hi"}, {"role": "model", "content": "hello"}],
        "model": "gemini-3-flash",
        "config": {"temperature": 0.5, "topK": 40},
    }
    contents = [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "hello"}]}]
    from google.genai import types

    sdk = GenerateContentParameters(
        "gemini-3-flash",
        [types.Content.model_validate(content) for content in contents],
        types.GenerateContentConfig(temperature=0.5, top_k=40),
    )
    api = {"model": "gemini-3-flash", "contents": contents, "generationConfig": {"temperature": 0.5, "topK": 40}}
    answer = {"text": "done", "candidates": [{"content": {"role": "model", "parts": ["done"]}, "finishReason": "STOP"}]}
    api_answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP"}]}
    return {
        "sdk": (sdk, types.GenerateContentResponse.model_validate(api_answer)),
        "api": (api, api_answer),
        "hook": (shown, answer),
        "shown": (shown, answer),
    }


@pytest.mark.requirement("DELTA-HPAY-003", "HOOK-035", "HOOK-045", "HOOK-205")
@pytest.mark.parametrize("form", ["sdk", "api", "hook"])
@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "BeforeToolSelection"])
async def test_model_data_reaches_hooks_in_hook_format_by_message_as_by_call(
    project: EngineProject,
    bus: Recorded,
    connected: Connected,
    ready: Ready,
    forms: dict[str, tuple[Any, Any]],
    form: str,
    event: str,
) -> None:
    config = connected({event: project.hook()})
    request, answer = forms[form]
    given = {"llm_request": request, **({"llm_response": answer} if event == "AfterModel" else {})}
    assert (await bus.ask(flat(event, given)))["success"] is True
    by_message = project.payload()
    handler = await ready(config)
    if form == "hook":
        request, answer = HookFormat(request), HookFormat(answer)
    result = await {
        "BeforeModel": lambda: handler.fire_before_model_event(request),
        "AfterModel": lambda: handler.fire_after_model_event(request, answer),
        "BeforeToolSelection": lambda: handler.fire_before_tool_selection_event(request),
    }[event]()
    assert result.success
    by_call = project.payload()
    assert by_message["llm_request"] == by_call["llm_request"] == forms["shown"][0]
    if event == "AfterModel":
        assert by_message["llm_response"] == by_call["llm_response"] == forms["shown"][1]


@pytest.mark.requirement("DELTA-HPAY-001", "HOOK-026")
@pytest.mark.parametrize("shape", [flat, wrapped])
@pytest.mark.parametrize("form", ["ToolResult", "mapping"])
async def test_after_tool_takes_a_tool_result_by_message_as_by_call(
    project: EngineProject, bus: Recorded, connected: Connected, ready: Ready, shape: Callable[..., Any], form: str
) -> None:
    config = connected({"AfterTool": project.hook()})
    result = ToolResult("found it", return_display="1 file", metadata={"n": 1}, error={"message": "partly"})
    given = result if form == "ToolResult" else result.to_dict()

    response = await bus.ask(shape("AfterTool", {**TOOL_INPUT, "tool_response": given}))
    by_message = project.payload()
    await (await ready(config)).fire_after_tool_event("glob", {"pattern": "*"}, given)

    assert response.get("payload", response)["success"] is True
    assert by_message["tool_response"] == project.payload()["tool_response"] == result.to_dict()


# Failures.


@pytest.mark.requirement("DELTA-HEVT-003", "DELTA-HFAIL-002", "DELTA-HFAIL-005")
@pytest.mark.parametrize("event", ["BeforeLunch", "beforetool", "", None, 7, [], {"a": 1}])
async def test_an_unsupported_event_is_answered_with_a_structured_error(
    project: EngineProject, bus: Recorded, connected: Connected, event: Any
) -> None:
    connected({"BeforeTool": project.hook()})
    for shape in (flat, wrapped):
        message = shape(correlationId="c1")
        message.get("payload", message)["eventName"] = event
        response = await bus.ask(message)
        response = response.get("payload", response)
        assert (response["correlationId"], response["success"]) == ("c1", False)
        assert response["error"]["code"]
        assert repr(event) in response["error"]["message"]
        assert "BeforeTool" in response["error"]["message"]
    assert project.runs() == 0


@pytest.mark.requirement("DELTA-HPAY-002", "DELTA-HFAIL-002")
@pytest.mark.parametrize(
    ("event", "given", "named"),
    [
        ("BeforeTool", {"tool_name": "glob"}, "tool_input"),
        ("BeforeTool", {"tool_name": 7, "tool_input": {}}, "tool_name"),
        ("BeforeTool", {**TOOL_INPUT, "session_id": 7}, "session_id"),
        ("AfterTool", TOOL_INPUT, "tool_response"),
        ("BeforeAgent", {"prompt": 7}, "prompt"),
        ("AfterAgent", {"prompt": "a", "prompt_response": "b", "stop_hook_active": 1}, "stop_hook_active"),
        ("BeforeModel", {"llm_request": "text"}, "llm_request"),
        ("AfterModel", {"llm_request": LLM_REQUEST}, "llm_response"),
        ("BeforeToolSelection", {"request": LLM_REQUEST}, "llm_request"),
        ("Notification", {"notification_type": "x", "message": "m", "details": "d"}, "details"),
        ("SessionStart", {"source": "nowhere"}, "source"),
        ("BeforeTool", "text", "object"),
        ("BeforeTool", [], "object"),
        ("BeforeTool", 7, "object"),
    ],
)
async def test_an_invalid_payload_is_answered_with_what_is_wrong_and_nothing_is_planned_or_run(
    project: EngineProject, bus: Recorded, event: str, given: Any, named: str
) -> None:
    asked = []

    class Planner(HookPlanner):
        def create_execution_plan(self, *args: Any) -> ExecutionPlan | None:
            asked.append(args)
            return super().create_execution_plan(*args)

    project.handler(project.config({event: project.hook()}), planner=Planner, message_bus=bus)
    response = await bus.ask(flat(event, given, correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert response["error"]["code"] == "validation"
    assert named in response["error"]["message"]
    assert response["error"]["details"]["eventName"] == event
    assert asked == []
    assert project.runs() == 0


@pytest.mark.requirement("DELTA-HPAY-004", "DELTA-HFAIL-002")
@pytest.mark.parametrize(
    ("event", "given"),
    [
        ("BeforeModel", {"llm_request": {"nothing": "known"}}),
        ("BeforeModel", {"llm_request": {"messages": "text"}}),
        ("BeforeToolSelection", {"llm_request": object()}),
        ("AfterModel", {"llm_request": LLM_REQUEST, "llm_response": {"nothing": "known"}}),
    ],
)
async def test_model_data_that_cannot_be_translated_is_answered_with_why(
    project: EngineProject, bus: Recorded, connected: Connected, event: str, given: dict[str, Any]
) -> None:
    connected({event: project.hook()})
    response = await bus.ask(flat(event, given, correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert response["error"]["code"] == "translation"
    assert "llm_re" in response["error"]["message"]
    assert response["error"]["details"]["eventName"] == event
    assert project.runs() == 0


class BrokenPlanner(HookPlanner):
    def create_execution_plan(self, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
        raise LookupError("it broke")


class BrokenRunner(HookRunner):
    async def execute_hooks_parallel(self, *args: Any) -> list[HookExecutionResult]:
        raise OSError("it broke")


class BrokenAggregator(HookAggregator):
    def aggregate_results(
        self, results: Sequence[HookExecutionResult], event_name: HookEventName
    ) -> AggregatedHookResult:
        raise ArithmeticError("it broke")


class Unspeakable(AggregatedHookResult):
    def to_dict(self) -> dict[str, Any]:
        raise OverflowError("it broke")


class UnspeakableAggregator(HookAggregator):
    def aggregate_results(
        self, results: Sequence[HookExecutionResult], event_name: HookEventName
    ) -> AggregatedHookResult:
        return Unspeakable(success=True)


@pytest.mark.requirement("DELTA-HFAIL-002")
@pytest.mark.parametrize(
    ("stage", "parts"),
    [
        ("planning", {"planner": BrokenPlanner}),
        ("execution", {"runner": BrokenRunner}),
        ("aggregation", {"aggregator": BrokenAggregator}),
        ("response_formatting", {"aggregator": UnspeakableAggregator}),
    ],
)
@pytest.mark.parametrize("shape", [flat, wrapped])
async def test_a_failure_at_any_stage_is_answered_with_the_stage_and_the_cause(
    project: EngineProject, bus: Recorded, shape: Callable[..., Any], stage: str, parts: dict[str, Any]
) -> None:
    project.handler(project.config({"BeforeTool": project.hook()}), message_bus=bus, **parts)
    response = await bus.ask(shape(correlationId="c1"))
    response = json.loads(json.dumps(response.get("payload", response)))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert response["error"]["code"] == stage
    assert "it broke" in response["error"]["message"]
    assert response["error"]["details"]["stage"] == stage


@pytest.mark.requirement("DELTA-HFAIL-002")
async def test_hooks_that_cannot_be_read_are_not_an_error_of_the_request(project: EngineProject, bus: Recorded) -> None:
    class Unreadable(Config):
        @property
        def hook_sets(self) -> Sequence[HookSet]:
            raise PermissionError("it broke")

    assert project.config({"BeforeTool": project.hook()}, Unreadable, message_bus=bus).get_hook_system() is not None
    response = await bus.ask(flat(correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert "it broke" in response["error"]["message"]
    assert response["error"]["code"] not in {"validation", "unsupported_event"}


async def test_a_response_that_cannot_be_published_is_logged_and_raises_nothing(
    project: EngineProject, warnings_of_engine: Texts
) -> None:
    class OneWay(InProcessMessageBus):
        async def publish(self, message: Message) -> None:
            if isinstance(message, dict) and message["type"] == "hook-execution-response":
                raise ConnectionError("no way back")
            await super().publish(message)

    bus = OneWay()
    project.handler(project.config({"BeforeTool": project.hook()}), message_bus=bus)
    await bus.publish(flat(correlationId="c1"))
    assert project.runs() == 1
    assert any("c1" in warning for warning in warnings_of_engine())


async def test_cancelling_a_request_ends_its_hooks(project: EngineProject, bus: Recorded, connected: Connected) -> None:
    connected({"BeforeTool": project.endless_hook("endless")})
    task = asyncio.create_task(bus.publish(flat()))
    pids = await project.started()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(lives(pid) for pid in pids)
    assert bus.responses == []


# Letting go.


class Lingering(InProcessMessageBus):
    """Ends a subscription asynchronously, when the broker does, if it does."""

    def __init__(self, ended: asyncio.Future[None]) -> None:
        super().__init__()
        self._ended = ended

    def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Any:
        unsubscribe = super().subscribe(message_type, subscriber)

        async def end() -> None:
            await self._ended
            unsubscribe()

        return end


@pytest.mark.requirement("DELTA-HEVT-004")
async def test_requests_that_arrive_while_the_subscription_is_being_ended_are_not_answered(
    project: EngineProject,
) -> None:
    ended = asyncio.get_running_loop().create_future()
    bus = Lingering(ended)
    system = project.system({"BeforeTool": project.hook()}, message_bus=bus)
    await bus.publish(flat())
    system.dispose()

    await bus.publish(flat())

    assert project.runs() == 1
    ended.set_result(None)


async def test_a_subscription_that_cannot_be_ended_is_a_warning(
    project: EngineProject, warnings_of_engine: Texts
) -> None:
    ended = asyncio.get_running_loop().create_future()
    system = project.system({}, message_bus=Lingering(ended))
    system.dispose()

    ended.set_exception(ConnectionError("the broker is gone"))
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    assert warnings_of_engine() == ["the subscription to the message bus could not be ended"]


@pytest.mark.requirement("DELTA-HEVT-004")
async def test_a_disposed_hook_system_no_longer_listens_but_still_serves_direct_calls(
    project: EngineProject, bus: Recorded, connected: Connected
) -> None:
    config = connected({"BeforeTool": project.hook(says={"reason": "seen"})})
    system_of(config).dispose()
    await bus.publish(flat())
    assert bus.responses == []
    assert project.runs() == 0
    output = await fire_before_tool_hook(config, "glob", {})
    assert output is not None
    assert output.reason == "seen"
    system_of(config).dispose()


@pytest.mark.requirement("DELTA-HEVT-004")
async def test_a_disposed_event_handler_no_longer_listens_and_others_do(project: EngineProject, bus: Recorded) -> None:
    gone = project.handler(project.config({"BeforeTool": project.hook("gone")}), message_bus=bus)
    project.handler(project.config({"BeforeTool": project.hook("here")}), message_bus=bus)
    gone.dispose()
    gone.dispose()
    await bus.ask(flat())
    assert (project.runs("gone"), project.runs("here")) == (0, 1)


@pytest.mark.requirement("DELTA-HEVT-004", "DELTA-HBUS-002")
async def test_without_a_message_bus_dispose_does_nothing_and_events_still_fire(
    project: EngineProject, ready: Ready
) -> None:
    config = project.config({"BeforeTool": project.hook(says={"decision": "deny", "reason": "no"})})
    handler = await ready(config)
    handler.dispose()
    result = await handler.fire_before_tool_event("glob", {})
    assert result.final_output is not None
    assert result.final_output.get_blocking_error() == (True, "no")


# The bus itself.


async def test_a_subscriber_that_raises_does_not_affect_others(warnings_of_engine: Texts) -> None:
    bus = InProcessMessageBus()
    heard: list[str] = []

    def raises(message: Message) -> None:
        raise ValueError("sync")

    async def raises_later(message: Message) -> None:
        await asyncio.sleep(0)
        raise ValueError("async")

    async def slow(message: Message) -> None:
        await asyncio.sleep(0.01)
        heard.append("slow")

    for subscriber in (raises, raises_later, slow, lambda message: heard.append("quick")):
        bus.subscribe(RESPONSE, subscriber)
    await bus.publish(HookExecutionResponse("c1", success=True))
    assert sorted(heard) == ["quick", "slow"]
    assert len(warnings_of_engine()) == 2


async def test_a_subscriber_that_raises_keeps_no_request_from_being_answered(
    project: EngineProject, bus: Recorded, connected: Connected
) -> None:
    def raises(message: Message) -> None:
        raise ValueError("before the engine")

    bus.subscribe(REQUEST, raises)
    connected({"BeforeTool": project.hook()})
    bus.subscribe(REQUEST, raises)
    assert (await bus.ask(flat()))["success"] is True


async def test_messages_reach_the_subscribers_of_their_type_only() -> None:
    bus = InProcessMessageBus()
    heard: list[str] = []
    bus.subscribe(REQUEST, lambda message: heard.append("request"))
    bus.subscribe(RESPONSE, lambda message: heard.append("response"))
    await bus.publish(HookExecutionResponse("c1", success=True))
    await bus.publish({"type": "HOOK_EXECUTION_RESPONSE"})
    await bus.publish({"type": "something-else"})
    odd_messages: list[Any] = [
        {},
        {"type": None},
        {"type": ["hook-execution-request"]},
        None,
        7,
        "hook-execution-request",
    ]
    for odd in [*odd_messages, object()]:
        await bus.publish(odd)
    assert heard == ["response", "response"]


async def test_unsubscribing_ends_one_subscription_and_may_be_repeated() -> None:
    bus = InProcessMessageBus()
    heard: list[Message] = []
    first = bus.subscribe(RESPONSE, heard.append)
    bus.subscribe(RESPONSE, heard.append)
    first()
    first()
    await bus.publish(HookExecutionResponse("c1", success=True))
    assert len(heard) == 1


async def test_a_subscriber_may_unsubscribe_while_it_is_called() -> None:
    bus = InProcessMessageBus()
    heard: list[Message] = []
    subscriptions: list[Callable[[], None]] = []

    def once(message: Message) -> None:
        heard.append(message)
        subscriptions[0]()

    subscriptions.append(bus.subscribe(RESPONSE, once))
    bus.subscribe(RESPONSE, heard.append)
    for _ in range(2):
        await bus.publish(HookExecutionResponse("c1", success=True))
    assert len(heard) == 3
