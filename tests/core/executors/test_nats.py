"""Hooks of type ``nats``, with a real server (D-45)."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import uuid
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import nkeys  # type: ignore[import-untyped]
import pytest
from blockbuster import blockbuster_ctx
from nats.aio.client import Client

from llxprt_hooks import Config, HookExecutionResponse, Hooks, encode_message, fire_before_tool_hook
from llxprt_hooks.core.engine.messages import HookExecutionFailure
from llxprt_hooks.core.engine.results import AggregatedHookResult, HookExecutionError
from llxprt_hooks.core.executors import nats as nats_module
from llxprt_hooks.core.executors.nats import NatsExecutor, NatsSpec
from llxprt_hooks.core.protocol.outputs import DefaultHookOutput
from llxprt_hooks.fleet import nats_connection
from llxprt_hooks.fleet.nats_connection import NatsAddress, NatsUnavailableError, nats_client, open_nats_client
from llxprt_hooks.settings.definitions import read_hook
from tests.support.nats_server import NatsServer, listen
from tests.support.processes import DEADLINE, eventually, until
from tests.support.replies import fired
from tests.support.stream_server import stream_server

if TYPE_CHECKING:
    from pathlib import Path

    from nats.aio.msg import Msg

Answer = Callable[[dict[str, Any]], HookExecutionResponse | bytes | None]
DENY = AggregatedHookResult(False, DefaultHookOutput({"decision": "deny", "reason": "not on Fridays"}))

CHECKED = DefaultHookOutput({"decision": "allow", "systemMessage": "checked"})


@pytest.fixture(autouse=True)
def _no_connection_left() -> Iterator[None]:
    """Collect a connection that nats-py was just making when it was closed, and does not close itself."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def subject() -> str:
    return f"test.{uuid.uuid4().hex}"


def config_of(server: NatsServer | str, subject: str, output_limit: int = 10 * 1024 * 1024, **fields: Any) -> Config:
    url = server if isinstance(server, str) else server.url
    hook = {"type": "nats", "servers": [url], "subject": subject, **fields}
    return Config(enable_hooks=True, output_limit=output_limit, hooks={"BeforeTool": [{"hooks": [hook]}]})


async def failure(config: Config, **tool_input: Any) -> str:
    result = await fired(config, **tool_input)
    assert result.final_output is None
    [error] = result.errors
    return str(error)


@asynccontextmanager
async def worker(server: NatsServer, subject: str, answer: Answer) -> AsyncIterator[list[dict[str, Any]]]:
    """Answer the requests on a subject; a request whose answer is None gets none."""
    client, received = Client(), list[dict[str, Any]]()

    async def respond(message: Msg) -> None:
        request = json.loads(message.data)
        received.append(request)
        response = answer(request)
        if response is not None:
            await message.respond(response if isinstance(response, bytes) else encode_message(response))

    await client.connect(server.url, connect_timeout=int(DEADLINE))
    await listen(client, subject, "llxprt-hooks", cb=respond)
    try:
        yield received
    finally:
        await client.close()


def decided(result: AggregatedHookResult = DENY) -> Answer:
    return lambda request: HookExecutionResponse(request["correlationId"], result.success, result)


@pytest.mark.requirement("DELTA-HBUS-001")
async def test_the_event_is_a_request_and_the_final_output_of_the_worker_is_the_hooks(
    nats_server: NatsServer, subject: str
) -> None:
    async with worker(nats_server, subject, decided()) as received:
        output = await fire_before_tool_hook(config_of(nats_server, subject), "write_file", {"file_path": "ä"})

    assert output is not None
    assert output.is_blocking_decision()
    assert output.get_effective_reason() == "not on Fridays"
    [request] = received
    assert request["type"] == "hook-execution-request"
    assert request["eventName"] == "BeforeTool"
    assert request["correlationId"]
    assert request["input"]["tool_input"] == {"file_path": "ä"}
    assert request["input"]["session_id"]


async def test_without_a_decision_of_the_worker_the_hook_has_none(nats_server: NatsServer, subject: str) -> None:
    async with worker(nats_server, subject, decided(AggregatedHookResult(True))):
        result = await fired(config_of(nats_server, subject))

    assert (result.success, result.final_output) == (True, None)


FAILURES: dict[str, tuple[Answer, str]] = {
    "the request was refused": (
        lambda request: HookExecutionResponse(
            request["correlationId"], False, error=HookExecutionFailure("validation", "no such event")
        ),
        "was refused by the worker: no such event",
    ),
    "a hook of the worker failed": (
        decided(AggregatedHookResult(False, errors=[HookExecutionError("hook `x` timed out")])),
        "on the worker, hook `x` timed out",
    ),
    "a hook of the worker failed beside one that allows": (
        decided(AggregatedHookResult(True, CHECKED, errors=[HookExecutionError("hook `x` exited with code 1")])),
        "on the worker, hook `x` exited with code 1",
    ),
    "failed, without a reason": (
        lambda request: HookExecutionResponse(request["correlationId"], False),
        "did not say why",
    ),
    "no hook ran, without a reason": (decided(AggregatedHookResult(False)), "did not say why"),
    "for another request": (lambda _: HookExecutionResponse("another", True, DENY), "the answer to another request"),
    "refused without an id": (
        lambda _: HookExecutionResponse("", False, error=HookExecutionFailure("bad_message", "not JSON")),
        "was refused by the worker: not JSON",
    ),
    "not JSON": (lambda _: b"hello", "not a hook execution response"),
    "another message": (lambda _: b'{"type": "hook-execution-request"}', "not a hook execution response"),
    "no output at all": (lambda _: b'{"type": "hook-execution-response"}', "not a hook execution response"),
}


@pytest.mark.parametrize(("answer", "words"), FAILURES.values(), ids=FAILURES)
async def test_any_other_answer_is_a_failure(nats_server: NatsServer, subject: str, answer: Answer, words: str) -> None:
    async with worker(nats_server, subject, answer):
        assert words in await failure(config_of(nats_server, subject))


@pytest.mark.parametrize("answer", [answer for answer, _ in FAILURES.values()], ids=FAILURES)
async def test_no_answer_but_a_decision_allows_with_fail_closed(
    nats_server: NatsServer, subject: str, answer: Answer
) -> None:
    async with worker(nats_server, subject, answer):
        output = await fire_before_tool_hook(config_of(nats_server, subject, failClosed=True), "write_file", {})

    assert output is not None
    assert output.is_blocking_decision()


def twice(request: dict[str, Any]) -> bytes:
    response = HookExecutionResponse(request["correlationId"], True, AggregatedHookResult(True, CHECKED))
    return encode_message(response).replace(b'"finalOutput":{', b'"finalOutput":{"decision":"deny",')


async def test_a_decision_that_occurs_twice_does_not_count_for_a_hook_that_fails_closed(
    nats_server: NatsServer, subject: str
) -> None:
    async with worker(nats_server, subject, twice):
        closed = await fire_before_tool_hook(config_of(nats_server, subject, failClosed=True), "write_file", {})
        opened = await fire_before_tool_hook(config_of(nats_server, subject), "write_file", {})

    assert closed is not None
    assert "`decision` occurs twice in one object" in closed.get_effective_reason()
    assert opened is None or not opened.is_blocking_decision()


@pytest.mark.parametrize(
    "refusal",
    [
        {"decision": "deny"},
        {"continue": False},
        {"hookSpecificOutput": {"permissionDecision": "deny"}},
    ],
)
async def test_a_refusal_counts_although_another_hook_of_the_worker_failed(
    nats_server: NatsServer, subject: str, refusal: dict[str, Any]
) -> None:
    errors: list[Exception] = [HookExecutionError("hook `x` timed out")]
    answer = decided(AggregatedHookResult(False, DefaultHookOutput(refusal), errors=errors))

    async with worker(nats_server, subject, answer):
        result = await fired(config_of(nats_server, subject))

    assert result.errors == []
    assert result.final_output is not None
    assert result.final_output.is_blocking_decision() or result.final_output.should_stop_execution()


async def test_no_worker_is_a_failure_at_once(nats_server: NatsServer, subject: str) -> None:
    error = await failure(config_of(nats_server, subject, timeout=600_000))

    assert f"no worker listens on `{subject}` at {nats_server.url}" in error


async def test_a_worker_that_does_not_answer_is_a_failure_at_the_timeout(nats_server: NatsServer, subject: str) -> None:
    await nats_client(NatsAddress((nats_server.url,)))  # so that all of the time is left for the answer
    async with worker(nats_server, subject, lambda _: None) as received:
        assert "timed out after 100 ms" in await failure(config_of(nats_server, subject, timeout=100))
        await eventually(lambda: bool(received))

    assert len(received) == 1


@pytest.mark.slow
async def test_with_retry_another_worker_gets_the_request(nats_server: NatsServer, subject: str) -> None:
    requests: list[dict[str, Any]] = []

    def second_time(request: dict[str, Any]) -> HookExecutionResponse | None:
        requests.append(request)
        return HookExecutionResponse(request["correlationId"], True, DENY) if len(requests) >= 2 else None

    async with worker(nats_server, subject, second_time):
        result = await fired(config_of(nats_server, subject, timeout=60_000, retry=119))

    assert result.final_output is not None
    assert requests[0] == requests[1]


@pytest.mark.slow
async def test_the_attempts_share_the_timeout(nats_server: NatsServer, subject: str) -> None:
    async with worker(nats_server, subject, lambda _: None) as received:
        assert "timed out after 300 ms" in await failure(config_of(nats_server, subject, timeout=300, retry=2))
        received.clear()
        call = asyncio.create_task(fired(config_of(nats_server, subject, timeout=600_000, retry=5999)))
        await eventually(lambda: len(received) >= 2)
        call.cancel()


async def test_an_answer_beyond_the_limit_is_a_failure(nats_server: NatsServer, subject: str) -> None:
    async with worker(nats_server, subject, decided()):
        assert "more than the limit of 50 bytes" in await failure(config_of(nats_server, subject, output_limit=50))


async def test_an_event_that_is_too_large_for_the_server_is_a_failure(nats_server: NatsServer, subject: str) -> None:
    async with worker(nats_server, subject, decided()) as received:
        error = await failure(config_of(nats_server, subject), content="x" * 2**20)

    assert "more than NATS allows here (1048576)" in error
    assert received == []


async def test_a_cancelled_call_ends(nats_server: NatsServer, subject: str) -> None:
    async with worker(nats_server, subject, lambda _: None) as received:
        call = asyncio.create_task(fire_before_tool_hook(config_of(nats_server, subject), "write_file", {}))
        await eventually(lambda: bool(received))
        call.cancel()

        with pytest.raises(asyncio.CancelledError):
            await call


async def test_many_calls_at_once_share_one_connection(
    own_nats_server: NatsServer, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_connection, "CONNECT_TIMEOUT", DEADLINE)  # a second attempt would be counted
    config = config_of(own_nats_server, subject)
    async with worker(own_nats_server, subject, decided()) as received:
        results = await asyncio.gather(*(fired(config) for _ in range(200)))

    assert all(result.final_output is not None for result in results)
    assert len({request["correlationId"] for request in received}) == 200
    assert own_nats_server.connections_so_far() == 2  # the worker's and the hooks'


async def test_a_server_that_is_not_running_is_a_failure(subject: str) -> None:
    server = NatsServer()

    assert f"cannot connect to NATS at {server.url}" in await failure(config_of(server, subject))
    server.close()


@pytest.mark.slow
async def test_a_lost_connection_is_reopened(own_nats_server: NatsServer, subject: str) -> None:
    config = config_of(own_nats_server, subject)
    async with worker(own_nats_server, subject, decided()):
        assert (await fired(config)).final_output is not None
        own_nats_server.stop()
        client = await eventually_disconnected(own_nats_server)
        assert "cannot connect to NATS" in await failure(config)
        own_nats_server.start()
        await eventually(lambda: client.is_connected)
    async with worker(own_nats_server, subject, decided()):
        assert (await fired(config)).final_output is not None


@pytest.mark.slow
async def test_a_call_that_waited_for_the_connection_waits_for_the_workers_too(
    own_nats_server: NatsServer, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have lost their connections as well, and may come back later than the agent."""
    config = config_of(own_nats_server, subject)
    assert "no worker listens" in await failure(config)
    own_nats_server.stop()
    client = await eventually_disconnected(own_nats_server)
    monkeypatch.setattr(nats_connection, "CONNECT_TIMEOUT", DEADLINE)
    call = asyncio.create_task(fired(config))
    own_nats_server.start()
    await eventually(lambda: client.is_connected)
    await asyncio.sleep(0.2)  # it is refused meanwhile
    async with worker(own_nats_server, subject, decided()):
        assert (await call).final_output is not None


async def eventually_disconnected(server: NatsServer) -> Client:
    client = (await nats_connection._connections.get(NatsAddress((server.url,)))).client
    await eventually(lambda: not client.is_connected)
    return client


async def test_a_connection_that_the_server_closed_for_good_is_opened_again(
    nats_server: NatsServer, subject: str
) -> None:
    await (await nats_client(NatsAddress((nats_server.url,)))).close()

    async with worker(nats_server, subject, decided()):
        assert (await fired(config_of(nats_server, subject))).final_output is not None


@pytest.mark.slow
def test_connections_end_with_their_loop(
    own_nats_server: NatsServer, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_connection, "CONNECT_TIMEOUT", DEADLINE)
    for _ in range(2):
        asyncio.run(fired(config_of(own_nats_server, subject)))
        gc.collect()  # a socket that nobody closed would be reported here

    assert own_nats_server.connections_so_far() == 2
    until(lambda: own_nats_server.connections_now() == 0)


async def test_a_connection_that_is_being_opened_ends_with_its_loop() -> None:
    """A server that accepts, and says nothing."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with stream_server(silent) as port:
        url = f"nats://127.0.0.1:{port}"
        error = await asyncio.to_thread(asyncio.run, failure(config_of(url, "a", timeout=50)))

    assert "timed out after 50 ms" in error


def test_synchronous_programs_can_use_it(nats_server: NatsServer, subject: str) -> None:
    hooks = Hooks(config_of(nats_server, subject, failClosed=True))

    result = hooks.sync.run_tool("write_file", {}, lambda _: "RAN")

    assert "no worker" in str(result.llm_content)


def test_it_works_where_nothing_may_block_the_loop(nats_server: NatsServer, subject: str) -> None:
    with blockbuster_ctx():
        assert "no worker" in asyncio.run(failure(config_of(nats_server, subject)))


PROBLEMS = {
    "another scheme": ({"servers": ["http://a.b"]}, "expected an address such as"),
    "no scheme": ({"servers": ["a.b:4222"]}, "expected an address such as"),
    "a bad port": ({"servers": ["nats://a.b:99999"]}, "expected an address such as"),
    "a password": ({"servers": ["nats://me:s3cret@a.b"]}, "put credentials in a file"),
    "no server": ({"servers": []}, "`servers` is empty"),
    "a wildcard": ({"servers": ["nats://a.b"], "subject": "a.*"}, "is not a subject"),
    "a space": ({"servers": ["nats://a.b"], "subject": "a b"}, "is not a subject"),
}


@pytest.mark.parametrize(("fields", "words"), PROBLEMS.values(), ids=PROBLEMS)
async def test_what_cannot_work_is_a_failure_and_found_by_validate(fields: dict[str, Any], words: str) -> None:
    hook, problems = read_hook({"type": "nats", **fields})
    assert hook is not None
    assert problems == []

    [problem] = hook.executor.problems(hook.spec, {})
    hooks = {"BeforeTool": [{"hooks": [{"type": "nats", **fields}]}]}
    error = await failure(Config(enable_hooks=True, hooks=hooks))

    assert words in problem.message
    assert words in error
    assert not any("s3cret" in text for text in (error, problem.message, hook.command))


def test_a_valid_hook_has_no_problem_and_says_where_it_asks() -> None:
    spec = NatsSpec(("nats://a.b:4222", "tls://c.d"))

    assert list(NatsExecutor().problems(spec, {})) == []
    assert NatsExecutor().describe(spec) == "llxprt.hooks at nats://a.b:4222, tls://c.d"


def test_a_password_in_an_address_is_not_shown() -> None:
    spec = NatsSpec(("nats://example.org", "nats://me:s3cret@example.com"))

    assert repr(spec) == "NatsSpec('llxprt.hooks', ['nats://example.org', 'nats://…@example.com'])"
    assert NatsExecutor().describe(spec) == "llxprt.hooks at nats://example.org, nats://…@example.com"


def test_hooks_with_other_credentials_are_other_hooks() -> None:
    executor = NatsExecutor()

    assert executor.key(NatsSpec(("a",))) != executor.key(NatsSpec(("a",), credentials="x"))


# Credentials and encryption.


@pytest.fixture
def user(tmp_path: Path) -> tuple[str, Path]:
    """The public key of a user, and the file with the seed of its NKey."""
    pair = nkeys.from_seed(nkeys.encode_seed(uuid.uuid4().bytes + uuid.uuid4().bytes, nkeys.PREFIX_BYTE_USER))
    seed = tmp_path / "user.nk"
    seed.write_bytes(pair.seed + b"\n")
    return pair.public_key.decode(), seed


@pytest.fixture
def guarded_server(tmp_path: Path, user: tuple[str, Path]) -> Iterator[NatsServer]:
    """A server that only the user may connect to."""
    settings = tmp_path / "nats.conf"
    settings.write_text(f"authorization {{ users = [ {{ nkey: {user[0]} }} ] }}")
    with NatsServer("-c", str(settings)).running() as server:
        yield server


async def test_the_seed_of_a_key_is_used(guarded_server: NatsServer, subject: str, user: tuple[str, Path]) -> None:
    assert "no worker" in await failure(config_of(guarded_server, subject, credentials=str(user[1])))


async def test_a_relative_path_is_in_the_project(
    guarded_server: NatsServer, subject: str, user: tuple[str, Path]
) -> None:
    hook = {"type": "nats", "servers": [guarded_server.url], "subject": subject, "credentials": user[1].name}
    config = Config(enable_hooks=True, working_dir=user[1].parent, hooks={"BeforeTool": [{"hooks": [hook]}]})

    assert "no worker" in await failure(config)


async def test_without_credentials_the_server_refuses(guarded_server: NatsServer, subject: str) -> None:
    assert "cannot connect to NATS" in await failure(config_of(guarded_server, subject))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "the credentials for NATS cannot be read"),
        ("s3cret", "contains neither"),
        ("SUs3cret", "cannot connect to NATS"),
        ("-----BEGIN NATS USER JWT-----\nx\n-----BEGIN USER NKEY SEED-----\nx\n", "cannot connect to NATS"),
    ],
)
async def test_other_credentials_are_a_failure(
    guarded_server: NatsServer, subject: str, tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "credentials"
    if text is not None:
        file.write_text(text)

    error = await failure(config_of(guarded_server, subject, credentials=str(file)))

    assert words in error
    assert "s3cret" not in error


@pytest.fixture
def encrypted_server(tmp_path: Path) -> Iterator[tuple[NatsServer, Path]]:
    """A server with TLS, and its certificate."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    with NatsServer("--tls", "--tlscert", str(certificate), "--tlskey", str(key)).running() as server:
        yield server, certificate


async def test_connections_can_be_encrypted(
    encrypted_server: tuple[NatsServer, Path], subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, certificate = encrypted_server
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    assert "no worker" in await failure(config_of(server.url.replace("nats:", "tls:"), subject))


async def test_the_end_of_an_encrypted_connection_is_no_reason_to_warn(
    encrypted_server: tuple[NatsServer, Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, certificate = encrypted_server
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = await open_nats_client(NatsAddress((server.url.replace("nats:", "tls:"),)))

    server.stop()
    await eventually(lambda: not client.is_connected)
    await client.close()

    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_a_certificate_that_is_not_trusted_is_refused(
    encrypted_server: tuple[NatsServer, Path], subject: str
) -> None:
    error = await failure(config_of(encrypted_server[0].url.replace("nats:", "tls:"), subject))

    assert "certificate verify failed" in error


async def test_a_server_without_encryption_is_refused_where_it_is_asked_for(
    nats_server: NatsServer, subject: str
) -> None:
    error = await failure(config_of(nats_server.url.replace("nats:", "tls:"), subject))

    assert "does not offer TLS" in error


@asynccontextmanager
async def stripped_server(port: int = 0) -> AsyncIterator[tuple[int, list[bytes]]]:
    """What an attacker between agent and server would be: it offers no TLS, and keeps all that it is sent."""
    heard: list[bytes] = []
    info = {"server_id": "x", "version": "2.10.0", "max_payload": 2**20, "nonce": "abc", "auth_required": True}

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO %s\r\n" % json.dumps(info).encode())
        async for line in reader:
            heard.append(line)
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        heard.append(b"")  # the end of a connection

    async with stream_server(listen, port=port) as bound:
        yield bound, heard


CREDENTIALS = ["-----BEGIN NATS USER JWT-----\njwt\n-----END-----\n-----BEGIN USER NKEY SEED-----\n", ""]


@pytest.mark.parametrize("before", CREDENTIALS, ids=["creds", "nkey"])
async def test_no_credentials_are_sent_without_encryption(user: tuple[str, Path], before: str) -> None:
    user[1].write_text(before + user[1].read_text())

    async with stripped_server() as (port, heard):
        with pytest.raises(NatsUnavailableError, match="does not offer TLS"):
            await open_nats_client(NatsAddress((f"tls://127.0.0.1:{port}",), str(user[1])))
        await eventually(lambda: len(heard) > 0)

    assert set(heard) == {b""}


@pytest.mark.slow
async def test_no_credentials_are_sent_without_encryption_when_a_connection_comes_back(
    encrypted_server: tuple[NatsServer, Path], user: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, certificate = encrypted_server
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    address = NatsAddress((server.url.replace("nats:", "tls:"),), str(user[1]))
    client = await nats_client(address)

    server.stop()
    async with stripped_server(int(server.url.rpartition(":")[2])) as (_, heard):
        await eventually(lambda: len(heard) > 1)
        with pytest.raises(NatsUnavailableError, match="does not offer TLS"):
            await nats_client(address)
        await client.close()

    assert set(heard) == {b""}


async def test_what_the_client_reports_is_logged_for_debugging_only(
    subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "llxprt:core:hooks:bus"), pytest.raises(NatsUnavailableError):
        await nats_client(NatsAddress(("nats://127.0.0.1:9",)))

    assert {record.levelname for record in caplog.records} == {"DEBUG"}


def test_without_nats_py_the_hook_fails_and_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats.aio.client", None)

    error = asyncio.run(failure(config_of("nats://127.0.0.1:9", "a")))

    assert "pip install 'llxprt-hooks[nats]'" in error


async def test_a_probe_tells_a_worker_from_none(
    nats_server: NatsServer, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[bytes] = []
    client = Client()

    async def respond(message: Msg) -> None:
        received.append(message.data)
        if message.subject == subject:
            await message.respond(b"refused")

    async def probed(subject: str, server: str = nats_server.url) -> tuple[bool, str]:
        probe = await NatsExecutor().probe(NatsSpec((server,), subject), "/")
        assert probe is not None
        return probe.reached, probe.what

    await client.connect(nats_server.url, connect_timeout=int(DEADLINE))
    try:
        await listen(client, subject, cb=respond)
        await listen(client, f"{subject}.silent", cb=respond)
        reached, what = await probed(subject)
        assert reached, what
        reached, what = await probed(f"{subject}.nobody")
        assert (reached, "no worker listens there" in what) == (False, True), what
        monkeypatch.setattr(nats_module, "PROBE_SECONDS", 1)
        reached, what = await probed(f"{subject}.silent")
        assert (reached, "got no answer in 1 s" in what) == (False, True), what
        monkeypatch.undo()
    finally:
        await client.close()
    assert set(received) == {b""}
    reached, what = await probed(subject, "nats://127.0.0.1:1")
    assert (reached, "Start the server" in what) == (False, True), what
    assert await NatsExecutor().probe(NatsSpec((nats_server.url,), "no such subject"), "/") is None
