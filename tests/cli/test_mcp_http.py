"""``mcp-proxy --http … --upstream …``: the same guard between a client and a server that is reached over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from llxprt_hooks import Config, Hooks, deny
from llxprt_hooks._support.http_server import Server, listen
from llxprt_hooks.integrations.proxy.mcp.http import McpHttpProxy
from llxprt_hooks.integrations.proxy.mcp.resource import ProtectedResource
from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer
from llxprt_hooks.integrations.proxy.mcp.web import events_of, serving
from llxprt_hooks.settings.trust.mcp_pins import McpPins
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.support.cli import CliProject

pytestmark = pytest.mark.usefixtures("few_certificates")

HEADERS = {"accept": "application/json, text/event-stream", "authorization": "Bearer t0ken"}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("add", "guarded")]


AT_ROOT = "/.well-known/oauth-protected-resource"
ELSEWHERE = "/custom/metadata.json"


class Protected:
    """A server that asks for a token, and describes itself at some path as some resource."""

    def __init__(self, at: str, resource: str, issuer: str = "https://as") -> None:
        self.at, self.resource, self.issuer = at, resource, issuer
        self.paths: list[str] = []
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        self.paths.append(f"{request.method} {request.url.path}")
        await self.answer(str(request.url).removeprefix(self.url.removesuffix("/mcp")))(scope, receive, send)

    def answer(self, path: str) -> Response:
        origin = self.url.removesuffix("/mcp")
        if path == "/mcp":
            challenge = f'Bearer error="invalid_token", resource_metadata="{origin}{self.at}", scope="a"'
            return Response(status_code=401, headers={"www-authenticate": challenge})
        if path == self.at:
            described = {"resource": self.resource.replace("ORIGIN", origin), "authorization_servers": [self.issuer]}
            return JSONResponse(described)
        return Response(status_code=404)


@pytest.mark.parametrize(
    ("at", "resource", "keeps", "expected"),
    [
        (f"{AT_ROOT}/mcp", "ORIGIN/mcp", False, "PROXY/mcp"),
        (AT_ROOT, "ORIGIN", False, "PROXY"),
        (ELSEWHERE, "ORIGIN/", False, "PROXY/"),
        (f"{ELSEWHERE}?v=2", "ORIGIN/", False, "PROXY/"),
        (f"{AT_ROOT}/mcp", "ORIGIN/other", False, "ORIGIN/other"),
        (f"{AT_ROOT}/mcp", "https://evil.example/mcp", False, "https://evil.example/mcp"),
        (f"{AT_ROOT}/mcp", "ORIGIN/mcp", True, "ORIGIN/mcp"),
    ],
)
def test_a_client_learns_where_to_get_a_token_for_the_url_that_it_uses(
    at: str, resource: str, keeps: bool, expected: str
) -> None:
    async def run() -> None:
        server = Protected(at, resource)
        async with (
            running(server) as server.url,
            serving(
                McpHttpProxy(
                    GuardedServer(hooked(BeforeTool=before)), server.url, host="127.0.0.1", keep_resource=keeps
                ),
                host="127.0.0.1",
                port=0,
            ) as address,
            httpx.AsyncClient(timeout=DEADLINE) as client,
        ):
            own, origin = address.removesuffix("/mcp"), server.url.removesuffix("/mcp")
            assert (await client.get(f"{own}{ELSEWHERE}")).status_code == 404, "nobody has named this path yet"
            refused = await client.post(address, json=call("add"))
            assert refused.status_code == 401
            challenge = refused.headers["www-authenticate"]
            named_at = f"{own}{at}{'&' if '?' in at else '?'}llxprt-hooks=challenged"
            assert challenge == f'Bearer error="invalid_token", resource_metadata="{named_at}", scope="a"'
            named = expected.replace("PROXY", own).replace("ORIGIN", origin)
            for url in (f"{own}{at}", named_at):
                described = (await client.get(url)).json()
                assert described == {"resource": named, "authorization_servers": ["https://as"]}

    asyncio.run(run())


ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.mark.parametrize(
    ("metadata", "is_kept"),
    [
        ({"grant_types_supported": [ASSERTION]}, True),
        ({"grant_types_supported": [ASSERTION, "refresh_token"]}, True),
        ({"grant_types_supported": [ASSERTION, "authorization_code"]}, False),
        ({"grant_types_supported": ["refresh_token"]}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_client_gets_the_url_that_an_identity_provider_signs(metadata: Any, is_kept: bool) -> None:
    async def issuer(scope: Any, receive: Any, send: Any) -> None:
        path = "/.well-known/oauth-authorization-server/tenant"
        is_asked = metadata is not None and Request(scope).url.path == path
        assert b"authorization" not in dict(scope["headers"])
        await (JSONResponse(metadata) if is_asked else Response(status_code=404))(scope, receive, send)

    async def run() -> None:
        async with running(issuer) as url:
            server = Protected(AT_ROOT, "ORIGIN/mcp", url.removesuffix("/mcp") + "/tenant/")
            async with (
                running(server) as server.url,
                proxy(server.url, GuardedServer(hooked(BeforeTool=before))) as address,
                httpx.AsyncClient(timeout=DEADLINE, headers=HEADERS) as client,
            ):
                found = await client.get(f"{address.removesuffix('/mcp')}{AT_ROOT}")
                assert found.json()["resource"] == (server.url if is_kept else address)
                challenge = (await client.post(address, json=call("add"))).headers["www-authenticate"]
                found = await client.get(challenge.partition('resource_metadata="')[2].partition('"')[0])
                assert found.json()["resource"] == address, "one that was refused compares it with the URL that it uses"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("upstream", "issuer", "asked"),
    [
        ("https://shop.example/mcp", "https://as.example", "https://as.example/.well-known/oauth-authorization-server"),
        ("https://shop.example/mcp", "http://as.example", None),
        ("https://shop.example/mcp", "http://127.0.0.1:9200", None),
        ("https://shop.example/mcp", "file:///etc/passwd", None),
        ("https://shop.example/mcp", "https://[", None),
        ("https://shop.example/mcp", 7, None),
        ("http://localhost/mcp", "http://[::1]:80/a", "http://[::1]:80/.well-known/oauth-authorization-server/a"),
    ],
)
def test_only_an_authorization_server_that_a_client_may_ask_is_asked(upstream: str, issuer: Any, asked: Any) -> None:
    description = json.dumps({"authorization_servers": [issuer]}).encode()
    assert ProtectedResource(upstream).issuer_metadata(description) == asked


def test_a_cookie_of_one_client_is_not_sent_for_another() -> None:
    cookies: list[bytes | None] = []

    async def server(scope: Any, receive: Any, send: Any) -> None:
        cookies.append(dict(scope["headers"]).get(b"cookie"))
        message = json.loads(await Request(scope, receive).body())
        await JSONResponse(reply(message), headers={"set-cookie": "login=ada; Path=/"})(scope, receive, send)

    async def run() -> None:
        async with running(server) as url, proxy(url, GuardedServer(hooked(BeforeTool=before))) as address:
            for sent in ({}, {"cookie": "login=eve"}, {}):
                async with httpx.AsyncClient(timeout=DEADLINE) as client:
                    answered = await client.post(address, json=call("add"), headers=sent)
                    assert answered.headers["set-cookie"] == "login=ada; Path=/"

    asyncio.run(run())
    assert cookies == [None, b"login=eve", None]


def test_only_requests_for_tokens_pass_beside_the_server() -> None:
    form, json_text = "application/x-www-form-urlencoded", "application/json"

    async def run() -> None:
        server = Protected(AT_ROOT, "ORIGIN")
        async with (
            running(server) as server.url,
            proxy(server.url, GuardedServer(hooked(BeforeTool=before))) as address,
            httpx.AsyncClient(timeout=DEADLINE) as client,
        ):
            origin = address.removesuffix("/mcp")
            for method, path, kind, content, passes in (
                ("GET", "/authorize?state=1", "", b"", True),
                ("POST", "/token", form, b"grant_type=a", True),
                ("POST", "/register", json_text, b'{"client_name": "a"}', True),
                ("POST", "/register", json_text, json.dumps(call("guarded")).encode(), False),
                ("POST", "/register", json_text, json.dumps([call("guarded")]).encode(), False),
                ("POST", "/token", json_text, json.dumps(call("guarded")).encode(), False),
                ("POST", "/token", form, json.dumps(call("guarded")).encode(), False),
                ("DELETE", "/token", form, b"", False),
                ("GET", "/admin", "", b"", False),
                ("GET", "/.well-known/%2e%2e/mcp", "", b"", False),
                ("GET", "/.well-known/%252e%252e/mcp", "", b"", False),
                ("GET", "/.well-known/..%5cmcp", "", b"", False),
            ):
                server.paths.clear()
                await client.request(method, f"{origin}{path}", content=content, headers={"content-type": kind})
                assert server.paths == ([f"{method} {path.partition('?')[0]}"] if passes else []), (method, path, kind)

    asyncio.run(run())


ODD: dict[str, tuple[bytes, str, int]] = {
    "behind a carriage return": (b"id: 1\rdata: %s\r\n\n", "text/event-stream", 200),
    "lines of carriage returns": (b": a\r\rdata: %s\r\r: b\r", "text/event-stream", 200),
    "behind a mark": (b"\xef\xbb\xbfdata: %s\n\n", "text/event-stream", 200),
    "in capitals": (b"%s", "Application/JSON; charset=utf-8", 200),
    "events in capitals": (b"data: %s\n\n", "Text/Event-Stream", 200),
    "events among types": (b"data: %s\n\n", "text/plain, text/event-stream", 200),
    "as text": (b"%s", "text/plain", 200),
    "as text with an empty method": (b"%s", "text/plain", 200),
    "as a refusal": (b"%s", "application/json", 400),
}


RESUMABLE: dict[str, list[bytes]] = {"e-1": [b"e-1", b"e-1"], " e-2 ": [b"e-2"], "é": ["é".encode(), b"\xe9"]}
"""Ids of events, and how clients send them."""


class Upstream:
    """A server that answers calls in a JSON text, or in a stream if the tool is called so."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        self.headers.append(dict(request.headers))
        body = await request.body()
        message = json.loads(body) if body else {"method": request.method}
        self.received.append(message)
        await self.answer(message)(scope, receive, send)

    def answer(self, message: Any) -> Response:
        if isinstance(message, list):
            return JSONResponse([reply(each) for each in message])
        match message.get("method"):
            case "initialize":
                return JSONResponse(reply(message, {"serverInfo": {"name": "s"}}), headers={"mcp-session-id": "s-1"})
            case "tools/list":
                return JSONResponse(reply(message, {"tools": TOOLS}))
            case "tools/call" if message["params"]["name"] == "streamed":
                return StreamingResponse(self.events(message), media_type="text/event-stream")
            case "tools/call" if message["params"]["name"] in ODD:
                content, kind, status = ODD[message["params"]["name"]]
                answer = {**reply(message), **({"method": None} if "method" in message["params"]["name"] else {})}
                return Response(content % json.dumps(answer).encode(), status, media_type=kind)
            case "tools/call" if message["params"]["name"] == "huge":
                return JSONResponse(reply(message, {"content": [{"type": "text", "text": "x" * (1 << 26)}]}))
            case "tools/call" if message["params"]["name"] in RESUMABLE:
                return Response(f"id: {message['params']['name']}\ndata: \n\n", media_type="text/event-stream")
            case "tools/call" if message["params"]["name"] == "late":
                return Response(status_code=202)
            case "ping" if message["id"] == 2:
                return Response(f"data: {json.dumps(reply({'id': 1}))}\n\n", media_type="text/event-stream")
            case "ping" if message["id"] == 3:
                return JSONResponse(reply({"id": 1}))
            case "ping":
                deep = json.dumps(reply({"id": 1})).replace('"secret"', "[" * 100_000 + "]" * 100_000)
                return Response(deep, media_type="application/json")
            case "GET":
                return Response(f"data: {json.dumps(reply({'id': 1}))}\n\n", media_type="text/event-stream")
            case "tools/call":
                return JSONResponse(reply(message))
            case "DELETE":
                return Response(status_code=204)
        return Response(status_code=202)

    async def events(self, message: Any) -> AsyncIterator[str]:
        yield "id: 1\nretry: 500\ndata: \n\n"
        asked = {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {"messages": []}}
        for number, each in enumerate((asked, reply(message)), 2):
            yield f"event: message\nid: {number}\ndata: {json.dumps(each)}\n\n"


def reply(message: Any, result: Any = None) -> dict[str, Any]:
    text = {"content": [{"type": "text", "text": "secret"}]}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": text if result is None else result}


def call(name: str, ident: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": {"name": name, "arguments": {}}}


@asynccontextmanager
async def running(application: Any) -> AsyncIterator[str]:
    listening = listen("127.0.0.1", 0)
    server = Server(application)
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task
        listening.close()


def proxy(url: str, guarded: GuardedServer, *, keep_resource: bool = False) -> AbstractAsyncContextManager[str]:
    """Run the proxy before a URL."""
    front = McpHttpProxy(guarded, url, host="127.0.0.1", keep_resource=keep_resource)
    return serving(front, host="127.0.0.1", port=0)


Post = Callable[..., Awaitable[httpx.Response]]


def between(use: Callable[[Post, Upstream], Awaitable[None]], config: Config, **options: Any) -> None:
    """Run a client's side of a proxy between it and a server."""

    async def run() -> None:
        upstream = Upstream()
        async with (
            running(upstream) as url,
            serving(
                McpHttpProxy(GuardedServer(config, **options), url, host="127.0.0.1"), host="127.0.0.1", port=0
            ) as address,
            httpx.AsyncClient(headers=HEADERS, timeout=DEADLINE) as client,
        ):

            async def post(message: Any, path: str = "", method: str = "POST", **headers: Any) -> httpx.Response:
                content = None if message is None else json.dumps(message)
                return await client.request(method, address + path, content=content, headers=headers)

            await use(post, upstream)

    asyncio.run(run())


def hooked(**functions: Any) -> Config:
    config = Config(enable_hooks=True, profile="full")
    hooks = Hooks(config)
    for event, function in functions.items():
        hooks.on(event, function)
    return config


def before(payload: Any) -> Any:
    return deny("not today") if payload["tool_name"] == "guarded" else None


def after(_: Any) -> Any:
    return {"hookSpecificOutput": {"tool_response": "[redacted]"}}


def test_calls_pass_hooks_whatever_the_answer_is() -> None:
    async def use(post: Post, upstream: Upstream) -> None:
        refused = await post(call("guarded"))
        assert refused.json()["result"] == {"content": [{"type": "text", "text": "not today"}], "isError": True}
        assert upstream.received == []
        assert (await post(call("add"))).json()["result"]["content"][0]["text"] == "[redacted]"
        streamed = (await post(call("streamed"))).text
        assert streamed.startswith("id: 1\nretry: 500\ndata: \n\nevent: message\nid: 2\ndata: {")
        assert "id: 3\ndata: " in streamed
        assert "[redacted]" in streamed
        assert "secret" not in streamed
        batch = (await post([call("guarded", 1), call("add", 2)])).json()
        assert {each["id"]: each["result"]["content"][0]["text"] for each in batch} == {1: "not today", 2: "[redacted]"}

    between(use, hooked(BeforeTool=before, AfterTool=after))


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_a_call_is_not_sent_by_another_method(method: str) -> None:
    async def use(post: Post, upstream: Upstream) -> None:
        assert (await post(call("guarded"), method=method)).status_code == 400
        assert upstream.received == []

    between(use, hooked(BeforeTool=before))


def test_everything_else_passes_as_it_is() -> None:
    async def use(post: Post, upstream: Upstream) -> None:
        started = await post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        assert started.headers["mcp-session-id"] == "s-1"
        assert (await post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202
        assert (await post(None, method="DELETE", **{"mcp-session-id": "s-1"})).status_code == 204
        assert {headers["authorization"] for headers in upstream.headers} == {"Bearer t0ken"}
        assert (await post(call("add"), path="/other")).status_code == 404

    between(use, hooked(BeforeTool=before))


def test_what_the_server_asks_passes_hooks() -> None:
    async def use(post: Post, upstream: Upstream) -> None:
        streamed = (await post(call("streamed"))).text
        assert "sampling/createMessage" not in streamed
        assert "secret" in streamed
        (answer,) = [each for each in upstream.received if each.get("id") == "s"]
        assert answer["error"]["message"] == "llxprt-hooks: no"

    between(use, hooked(BeforeModel=lambda _: deny("no")))


@pytest.mark.parametrize("tool", ODD)
def test_a_result_reaches_hooks_however_it_is_sent(tool: str) -> None:
    async def use(post: Post, _: Upstream) -> None:
        answer = await post(call(tool))
        assert "[redacted]" in answer.text
        assert "secret" not in answer.text
        assert answer.status_code == ODD[tool][2]

    between(use, hooked(AfterTool=after))


@pytest.mark.parametrize("event", RESUMABLE)
@pytest.mark.parametrize("session", [{}, {"mcp-session-id": "s-1"}], ids=["alone", "in a session"])
def test_hooks_see_the_result_on_a_stream_that_was_resumed(session: dict[str, str], event: str) -> None:
    async def use(post: Post, _: Upstream) -> None:
        if session:
            await post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        await post(call(event), **session)
        for sent in RESUMABLE[event]:  # as often as the client asks for it
            resumed = await post(None, method="GET", **{"last-event-id": sent}, **session)
            assert "[redacted]" in resumed.text

    between(use, hooked(AfterTool=after))


def test_without_a_session_no_result_passes_as_the_answer_to_something_else() -> None:
    async def use(post: Post, _: Upstream) -> None:
        assert (await post(call("late"))).status_code == 202
        for answer in (
            await post(None, method="GET"),
            await post(None, method="GET", **{"last-event-id": "unknown"}),
            await post({"jsonrpc": "2.0", "id": 2, "method": "ping"}),
            await post({"jsonrpc": "2.0", "id": 3, "method": "ping"}),
            await post({"jsonrpc": "2.0", "id": 4, "method": "ping"}),
        ):
            assert (answer.status_code, answer.text) == (200, "")

    between(use, hooked(AfterTool=after))


def test_a_stream_of_a_tool_without_hooks_can_be_resumed_without_a_session() -> None:
    async def use(post: Post, _: Upstream) -> None:
        await post(call("e-1"))
        assert "secret" in (await post(None, method="GET", **{"last-event-id": "e-1"})).text

    config = hooked()
    Hooks(config).on("AfterTool", after, matcher="^add$")
    between(use, config)


def test_a_line_that_comes_in_small_pieces_is_read_in_time() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"data: "
        for _ in range(24_000):
            await asyncio.sleep(0)
            yield b"x" * 2048
        yield b"\n\n"

    async def run() -> list[int]:
        async with asyncio.timeout(DEADLINE):
            return [len(event.message) async for event in events_of(pieces())]

    assert asyncio.run(run()) == [24_000 * 2048]


def test_a_stop_holds_for_the_session() -> None:
    async def use(post: Post, upstream: Upstream) -> None:
        await post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        for session in ({"mcp-session-id": "s-1"}, {"mcp-session-id": "s-1"}):
            assert "enough" in (await post(call("add"), **session)).text
        assert [each for each in upstream.received if each["method"] == "tools/call"] == []

    between(use, hooked(BeforeTool=lambda _: {"continue": False, "stopReason": "enough"}))


def test_pinned_tools_over_http(world: CliProject) -> None:
    async def use(post: Post, upstream: Upstream) -> None:
        assert "is new, so it was not called" in (await post(call("add"))).text
        assert [each["method"] for each in upstream.received] == ["tools/list"], "the proxy asks itself"
        assert (await post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).json()["result"]["tools"] == []

    async def approve(post: Post, _: Upstream) -> None:
        await post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        await post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        pins = McpPins(world.root, "shop")
        offered = pins.offered()
        assert isinstance(offered, dict)
        pins.approve(offered)

    async def use_approved(post: Post, _: Upstream) -> None:
        await post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        answers.append((await post(call("add"), **{"mcp-session-id": "s-1"})).text)

    answers: list[str] = []
    with world.inside():
        between(use, hooked(), pins=McpPins(world.root, "shop", "https://shop.example"))
        between(approve, hooked(), pins=McpPins(world.root, "shop", "https://shop.example"))
        between(use_approved, hooked(), pins=McpPins(world.root, "shop", "https://shop.example"))
        between(use_approved, hooked(), pins=McpPins(world.root, "shop", "https://other.example"))
    assert "secret" in answers[0]
    assert "a server whose name or address has changed" in answers[1]


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"host": ""}], ids=str
)
def test_requests_of_other_sites_are_refused(headers: dict[str, str]) -> None:
    async def use(post: Post, upstream: Upstream) -> None:
        assert (await post(call("add"), **headers)).status_code == 403
        assert upstream.received == []

    between(use, hooked())


def test_an_answer_that_is_too_large_to_be_checked_is_not_passed_on() -> None:
    async def use(post: Post, _: Upstream) -> None:
        answer = await post(call("huge"))
        assert answer.status_code == 502
        assert "a message is too large to be checked" in answer.text
        assert (await post(call("add"))).status_code == 200

    between(use, hooked(BeforeTool=before))


def test_a_server_that_cannot_be_reached(world: CliProject) -> None:
    async def run() -> None:
        async with (
            proxy("http://127.0.0.1:9/mcp", GuardedServer(hooked())) as address,
            httpx.AsyncClient(timeout=DEADLINE) as client,
        ):
            answer = await client.post(address, json=call("add"))
            assert answer.status_code == 502
            assert "cannot reach the MCP server" in answer.text

    asyncio.run(run())
    for options in (
        ("--http", "127.0.0.1:0"),
        ("--http", "127.0.0.1:0", "--upstream", "http://a/mcp", "--", "cat"),
        ("--upstream", "http://a/mcp"),
        ("--http", "1", "--upstream", "http://a"),
    ):
        assert world.run("mcp-proxy", *options).status == 64
    insecure = world.run("mcp-proxy", "--http", "127.0.0.1:0", "--upstream", "http://shop.example/mcp")
    assert insecure.status == 64
    assert "is not encrypted" in insecure.stderr
