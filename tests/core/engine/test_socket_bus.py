"""A second message bus: coroutines throughout, and nothing but bytes between its clients.

It stands for every bus that leaves the process. All it uses of the package is the three functions that turn messages
into bytes and back, and ``connect``.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    HookEventName,
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
    decode_message,
    encode_message,
    fire_before_tool_hook,
    read_response,
)
from llxprt_hooks.core.engine.messages import Message, Subscriber, message_channel
from tests.support.engine_project import EngineProject, system_of
from tests.support.processes import DEADLINE
from tests.support.stream_server import stream_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from tests.support.engine_project import EngineProject, Ready, Texts

REQUEST, RESPONSE = MessageBusType.HOOK_EXECUTION_REQUEST, MessageBusType.HOOK_EXECUTION_RESPONSE
CALL = {"tool_name": "write_file", "tool_input": {"file_path": "a.py"}}


class SocketBus:
    """A client of a broker on a Unix socket. Each line is a message, or a command to the broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._acknowledged = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())
        self.answering: set[asyncio.Task[None]] = set()

    async def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Callable[[], Awaitable[None]]:
        self._subscribers.setdefault(message_type, []).append(subscriber)
        await self._command(b"+" + message_type.encode())

        async def unsubscribe() -> None:
            self._subscribers[message_type].remove(subscriber)
            await self._command(b"-" + message_type.encode())

        return unsubscribe

    async def publish(self, message: Message) -> None:
        await self.send(encode_message(message))

    async def send(self, data: bytes) -> None:
        self._writer.write(data + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        self._listening.cancel()
        self._writer.close()
        await asyncio.gather(self._listening, self._writer.wait_closed(), return_exceptions=True)

    async def _command(self, line: bytes) -> None:
        self._acknowledged.clear()
        await self.send(line)
        await self._acknowledged.wait()

    async def _listen(self) -> None:
        async for line in self._reader:
            if line == b"ok\n":
                self._acknowledged.set()
                continue
            message = decode_message(line)
            for subscriber in self._subscribers.get(message_channel(message), ()):
                task = asyncio.ensure_future(_deliver(subscriber, message))
                self.answering.add(task)
                task.add_done_callback(self.answering.discard)


async def _deliver(subscriber: Subscriber, message: Mapping[str, Any]) -> None:
    outcome = subscriber(message)
    if outcome is not None:
        await outcome


class Broker:
    """Sends each message on to all clients that subscribed to its type."""

    def __init__(self) -> None:
        self.subscriptions: dict[asyncio.StreamWriter, set[str]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        types = self.subscriptions[writer] = set()
        async for line in reader:
            if line[:1] in b"+-":
                (types.add if line[:1] == b"+" else types.discard)(line[1:].strip().decode())
                writer.write(b"ok\n")
                continue
            for client, wanted in self.subscriptions.items():
                if message_channel(decode_message(line)) in wanted:
                    client.write(line)
        del self.subscriptions[writer]

    def count(self, message_type: MessageBusType) -> int:
        return sum(message_type in types for types in self.subscriptions.values())


class Wire:
    """A broker, and a client for each side of it."""

    def __init__(self, broker: Broker, hooks: SocketBus, agent: SocketBus) -> None:
        self.broker, self.hooks, self.agent = broker, hooks, agent
        self.responses: asyncio.Queue[Any] = asyncio.Queue()

    async def ask(self, data: bytes) -> Any:
        """Send the bytes of a request; the message that comes back."""
        await self.agent.send(data)
        async with asyncio.timeout(DEADLINE):
            return await self.responses.get()


@asynccontextmanager
async def wire(folder: Path) -> AsyncIterator[Wire]:
    broker = Broker()
    async with stream_server(broker.serve, folder / "bus"):
        clients = [SocketBus(*await asyncio.open_unix_connection(folder / "bus")) for _ in range(2)]
        both = Wire(broker, *clients)
        await both.agent.subscribe(RESPONSE, both.responses.put)
        try:
            yield both
        finally:
            for client in clients:
                await client.close()


@pytest.mark.requirement("DELTA-HEVT-001", "DELTA-HEVT-002", "DELTA-HBUS-001")
async def test_a_request_in_bytes_runs_a_hook_and_is_answered_in_bytes(project: EngineProject, tmp_path: Path) -> None:
    config = project.config(
        {"BeforeTool": [project.hook("guard", {"decision": "deny", "reason": "no"}), project.hook("b")]}
    )
    async with wire(tmp_path) as both:
        await system_of(config).connect(both.hooks)
        message = await both.ask(encode_message(HookExecutionRequest(HookEventName.BEFORE_TOOL, CALL, "c1")))

    response = read_response(message)
    assert (response.correlation_id, response.success, response.error) == ("c1", True, None)
    assert response.output is not None
    assert response.output.final_output is not None
    assert response.output.final_output.get_blocking_error() == (True, "no")
    assert [output.decision for output in response.output.all_outputs] == ["deny"]
    assert response.output.total_duration > 0
    assert project.payload("guard")["tool_input"] == CALL["tool_input"]


@pytest.mark.requirement("DELTA-HEVT-004")
async def test_disconnecting_ends_the_subscription_and_direct_calls_still_work(
    project: EngineProject, tmp_path: Path, ready: Ready
) -> None:
    config = project.config({"BeforeTool": project.hook(says={"reason": "seen"})})
    async with wire(tmp_path) as both:
        system = system_of(config)
        await system.connect(both.hooks)
        await system.connect(both.hooks)
        assert both.broker.count(REQUEST) == 1
        await system.disconnect()
        assert both.broker.count(REQUEST) == 0
        await system.disconnect()

    result = await (await ready(config)).fire_before_tool_event("glob", {})
    assert result.final_output is not None
    assert result.final_output.reason == "seen"


@pytest.mark.requirement("DELTA-HEVT-004", "DELTA-HSYS-001")
async def test_the_bus_of_a_configuration_is_connected_by_initialize_and_let_go_by_dispose(
    project: EngineProject, tmp_path: Path
) -> None:
    async with wire(tmp_path) as both:
        config = project.config({"BeforeTool": project.hook()}, message_bus=both.hooks)
        system = system_of(config)
        await system.initialize()
        assert read_response(
            await both.ask(encode_message(HookExecutionRequest(HookEventName.BEFORE_TOOL, CALL)))
        ).success
        system.dispose()
        async with asyncio.timeout(DEADLINE):
            while both.broker.count(REQUEST):  # noqa: ASYNC110 - the broker is not ours to wait for
                await asyncio.sleep(0.005)
    assert project.runs() == 1


@pytest.mark.requirement("DELTA-HSYS-001")
async def test_the_first_event_connects_the_bus_of_a_configuration(project: EngineProject, tmp_path: Path) -> None:
    async with wire(tmp_path) as both:
        config = project.config({"BeforeTool": project.hook()}, message_bus=both.hooks)
        await fire_before_tool_hook(config, "glob", {})
        async with asyncio.timeout(DEADLINE):
            while not both.broker.count(REQUEST):  # noqa: ASYNC110 - the broker is not ours to wait for
                await asyncio.sleep(0.005)
        assert read_response(
            await both.ask(encode_message(HookExecutionRequest(HookEventName.BEFORE_TOOL, CALL)))
        ).success
        await system_of(config).disconnect()
        assert both.broker.count(REQUEST) == 0
    assert project.runs() == 2


async def test_a_configuration_can_be_disposed_of_before_its_bus_is_connected(
    project: EngineProject, tmp_path: Path
) -> None:
    async with wire(tmp_path) as both:
        before = asyncio.all_tasks()
        system = project.system({"BeforeTool": project.hook()}, message_bus=both.hooks)
        system.dispose()
        await system.initialize()
        await asyncio.wait(asyncio.all_tasks() - before)
        assert both.broker.count(REQUEST) == 0


def test_a_hook_system_without_a_loop_says_how_to_connect_an_asynchronous_bus(
    project: EngineProject, tmp_path: Path, warnings_of_engine: Texts
) -> None:
    async def connected_bus() -> SocketBus:
        async with wire(tmp_path) as both:
            return both.hooks

    system = project.system({}, message_bus=asyncio.run(connected_bus()))

    [warning] = warnings_of_engine()
    assert "`await system.connect(bus)`" in warning
    system.dispose()


async def test_a_bus_that_refuses_the_subscription_can_be_connected_again(
    project: EngineProject, tmp_path: Path
) -> None:
    class Refusing(SocketBus):
        refuses = True

        async def subscribe(self, message_type: MessageBusType, subscriber: Subscriber) -> Any:
            if self.refuses:
                raise ConnectionError("no")
            return await super().subscribe(message_type, subscriber)

    async with wire(tmp_path) as both:
        bus = Refusing(*await asyncio.open_unix_connection(tmp_path / "bus"))
        system = project.system({"BeforeTool": project.hook()})
        with pytest.raises(ConnectionError):
            await system.connect(bus)
        bus.refuses = False
        await system.connect(bus)
        assert read_response(
            await both.ask(encode_message(HookExecutionRequest(HookEventName.BEFORE_TOOL, CALL)))
        ).success
        await bus.close()


def test_dispose_without_a_loop_says_what_to_do_and_answers_nothing_more(
    project: EngineProject, tmp_path: Path, warnings_of_engine: Texts
) -> None:
    async def connected() -> Any:
        async with wire(tmp_path) as both:
            system = project.system({"BeforeTool": project.hook()})
            await system.connect(both.hooks)
            return system

    system = asyncio.run(connected())
    system.dispose()

    assert any("await `disconnect`" in warning for warning in warnings_of_engine())


# The codec alone.


@pytest.mark.parametrize("data", [b"", b"7", b"[]", b"null", b'{"type":"hook-execution-request"', b"\xff"], ids=repr)
def test_bytes_that_are_not_a_message_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - which text the JSON reader has is its own affair
        decode_message(data)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "hook-execution-request", "eventName": "BeforeTool"},
        {"type": "hook-execution-response"},
        {"type": "hook-execution-response", "correlationId": "1", "success": True, "output": 7},
        {"type": "HOOK_EXECUTION_RESPONSE", "payload": None},
        {},
        7,
    ],
)
def test_a_message_that_is_not_a_response_is_not_read_as_one(message: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a message|malformed hook execution response"):
        read_response(message)


def test_a_response_of_our_class_is_read_as_it_is() -> None:
    response = HookExecutionResponse("c1", success=True)
    assert read_response(response) is response
