"""The model proxy between a client and an API that both speak bare HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import openai
import pytest

from llxprt_hooks import Config, Hooks, deny, stop
from llxprt_hooks.core.executors.http import is_loopback
from llxprt_hooks.integrations.proxy.model_http import incoming
from llxprt_hooks.integrations.proxy.model_http.app import ModelProxy
from llxprt_hooks.integrations.proxy.model_http.server import RunningProxy, serving
from llxprt_hooks.integrations.proxy.model_http.upstreams import UpstreamError, upstreams
from llxprt_hooks.model import resolve_translator
from tests.support import leaks
from tests.support.processes import DEADLINE, eventually, lives
from tests.support.stream_server import stream_server

if TYPE_CHECKING:
    from tests.support.project import Project

BODY = b'{"model" :"m",  "max_tokens": 5, "messages": [{"role": "user", "content": "h\\u0069"}]}'
ANSWER = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "usage": {}}
MESSAGE = {**ANSWER, "content": [{"type": "text", "text": "hello"}]}


class Upstream:
    """An API that records requests as they are on the wire, and answers with given bytes."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] = self.say(MESSAGE)
        self.url = ""

    @staticmethod
    def say(body: Any, status: str = "200 OK", **headers: str) -> Any:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            given = {"content-type": "application/json", "content-length": str(len(content)), **headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
            writer.write(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + content)

        return answer

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            self.bodies.append(await _body(head, reader))
            await self.answer(reader, writer)
            await writer.drain()
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Upstream]:
        async with stream_server(self._handle) as port:
            self.url = f"http://127.0.0.1:{port}"
            yield self

    def header(self, name: str, number: int = 0) -> str | None:
        lines = self.heads[number].decode().split("\r\n")[1:]
        return next((line.partition(": ")[2] for line in lines if line.lower().startswith(f"{name}:")), None)


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    if b"transfer-encoding: chunked" in head.lower():
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        return body
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return await reader.readexactly(int(lengths[0].partition(b":")[2])) if lengths else b""


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream().running() as upstream:
        yield upstream


class Proxy:
    """A running proxy, and an HTTP client for it."""

    def __init__(self, running: RunningProxy, client: httpx.AsyncClient) -> None:
        self.running = running
        self.client = client
        self.anthropic = running.base_urls["ANTHROPIC_BASE_URL"]
        self.openai = running.base_urls["OPENAI_BASE_URL"]

    async def ask(self, body: Any = BODY, path: str = "/v1/messages", **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(self.anthropic + path, content=content, headers={"x-api-key": "k", **names})


@asynccontextmanager
async def proxied(url: str, hooks: Hooks | None = None, **options: Any) -> AsyncIterator[Proxy]:
    async with (
        serving(ModelProxy(hooks or Hooks(), upstreams([url], {}), **options)) as running,
        httpx.AsyncClient(timeout=DEADLINE, trust_env=False) as client,
    ):
        yield Proxy(running, client)


def prompt(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}], **more}


def text_of(response: httpx.Response) -> str:
    return "".join(block["text"] for block in response.json()["content"])


# What passes.


@pytest.mark.parametrize("event", [None, "SessionStart", "BeforeModel", "AfterModel"])
async def test_a_call_that_hooks_leave_alone_passes_byte_for_byte(upstream: Upstream, event: str | None) -> None:
    hooks, seen = Hooks(), list[Any]()
    if event:
        hooks.on(event, seen.append)
    content = gzip.compress(json.dumps(MESSAGE).encode())
    upstream.answer = upstream.say(content, **{"content-encoding": "gzip", "request-id": "r1"})
    async with (
        proxied(upstream.url, hooks) as proxy,
        proxy.client.stream(
            "POST", f"{proxy.anthropic}/v1/messages?beta=true", content=BODY, headers={"x-api-key": "k"}
        ) as response,
    ):
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
        await hooks.settle()
    assert (response.status_code, raw) == (200, content)
    assert (response.headers["content-encoding"], response.headers["request-id"]) == ("gzip", "r1")
    assert upstream.bodies == [BODY]
    assert upstream.heads[0].startswith(b"POST /v1/messages?beta=true HTTP/1.1\r\n")
    assert upstream.header("x-api-key") == "k"
    assert upstream.header("host") == upstream.url.removeprefix("http://")
    assert len(seen) == (1 if event else 0)


async def test_other_paths_and_errors_pass(upstream: Upstream) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: deny("never"))
    upstream.answer = upstream.say(b"\xff not JSON", "418 I'm a teapot", **{"retry-after": "7"})
    async with proxied(upstream.url, hooks, allowed_paths=["/v1/messages/count_tokens"]) as proxy:
        listed = await proxy.client.get(f"{proxy.openai}/models?after=a%2Fb&x")
        counted = await proxy.ask(b"not JSON either", "/v1/messages/count_tokens")
        deleted = await proxy.client.delete(f"{proxy.openai}/files/f1")
    assert [response.status_code for response in (listed, counted, deleted)] == [418] * 3
    assert (listed.content, listed.headers["retry-after"]) == (b"\xff not JSON", "7")
    lines = [head.partition(b" HTTP")[0] for head in upstream.heads]
    assert lines == [b"GET /v1/models?after=a%2Fb&x", b"POST /v1/messages/count_tokens", b"DELETE /v1/files/f1"]
    assert upstream.bodies == [b"", b"not JSON either", b""]


UNSEEN = (
    *("/conversations", "/conversations/c1/items", "/threads/t1/messages", "/files", "/embeddings", "/completions"),
    *("/responses/compact", "/realtime/client_secrets", "/api/chat", "/models/m:generateContent", "/new?x=1"),
)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "GET", "DELETE", "PROPFIND"])
async def test_a_prompt_does_not_reach_a_path_that_hooks_do_not_see(upstream: Upstream, method: str) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: deny("never"))
    async with proxied(upstream.url, hooks) as proxy:
        for path in UNSEEN:
            response = await proxy.client.request(method, proxy.openai + path, content=b'{"input": "secret"}')
            assert response.status_code == 400
            error = response.json()["error"]
            assert error.keys() == {"type", "message", "param", "code"}
            assert f"model-proxy --allow-path /v1{path.partition('?')[0]}" in error["message"]
    assert upstream.heads == []


@pytest.mark.parametrize("allowed", ["/embeddings", "/v1/embeddings", "/openai/v1/embeddings"])
async def test_a_path_is_allowed_by_name(upstream: Upstream, allowed: str) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: deny("never"))
    async with proxied(upstream.url, hooks, allowed_paths=[allowed, "/v1/messages"]) as proxy:
        paths = ("/embeddings?x=1", "/Embeddings", "/embeddings/", "/%65mbeddings", "/x/%2e%2e/embeddings")
        answers = [await proxy.client.post(proxy.openai + path, content=b"{}") for path in paths]
        called = await proxy.ask()
    assert [answer.status_code for answer in answers] == [200, 400, 400, 400, 400]
    assert text_of(called) == "never"  # hooks see model calls, whatever is allowed
    assert len(upstream.heads) == 1


@pytest.mark.parametrize("event", [None, "AfterModel", "BeforeToolSelection", "observed"])
async def test_other_paths_are_open_without_a_hook_that_can_block_a_prompt(
    upstream: Upstream, event: str | None
) -> None:
    observed = {"type": "command", "command": "true", "mode": "observe"}
    hooks = Hooks(
        Config(enable_hooks=True, hooks={"BeforeModel": [{"hooks": [observed]}]} if event == "observed" else {})
    )
    if event not in (None, "observed"):
        hooks.on(event, lambda payload: None)
    async with proxied(upstream.url, hooks) as proxy:
        assert (await proxy.client.post(f"{proxy.openai}/embeddings", content=b"{}")).status_code == 200
    assert upstream.bodies == [b"{}"]


@pytest.mark.parametrize(
    ("method", "header"),
    [
        ("PUT", {}),
        ("PATCH", {}),
        ("GET", {}),
        ("PUT", {"x-http-method-override": "POST"}),
        ("GET", {"X-HTTP-Method": "POST"}),
        ("DELETE", {"x-method-override": "POST"}),
    ],
)
async def test_a_model_call_is_one_whatever_its_method(upstream: Upstream, method: str, header: dict[str, str]) -> None:
    """Lenient gateways take the method from a header, or do not look at it."""
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: deny("not today"))
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.client.request(method, f"{proxy.anthropic}/v1/messages", content=BODY, headers=header)
    assert text_of(response) == "not today"
    assert upstream.heads == []


@pytest.mark.parametrize("event", [None, "BeforeModel"])
async def test_a_stream_passes_as_it_arrives(upstream: Upstream, event: str | None) -> None:
    hooks, seen = Hooks(), asyncio.Event()
    if event:
        hooks.on(event, lambda payload: None)

    async def answer(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"6\r\nfirst \r\n")
        await seen.wait()
        writer.write(b"6\r\nsecond\r\n0\r\n\r\n")

    upstream.answer = answer
    async with proxied(upstream.url, hooks) as proxy:
        body = prompt("hi", stream=True)
        async with proxy.client.stream("POST", f"{proxy.anthropic}/v1/messages", json=body) as response:
            chunks = response.aiter_raw()
            assert await anext(chunks) == b"first "
            seen.set()
            assert [chunk async for chunk in chunks] == [b"second"]
            assert response.headers["content-type"] == "text/event-stream"


async def test_a_body_is_sent_as_it_arrives(upstream: Upstream) -> None:
    arrived, answered = asyncio.Event(), upstream.answer

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answered(reader, writer)

    async def body() -> AsyncIterator[bytes]:
        yield b"first "
        await eventually(lambda: bool(upstream.heads))  # the request is sent before its body is complete
        arrived.set()
        yield b"second"

    upstream.answer = answer
    async with proxied(upstream.url) as proxy:
        response = await proxy.client.post(f"{proxy.openai}/files", content=body())
    assert response.status_code == 200
    assert arrived.is_set()
    assert upstream.bodies == [b"first second"]


async def test_a_stream_that_breaks_is_broken_for_the_client(upstream: Upstream) -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")

    upstream.answer = answer
    async with proxied(upstream.url) as proxy:
        with pytest.raises(httpx.RemoteProtocolError):
            await proxy.ask()


async def test_an_incomplete_answer_is_not_shown_if_a_hook_would_see_it(upstream: Upstream) -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None)
    upstream.answer = upstream.say(b'{"id": "msg')
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.ask()
    assert response.status_code == 502
    assert "ended before it was complete" in response.json()["error"]["message"]


async def test_an_answer_that_hooks_cannot_be_shown_is_an_error(upstream: Upstream) -> None:
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None)
    upstream.answer = upstream.say({"unexpected": True})
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.ask()
    assert response.status_code == 502
    assert "unexpected" in response.json()["error"]["message"]


async def test_answers_that_hooks_see_are_asked_for_in_a_form_that_can_be_read(upstream: Upstream) -> None:
    """A client may accept compression that this program cannot read."""
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: None)
    async with proxied(upstream.url, hooks) as proxy:
        await proxy.ask(accept_encoding="br, zstd, gzip")
        await proxy.ask(accept_encoding="br")
        await proxy.ask(path="/v1/complete", accept_encoding="br")
    assert [upstream.header("accept-encoding", n) for n in range(3)] == ["gzip", "identity", "br"]


@pytest.mark.parametrize(
    ("event", "content", "headers"),
    [
        ("AfterModel", b"not gzip", {"content-encoding": "gzip"}),
        ("AfterModel", b"[" * 100_000 + b"]" * 100_000, {}),
        ("BeforeToolSelection", b'{"error": "busy"}', {}),
        ("BeforeToolSelection", b'{"type": "message", "content": null}', {}),
        ("BeforeToolSelection", b"[]", {}),
    ],
)
async def test_an_answer_that_cannot_be_read_is_an_error_of_the_api(
    upstream: Upstream, event: str, content: bytes, headers: dict[str, str]
) -> None:
    hooks = Hooks()
    hooks.on(event, lambda payload: {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}})
    upstream.answer = upstream.say(content, **headers)
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.ask(prompt("hi", tools=[{"name": "one", "input_schema": {}}]))
    assert response.status_code == 502
    assert response.json()["error"]["type"] == "api_error"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/models"])
async def test_a_chunked_body_is_sent_whole_whatever_length_is_declared(upstream: Upstream, path: str) -> None:
    hooks = Hooks()
    hooks.on("BeforeToolSelection", lambda payload: None)
    async with proxied(upstream.url, hooks) as proxy:
        port = httpx.URL(proxy.anthropic).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /anthropic{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 3\r\n"
        chunk = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n"
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode() + chunk)
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
    assert upstream.bodies == [BODY]


# What hooks do.


async def test_a_compressed_request_is_shown_to_hooks(upstream: Upstream) -> None:
    hooks, seen = Hooks(), list[Any]()
    hooks.on("BeforeModel", seen.append)
    content = gzip.compress(BODY)
    async with proxied(upstream.url, hooks) as proxy:
        await proxy.ask(content, content_encoding="gzip")
    assert seen[0]["llm_request"]["messages"] == [{"role": "user", "content": "hi"}]
    assert upstream.bodies == [content]


@pytest.mark.parametrize("body", [b"not JSON", b"[]", b'{"prompt": "hi"}', b"[" * 100_000])
@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel"])
async def test_a_request_that_hooks_cannot_be_shown_is_not_sent(upstream: Upstream, event: str, body: bytes) -> None:
    hooks = Hooks()
    hooks.on(event, lambda payload: None)
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.ask(body)
        unreadable = await proxy.ask(b"\x28\xb5\x2f\xfd", content_encoding="zstd")
    assert (response.status_code, unreadable.status_code) == (400, 400)
    error = response.json()
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
    assert "was not sent" in error["error"]["message"]
    assert upstream.heads == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [{"role": "user", "content": "secret"}], "messages": [{"role": "user", "content": "hi"}]}',
        b'{"messages": [{"role": "user", "content": "hi"}], "Messages": [{"role": "user", "content": "secret"}]}',
        b'{"messages": [{"role": "user", "content": "secret", "content": "hi"}]}',
        b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "Text": "secret"}]}]}',
        '{"messages": [{"role": "user", "content": "secret", "content": "hi"}]}'.encode("utf-16"),
    ],
)
async def test_a_request_that_servers_read_differently_is_not_sent(upstream: Upstream, body: bytes) -> None:
    """Some take the first of two fields, some the last, and some ignore case."""
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: deny("no") if "secret" in str(payload) else None)
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.ask(body)
    assert response.status_code == 400
    assert "servers differ in which one they read" in response.json()["error"]["message"]
    assert upstream.heads == []


async def test_arguments_and_schemas_of_tools_may_differ_in_case_only(upstream: Upstream) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: None)
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "ID": {"type": "string"}}}
    request = {**json.loads(BODY), "tools": [{"name": "t", "input_schema": schema}]}
    async with proxied(upstream.url, hooks) as proxy:
        await proxy.ask(json.dumps(request).encode())
    assert len(upstream.bodies) == 1


@pytest.mark.parametrize("event", [None, "SessionStart"])
async def test_without_hooks_for_the_model_any_body_passes(upstream: Upstream, event: str | None) -> None:
    hooks = Hooks()
    if event:
        hooks.on(event, lambda payload: None)
    async with proxied(upstream.url, hooks) as proxy:
        assert (await proxy.ask(b"not JSON")).status_code == 200
    assert upstream.bodies == [b"not JSON"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages/",
        "//v1//messages",
        "/v1/%6dessages",
        "/v1/x/../messages",
        "/v1/./messages",
        "/v1/messages?a=/b",
        "/V1/Messages",
        "/v1%2Fmessages",
        "/v1\\messages",
        "/v1/messages;v=2",
        "/v1/messages%3Fa",
        "/v1/messages%00",
        "/v1/messages%20",
        "/v1/messages/%2e",
        "/v1/messages/x/%2E%2e",
        "/v1/%256dessages",
        "/v1/%25252525256dessages",
        "/v1%252Fmessages%253Fa",
        "/v1/x/%252e%252e/messages",
    ],
)
async def test_no_spelling_of_a_path_avoids_the_hooks(upstream: Upstream, path: str) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: deny("not today"))
    async with proxied(upstream.url, hooks) as proxy:
        port = httpx.URL(proxy.anthropic).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /anthropic{path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n"
        writer.write(f"{head}content-length: {len(BODY)}\r\n\r\n".encode() + BODY)
        answer = await reader.read()
        writer.close()
    assert b"not today" in answer
    assert upstream.heads == []


async def test_a_path_with_endless_escapes_is_refused(upstream: Upstream) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: deny("not today"))
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.ask(path=f"/v1/%{'25' * 20}6dessages")
    assert (response.status_code, upstream.heads) == (400, [])
    assert "escaped many times" in response.json()["error"]["message"]


async def test_only_the_upstream_is_reached(upstream: Upstream) -> None:
    async with proxied(upstream.url) as proxy:
        for target in ("/anthropic//other.example/v1/models", "/anthropic/http://other.example/"):
            port = httpx.URL(proxy.anthropic).port
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
        assert (await proxy.client.get(proxy.anthropic.removesuffix("/anthropic") + "/v1/models")).status_code == 404
        assert (await proxy.client.get(proxy.anthropic + "x/v1/models")).status_code == 404
    assert [upstream.header("host", number) for number in (0, 1)] == [upstream.url.removeprefix("http://")] * 2
    assert len(upstream.heads) == 2


async def test_a_redirect_of_the_upstream_leads_to_the_proxy(upstream: Upstream) -> None:
    hooks, seen = Hooks(), list[Any]()
    hooks.on("AfterModel", lambda payload: seen.append(payload["llm_response"]["text"]))
    answers = [upstream.say(MESSAGE)]

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream.answer = answers.pop()
        location = f"{upstream.url}/v1/messages?again=1"
        await upstream.say(b"", "307 Temporary Redirect", location=location)(reader, writer)

    upstream.answer = redirect
    async with proxied(upstream.url, hooks) as proxy:
        response = await proxy.client.post(f"{proxy.anthropic}/v1/messages", content=BODY, follow_redirects=True)
    assert str(response.url) == f"{proxy.anthropic}/v1/messages?again=1"
    assert (response.json(), seen) == (MESSAGE, ["hello"])
    assert upstream.bodies == [BODY, BODY]


@pytest.mark.parametrize("location", ["https://other.example/v1/messages", "http://[x/", "//other.example/"])
async def test_a_model_call_is_not_redirected_past_the_proxy(upstream: Upstream, location: str) -> None:
    hooks = Hooks()
    upstream.answer = upstream.say(b"", "307 Temporary Redirect", location=location)
    async with proxied(upstream.url, hooks) as proxy:
        passed = await proxy.ask()
        hooks.on("BeforeModel", lambda payload: None)
        refused = await proxy.ask()
    assert (passed.status_code, passed.headers["location"]) == (307, location)
    assert (refused.status_code, "location" in refused.headers) == (502, False)
    assert "redirects to another server" in refused.text


@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate"])
async def test_a_request_that_is_too_large_for_hooks_is_not_sent(
    upstream: Upstream, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "MAX_REQUEST", 1024**2)
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: None)
    compress: Any = {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]
    async with proxied(upstream.url, hooks) as proxy:
        small = await proxy.ask(compress(json.dumps(prompt("a" * 1_000_000)).encode()), content_encoding=encoding)
        large = await proxy.ask(compress(json.dumps(prompt("a" * 1_100_000)).encode()), content_encoding=encoding)
    assert (small.status_code, large.status_code, len(upstream.heads)) == (200, 400, 1)
    assert "more than 1 MiB was not sent" in large.text


# Who may use it.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:80"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": ""}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "192.0.2.7"}, 403),
        ({"host": "localhost"}, 200),
        ({"host": "LOCALHOST:1"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
    ],
)
async def test_pages_of_other_sites_are_refused(upstream: Upstream, headers: dict[str, str], status: int) -> None:
    async with proxied(upstream.url) as proxy:
        response = await proxy.client.post(f"{proxy.anthropic}/v1/messages", content=BODY, headers=headers)
    assert response.status_code == status
    assert len(upstream.heads) == (1 if status == 200 else 0)


async def test_other_machines_use_an_address_or_an_allowed_name(upstream: Upstream) -> None:
    chosen = upstreams([upstream.url], {})
    async with (
        serving(ModelProxy(Hooks(), chosen, host="0.0.0.0", allowed_hosts=["Docker.internal"])) as running,
        httpx.AsyncClient(timeout=DEADLINE, trust_env=False) as client,
    ):
        url = running.base_urls["ANTHROPIC_BASE_URL"]
        assert url.startswith("http://127.0.0.1:")
        hosts = {"192.0.2.7": 200, "docker.internal:8790": 200, "evil.example": 403}
        for host, status in hosts.items():
            response = await client.post(f"{url}/v1/messages", content=BODY, headers={"host": host})
            assert response.status_code == status, host


async def test_a_page_at_another_address_is_refused(upstream: Upstream) -> None:
    async with (
        serving(ModelProxy(Hooks(), upstreams([upstream.url], {}), host="0.0.0.0")) as running,
        httpx.AsyncClient(timeout=DEADLINE, trust_env=False) as client,
    ):
        url = running.base_urls["ANTHROPIC_BASE_URL"]
        origins = {"http://192.0.2.7:3000": 200, "http://localhost": 200, "http://198.51.100.1": 403}
        for origin, status in origins.items():
            response = await client.get(f"{url}/v1/models", headers={"host": "192.0.2.7:8790", "origin": origin})
            assert response.status_code == status, origin


def test_what_is_this_machine() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost")] == [True] * 5
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.0.2.7", "example.com", "")] == [False] * 5


# The client goes away.


async def test_the_call_ends_with_its_client(upstream: Upstream) -> None:
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, _: Any) -> None:
        await reader.read()
        ended.set()

    upstream.answer = answer
    async with proxied(upstream.url) as proxy:
        call = asyncio.ensure_future(proxy.ask())
        await eventually(lambda: bool(upstream.bodies))
        call.cancel()
        await asyncio.wait_for(ended.wait(), 60)


async def test_hooks_end_with_their_client(upstream: Upstream, sandbox: Project) -> None:
    sandbox.configure(BeforeModel=sandbox.endless_hook("endless"))
    sandbox.approve()
    async with proxied(upstream.url, Hooks.load(sandbox.root)) as proxy:
        call = asyncio.ensure_future(proxy.ask())
        pids = await asyncio.to_thread(sandbox.pids, "endless")
        call.cancel()
        await eventually(lambda: not any(map(lives, pids)))
    assert upstream.heads == []


async def test_a_client_that_goes_away_in_the_middle_of_its_body(upstream: Upstream) -> None:
    hooks, seen = Hooks(), list[Any]()
    hooks.on("BeforeModel", seen.append)
    async with proxied(upstream.url, hooks) as proxy:
        port = httpx.URL(proxy.anthropic).port
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /anthropic/v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()
        assert (await proxy.ask()).status_code == 200
    assert len(seen) == 1


# Errors.


async def test_an_upstream_that_cannot_be_reached(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Upstream().running() as gone:
        pass
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: None)
    async with proxied(gone.url, hooks) as proxy:
        message: Any = {"role": "user", "content": "a secret text"}
        messages = anthropic.AsyncAnthropic(api_key="a secret key", base_url=proxy.anthropic, max_retries=0)
        with pytest.raises(anthropic.InternalServerError, match="cannot reach 127") as failed:
            await messages.messages.create(model="m", max_tokens=5, messages=[message])
        assert failed.value.status_code == 502
        chat = openai.AsyncOpenAI(api_key="a secret key", base_url=proxy.openai, max_retries=0)
        with pytest.raises(openai.InternalServerError, match="cannot reach 127"):
            await chat.chat.completions.create(model="m", messages=[message])
        await messages.close()
        await chat.close()
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("llxprt", "uvicorn", "httpx"))]
    assert not [text for text in ours if "secret key" in text]


# Sessions.


async def test_a_session_is_that_of_a_header_or_of_the_user_id_or_of_the_process(upstream: Upstream) -> None:
    hooks, seen, started, ended = Hooks(), list[str](), list[str](), list[str]()
    hooks.on("BeforeModel", lambda payload: seen.append(payload["session_id"]))
    hooks.on("SessionStart", lambda payload: started.append(payload["session_id"]))
    hooks.on("SessionEnd", lambda payload: ended.append(payload["session_id"]))
    uuid = "0c9d1a0e-5b1f-4f7e-9a5e-0a1b2c3d4e5f"
    as_claude = f"user_{'a' * 64}_account__session_{uuid}"
    as_json = json.dumps({"device_id": "d", "account_uuid": "", "session_id": uuid})
    async with proxied(upstream.url, hooks) as proxy:
        await proxy.ask()
        await proxy.ask(prompt("hi", metadata={"user_id": "someone"}))
        await proxy.ask(prompt("hi", metadata={"user_id": as_claude}))
        await proxy.ask(prompt("hi", metadata={"user_id": as_json}))
        await proxy.ask(prompt("hi", metadata={"user_id": 7}))
        await proxy.ask(prompt("hi", metadata={"user_id": "someone"}), x_llxprt_session_id="mine")
        await proxy.ask(x_llxprt_session_id="x" * 1000)
    process = hooks.config.session_id
    assert seen == [process, "someone", uuid, uuid, process, "mine", "x" * 200]
    assert sorted(started) == sorted(ended) == sorted({*seen})
    assert upstream.header("x-llxprt-session-id", 5) is None


async def test_a_stop_holds_until_the_next_prompt(upstream: Upstream) -> None:
    hooks, answers = Hooks(), [stop("enough")]
    hooks.on("AfterModel", lambda payload: answers.pop() if answers else None)
    call = {"type": "tool_use", "id": "call_1", "name": "glob", "input": {}}
    upstream.answer = upstream.say({**ANSWER, "stop_reason": "tool_use", "content": [call]})
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "x"}]}
    after_result = [*prompt("hi")["messages"], {"role": "assistant", "content": [call]}, result]
    async with proxied(upstream.url, hooks) as proxy:
        stopped = await proxy.ask(prompt("hi"))
        assert (text_of(stopped), stopped.json()["stop_reason"]) == ("enough", "end_turn")
        assert text_of(await proxy.ask({**prompt(""), "messages": after_result})) == "enough"
        assert text_of(await proxy.ask({**prompt(""), "messages": []})) == "enough"
        assert len(upstream.heads) == 1
        upstream.answer = upstream.say(MESSAGE)
        reminder = {"role": "system", "content": "It is noon."}
        go_on = {**prompt(""), "messages": [*prompt("go on")["messages"], reminder]}
        assert text_of(await proxy.ask(go_on)) == "hello"
        assert text_of(await proxy.ask({**prompt(""), "messages": after_result})) == "hello"


BUILT_IN: dict[str, str] = {
    # The tool calls that the agent runs, and the types of these tools.
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "new_kind_of_call": "new_kind_of",
}


@pytest.mark.parametrize(("call", "tool"), BUILT_IN.items())
async def test_calls_of_built_in_tools_that_may_not_run_are_text(upstream: Upstream, call: str, tool: str) -> None:
    hooks, allowed = Hooks(), list[str]()
    config = {"mode": "AUTO", "allowedFunctionNames": allowed}
    hooks.on("BeforeToolSelection", lambda payload: {"hookSpecificOutput": {"toolConfig": config}})
    items = [{"type": call, "id": "i", "call_id": "c"}, {"type": "web_search_call", "id": "w"}]
    ran = [{"type": "shell_call", "call_id": "s"}, {"type": "shell_call_output", "call_id": "s"}]
    upstream.answer = upstream.say({"object": "response", "status": "completed", "output": [*items, *ran]})
    request = {"model": "m", "input": "hi", "tools": [{"type": tool}, {"type": "function", "name": "other"}]}
    async with proxied(upstream.url, hooks) as proxy:
        refused = (await proxy.client.post(f"{proxy.openai}/responses", json=request)).json()["output"]
        allowed.append(tool)
        passed = (await proxy.client.post(f"{proxy.openai}/responses", json=request)).json()["output"]
    assert refused[:-1] == [items[1], *ran]
    assert "may not be called now" in refused[-1]["content"][0]["text"]
    assert passed == [*items, *ran]


RESTRICTED = {"toolConfig": {"mode": "NONE"}}


@pytest.mark.parametrize(
    ("event", "output", "status"),
    [
        ("AfterModel", {}, 400),
        ("BeforeToolSelection", RESTRICTED, 400),
        ("BeforeModel", {"llm_request": RESTRICTED}, 400),
        ("BeforeToolSelection", {}, 200),
        ("BeforeModel", {}, 200),
    ],
)
async def test_an_answer_in_the_background_does_not_avoid_the_hooks(
    upstream: Upstream, event: str, output: dict[str, Any], status: int
) -> None:
    hooks = Hooks()
    hooks.on(event, lambda payload: {"hookSpecificOutput": output})
    upstream.answer = upstream.say({"object": "response", "status": "queued", "output": []})
    async with proxied(upstream.url, hooks) as proxy:
        request = {"model": "m", "input": "hi", "background": True, "tools": [{"type": "local_shell"}]}
        response = await proxy.client.post(f"{proxy.openai}/responses", json=request)
    assert (response.status_code, len(upstream.heads)) == (status, 1 if status == 200 else 0)


async def test_an_answer_that_is_not_there_yet_does_not_avoid_a_restriction(upstream: Upstream) -> None:
    hooks = Hooks()
    hooks.on("BeforeModel", lambda payload: {"hookSpecificOutput": {"llm_request": RESTRICTED}})
    upstream.answer = upstream.say({"object": "response", "status": "queued", "output": []})
    async with proxied(upstream.url, hooks) as proxy:
        request = {"model": "m", "input": "hi", "tools": [{"type": "local_shell"}]}
        response = await proxy.client.post(f"{proxy.openai}/responses", json=request)
    assert response.status_code == 502
    assert "in the background" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "event"),
    [
        ("POST", "/openai/v1/batches", "BeforeModel"),
        ("POST", "/anthropic/v1/messages/batches?beta=true", "BeforeModel"),
        ("POST", "/anthropic/v1//Messages/./batches/", "BeforeModel"),
        ("GET", "/anthropic/v1/messages/batches/b_1/results", "AfterModel"),
        ("GET", "/openai/v1/responses/resp_1?stream=true", "AfterModel"),
        ("GET", "/openai/v1/chat/completions/c_1", "AfterModel"),
    ],
)
async def test_no_other_request_brings_prompts_or_answers_past_the_hooks(
    upstream: Upstream, method: str, path: str, event: str
) -> None:
    hooks = Hooks()
    upstream.answer = upstream.say({})
    async with proxied(upstream.url, hooks) as proxy:
        url = proxy.openai.removesuffix("/openai/v1") + path
        assert (await proxy.client.request(method, url, json={})).status_code == 200
        hooks.on(event, lambda payload: None)
        refused = await proxy.client.request(method, url, json={})
    assert (refused.status_code, len(upstream.heads)) == (400, 1)
    assert "hooks could not be shown" in refused.json()["error"]["message"]


# Upstreams.


def test_upstreams() -> None:
    anthropic_api, openai_api = "https://api.anthropic.com", "https://api.openai.com/v1"
    assert upstreams([], {}) == {"anthropic": anthropic_api, "openai": openai_api}
    both = {"anthropic": "http://gateway:4000", "openai": "http://gateway:4000/v1"}
    assert upstreams(["http://gateway:4000/v1/"], {}) == upstreams(["http://gateway:4000"], {}) == both
    assert upstreams(["openai=http://local:1/x/"], {})["openai"] == "http://local:1/x"
    assert upstreams(["http://gateway:4000/"], {"OPENAI_BASE_URL": "http://other"}) == both
    assert upstreams([], {"ANTHROPIC_BASE_URL": "http://other", "OPENAI_BASE_URL": ""})["anthropic"] == "http://other"


@pytest.mark.parametrize(
    "given",
    [
        "gemini=https://x",
        "api.example.com",
        "ftp://x",
        "https://",
        "https://u:p@x",
        "https://x/?k=v",
        "http://[x",
        "x=",
    ],
)
def test_upstreams_that_cannot_be_used(given: str) -> None:
    with pytest.raises(UpstreamError):
        upstreams([given], {})


async def test_an_upstream_cannot_be_the_proxy_itself(upstream: Upstream) -> None:
    async with proxied(upstream.url) as proxy:
        port = httpx.URL(proxy.anthropic).port
    with pytest.raises(UpstreamError, match="this proxy itself"):
        async with serving(ModelProxy(Hooks(), upstreams([f"http://localhost:{port}"], {})), port=port or 0):
            pass
    with pytest.raises(OSError, match="in use"):
        async with (
            proxied(upstream.url) as first,
            serving(ModelProxy(Hooks(), {}), port=httpx.URL(first.openai).port or 0),
        ):
            pass


async def test_the_proxy_ends_while_a_call_is_running(upstream: Upstream) -> None:
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, _: Any) -> None:
        await reader.read()
        ended.set()

    upstream.answer = answer
    async with httpx.AsyncClient(timeout=DEADLINE, trust_env=False) as client:
        async with serving(ModelProxy(Hooks(), upstreams([upstream.url], {}))) as running:
            url = f"{running.base_urls['ANTHROPIC_BASE_URL']}/v1/messages"
            call = asyncio.ensure_future(client.post(url, content=BODY))
            await eventually(lambda: bool(upstream.bodies))
        assert (await call).status_code == 500
    await eventually(lambda: ended.is_set())


# The full view.

PATHS = {"openai-chat": "/chat/completions", "openai-responses": "/responses", "anthropic-messages": "/v1/messages"}


async def send(proxy: Proxy, api: str, body: Any) -> httpx.Response:
    base = proxy.anthropic if api.startswith("anthropic") else proxy.openai
    return await proxy.client.post(base + PATHS[api], json=body, headers={"x-api-key": "k"})


@pytest.mark.parametrize("place", leaks.PLACES)
@pytest.mark.parametrize("api", PATHS)
async def test_a_secret_that_only_the_full_view_shows_is_not_sent(upstream: Upstream, api: str, place: str) -> None:
    upstream.answer = upstream.say(leaks.answer(api))
    hooks = Hooks(Config(profile="full"))
    hooks.on("BeforeModel", leaks.refusing, fail_closed=True)
    async with proxied(upstream.url, hooks) as proxy:
        response = await send(proxy, api, leaks.request(api, place))
    assert upstream.bodies == []
    assert "a secret" in response.text


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", PATHS)
async def test_secrets_are_redacted_on_both_ways(upstream: Upstream, api: str, streamed: bool) -> None:
    translator = resolve_translator(api)
    assert translator.wire is not None
    body = b"".join(translator.wire.write(leaks.answer(api))) if streamed else leaks.answer(api)
    upstream.answer = upstream.say(body, **({"content-type": "text/event-stream"} if streamed else {}))
    hooks = Hooks(Config(profile="full"))
    hooks.on("BeforeModel", leaks.redacting, fail_closed=True)
    hooks.on("AfterModel", leaks.redacting)
    async with proxied(upstream.url, hooks) as proxy:
        for place in ("result", "prompt"):
            response = await send(proxy, api, {**leaks.request(api, place), **({"stream": True} if streamed else {})})
            assert leaks.SECRET not in response.text
            assert "***" in response.text
    assert len(upstream.bodies) == 2
    assert not any(leaks.SECRET.encode() in body for body in upstream.bodies)
