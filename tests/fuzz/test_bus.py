"""Bus messages of any content: a request gets exactly one response, of its shape and with its id; all else none."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from llxprt_hooks import (
    Config,
    HookEventName,
    HookExecutionRequest,
    HookExecutionResponse,
    InProcessMessageBus,
    MessageBusType,
)
from llxprt_hooks._support.json_codec import read_json
from tests.fuzz.documents import any_json, any_text, mutated
from tests.fuzz.guard import corpus, fuzz, unhanged
from tests.fuzz.project import FuzzedProject, quiet

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.messages import Message, Subscriber, Unsubscribe

TYPES = {"hook-execution-request": "hook-execution-response", "HOOK_EXECUTION_REQUEST": "HOOK_EXECUTION_RESPONSE"}

TOOL = {"tool_name": "glob", "tool_input": {"pattern": "*"}}
SHOWN = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "config": {"temperature": 0.5, "topK": 40},
    "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["glob"]},
}
CALL = {"functionCall": {"id": "1", "name": "glob", "args": {"pattern": "*"}}}
API = {
    "model": "m",
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
        {"role": "model", "parts": [{"text": "look", "thought": True}, CALL]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "glob", "response": {"output": "x"}}}]},
    ],
    "generationConfig": {"temperature": 0.5, "topK": 40, "stopSequences": ["a"]},
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["glob"]}},
}
ANSWER = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "hello"}, CALL]},
            "finishReason": "STOP",
            "index": 0,
            "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3},
}
INPUTS: list[tuple[str, dict[str, Any]]] = [
    ("BeforeTool", TOOL),
    ("AfterTool", {**TOOL, "tool_response": {"llmContent": "x"}, "session_id": "s", "cwd": "/"}),
    ("BeforeAgent", {"prompt": "do it"}),
    ("AfterAgent", {"prompt": "do it", "prompt_response": "done", "stop_hook_active": False}),
    ("BeforeModel", {"llm_request": SHOWN}),
    ("BeforeModel", {"llm_request": API}),
    ("AfterModel", {"llm_request": API, "llm_response": ANSWER}),
    ("AfterModel", {"llm_request": SHOWN, "llm_response": {"text": "hello"}}),
    ("BeforeToolSelection", {"llm_request": API}),
    ("SessionStart", {"source": "startup"}),
    ("SessionEnd", {"reason": "exit"}),
    ("PreCompress", {"trigger": "auto"}),
    ("Notification", {"notification_type": "ToolPermission", "message": "May I?", "details": {}}),
]
FIELDS = [{"eventName": event, "input": given, "correlationId": "c1"} for event, given in INPUTS]
MESSAGES = [
    *({"type": "hook-execution-request", **fields} for fields in FIELDS),
    *({"type": "HOOK_EXECUTION_REQUEST", "payload": fields} for fields in FIELDS),
]

# A hook of the type "plugin" takes an event through every stage and fails without a process.
PLUGINS: dict[str, Any] = {event.value: [{"hooks": [{"type": "plugin", "name": "p"}]}] for event in HookEventName}
STAGES = {"unsupported_event", "validation", "translation", "planning", "execution", "aggregation"}

messages = mutated(MESSAGES) | any_json
requests = mutated(MESSAGES).map(
    lambda value: {**value, "type": "hook-execution-request"} if isinstance(value, dict) else value
)


class Heard(InProcessMessageBus):
    """A real bus with a note of every response on it."""

    def __init__(self) -> None:
        super().__init__()
        self.responses: list[Any] = []
        self.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, self.responses.append)


class Careless:
    """Somebody else's bus, which hands everything to everybody."""

    def __init__(self) -> None:
        self.subscribers: list[Subscriber] = []
        self.responses: list[Any] = []

    def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Unsubscribe:
        self.subscribers.append(subscriber)
        return lambda: self.subscribers.remove(subscriber)

    async def publish(self, message: Message) -> None:
        self.responses.append(message)

    async def hand(self, message: Any) -> None:
        for subscriber in self.subscribers:
            outcome = subscriber(message)
            assert outcome is not None
            await outcome


def answers(world: FuzzedProject, message: Any, hooks: Mapping[str, Any] = PLUGINS) -> list[Any]:
    """All responses to a message."""
    bus = Heard()
    config = Config(working_dir=world.root, enable_hooks=True, hooks=hooks, message_bus=bus)
    with quiet():
        assert config.get_hook_system() is not None
        asyncio.run(bus.publish(message))
    return [response for response in bus.responses if response is not message]


def hold(message: Any, responses: list[Any]) -> None:
    """A request, and no other message, has one response: of its shape, with its id, and with a reason if it failed."""
    kind = message.get("type") if isinstance(message, dict) else None
    if not isinstance(kind, str) or kind not in TYPES:
        assert responses == []
        return
    [response] = responses
    assert response["type"] == TYPES[kind]
    asked, told = message, response
    if "payload" in message:
        assert response.keys() == {"type", "payload"}
        asked, told = message["payload"], response["payload"]
    hold_answer(asked if isinstance(asked, dict) else {}, told)


def hold_answer(asked: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    hold_id(asked.get("correlationId"), told["correlationId"])
    assert told.keys() - {"type"} <= {"correlationId", "success", "output", "error"}
    assert told["success"] is told["output"]["success"]
    json.dumps(told)
    if "error" in told:
        assert told["success"] is False
        assert told["error"]["code"] in STAGES
        assert told["error"]["message"]
        assert "\n" not in told["error"]["message"]


def hold_id(asked: object, told: str) -> None:
    if isinstance(asked, str) and asked:
        assert told == asked
    else:
        assert str(uuid.UUID(told)) == told


@fuzz(250, message=messages)
def test_a_request_gets_one_response_and_any_other_message_none(world: FuzzedProject, message: Any) -> None:
    hold(message, answers(world, message))


@fuzz(150, message=requests)
def test_a_request_of_any_content_gets_one_response_without_hooks(world: FuzzedProject, message: Any) -> None:
    hold(message, answers(world, message, hooks={}))


@fuzz(
    150,
    event=st.sampled_from([*HookEventName, "BeforeLunch"]) | any_json,
    given=mutated([given for _, given in INPUTS]) | any_json,
    correlation=any_text | any_json,
)
def test_a_request_of_our_class_gets_one_response_of_our_class(
    world: FuzzedProject, event: Any, given: Any, correlation: Any
) -> None:
    [response] = answers(world, HookExecutionRequest(event, given, correlation))
    assert isinstance(response, HookExecutionResponse)
    hold_id(correlation, response.correlation_id)
    assert response.output is not None
    assert response.success is response.output.success
    assert response.error is None or response.error.code in STAGES


@fuzz(150, message=messages | st.builds(object) | st.binary(max_size=3) | st.tuples(any_text))
def test_on_a_bus_that_hands_on_anything_everything_is_answered_once(world: FuzzedProject, message: Any) -> None:
    bus = Careless()
    config = Config(working_dir=world.root, enable_hooks=True, hooks=PLUGINS, message_bus=bus)
    with quiet():
        assert config.get_hook_system() is not None
        asyncio.run(bus.hand(message))
    [response] = bus.responses
    fields = response.get("payload", response)
    assert isinstance(fields["correlationId"], str)
    assert fields["success"] is False


DENY: dict[str, Any] = {
    event.value: [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}] for event in HookEventName
}


@fuzz(40, message=requests)
def test_a_request_that_reaches_a_hook_is_answered_with_what_the_hook_decided(
    world: FuzzedProject, message: Any
) -> None:
    responses = answers(world, message, hooks=DENY)
    hold(message, responses)
    for response in responses:
        told = response.get("payload", response)
        if "error" not in told:
            assert told["output"]["allOutputs"] == [{"decision": "deny", "reason": "no"}]
            event = message.get("payload", message)["eventName"]
            if event != HookEventName.BEFORE_TOOL_SELECTION:  # which cannot block
                assert told["output"]["finalOutput"]["decision"] == "deny"


@corpus("bus")
@unhanged
def test_what_was_found_is_answered_once_or_not_at_all(world: FuzzedProject, case: str, data: bytes) -> None:
    message = read_json(data)
    for hooks in (PLUGINS, DENY, {}):
        responses = answers(world, message, hooks)
        hold(message, responses)
        assert len(responses) == (0 if case.startswith("silent-") else 1)
    bus = Careless()
    config = Config(working_dir=world.root, enable_hooks=True, hooks=PLUGINS, message_bus=bus)
    with quiet():
        assert config.get_hook_system() is not None
        asyncio.run(bus.hand(message))
    assert len(bus.responses) == 1
