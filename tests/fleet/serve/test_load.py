"""A policy worker with more to do than it can: events that nobody waits for, slow and large requests (D-45)."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import uuid
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from llxprt_hooks import Config
from llxprt_hooks._support import http_server
from llxprt_hooks.core.engine.results import AggregatedHookResult, HookStageError
from llxprt_hooks.core.executors.http import _make_transport
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client
from llxprt_hooks.fleet.serve import http_front
from llxprt_hooks.fleet.serve.http_front import HttpFront
from llxprt_hooks.fleet.serve.worker import PolicyWorker
from tests.support.http_server import hook_server
from tests.support.nats_server import listen
from tests.support.processes import DEADLINE, eventually, until
from tests.support.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from nats.aio.msg import Msg

    from tests.support.cli import CliProject
    from tests.support.nats_server import NatsServer

HTTP = ("--http", "127.0.0.1:0")
CALL = {"hook_event_name": "BeforeTool", "tool_name": "write_file", "tool_input": {"file_path": "a"}}


def config_of(command: str) -> Config:
    return Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]})


def busy_until(go: Path, started: Path) -> Config:
    """A hook that runs until a file exists, and adds a line to another one when it starts."""
    return config_of(f'echo >> "{started}"; while [ ! -e "{go}" ]; do sleep 0.05; done')


def stage(result: AggregatedHookResult) -> str:
    [error] = result.errors
    assert isinstance(error, HookStageError)
    return error.stage


# Events that wait.


async def test_an_event_that_nobody_waits_for_any_more_does_not_run(tmp_path: Path) -> None:
    go, started = tmp_path / "go", tmp_path / "started"
    worker = PolicyWorker(busy_until(go, started), most_at_once=1)
    running = asyncio.create_task(worker.fire("BeforeTool", CALL))
    await eventually(lambda: worker.metrics.in_progress == 1)

    async with asyncio.timeout(DEADLINE):
        expired = await worker.fire("BeforeTool", CALL, patience="200")
    go.touch()

    assert stage(expired) == "expired"
    assert (await running).success
    assert started.read_text() == "\n"
    assert (worker.metrics.in_progress, worker.metrics.waiting) == (0, 0)


async def test_an_event_that_would_wait_too_long_is_refused_at_once(tmp_path: Path) -> None:
    go, started = tmp_path / "go", tmp_path / "started"
    worker = PolicyWorker(busy_until(go, started), most_at_once=1)
    first = asyncio.create_task(worker.fire("BeforeTool", CALL))
    await eventually(started.exists)
    await asyncio.sleep(1.2)  # so that an event is known to take longer than one without a header may wait
    go.touch()
    assert (await first).success
    go.unlink()
    # However long events take, one that can start now is taken.
    second = asyncio.create_task(worker.fire("BeforeTool", CALL, patience="100"))
    await eventually(lambda: worker.metrics.in_progress == 1)

    async with asyncio.timeout(DEADLINE):
        refused = [await worker.fire("BeforeTool", CALL, patience=patience) for patience in (None, "2000", "soon")]
    patient = asyncio.create_task(worker.fire("BeforeTool", CALL, patience="60000"))
    await eventually(lambda: worker.metrics.waiting == 1)
    go.touch()

    assert [stage(each) for each in refused] == ["overloaded"] * 3
    assert (await second).success
    assert (await patient).success


async def test_a_hook_says_how_long_it_waits() -> None:
    with hook_server() as server:
        hook = {"type": "http", "url": server.url, "timeout": 7000}
        system = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]}).get_hook_system()
        assert system is not None
        await system.ready_event_handler().fire_before_tool_event("write_file", {})

    assert server.received[0].headers["llxprt-timeout-ms"] == "7000"


async def test_a_hook_over_nats_says_how_long_each_attempt_waits(nats_server: NatsServer) -> None:
    subject, waits = f"test.{uuid.uuid4().hex}", list[int]()
    client = await open_nats_client(NatsAddress((nats_server.url,)))

    async def receive(message: Msg) -> None:
        assert message.headers
        waits.append(int(message.headers["llxprt-timeout-ms"]))

    await listen(client, subject, cb=receive)
    hook = {"type": "nats", "servers": [nats_server.url], "subject": subject, "timeout": 60_000, "retry": 119}
    system = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]}).get_hook_system()
    assert system is not None
    call = asyncio.create_task(system.ready_event_handler().fire_before_tool_event("write_file", {}))
    await eventually(lambda: len(waits) >= 2)
    call.cancel()
    await client.close()

    assert all(0 < each <= 500 for each in waits)


# Requests that are slow or large.


def client_of(worker: Worker, length: int, data: bytes = b"{") -> socket.socket:
    """Send the head of a request and a part of its payload."""
    address = urlsplit(worker.url)
    client = socket.create_connection((address.hostname, address.port), timeout=DEADLINE)
    client.sendall(HEAD + f"Content-Length: {length}\r\n\r\n".encode() + data)
    return client


HEAD = b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def rest_of(client: socket.socket) -> bytes:
    with client:
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_a_drain_does_not_wait_for_clients_that_neither_send_nor_read(world: CliProject) -> None:
    # The answer is larger than what the system keeps for a client that does not read it.
    world.configure(BeforeTool=f"{sys.executable} -c 'print(\"x\" * 9_000_000)'")
    payload = json.dumps(CALL).encode()

    with Worker(world, *HTTP) as worker:
        slow = client_of(worker, 100)
        deaf = client_of(worker, len(payload), payload)
        until(lambda: b'outcome="allowed"} 1' in worker.get("/metrics").body)
        worker.send(signal.SIGTERM)

        assert worker.wait() == 0
        assert rest_of(slow).startswith(b"HTTP/1.1 408 ")
        deaf.close()
    assert "Traceback" not in worker.text


def test_a_client_that_goes_away_while_it_sends_leaves_nothing_in_the_log(world: CliProject) -> None:
    world.configure(BeforeTool=world.hook("policy", {"decision": "deny"}))

    with Worker(world, *HTTP) as worker:
        client_of(worker, 100).close()
        assert worker.post(CALL).status == 200
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert "Traceback" not in worker.text


@asynccontextmanager
async def front(go: Path, token: str | None = None) -> AsyncIterator[tuple[HttpFront, str]]:
    """The HTTP side of a worker, in this process, whose hook runs until a file exists."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    front = HttpFront(PolicyWorker(busy_until(go, go.with_name("started"))), listener, token=token)
    serving = asyncio.create_task(front.serve())
    try:
        yield front, url
    finally:
        go.touch()
        front.drain()
        await front.drained(serving)


async def test_a_payload_that_does_not_arrive_ends_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_front, "BODY_SECONDS", 0.2)
    async with front(tmp_path / "go") as (_, url):
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        writer.write(HEAD + b"Content-Length: 100\r\n\r\n{")

        answer = await reader.read()

        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"bad_message"' in answer


async def test_payloads_take_no_more_memory_than_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_front, "MAX_BYTES", 1_000_000)
    large = {**CALL, "tool_input": {"content": "x" * 600_000}}
    async with front(tmp_path / "go") as (_, url), httpx.AsyncClient(base_url=url, timeout=DEADLINE) as client:
        first = asyncio.create_task(client.post("/v1/events", json=large))
        await eventually((tmp_path / "started").exists)

        refused = await client.post("/v1/events", json=large)
        (tmp_path / "go").touch()

        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
        assert (await first).status_code == 204
        assert (await client.post("/v1/events", json=large)).status_code == 204


async def test_more_connections_than_a_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_front, "MAX_CONNECTIONS", 3)
    async with front(tmp_path / "go") as (_, url), httpx.AsyncClient(base_url=url, timeout=DEADLINE) as client:
        first = [asyncio.create_task(client.post("/v1/events", json=CALL)) for _ in range(2)]
        await eventually(lambda: (tmp_path / "started").exists() and len((tmp_path / "started").read_text()) == 2)

        assert (await client.get("/healthz")).status_code == 503
        (tmp_path / "go").touch()

        assert [(await each).status_code for each in first] == [204, 204]


START = b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize("sent", [b"", START], ids=["nothing", "the start of a request"])
async def test_a_connection_whose_headers_never_end_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.1)
    async with front(tmp_path / "go") as (_, url), asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        writer.write(sent)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_the_headers_of_a_later_request_must_end_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.1)
    (tmp_path / "go").touch()
    body = json.dumps(CALL).encode()
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    async with front(tmp_path / "go") as (_, url), asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        for _ in range(2):
            writer.write(request)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        writer.write(START)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_connections_without_a_request_do_not_take_all_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of them makes room for the newest, so that everybody who does send a request is answered."""
    monkeypatch.setattr(http_front, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(http_server, "MAX_WAITING", 4)
    async with front(tmp_path / "go") as (_, url), httpx.AsyncClient(base_url=url, timeout=DEADLINE) as client:
        silent = [await asyncio.open_connection("127.0.0.1", urlsplit(url).port) for _ in range(20)]
        try:
            assert (await client.get("/healthz")).status_code == 200
            async with asyncio.timeout(DEADLINE):
                with suppress(ConnectionError):
                    assert await silent[0][0].read() == b""
        finally:
            for _, writer in silent:
                writer.close()


async def test_an_answer_that_needs_no_token_closes_the_connection(tmp_path: Path) -> None:
    """Otherwise anybody could take all places with requests that are refused."""
    async with front(tmp_path / "go", token="t0ken") as (_, url), asyncio.timeout(DEADLINE):
        for path in (b"/healthz", b"/metrics", b"/v1/events", b"/no/such/page"):
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
            writer.write(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path)
            assert (await reader.read()).startswith(b"HTTP/1.1 200 " if path == b"/healthz" else b"HTTP/1.1 401 ")
            writer.close()


async def test_an_idle_connection_is_kept_longer_than_hooks_use_one(tmp_path: Path) -> None:
    async with front(tmp_path / "go") as (serving, _):
        kept_by_hooks = _make_transport()._pool._keepalive_expiry
        assert kept_by_hooks is not None

        assert kept_by_hooks < 5 < serving._server.config.timeout_keep_alive
