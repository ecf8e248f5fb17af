"""``mcp-proxy --upstream URL``: a client on standard input and output, and a server that is reached over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from llxprt_hooks._support.http_server import Server, listen
from tests.support.mcp_connection import Connections, call
from tests.support.processes import DEADLINE, until
from tests.support.replies import DENY

if TYPE_CHECKING:
    from tests.support.cli import CliProject
    from tests.support.project import Project

VERSION = "2025-11-25"
RECENT = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
TOKEN = "Bearer t0ken"


class Upstream:
    """A server whose answer depends on the tool's name. It keeps what it received."""

    def __init__(self) -> None:
        self.received: list[tuple[str, Any, dict[str, str]]] = []
        self.closed: list[Any] = []
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        body = await request.body()
        message = json.loads(body) if body else {}
        self.received.append((request.method, message, dict(request.headers)))
        await self.answer(request, message)(scope, receive, send)

    def answer(self, request: Request, message: Any) -> Response:
        if request.method == "GET":
            place = request.headers.get("last-event-id")
            sent = [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}] if place is None else []
            return events(self.open(*sent) if place is None else lines(reply({"id": int(place)}, "resumed")))
        if request.method == "DELETE":
            return Response(status_code=204)
        if message.get("method") == "initialize":
            result = {"protocolVersion": VERSION, "serverInfo": {"name": "s"}}
            return JSONResponse({**reply(message), "result": result}, headers={"mcp-session-id": "s-1"})
        if "id" not in message or "method" not in message:
            return Response(status_code=202)
        match message["params"].get("name"):
            case "streamed":
                asked = {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {"messages": []}}
                return events(lines(asked, reply(message, "streamed")))
            case "pretty":
                return Response(json.dumps(reply(message, "pretty"), indent=2), media_type="application/json")
            case "resumable":
                return events(broken(f"id: {message['id']}\nretry: 10\ndata: \n\n", is_clean=True))
            case "dies":
                return events(broken("event: message\ndata: {", is_clean=False))
            case "says nothing":
                return events(lines())
            case "slow":
                return events(self.open())
            case "401" | "403" | "500" as status:
                return JSONResponse({"error": {"message": "because"}}, int(status))
            case "expired":
                return Response(status_code=404)
            case "moved":
                return RedirectResponse("/mcp/")
            case "page":
                return Response("<html>", media_type="text/html")
            case "not JSON":
                return Response("{", media_type="application/json")
            case "400":
                error = {"code": -32001, "message": "of the server"}
                return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, 400)
            case "huge":
                return JSONResponse(reply(message, "x" * (1 << 26)))
        return JSONResponse(reply(message, "secret"))

    async def open(self, *messages: Any) -> AsyncIterator[str]:
        try:
            async for each in lines(*messages):
                yield each
            await asyncio.sleep(DEADLINE)
        finally:
            self.closed.append(messages)

    def methods(self) -> list[str]:
        return [message.get("method", method) for method, message, _ in self.received]

    def headers_of(self, method: str) -> dict[str, str]:
        return next(headers for verb, message, headers in self.received if method in (verb, message.get("method")))


def reply(message: Any, words: str = "") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": {"content": [{"type": "text", "text": words}]}}


def events(content: AsyncIterator[str]) -> Response:
    return StreamingResponse(content, media_type="text/event-stream")


async def lines(*messages: Any) -> AsyncIterator[str]:
    for message in messages:
        yield f"event: message\ndata: {json.dumps(message)}\n\n"


async def broken(text: str, *, is_clean: bool) -> AsyncIterator[str]:
    yield text
    if not is_clean:
        raise ConnectionError


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    application = Upstream()
    listening = listen("127.0.0.1", 0)
    application.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    server = Server(application, timeout_graceful_shutdown=1, log_level="critical")
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    yield application
    server.should_exit = True
    thread.join()
    listening.close()


def guard(project: Project, event: str = "BeforeTool", **says: Any) -> None:
    hook = {"type": "command", "command": project.hook(says=says or DENY)}
    events: Any = {event: {"matcher": "^guarded$", "hooks": [hook]}}
    project.configure(**events)


def problem_of(answer: Any) -> str:
    text: str = answer["error"]["message"]
    return text


def test_a_session_from_its_beginning_to_its_end(connect: Connections, upstream: Upstream) -> None:
    connection = connect("--upstream", upstream.url, "--header", "Authorization: $SHOP_TOKEN", SHOP_TOKEN=TOKEN)
    connection.send(INITIALIZE, INITIALIZED)
    assert connection.receive()["result"]["protocolVersion"] == VERSION
    assert connection.receive()["method"] == "notifications/tools/list_changed", "from the server's own stream"
    assert connection.text("pretty") == "pretty"
    connection.send(call("streamed"))
    assert connection.receive()["method"] == "sampling/createMessage"
    assert connection.receive()["result"]["content"][0]["text"] == "streamed"
    connection.send({"jsonrpc": "2.0", "id": "s", "result": {}})
    status, errors = connection.end()
    assert status == 0
    assert "t0ken" not in errors
    assert "t0ken" not in str(connection.process.args)
    assert "mcp-protocol-version" not in upstream.headers_of("initialize")
    assert upstream.headers_of("initialize")["accept"] == "application/json, text/event-stream"
    for method in ("notifications/initialized", "GET", "tools/call", "DELETE"):
        headers = upstream.headers_of(method)
        found = [headers[name] for name in ("mcp-session-id", "mcp-protocol-version", "authorization")]
        assert found == ["s-1", VERSION, TOKEN], method
    assert upstream.methods()[:2] == ["initialize", "notifications/initialized"]
    assert upstream.received[-1][0] == "DELETE"
    assert ("POST", {"jsonrpc": "2.0", "id": "s", "result": {}}) in [each[:2] for each in upstream.received]


def test_hooks_decide_about_calls(project: Project, connect: Connections, upstream: Upstream) -> None:
    guard(project)
    connection = connect("--upstream", upstream.url)
    assert connection.text("guarded") == "not today"
    assert upstream.received == []
    assert connection.text("free") == "secret"


def test_hooks_add_to_results(project: Project, connect: Connections, upstream: Upstream) -> None:
    guard(project, "AfterTool", hookSpecificOutput={"additionalContext": "checked"})
    connection = connect("--upstream", upstream.url)
    assert "checked" in connection.text("guarded")
    assert connection.text("free") == "secret"


def test_pinned_tools_wait_for_approval(connect: Connections, upstream: Upstream) -> None:
    connection = connect("--upstream", upstream.url, "--server-name", "shop", "--pin")
    assert "so it was not called" in connection.text("free")
    assert upstream.methods() == ["tools/list"], "the proxy asks itself"


PROBLEMS = [
    ("401", "status 401 (Unauthorized): because; pass a token with --header"),
    ("403", "status 403 (Forbidden): because"),
    ("500", "status 500 (Internal Server Error): because"),
    ("expired", "status 404 (Not Found); check the URL"),
    ("moved", "redirects are not followed: use --upstream /mcp/"),
    ("page", "sent an answer of type text/html"),
    ("not JSON", "sent an answer that is no reply to the request"),
    ("says nothing", "ended its answer without a result"),
    ("dies", "broke off: peer closed connection"),
    ("huge", "larger than 64 MiB"),
    ("400", "of the server"),
]


@pytest.mark.parametrize("is_guarded", [False, True], ids=["unguarded", "guarded"])
def test_a_request_that_the_server_does_not_answer_gets_an_error(
    project: Project, connect: Connections, upstream: Upstream, is_guarded: bool
) -> None:
    if is_guarded:
        command = project.hook(says={})
        project.configure(AfterTool={"matcher": ".*", "hooks": [{"type": "command", "command": command}]})
    connection = connect("--upstream", upstream.url)
    for tool, expected in PROBLEMS:
        answer = connection.call(tool, f"id of {tool}")
        assert answer["id"] == f"id of {tool}"
        assert expected in problem_of(answer)
        assert connection.text("free") == "secret", "the connection lasts"


def test_a_session_that_the_server_has_ended(connect: Connections, upstream: Upstream) -> None:
    connection = connect("--upstream", upstream.url)
    connection.send(INITIALIZE)
    connection.receive()
    assert "the server has ended the session: restart this server" in problem_of(connection.call("expired"))


def test_a_server_that_is_down(connect: Connections) -> None:
    connection = connect("--upstream", "http://127.0.0.1:9/mcp")
    assert "cannot reach the MCP server" in problem_of(connection.call("free"))
    status, errors = connection.end()
    assert status == 0
    assert "cannot reach the MCP server" in errors
    assert "Traceback" not in errors


def test_a_stream_that_broke_off_is_resumed(connect: Connections, upstream: Upstream) -> None:
    connection = connect("--upstream", upstream.url)
    assert connection.call("resumable", 7)["result"]["content"][0]["text"] == "resumed"
    assert upstream.headers_of("GET")["last-event-id"] == "7"


@pytest.mark.parametrize("is_recent", [False, True], ids=["posted", "closed"])
def test_a_request_is_canceled(connect: Connections, upstream: Upstream, is_recent: bool) -> None:
    """Since revision 2026-07-28, the end of the connection cancels a request, and no notification is posted."""
    connection = connect("--upstream", upstream.url)
    slow = call("slow")
    if is_recent:
        slow["params"]["_meta"] = RECENT
    connection.send(slow)
    until(lambda: "tools/call" in upstream.methods())
    connection.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert connection.call("free", 2)["id"] == 2
    if is_recent:
        until(lambda: upstream.closed != [])
    assert ("notifications/cancelled" in upstream.methods()) is not is_recent


def test_recent_revisions_repeat_the_message_in_headers(connect: Connections, upstream: Upstream) -> None:
    connection = connect("--upstream", upstream.url)
    message = call("zählen")
    message["params"]["_meta"] = RECENT
    connection.send(message)
    connection.receive()
    headers = upstream.headers_of("tools/call")
    found = [headers[name] for name in ("mcp-protocol-version", "mcp-method", "mcp-name")]
    assert found == ["2026-07-28", "tools/call", "=?base64?esOkaGxlbg==?="]


def test_a_signal_ends_the_session(connect: Connections, upstream: Upstream) -> None:
    connection = connect("--upstream", upstream.url)
    connection.send(INITIALIZE)
    connection.receive()
    connection.send(call("slow"))
    until(lambda: "tools/call" in upstream.methods())
    connection.process.terminate()
    assert connection.process.wait(DEADLINE) == 0
    assert upstream.received[-1][0] == "DELETE"


def test_wrong_usage(world: CliProject) -> None:
    for options, expected in (
        (("--upstream", "http://a/mcp"), "is not encrypted"),
        (("--upstream", "https://a/m cp"), "must be an http or https URL"),
        (("--upstream", "http://localhost:x/mcp"), "must be an http or https URL"),
        (("--upstream", "https://a/mcp", "--", "cat"), "without a command"),
        (("--header", "A: $B", "--", "cat"), "use --header only with --upstream URL"),
        (("--upstream", "https://a/mcp", "--header", "Authorization: Bearer s3cret"), "single quotes"),
        (("--upstream", "https://a/mcp", "--header", "A: $NOT_SET_HERE"), "needs the variable NOT_SET_HERE"),
        (("--upstream", "https://a/mcp", "--header", "A b: $HOME"), "is not the name of a header"),
    ):
        ran = world.run("mcp-proxy", *options)
        assert ran.status == 64
        assert expected in ran.stderr
        assert "s3cret" not in ran.stderr
