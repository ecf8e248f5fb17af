"""A policy worker, or a bus, whose NATS server refuses it for a while: it takes requests again afterwards (D-45)."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError

from llxprt_hooks import Config, MessageBusType, NatsMessageBus
from llxprt_hooks.fleet import nats_connection, nats_subscription
from llxprt_hooks.fleet.nats_connection import NatsAddress, NatsUnavailableError, open_nats_client
from llxprt_hooks.fleet.nats_subscription import NatsSubscription
from llxprt_hooks.fleet.serve.nats_front import NatsFront
from llxprt_hooks.fleet.serve.worker import PolicyWorker
from tests.support.nats_server import NatsServer
from tests.support.processes import DEADLINE, eventually, until
from tests.support.stream_server import stream_server
from tests.support.worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

    from nats.aio.msg import Msg

    from tests.support.cli import CliProject

SUBJECT = "test.guarded"
HTTP = ("--http", "127.0.0.1:0")
REQUEST = {
    "type": "hook-execution-request",
    "eventName": "BeforeTool",
    "correlationId": "c",
    "input": {"tool_name": "write_file", "tool_input": {}},
}

AGENT = "authorization {{ users = [ {{user: agent, password: x}}, {{user: worker, password: x{}}} ] }}\n"
WORKS = AGENT.format("") + "no_auth_user: worker\n"
REFUSALS = {
    "nobody may connect without a password": AGENT.format(""),
    "the user may not subscribe": AGENT.format(', permissions: {publish: ">", subscribe: "_INBOX.>"}')
    + "no_auth_user: worker\n",
}


class GuardedServer(NatsServer):
    """A server that is started again with other settings."""

    def __init__(self, folder: Path) -> None:
        self._settings = folder / "nats.conf"
        super().__init__("-c", str(self._settings))

    def use(self, settings: str) -> None:
        self.stop()
        self._settings.write_text(settings)
        self.start()

    def change(self, settings: str) -> None:
        """Use other settings from now on, with the connections that there are: whom they forbid, gets ``-ERR``."""
        self._settings.write_text(settings)
        self.signal(signal.SIGHUP)

    async def ask(self) -> dict[str, Any]:
        """Return an answer, asked for until there is one."""
        client = Client()
        await client.connect(self.url, user="agent", password="x")
        try:
            while True:
                try:
                    answer: dict[str, Any] = json.loads(
                        (await client.request(SUBJECT, json.dumps(REQUEST).encode(), timeout=DEADLINE)).data
                    )
                    return answer
                except NoRespondersError:
                    await asyncio.sleep(0.05)
        finally:
            await client.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GuardedServer]:
    server = GuardedServer(tmp_path)
    server.use(WORKS)
    yield server
    server.close()


async def test_a_worker_that_was_refused_takes_requests_again(world: CliProject, server: GuardedServer) -> None:
    world.configure(BeforeTool=world.hook("policy", {"decision": "deny", "reason": "no"}))

    with Worker(world, "--nats", server.url, "--subject", SUBJECT, *HTTP) as worker:
        assert worker.get("/healthz") == (200, b"ok\n")
        server.use(REFUSALS["the user may not subscribe"])
        await asyncio.to_thread(worker.wait_for, "no requests arrive")
        assert worker.get("/healthz") == (503, b"not connected to NATS\n")
        server.use(WORKS)
        await asyncio.to_thread(until, lambda: worker.get("/healthz").status == 200)
        answer = await server.ask()

    assert answer["output"]["finalOutput"]["decision"] == "deny"


LIVE_REFUSALS = {
    "the user is gone": "authorization { users = [ {user: agent, password: x} ] }\n",
    "the user may not subscribe": REFUSALS["the user may not subscribe"],
}


@pytest.mark.parametrize("refusal", LIVE_REFUSALS.values(), ids=LIVE_REFUSALS)
async def test_a_worker_that_is_refused_on_a_live_connection_takes_requests_again(
    world: CliProject, server: GuardedServer, refusal: str
) -> None:
    world.configure(BeforeTool=world.hook("policy", {"decision": "deny", "reason": "no"}))

    with Worker(world, "--nats", server.url, "--subject", SUBJECT, *HTTP) as worker:
        assert worker.get("/healthz") == (200, b"ok\n")
        server.change(refusal)
        await asyncio.to_thread(until, lambda: worker.get("/healthz").status == 503)
        server.use(WORKS)
        await asyncio.to_thread(until, lambda: worker.get("/healthz").status == 200)
        answer = await server.ask()

    assert answer["output"]["finalOutput"]["decision"] == "deny"


def test_without_a_server_the_worker_is_not_healthy(world: CliProject, server: GuardedServer) -> None:
    world.configure(BeforeTool=world.hook("policy", {"decision": "deny"}))

    with Worker(world, "--nats", server.url, "--subject", SUBJECT, *HTTP) as worker:
        server.stop()
        until(lambda: worker.get("/healthz").status == 503)
        server.start()
        until(lambda: worker.get("/healthz").status == 200)


def test_a_worker_that_may_not_subscribe_does_not_start(world: CliProject, server: GuardedServer) -> None:
    world.configure(BeforeTool=world.hook("policy", {"decision": "deny"}))
    server.use(REFUSALS["the user may not subscribe"])

    done = world.run("serve", "--nats", server.url, "--subject", SUBJECT)

    assert done.status == 1
    assert f"NATS does not allow this user to subscribe to `{SUBJECT}`" in done.stderr
    assert "Traceback" not in done.stderr


async def test_an_answer_is_sent_although_the_connection_was_closed_meanwhile(
    server: GuardedServer, tmp_path: Path
) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    command = f'touch "{started}"; while [ ! -e "{go}" ]; do sleep 0.05; done; echo no >&2; exit 2'
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}
    front = NatsFront(PolicyWorker(Config(enable_hooks=True, hooks=hooks)), NatsAddress((server.url,)), SUBJECT)
    await front.start()
    asking = asyncio.create_task(server.ask())
    await eventually(started.exists)

    await front._subscription.client.close()
    assert not front.is_connected
    await eventually(lambda: front.is_connected)
    go.touch()

    assert (await asking)["output"]["finalOutput"]["decision"] == "deny"
    await front.drain()


# nats-py does not close the stream of an attempt to reconnect that is refused.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_bus_that_was_refused_takes_requests_again(server: GuardedServer, refusal: str) -> None:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}
    system = Config(enable_hooks=True, hooks=hooks).get_hook_system()
    assert system is not None
    await system.connect(NatsMessageBus(server.url, subject=SUBJECT))
    server.use(refusal)
    client = (await nats_connection._connections.get(NatsAddress((server.url,)))).client
    await eventually(lambda: client.last_error is not None and "violation" in str(client.last_error).lower())

    server.use(WORKS)

    assert (await server.ask())["output"]["finalOutput"]["decision"] == "deny"
    await system.disconnect()


async def test_a_bus_that_may_not_subscribe_says_so(server: GuardedServer) -> None:
    server.use(REFUSALS["the user may not subscribe"])

    with pytest.raises(NatsUnavailableError, match="does not allow this user to subscribe"):
        await NatsMessageBus(server.url, subject=SUBJECT).subscribe(MessageBusType.HOOK_EXECUTION_REQUEST, print)


async def test_a_request_that_comes_just_before_the_subscription_ends_is_answered() -> None:
    """Its server delivers one when it is told of the end, as a busy one may."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id": "x", "version": "2.10.0", "max_payload": 1048576}\r\n')
        async for line in reader:
            command, *words = line.split()
            if command == b"PING":
                writer.write(b"PONG\r\n")
            elif command == b"UNSUB" and not delivered:
                delivered.append(line)
                await asyncio.sleep(0.1)
                writer.write(b"MSG %s %s reply 2\r\n{}\r\n" % (SUBJECT.encode(), words[0]))

    async def receive(message: Msg) -> None:
        received.append(message.data)

    delivered: list[bytes] = []
    received: list[bytes] = []
    async with stream_server(serve) as port:
        address = NatsAddress((f"nats://127.0.0.1:{port}",))
        subscription = NatsSubscription(lambda: open_nats_client(address), SUBJECT, receive)
        await subscription.open()
        await subscription.drain()
        await subscription.client.close()

    assert received == [b"{}"]


async def test_attempts_to_subscribe_again_continue(server: GuardedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_subscription, "_CHECK_SECONDS", 0.01)
    clients: list[Client] = []

    async def connect() -> Client:
        if len(clients) == 1 and len(failures) < 2:
            failures.append(1)
            raise NatsUnavailableError("not now")
        clients.append(await open_nats_client(NatsAddress((server.url,))))
        return clients[-1]

    async def receive(message: Msg) -> None:
        await message.respond(b"{}")

    failures: list[int] = []
    subscription = NatsSubscription(connect, SUBJECT, receive)
    await subscription.open()
    await clients[0].close()
    assert not subscription.is_active
    await eventually(lambda: subscription.is_active)

    assert await server.ask() == {}
    assert len(failures) == 2
    await subscription.drain()
    await clients[1].close()
