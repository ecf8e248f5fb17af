"""Hooks by message: requests and responses on a message bus, in every shape, through every failure."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import typing
import uuid

import pytest

import llxprt_hooks.bus.messages
from llxprt_hooks import (
    AggregatedHookResult,
    Config,
    GenerateContentParameters,
    HookEventName,
    HookExecutionRequest,
    HookExecutionResponse,
    HookFormat,
    InProcessMessageBus,
    MessageBusType,
    ToolResult,
    fire_before_tool_hook,
)
from llxprt_hooks.engine.aggregator import HookAggregator
from llxprt_hooks.engine.planner import HookPlanner
from llxprt_hooks.engine.runner import HookRunner

REQUEST, RESPONSE = MessageBusType.HOOK_EXECUTION_REQUEST, MessageBusType.HOOK_EXECUTION_RESPONSE

TOOL_INPUT = {"tool_name": "glob", "tool_input": {"pattern": "*"}}
LLM_REQUEST = {"messages": [{"role": "user", "content": "hi"}]}
LLM_RESPONSE = {"candidates": [{"content": {"role": "model", "parts": ["hello"]}}]}

VALID = {
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

    def __init__(self):
        super().__init__()
        self.responses = []
        self.subscribe(RESPONSE, self.responses.append)

    async def ask(self, message):
        """Publish a request; the one response to it."""
        await self.publish(message)
        (response,) = self.responses
        self.responses.clear()
        return response


@pytest.fixture
def bus():
    return Recorded()


@pytest.fixture
def connected(lab, bus):
    """A hook system on the bus."""

    def connected(events, **options):
        config = lab.config(events, message_bus=bus, **options)
        assert config.get_hook_system() is not None
        return config

    return connected


def flat(event="BeforeTool", given=None, kind="hook-execution-request", **fields):
    return {"type": kind, "eventName": event, "input": VALID[event] if given is None else given, **fields}


def wrapped(event="BeforeTool", given=None, kind="HOOK_EXECUTION_REQUEST", **fields):
    return {"type": kind, "payload": {"eventName": event, "input": given or VALID[event], **fields}}


# The path of a request.


@pytest.mark.requirement("DELTA-HEVT-001", "DELTA-HEVT-002", "DELTA-HPAY-001")
@pytest.mark.parametrize("event", HookEventName)
async def test_a_request_runs_the_hooks_of_its_event_and_is_answered(lab, bus, connected, event):
    connected({event: lab.hook(says={"reason": "seen"})})
    response = await bus.ask(flat(event, correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", True)
    assert response["output"]["finalOutput"]["reason"] == "seen"
    assert "error" not in response
    payload = lab.payload()
    assert {name: payload[name] for name in VALID[event]} == VALID[event]
    assert (payload["session_id"], payload["hook_event_name"]) == ("s1", event)


def test_the_table_of_valid_inputs_is_complete():
    assert VALID.keys() == set(HookEventName)


@pytest.mark.requirement("DELTA-HEVT-001", "HOOK-206")
async def test_a_request_may_be_the_first_event_of_all(lab, bus, connected):
    config = connected({"BeforeTool": lab.hook()})
    assert not config.get_hook_system().get_status().initialized
    assert (await bus.ask(flat()))["success"] is True
    assert config.get_hook_system().get_status().initialized
    assert lab.runs() == 1


@pytest.mark.requirement("DELTA-HFAIL-003")
async def test_a_request_that_no_hook_is_for_is_an_empty_success(lab, bus, connected):
    connected({"AfterTool": lab.hook()})
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
async def test_success_is_execution_health_and_a_hook_that_fails_or_blocks_is_no_error_of_the_request(
    lab, bus, connected, options, success, blocking
):
    connected({"BeforeTool": lab.hook(**options)})
    response = await bus.ask(HookExecutionRequest(HookEventName.BEFORE_TOOL, TOOL_INPUT, "c1"))
    assert (response.success, response.output.success) == (success, success)
    assert response.error is None
    final = response.output.final_output
    assert (final is not None and final.is_blocking_decision()) is blocking


async def test_requests_at_the_same_time_are_each_answered_with_their_own_id(lab, bus, connected):
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
async def test_a_response_has_the_shape_and_the_spelling_of_its_request(lab, bus, connected, kind, answer):
    connected({"BeforeTool": lab.hook(says={"reason": "seen"})})
    response = await bus.ask(flat(kind=kind, correlationId="c1"))
    assert response.keys() == {"type", "correlationId", "success", "output"}
    assert response["type"] == answer
    response = await bus.ask(wrapped(kind=kind, correlationId="c2"))
    assert response.keys() == {"type", "payload"}
    assert response["type"] == answer
    assert response["payload"].keys() == {"correlationId", "success", "output"}
    assert response["payload"]["correlationId"] == "c2"
    assert lab.runs() == 2


@pytest.mark.requirement("DELTA-HBUS-001", "DELTA-HEVT-002")
async def test_a_request_of_our_class_is_answered_with_our_class(lab, bus, connected):
    connected({"BeforeTool": lab.hook(says={"reason": "seen"})})
    response = await bus.ask(HookExecutionRequest(HookEventName.BEFORE_TOOL, TOOL_INPUT, "c1"))
    assert isinstance(response, HookExecutionResponse)
    assert (response.type, response.correlation_id, response.success) == (RESPONSE, "c1", True)
    assert isinstance(response.output, AggregatedHookResult)
    assert response.output.final_output.reason == "seen"


@pytest.mark.requirement("DELTA-HBUS-001")
async def test_a_response_on_the_wire_is_json_under_the_names_of_the_documents(lab, bus, connected):
    connected({"BeforeTool": [lab.hook("a", {"decision": "allow"}), lab.hook("b", exit_code=1)]})
    response = json.loads(json.dumps(await bus.ask(flat())))
    assert response["output"].keys() == {"success", "finalOutput", "allOutputs", "errors", "totalDuration"}
    assert response["output"]["allOutputs"] == [{"decision": "allow"}]
    assert len(response["output"]["errors"]) == 1


@pytest.mark.requirement("DELTA-HBUS-001")
def test_messages_carry_their_type_and_the_event_name_is_an_enum():
    request = HookExecutionRequest(HookEventName.BEFORE_TOOL, TOOL_INPUT, "c1")
    response = HookExecutionResponse("c1", success=True)
    assert (request.type, response.type) == (REQUEST, RESPONSE)
    annotations = {field.name: field.type for field in dataclasses.fields(HookExecutionRequest)}
    assert annotations["event_name"] == "HookEventName"


@pytest.mark.requirement("DELTA-HBUS-001")
def test_both_messages_belong_to_the_union_of_what_the_bus_carries():
    assert {HookExecutionRequest, HookExecutionResponse} <= set(typing.get_args(llxprt_hooks.bus.messages.Message))


# Correlation.


@pytest.mark.requirement("DELTA-HBUS-003")
@pytest.mark.parametrize("fields", [{}, {"correlationId": None}, {"correlationId": ""}, {"correlationId": 7}])
@pytest.mark.parametrize("shape", [flat, wrapped])
async def test_a_request_without_a_usable_correlation_id_gets_a_fresh_one(lab, bus, connected, shape, fields):
    connected({})
    ids = []
    for _ in range(2):
        response = await bus.ask(shape(**fields))
        ids.append(response.get("payload", response)["correlationId"])
    assert [str(uuid.UUID(each)) for each in ids] == ids
    assert len(set(ids)) == 2


@pytest.mark.requirement("DELTA-HBUS-003")
async def test_a_request_of_our_class_without_a_correlation_id_gets_a_fresh_one(bus, connected):
    connected({})
    response = await bus.ask(HookExecutionRequest(HookEventName.BEFORE_TOOL, TOOL_INPUT))
    assert str(uuid.UUID(response.correlation_id)) == response.correlation_id


# Model data.


@pytest.fixture
def forms(llm_request, llm_response):
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
    lab, bus, connected, ready, forms, form, event
):
    config = connected({event: lab.hook()})
    request, answer = forms[form]
    given = {"llm_request": request, **({"llm_response": answer} if event == "AfterModel" else {})}
    assert (await bus.ask(flat(event, given)))["success"] is True
    by_message = lab.payload()
    handler = await ready(config)
    if form == "hook":
        request, answer = HookFormat(request), HookFormat(answer)
    result = await {
        "BeforeModel": lambda: handler.fire_before_model_event(request),
        "AfterModel": lambda: handler.fire_after_model_event(request, answer),
        "BeforeToolSelection": lambda: handler.fire_before_tool_selection_event(request),
    }[event]()
    assert result.success
    by_call = lab.payload()
    assert by_message["llm_request"] == by_call["llm_request"] == forms["shown"][0]
    if event == "AfterModel":
        assert by_message["llm_response"] == by_call["llm_response"] == forms["shown"][1]


@pytest.mark.requirement("DELTA-HPAY-001", "HOOK-026")
@pytest.mark.parametrize("shape", [flat, wrapped])
@pytest.mark.parametrize("form", ["ToolResult", "mapping"])
async def test_after_tool_takes_a_tool_result_by_message_as_by_call(lab, bus, connected, ready, shape, form):
    config = connected({"AfterTool": lab.hook()})
    result = ToolResult("found it", return_display="1 file", metadata={"n": 1}, error={"message": "partly"})
    given = result if form == "ToolResult" else result.to_dict()

    response = await bus.ask(shape("AfterTool", {**TOOL_INPUT, "tool_response": given}))
    by_message = lab.payload()
    await (await ready(config)).fire_after_tool_event("glob", {"pattern": "*"}, given)

    assert response.get("payload", response)["success"] is True
    assert by_message["tool_response"] == lab.payload()["tool_response"] == result.to_dict()


# Failures.


@pytest.mark.requirement("DELTA-HEVT-003", "DELTA-HFAIL-002", "DELTA-HFAIL-005")
@pytest.mark.parametrize("event", ["BeforeLunch", "beforetool", "", None, 7, [], {"a": 1}])
async def test_an_unsupported_event_is_answered_with_a_structured_error(lab, bus, connected, event):
    connected({"BeforeTool": lab.hook()})
    for shape in (flat, wrapped):
        message = shape(correlationId="c1")
        message.get("payload", message)["eventName"] = event
        response = await bus.ask(message)
        response = response.get("payload", response)
        assert (response["correlationId"], response["success"]) == ("c1", False)
        assert response["error"]["code"]
        assert repr(event) in response["error"]["message"]
        assert "BeforeTool" in response["error"]["message"]
    assert lab.runs() == 0


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
    lab, bus, event, given, named
):
    asked = []

    class Planner(HookPlanner):
        def create_execution_plan(self, *args):
            asked.append(args)
            return super().create_execution_plan(*args)

    lab.handler(lab.config({event: lab.hook()}), planner=Planner, message_bus=bus)
    response = await bus.ask(flat(event, given, correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert response["error"]["code"] == "validation"
    assert named in response["error"]["message"]
    assert response["error"]["details"]["eventName"] == event
    assert asked == []
    assert lab.runs() == 0


@pytest.mark.requirement("DELTA-HPAY-002")
@pytest.mark.parametrize(
    "message",
    [
        {"type": "hook-execution-request"},
        {"type": "hook-execution-request", "correlationId": "c1", "eventName": "BeforeTool"},
        {"type": "HOOK_EXECUTION_REQUEST", "payload": None},
        {"type": "HOOK_EXECUTION_REQUEST", "payload": [1]},
        {"type": "HOOK_EXECUTION_REQUEST", "payload": {}},
    ],
)
async def test_a_request_that_is_next_to_nothing_is_answered_all_the_same(lab, bus, connected, message):
    connected({"BeforeTool": lab.hook()})
    response = await bus.ask(message)
    assert ("payload" in response) == ("payload" in message)
    response = response.get("payload", response)
    assert response["correlationId"]
    assert response["success"] is False
    assert response["error"]["message"]
    assert lab.runs() == 0


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
async def test_model_data_that_cannot_be_translated_is_answered_with_why(lab, bus, connected, event, given):
    connected({event: lab.hook()})
    response = await bus.ask(flat(event, given, correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert response["error"]["code"] == "translation"
    assert "llm_re" in response["error"]["message"]
    assert response["error"]["details"]["eventName"] == event
    assert lab.runs() == 0


class BrokenPlanner(HookPlanner):
    def create_execution_plan(self, event_name, subject=None):
        raise LookupError("it broke")


class BrokenRunner(HookRunner):
    async def execute_hooks_parallel(self, *args):
        raise OSError("it broke")


class BrokenAggregator(HookAggregator):
    def aggregate_results(self, results, event_name):
        raise ArithmeticError("it broke")


class Unspeakable(AggregatedHookResult):
    def to_dict(self):
        raise OverflowError("it broke")


class UnspeakableAggregator(HookAggregator):
    def aggregate_results(self, results, event_name):
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
async def test_a_failure_at_any_stage_is_answered_with_the_stage_and_the_cause(lab, bus, shape, stage, parts):
    lab.handler(lab.config({"BeforeTool": lab.hook()}), message_bus=bus, **parts)
    response = await bus.ask(shape(correlationId="c1"))
    response = json.loads(json.dumps(response.get("payload", response)))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert response["error"]["code"] == stage
    assert "it broke" in response["error"]["message"]
    assert response["error"]["details"]["stage"] == stage


@pytest.mark.requirement("DELTA-HFAIL-002")
async def test_a_failure_is_answered_to_a_request_of_our_class_with_our_class(lab, bus):
    lab.handler(lab.config({"BeforeTool": lab.hook()}), planner=BrokenPlanner, message_bus=bus)
    response = await bus.ask(HookExecutionRequest(HookEventName.BEFORE_TOOL, TOOL_INPUT, "c1"))
    assert (response.success, response.error.code) == (False, "planning")
    assert "it broke" in response.error.message
    assert response.output.success is False


@pytest.mark.requirement("DELTA-HFAIL-002")
async def test_hooks_that_cannot_be_read_are_no_fault_of_the_request(lab, bus):
    class Unreadable(Config):
        @property
        def hook_sets(self):
            raise PermissionError("it broke")

    assert lab.config({"BeforeTool": lab.hook()}, Unreadable, message_bus=bus).get_hook_system() is not None
    response = await bus.ask(flat(correlationId="c1"))
    assert (response["correlationId"], response["success"]) == ("c1", False)
    assert "it broke" in response["error"]["message"]
    assert response["error"]["code"] not in {"validation", "unsupported_event"}


async def test_a_response_that_cannot_be_published_is_logged_and_raises_nothing(lab, warnings_of_engine):
    class OneWay(InProcessMessageBus):
        async def publish(self, message):
            if isinstance(message, dict) and message["type"] == "hook-execution-response":
                raise ConnectionError("no way back")
            await super().publish(message)

    bus = OneWay()
    lab.handler(lab.config({"BeforeTool": lab.hook()}), message_bus=bus)
    await bus.publish(flat(correlationId="c1"))
    assert lab.runs() == 1
    assert any("c1" in warning for warning in warnings_of_engine())


async def test_cancelling_a_request_ends_its_hooks(lab, bus, connected):
    connected({"BeforeTool": lab.endless()})
    task = asyncio.create_task(bus.publish(flat()))
    pid = await lab.started()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert bus.responses == []


# Letting go.


@pytest.mark.requirement("DELTA-HEVT-004")
async def test_a_disposed_hook_system_no_longer_listens_but_still_serves_direct_calls(lab, bus, connected):
    config = connected({"BeforeTool": lab.hook(says={"reason": "seen"})})
    config.get_hook_system().dispose()
    await bus.publish(flat())
    assert bus.responses == []
    assert lab.runs() == 0
    assert (await fire_before_tool_hook(config, "glob", {})).reason == "seen"
    config.get_hook_system().dispose()


@pytest.mark.requirement("DELTA-HEVT-004")
async def test_a_disposed_event_handler_no_longer_listens_and_others_do(lab, bus):
    gone = lab.handler(lab.config({"BeforeTool": lab.hook("gone")}), message_bus=bus)
    lab.handler(lab.config({"BeforeTool": lab.hook("here")}), message_bus=bus)
    gone.dispose()
    gone.dispose()
    await bus.ask(flat())
    assert (lab.runs("gone"), lab.runs("here")) == (0, 1)


@pytest.mark.requirement("DELTA-HEVT-004", "DELTA-HBUS-002")
async def test_without_a_message_bus_dispose_does_nothing_and_events_fire_as_ever(lab, ready):
    config = lab.config({"BeforeTool": lab.hook(says={"decision": "deny", "reason": "no"})})
    handler = await ready(config)
    handler.dispose()
    result = await handler.fire_before_tool_event("glob", {})
    assert result.final_output.get_blocking_error() == (True, "no")


@pytest.mark.requirement("DELTA-HBUS-002")
async def test_with_and_without_a_message_bus_direct_calls_give_the_same(lab, bus, ready):
    said = {"decision": "deny", "reason": "no", "systemMessage": "m"}
    results = []
    for options in ({}, {"message_bus": bus}):
        handler = await ready(lab.config({"BeforeTool": [lab.hook("a", said), lab.hook("b", exit_code=1)]}, **options))
        result = await handler.fire_before_tool_event("glob", {})
        results.append((result.success, result.final_output, result.all_outputs, list(map(str, result.errors))))
    assert results[0] == results[1]
    assert bus.responses == []


# The bus itself.


async def test_a_subscriber_that_raises_harms_nobody_else(warnings_of_engine):
    bus = InProcessMessageBus()
    heard = []

    def raises(message):
        raise ValueError("sync")

    async def raises_later(message):
        await asyncio.sleep(0)
        raise ValueError("async")

    async def slow(message):
        await asyncio.sleep(0.01)
        heard.append("slow")

    for subscriber in (raises, raises_later, slow, lambda message: heard.append("quick")):
        bus.subscribe(RESPONSE, subscriber)
    await bus.publish(HookExecutionResponse("c1", success=True))
    assert sorted(heard) == ["quick", "slow"]
    assert len(warnings_of_engine()) == 2


async def test_a_lone_subscriber_that_raises_does_not_reach_the_publisher():
    bus = InProcessMessageBus()

    def raises(message):
        raise ValueError("alone")

    bus.subscribe(RESPONSE, raises)
    await bus.publish(HookExecutionResponse("c1", success=True))


async def test_a_subscriber_that_raises_keeps_no_request_from_being_answered(lab, bus, connected):
    def raises(message):
        raise ValueError("before the engine")

    bus.subscribe(REQUEST, raises)
    connected({"BeforeTool": lab.hook()})
    bus.subscribe(REQUEST, raises)
    assert (await bus.ask(flat()))["success"] is True


async def test_messages_reach_the_subscribers_of_their_type_only():
    bus = InProcessMessageBus()
    heard = []
    bus.subscribe(REQUEST, lambda message: heard.append("request"))
    bus.subscribe(RESPONSE, lambda message: heard.append("response"))
    await bus.publish(HookExecutionResponse("c1", success=True))
    await bus.publish({"type": "HOOK_EXECUTION_RESPONSE"})
    await bus.publish({"type": "something-else"})
    for odd in ({}, {"type": None}, {"type": ["hook-execution-request"]}, None, 7, "hook-execution-request", object()):
        await bus.publish(odd)
    assert heard == ["response", "response"]


async def test_publish_returns_when_every_subscriber_is_done():
    bus = InProcessMessageBus()
    done = []

    async def slow(message):
        await asyncio.sleep(0.02)
        done.append(message)

    bus.subscribe(RESPONSE, slow)
    bus.subscribe(RESPONSE, slow)
    await bus.publish(HookExecutionResponse("c1", success=True))
    assert len(done) == 2


async def test_unsubscribing_ends_one_subscription_and_may_be_repeated():
    bus = InProcessMessageBus()
    heard = []
    first = bus.subscribe(RESPONSE, heard.append)
    bus.subscribe(RESPONSE, heard.append)
    first()
    first()
    await bus.publish(HookExecutionResponse("c1", success=True))
    assert len(heard) == 1


async def test_a_subscriber_may_unsubscribe_while_it_is_called():
    bus = InProcessMessageBus()
    heard = []
    subscriptions = []

    def once(message):
        heard.append(message)
        subscriptions[0]()

    subscriptions.append(bus.subscribe(RESPONSE, once))
    bus.subscribe(RESPONSE, heard.append)
    for _ in range(2):
        await bus.publish(HookExecutionResponse("c1", success=True))
    assert len(heard) == 3
