"""The message bus over NATS, with a real server: hook requests between processes (DELTA-HEVT-001)."""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from nats.aio.client import Client

from llxprt_hooks import (
    Config,
    HookEventName,
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
    NatsMessageBus,
    encode_message,
    fire_before_tool_hook,
    read_response,
)
from llxprt_hooks.core.engine.messages import HookExecutionFailure, read_request
from llxprt_hooks.fleet import nats_connection
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client
from tests.support.nats_server import NatsServer, listen
from tests.support.processes import DEADLINE, eventually
from tests.support.replies import DENY

if TYPE_CHECKING:
    from collections.abc import Callable

    from nats.aio.msg import Msg

    from llxprt_hooks.core.engine.messages import Message

REQUEST, RESPONSE = MessageBusType.HOOK_EXECUTION_REQUEST, MessageBusType.HOOK_EXECUTION_RESPONSE
CALL = {"tool_name": "write_file", "tool_input": {}}


@pytest.fixture
def subject() -> str:
    return f"test.{uuid.uuid4().hex}"


@pytest.fixture
def bus(nats_server: NatsServer, subject: str) -> NatsMessageBus:
    return NatsMessageBus(nats_server.url, subject=subject, timeout=DEADLINE)


def answering() -> Config:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "echo not today >&2; exit 2"}]}]}
    return Config(enable_hooks=True, hooks=hooks)


async def connect(bus: NatsMessageBus) -> Any:
    system = answering().get_hook_system()
    assert system is not None
    await system.connect(bus)
    return system


async def responses(bus: NatsMessageBus, *requests: Message) -> list[Message]:
    got: list[Message] = []
    unsubscribe = await bus.subscribe(RESPONSE, got.append)
    for request in requests:
        await bus.publish(request)
    await unsubscribe()
    await unsubscribe()
    return got


FLAT: dict[str, Any] = {
    "type": "hook-execution-request",
    "eventName": "BeforeTool",
    "input": CALL,
    "correlationId": "2",
}
WRAPPED: dict[str, Any] = {
    "type": "HOOK_EXECUTION_REQUEST",
    "payload": {"eventName": "BeforeTool", "input": CALL, "correlationId": "3"},
}


@pytest.mark.requirement("DELTA-HEVT-001", "DELTA-HBUS-001")
async def test_a_response_has_the_shape_and_the_id_of_its_request(
    bus: NatsMessageBus, nats_server: NatsServer, subject: str
) -> None:
    await connect(NatsMessageBus([nats_server.url], subject=subject))

    own, flat, wrapped = await responses(
        bus, HookExecutionRequest(HookEventName.BEFORE_TOOL, CALL, correlation_id="1"), FLAT, WRAPPED
    )

    assert isinstance(own, HookExecutionResponse)
    assert isinstance(flat, dict)
    assert isinstance(wrapped, dict)
    assert [read_response(each).correlation_id for each in (own, flat, wrapped)] == ["1", "2", "3"]
    assert (flat["type"], wrapped["type"]) == ("hook-execution-response", "HOOK_EXECUTION_RESPONSE")
    for each in (own, flat, wrapped):
        output = read_response(each).output
        assert output is not None
        assert output.final_output is not None
        assert output.final_output.to_dict() == DENY


async def test_many_requests_at_once_get_their_own_responses(bus: NatsMessageBus) -> None:
    await connect(bus)
    got: list[Message] = []
    await bus.subscribe(RESPONSE, got.append)

    await asyncio.gather(*(bus.publish({**FLAT, "correlationId": str(number)}) for number in range(50)))
    await asyncio.gather(*(bus.publish(FLAT) for _ in range(5)))  # even with the same id

    ids = [read_response(each).correlation_id for each in got]
    assert sorted(ids) == sorted([*map(str, range(50)), *["2"] * 5])


@pytest.mark.parametrize(
    "request_of",
    [lambda who: {**FLAT, "input": who}, lambda who: {**WRAPPED, "payload": {**WRAPPED["payload"], "input": who}}],
    ids=["flat", "wrapped"],
)
async def test_agents_that_chose_the_same_id_get_their_own_answers(
    nats_server: NatsServer, subject: str, request_of: Callable[[str], dict[str, Any]]
) -> None:
    answering = NatsMessageBus(nats_server.url, subject=subject)
    first_is_answered = asyncio.Event()

    async def answer(message: Message) -> None:
        request = read_request(message)
        if request.input == "A":  # it came first and is answered last
            await first_is_answered.wait()
        response = HookExecutionResponse(
            request.correlation_id, success=False, error=HookExecutionFailure("for", request.input)
        )
        await answering.publish(request.answer(response))
        first_is_answered.set()

    async def ask(who: str) -> tuple[str, str]:
        bus = NatsMessageBus(nats_server.url, subject=subject, timeout=DEADLINE)
        [response] = map(read_response, await responses(bus, request_of(who)))
        assert response.error is not None
        return response.correlation_id, response.error.message

    await answering.subscribe(REQUEST, answer)
    [first, second] = await asyncio.gather(ask("A"), ask("B"))

    assert (first[1], second[1]) == ("A", "B")
    assert first[0] == second[0] == read_request(request_of("A")).correlation_id


async def test_a_nats_hook_is_answered(bus: NatsMessageBus, nats_server: NatsServer, subject: str) -> None:
    await connect(bus)
    hook = {"type": "nats", "servers": [nats_server.url], "subject": subject}
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]})

    output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert output.get_effective_reason() == "not today"


async def failure(bus: NatsMessageBus, request: Message = FLAT) -> str:
    [response] = await responses(bus, request)
    error = read_response(response).error
    assert error is not None
    assert not read_response(response).success
    return error.code


async def test_without_a_worker_the_response_has_an_error(bus: NatsMessageBus) -> None:
    assert await failure(bus) == "no_responders"
    assert await failure(bus, HookExecutionRequest(HookEventName.BEFORE_TOOL, CALL)) == "no_responders"


@pytest.mark.slow
async def test_a_request_that_waited_for_the_connection_waits_for_an_answer_too(
    own_nats_server: NatsServer, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has lost its connection as well, and may come back later."""
    bus = NatsMessageBus(own_nats_server.url, subject=subject)
    assert await failure(bus) == "no_responders"
    connection = await nats_connection._connections.get(NatsAddress((own_nats_server.url,)))
    own_nats_server.stop()
    await eventually(lambda: not connection.client.is_connected)
    monkeypatch.setattr(nats_connection, "CONNECT_TIMEOUT", DEADLINE)
    asking = asyncio.create_task(failure(bus))
    own_nats_server.start()
    await eventually(lambda: connection.client.is_connected)
    await asyncio.sleep(0.2)  # it is refused meanwhile

    client = await open_nats_client(NatsAddress((own_nats_server.url,)))

    async def answer(message: Msg) -> None:
        await message.respond(b"hello")

    await listen(client, subject, cb=answer)

    assert await asking == "bad_message"
    await client.close()


async def test_without_a_server_the_response_says_so(subject: str) -> None:
    assert await failure(NatsMessageBus("nats://127.0.0.1:9", subject=subject)) == "unavailable"


async def test_a_request_that_is_too_large_is_not_sent(bus: NatsMessageBus) -> None:
    assert await failure(bus, {**FLAT, "input": "x" * 2**21}) == "unavailable"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, "timeout"),
        (b"hello", "bad_message"),
        (encode_message(HookExecutionResponse("another", success=True)), "bad_message"),
    ],
)
async def test_a_request_without_a_proper_answer_fails(
    nats_server: NatsServer, subject: str, answer: bytes | None, code: str
) -> None:
    client = Client()
    await client.connect(nats_server.url)

    async def respond(message: Any) -> None:
        if answer is not None:
            await message.respond(answer)

    await listen(client, subject, cb=respond)

    seconds = 0.2 if code == "timeout" else 60
    assert await failure(NatsMessageBus(nats_server.url, subject=subject, timeout=seconds)) == code
    await client.close()


async def test_bytes_that_are_not_a_message_get_an_error(
    bus: NatsMessageBus, nats_server: NatsServer, subject: str
) -> None:
    await connect(bus)
    client = await open_nats_client(NatsAddress((nats_server.url,)))

    answer = await client.request(subject, b"\xff", timeout=DEADLINE)

    assert b'"code":"bad_message"' in answer.data
    await client.close()


@pytest.mark.slow
async def test_a_subscriber_that_fails_or_answers_something_else_leaves_nothing_behind(
    nats_server: NatsServer, subject: str
) -> None:
    bus = NatsMessageBus(nats_server.url, subject=subject, timeout=0.3)

    async def fail(message: Message) -> None:
        await bus.publish(HookExecutionResponse("of another request", success=True))
        raise RuntimeError("no")

    await bus.subscribe(REQUEST, fail)

    assert await failure(bus) == "timeout"
    assert bus._requests == {}


async def test_other_messages_are_not_delivered(bus: NatsMessageBus) -> None:
    assert await responses(bus, {"type": "something-else"}, {"payload": 7}) == []


async def test_without_nats_py_the_extra_is_named(subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats.aio.client", None)

    with pytest.raises(ModuleNotFoundError, match=r"llxprt-hooks\[nats\]"):
        await NatsMessageBus("nats://127.0.0.1:9", subject=subject).publish(FLAT)


@pytest.mark.parametrize(
    ("servers", "subject"), [((), "a"), ("http://a", "a"), ("nats://me:s3cret@a", "a"), ("nats://a", "a.*")]
)
def test_what_cannot_work_is_refused(servers: Any, subject: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        NatsMessageBus(servers, subject=subject)

    assert "s3cret" not in str(refused.value)
