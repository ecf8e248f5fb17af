"""``mcp-proxy --http … -- server``: a server that talks over standard output, for clients over HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from llxprt_hooks import Config, Hooks, deny
from llxprt_hooks.integrations.proxy.mcp.served import ServedCommand
from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer
from llxprt_hooks.integrations.proxy.mcp.web import serving
from tests.support.mcp_connection import SERVER, call
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.support.cli import CliProject

pytestmark = pytest.mark.usefixtures("few_certificates")

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}}}


class Client:
    """A client with a session of its own."""

    def __init__(self, url: str, received: Path) -> None:
        self.url, self.received = url, received
        self.http = httpx.AsyncClient(timeout=DEADLINE)

    async def begin(self) -> None:
        begun = await self.post(INITIALIZE)
        self.http.headers["mcp-session-id"] = begun.headers["mcp-session-id"]

    async def post(self, message: Any, **headers: str) -> httpx.Response:
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.http.post(self.url, content=content, headers=headers)

    async def events(self, message: Any) -> list[Any]:
        """Return the messages of a streamed answer."""
        answer = await self.post(message)
        assert answer.headers["content-type"].startswith("text/event-stream")
        return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]


Use = Callable[..., Awaitable[None]]


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., None]:
    """Run clients of a served command: with hooks that guard the tool ``guarded`` and replace what ``data`` gives."""

    def run(use: Use, clients: int = 1, command: list[str] | None = None) -> None:
        config = Config(enable_hooks=True, profile="full")
        hooks = Hooks(config)
        hooks.on("BeforeTool", lambda _: deny("not today"), matcher="^guarded$")
        hooks.on("AfterTool", lambda _: {"hookSpecificOutput": {"tool_response": "[redacted]"}}, matcher="^data$")
        received = tmp_path / "received"

        async def connect() -> None:
            started = command or [sys.executable, str(SERVER), str(received)]
            front = ServedCommand(GuardedServer(config), started, host="127.0.0.1")
            async with serving(front, host="127.0.0.1", port=0) as url:
                made = [Client(url, received) for _ in range(clients)]
                for each in made:
                    if command is None:
                        await each.begin()
                await use(*made)
                for each in made:
                    await each.http.aclose()

        asyncio.run(connect())

    return run


def text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_calls_pass_hooks_on_their_way_to_a_command(session: Callable[..., None]) -> None:
    async def use(client: Client) -> None:
        assert text((await client.post(call("guarded"))).json()) == "not today"
        assert text((await client.post(call("data"))).json()) == "[redacted]"
        assert text((await client.post(call("free", a=1))).json()) == 'ran free {"a": 1}'
        assert b"guarded" not in client.received.read_bytes()
        batch = (await client.post([call("guarded", 5), call("free", 6)])).text
        assert "not today" in batch
        assert "ran free" in batch

    session(use)


def test_each_client_has_a_process_of_its_own(session: Callable[..., None]) -> None:
    async def use(one: Client, other: Client) -> None:
        ended, answered = await asyncio.gather(one.post(call("exit", 1)), other.post(call("free", 1)))
        assert ended.json()["error"]["message"] == "llxprt-hooks: the MCP server has ended"
        assert text(answered.json()) == "ran free {}"
        assert (await one.post(call("free"))).status_code == 404, "a client then begins a new session"
        assert (await other.http.delete(other.url)).status_code == 204
        assert (await other.post(call("free"))).status_code == 404

    session(use, clients=2)


def test_messages_of_the_server_reach_the_request_that_they_belong_to(session: Callable[..., None]) -> None:
    async def use(client: Client) -> None:
        progress = await client.events(call("progress"))
        assert [each.get("method") for each in progress] == ["notifications/progress", None]
        asked = await client.events(call("sampling", 1))
        assert [each.get("method") for each in asked] == ["sampling/createMessage", None]
        assert (await client.post({"jsonrpc": "2.0", "id": 1, "result": {}})).status_code == 202
        both = await asyncio.gather(client.post(call("free", 7, a=7)), client.post(call("free", 8, a=8)))
        assert [each.json()["id"] for each in both] == [7, 8]
        with pytest.raises(httpx.ReadTimeout):
            await client.http.post(client.url, json=call("silent", 9), timeout=0.2)
        taken = await client.post(call("free", 9))
        assert taken.status_code == 400
        assert "another call with the same id" in taken.text

    session(use)


def test_what_nobody_asked_for_waits_for_the_stream_of_the_client(session: Callable[..., None]) -> None:
    async def use(client: Client) -> None:
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        reply = json.dumps({"jsonrpc": "2.0", "id": "a", "result": {"content": []}})
        assert (await client.post(call("raw", "a", lines=[reply, note]))).json() == json.loads(reply)
        async with client.http.stream("GET", client.url) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "event: message"
            assert "notifications/message" in await anext(lines)
            assert (await client.http.get(client.url)).status_code == 409
        assert text((await client.post(call("free"))).json()) == "ran free {}"

    session(use)


@pytest.mark.parametrize(
    ("message", "headers", "status"),
    [
        (call("free"), {"mcp-session-id": "unknown"}, 404),
        (b"{", {}, 400),
        (b"", {}, 400),
        (call("free", True), {}, 400),
        (b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', {}, 400),
        (call("free"), {"host": "evil.example"}, 403),
        (call("free"), {"origin": "https://evil.example"}, 403),
        (b"x" * (1 << 27), {}, 413),
    ],
    ids=["unknown", "broken", "empty", "boolean id", "infinite id", "host", "origin", "large"],
)
def test_requests_that_are_refused(
    message: Any, headers: dict[str, str], status: int, session: Callable[..., None]
) -> None:
    async def use(client: Client) -> None:
        assert (await client.post(message, **headers)).status_code == status
        assert text((await client.post(call("free"))).json()) == "ran free {}"

    session(use)


def test_a_request_that_stands_alone_is_refused_so_that_clients_begin_a_session(session: Callable[..., None]) -> None:
    async def use(client: Client) -> None:
        message = call("free")
        message["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        assert (await client.post(message)).status_code == 400
        assert (await client.http.get(client.url)).status_code == 400
        assert (await client.http.put(client.url)).status_code == 405
        assert (await client.post(INITIALIZE)).status_code == 502, "the command does not exist"

    session(use, command=["/does/not/exist"])


def test_a_command_that_is_not_found_is_reported_at_the_start(world: CliProject) -> None:
    failed = world.run("mcp-proxy", "--http", "127.0.0.1:0", "--", "does-not-exist")
    assert failed.status == 127
    assert "cannot start the MCP server: does-not-exist" in failed.stderr
