"""Hooks of type ``http``, with a real server (D-44)."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from llxprt_hooks import Config, Hooks, fire_before_tool_hook
from llxprt_hooks.core.executors import http as http_module
from llxprt_hooks.core.executors.command import CommandExecutor, CommandSpec
from llxprt_hooks.core.executors.http import HttpExecutor, HttpSpec
from llxprt_hooks.settings.definitions import read_hook
from tests.support.http_server import Answer, HookServer, Received, hook_server
from tests.support.processes import DEADLINE, eventually
from tests.support.replies import fired
from tests.support.stream_server import stream_server


@pytest.fixture
def server() -> Iterator[HookServer]:
    with hook_server() as server:
        yield server


def config_of(url: str, output_limit: int = 10 * 1024 * 1024, **fields: Any) -> Config:
    hook = {"type": "http", "url": url, **fields}
    return Config(enable_hooks=True, output_limit=output_limit, hooks={"BeforeTool": [{"hooks": [hook]}]})


async def failure(config: Config) -> str:
    """Why the hook failed; it has had no other effect."""
    result = await fired(config)
    assert result.final_output is None
    [error] = result.errors
    return str(error)


async def test_the_payload_is_posted_and_the_answer_is_the_output(server: HookServer) -> None:
    server.answer = Answer({"decision": "deny", "reason": "not on Fridays"})

    output = await fire_before_tool_hook(config_of(server.url), "write_file", {"file_path": "ä"})

    assert output is not None
    assert output.is_blocking_decision()
    assert output.get_effective_reason() == "not on Fridays"
    [request] = server.received
    assert request.path == "/policy"
    assert request.headers["content-type"] == "application/json"
    assert request.payload["tool_input"] == {"file_path": "ä"}
    assert request.payload["hook_event_name"] == "BeforeTool"


@pytest.mark.parametrize("status", [200, 204])
async def test_an_empty_answer_is_not_a_decision(server: HookServer, status: int) -> None:
    server.answer = Answer(status=status)

    result = await fired(config_of(server.url))

    assert (result.success, result.final_output) == (True, None)


@pytest.mark.parametrize("closed", [False, True])
async def test_a_decision_that_occurs_twice_does_not_count_for_a_hook_that_fails_closed(
    server: HookServer, closed: bool
) -> None:
    server.answer = Answer('{"decision": "deny", "decision": "allow"}')

    result = await fired(config_of(server.url, failClosed=closed))

    assert result.final_output is not None
    assert result.final_output.is_blocking_decision() is closed
    assert not closed or "`decision` occurs twice in one object" in result.final_output.get_effective_reason()


async def test_other_text_is_a_message(server: HookServer) -> None:
    server.answer = Answer("be careful")

    result = await fired(config_of(server.url))

    assert result.success
    assert result.final_output is not None
    assert result.final_output.system_message == "be careful"


@pytest.mark.parametrize(
    ("status", "words"), [(500, "500 (Internal Server Error)"), (404, "404 (Not Found)"), (599, "status 599")]
)
async def test_any_other_status_is_a_failure(server: HookServer, status: int, words: str) -> None:
    server.answer = Answer({"decision": "deny"}, status=status)

    assert words in await failure(config_of(server.url))


async def test_redirects_are_not_followed(server: HookServer) -> None:
    server.answer = Answer(status=307, headers={"location": server.url.replace("policy", "elsewhere")})

    assert "redirects are not followed" in await failure(config_of(server.url))
    assert [request.path for request in server.received] == ["/policy"]


async def test_a_server_that_is_not_running_is_a_failure() -> None:
    with hook_server() as server:
        url = server.url

    assert "got no answer" in await failure(config_of(url))


async def test_an_answer_that_ends_early_is_a_failure(server: HookServer) -> None:
    server.answer = Answer("{", declared_length=100, headers={"connection": "close"})

    assert "got no answer" in await failure(config_of(server.url, timeout=5000))


async def test_a_timeout_ends_the_request(server: HookServer) -> None:
    server.answer = Answer(delay=30)

    timeout = 25
    while not server.received:  # a busy machine needs more time to send it
        timeout *= 2
        assert f"timed out after {timeout} ms" in await failure(config_of(server.url, timeout=timeout))
    assert await asyncio.to_thread(server.disconnected.wait, DEADLINE)


async def test_a_cancelled_call_ends_the_request(server: HookServer) -> None:
    server.answer = Answer(delay=30)
    call = asyncio.create_task(fire_before_tool_hook(config_of(server.url), "write_file", {}))
    await eventually(lambda: bool(server.received))

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(server.disconnected.wait, DEADLINE)


async def test_more_than_the_limit_is_a_failure(server: HookServer) -> None:
    server.answer = Answer(b"x" * 5000)

    assert "more than the limit of 4096 bytes" in await failure(config_of(server.url, output_limit=4096))


async def test_the_limit_counts_before_the_answer_ends(server: HookServer) -> None:
    server.answer = Answer(b"x" * 5000, declared_length=10**9)

    assert "more than the limit of 4096 bytes" in await failure(config_of(server.url, output_limit=4096))


async def test_a_compressed_answer_is_a_failure(server: HookServer) -> None:
    server.answer = Answer(b"\x1f\x8b", headers={"content-encoding": "gzip"})

    assert "compressed" in await failure(config_of(server.url))
    assert server.received[0].headers["accept-encoding"] == "identity"


async def test_connections_are_reused(server: HookServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "_KEEP_SECONDS", DEADLINE)

    for _ in range(3):
        await fired(config_of(server.url))

    assert len({request.port for request in server.received}) == 1


@pytest.mark.slow
async def test_no_more_requests_run_at_once_than_processes_would(server: HookServer) -> None:
    held = threading.Event()

    def answer(_: Received) -> Answer:
        held.wait(DEADLINE)
        return Answer()

    server.answer = answer
    config = config_of(server.url)
    calls = asyncio.gather(*(fired(config) for _ in range(80)))
    await eventually(lambda: len(server.received) >= 64)
    await asyncio.sleep(0.1)
    at_once = len(server.received)
    held.set()

    assert all(result.success for result in await calls)
    assert (at_once, len(server.received)) == (64, 80)


@pytest.mark.slow
def test_connections_end_with_their_loop(server: HookServer) -> None:
    for _ in range(2):
        asyncio.run(fired(config_of(server.url)))
        gc.collect()  # a socket that nobody closed would be reported here

    assert len({request.port for request in server.received}) == 2


def test_synchronous_programs_can_use_it(server: HookServer) -> None:
    server.answer = Answer({"decision": "deny", "reason": "no"})
    hooks = Hooks(config_of(server.url))

    results = [hooks.sync.run_tool("write_file", {}, lambda _: "RAN") for _ in range(2)]

    assert ["RAN" in str(result.llm_content) for result in results] == [False, False]
    assert len({request.port for request in server.received}) == 1


def test_it_works_where_nothing_may_block_the_loop(server: HookServer) -> None:
    server.answer = Answer({"decision": "deny", "reason": "no"})

    with blockbuster_ctx():
        result = asyncio.run(fired(config_of(server.url)))

    assert result.errors == []
    assert result.final_output is not None


@pytest.mark.parametrize("written", ["Bearer $HTTP_TOKEN", "Bearer ${HTTP_TOKEN}"])
async def test_listed_variables_are_expanded_in_headers(
    server: HookServer, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("HTTP_TOKEN", "t0ken")
    monkeypatch.setenv("HTTP_OTHER", "other")
    headers = {"Authorization": written, "X-Other": "$HTTP_OTHER costs 5$", "User-Agent": "mine"}

    await fired(config_of(server.url, headers=headers, allowedEnvVars=["HTTP_TOKEN"]))

    sent = server.received[0].headers
    assert sent["authorization"] == "Bearer t0ken"
    assert sent["x-other"] == "$HTTP_OTHER costs 5$"
    assert sent["user-agent"] == "mine"


async def test_without_a_listed_variable_nothing_is_sent(server: HookServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTP_TOKEN", raising=False)
    config = config_of(server.url, headers={"A": "$HTTP_TOKEN"}, allowedEnvVars=["HTTP_TOKEN"])

    assert "`A` needs the variable HTTP_TOKEN, which is not set" in await failure(config)
    assert server.received == []


async def test_a_header_cannot_add_another_one(server: HookServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_TOKEN", "s3cret\r\nX-Admin: yes")
    error = await failure(config_of(server.url, headers={"A": "$HTTP_TOKEN"}, allowedEnvVars=["HTTP_TOKEN"]))

    assert "`A`" in error
    assert "s3cret" not in error
    assert server.received == []


@pytest.mark.parametrize("token", ["s3cret ", " \ts3cret", "s3cret\t"])
async def test_spaces_around_a_value_are_not_sent(
    server: HookServer, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HTTP_TOKEN", token)

    await fired(config_of(server.url, headers={"x-token": "$HTTP_TOKEN"}, allowedEnvVars=["HTTP_TOKEN"]))

    assert server.received[0].headers["x-token"] == "s3cret"


async def test_an_error_of_the_protocol_quotes_no_header() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        token = next(line for line in request.splitlines() if line.startswith(b"x-token"))
        writer.write(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % token.replace(b":", b" "))
        writer.close()

    async with stream_server(echo) as port:
        error = await failure(config_of(f"http://127.0.0.1:{port}/", headers={"x-token": "s3cret"}))

    assert "not valid HTTP" in error
    assert "s3cret" not in error


async def test_no_proxy_of_the_environment_gets_the_request(
    server: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    assert (await fired(config_of(server.url))).success


async def test_cookies_are_not_kept(server: HookServer) -> None:
    server.answer = Answer(headers={"set-cookie": "a=1"})

    for _ in range(2):
        await fired(config_of(server.url))

    assert "cookie" not in server.received[1].headers


URLS = {
    "another machine without encryption": ("http://192.0.2.1/", "not encrypted"),
    "a name without encryption": ("http://policy.example.com/", "not encrypted"),
    "a name that begins like this machine": ("http://localhost.example.com/", "not encrypted"),
    "all addresses": ("http://0.0.0.0/", "not encrypted"),
    "a password": ("https://me:s3cret@policy.example.com/", "put them in a header"),
    "another scheme": ("ftp://example.com/", "not a valid URL"),
    "no scheme": ("policy.example.com/v1", "not a valid URL"),
    "no host": ("https:///v1", "not a valid URL"),
    "a space": ("https://example.com/a b", "not a valid URL"),
    "a host that would be hidden": ("https://evil.example.com/@policy.example.com", "put them in a header"),
    "a backslash": ("http://127.0.0.1\\@192.0.2.1/", "not a valid URL"),
    "a bad port": ("https://example.com:99999/", "not a valid URL"),
    "a bad address": ("https://[::1/", "not a valid URL"),
}


@pytest.mark.parametrize(("url", "words"), URLS.values(), ids=URLS)
async def test_nothing_is_sent_to_a_url_that_is_not_safe(url: str, words: str) -> None:
    error = await failure(config_of(url))
    [problem] = HttpExecutor().problems(HttpSpec(url), {})

    assert problem.discards
    assert words in problem.message
    assert words in error
    assert "s3cret" not in error


@pytest.mark.parametrize("url", ["http://localhost:1/", "http://127.9.9.9:1/", "http://[::1]:1/", "https://a.b/"])
def test_this_machine_and_encrypted_urls_are_safe(url: str) -> None:
    assert list(HttpExecutor().problems(HttpSpec(url), {})) == []


def test_variables_that_are_not_listed_or_not_set_are_found() -> None:
    headers = (("A", "$LISTED $OTHER"), ("B", "${MISSING}"))
    spec = HttpSpec("https://a.b/", headers, frozenset({"LISTED", "MISSING"}))

    other, missing = HttpExecutor().problems(spec, {"LISTED": "x", "OTHER": "y"})

    assert (other.key, other.discards) == ("headers", False)
    assert "$OTHER, which `allowedEnvVars` does not list" in other.message
    assert "$MISSING, which is not set" in missing.message


@contextmanager
def server_of_another_user(address: str = "127.0.0.1") -> Iterator[tuple[str, Callable[[], int]]]:
    """A URL where another user of this machine answers, and a function that waits for how many bytes they were sent."""
    code = STRANGER_CODE.replace("ADDRESS", repr(address))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout
        try:
            port = int(output.readline())
            host = f"[{address}]" if ":" in address else "localhost" if address == "0.0.0.0" else address
            yield f"http://{host}:{port}/v1/events", lambda: int(output.readline())
        finally:
            process.kill()


STRANGER_CODE = """
import os, socket
os.setuid(54321)
address = ADDRESS
listener = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
print(listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    received = connection.recv(65536)
    print(len(received), flush=True)
    if received:
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
"""


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/net/tcp").exists(), reason="only root can be another user, only Linux tells"
)


@needs_root
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
async def test_nothing_is_sent_to_another_user_of_this_machine(address: str) -> None:
    """They could have taken the port of a worker that is down: they would read the token, and allow everything."""
    if ":" in address and not Path("/proc/net/tcp6").exists():
        pytest.skip("this machine has no IPv6")
    with server_of_another_user(address) as (url, received):
        url = url.replace("[::]", "[::1]")
        guard = config_of(url, headers={"Authorization": "Bearer t0ken"}, failClosed=True)
        output = await fire_before_tool_hook(guard, "write_file", {})
        assert output is not None
        assert output.is_blocking_decision()
        assert "of this machine belongs to another user (id 54321)" in (output.reason or "")
        assert received() == 0
        probe = await HttpExecutor().probe(HttpSpec(url), "/")
        assert probe is not None
        assert not probe.reached
        assert "belongs to another user (id 54321)" in probe.what
        assert received() == 0


async def test_a_probe_opens_a_connection_and_sends_nothing() -> None:
    received: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            received.append(await reader.read())
        writer.close()

    async with stream_server(note) as port:
        probe = await HttpExecutor().probe(HttpSpec(f"http://127.0.0.1:{port}/v1/events"), "/")
        assert probe is not None
        assert probe.reached, probe.what
    assert b"".join(received) == b""


async def test_a_probe_says_why_nothing_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.read(4096):
                pass
        writer.close()

    async with stream_server(keep_silent) as port:
        monkeypatch.setattr(http_module, "PROBE_SECONDS", 0.01)
        silent = await HttpExecutor().probe(HttpSpec(f"https://127.0.0.1:{port}/"), "/")
    monkeypatch.undo()
    closed = await HttpExecutor().probe(HttpSpec(f"http://127.0.0.1:{port}/"), "/")

    assert silent is not None
    assert (silent.reached, "was not opened in 0.01 s" in silent.what) == (False, True), silent.what
    assert closed is not None
    assert (closed.reached, "could not be opened" in closed.what) == (False, True), closed.what


async def test_nobody_is_asked_for_a_hook_that_is_never_sent_or_that_runs_here() -> None:
    insecure = HttpSpec("http://policy.example/events")

    assert await HttpExecutor().probe(insecure, "/") is None
    assert await CommandExecutor().probe(CommandSpec("true"), "/") is None
    assert HttpExecutor().warmed(insecure) is insecure


@needs_root
async def test_another_user_of_this_machine_can_be_allowed() -> None:
    """Their connection is not used for hooks that do not allow it."""
    with server_of_another_user() as (url, received):
        assert (await fired(config_of(url, allowInsecure=True))).errors == []
        assert received() > 0
        assert "belongs to another user" in await failure(config_of(url))


def test_insecure_urls_can_be_allowed() -> None:
    assert list(HttpExecutor().problems(HttpSpec("http://192.0.2.1/", allow_insecure=True), {})) == []


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"A": 7}, "`A` must be a string"),
        ({"A b": "x"}, "`A b` is not the name of a header"),
        ({"Content-Length": "x"}, "belongs to the connection"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, Any], words: str) -> None:
    config, [problem] = read_hook({"type": "http", "url": "https://a.b/", "headers": headers})

    assert config is None
    assert words in problem.message


def test_a_secret_of_the_wrong_type_is_not_shown() -> None:
    _, [problem] = read_hook({"type": "http", "url": "https://a.b/", "headers": "s3cret"})

    assert problem.message.startswith("`headers` is ignored")
    assert "s3cret" not in problem.message


def test_hooks_with_other_headers_are_other_hooks() -> None:
    executor = HttpExecutor()
    one, other, none = (HttpSpec("https://a.b/", headers) for headers in ((("a", "1"),), (("a", "2"),), ()))

    assert len({executor.key(one), executor.key(other), executor.key(none)}) == 3


async def test_no_log_shows_the_value_of_a_header(
    server: HookServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_TOKEN", "v4lue")
    headers = {"Authorization": "s3cret $HTTP_TOKEN"}
    config = config_of(server.url, headers=headers, allowedEnvVars=["HTTP_TOKEN"])
    server.answer = Answer(status=500)

    for name in ("", "llxprt:core:hooks:handler", "llxprt:core:hooks:runner"):
        caplog.set_level(logging.DEBUG, name)
    result = await fired(config)

    assert server.received[0].headers["authorization"] == "s3cret v4lue"
    shown = [caplog.text, repr(result), *(repr(record.__dict__) for record in caplog.records)]
    assert "got status 500" in caplog.text
    assert not any(secret in text for secret in ("s3cret", "v4lue") for text in shown)


def test_without_httpx_the_hook_fails_and_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("certifi", "httpx"):
        monkeypatch.setitem(sys.modules, package, None)

    error = asyncio.run(failure(config_of("http://127.0.0.1:9/")))

    assert "httpx" in error
    assert "run `pip install 'llxprt-hooks[http]'`" in error


@pytest.mark.slow
def test_httpx_is_imported_when_a_hook_needs_it() -> None:
    program = "import sys, llxprt_hooks.core.executors; print('httpx' in sys.modules, 'nats' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False False\n"
