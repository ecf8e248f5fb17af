"""``llxprt-hooks serve``: hooks for agents in other processes, over HTTP and NATS, with real ones (D-45)."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import signal
import socket
import threading
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from nats.aio.client import Client

import llxprt_hooks
from llxprt_hooks import Config, HookFormat, Hooks, fire_before_model_hook, fire_before_tool_hook
from llxprt_hooks._support.http_server import listen
from llxprt_hooks.fleet import canary
from llxprt_hooks.fleet.serve import service
from llxprt_hooks.fleet.serve.http_front import HttpFront
from llxprt_hooks.fleet.serve.worker import PolicyWorker
from tests.support.processes import DEADLINE, eventually, until
from tests.support.project import APPROVED
from tests.support.replies import DENY
from tests.support.worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cli import Call, CliProject
    from tests.support.nats_server import NatsServer

HTTP = ("--http", "127.0.0.1:0")
CALL = {
    "hook_event_name": "BeforeTool",
    "session_id": "agent-7",
    "cwd": "/not/on/this/machine",
    "transcript_path": "/etc/passwd",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "tool_name": "write_file",
    "tool_input": {"file_path": "a"},
}


@pytest.fixture
def subject() -> str:
    return f"test.{uuid.uuid4().hex}"


def hooked(world: CliProject, says: Any = DENY, level: str = "project", **options: Any) -> str:
    """Configure a hook that records its input."""
    command = world.hook("policy", says, **options)
    world.configure(level=level, BeforeTool=command)
    return command


def asking(server: NatsServer, subject: str, **fields: Any) -> Config:
    """An agent whose hook asks the workers."""
    hook = {"type": "nats", "servers": [server.url], "subject": subject, **fields}
    return Config(enable_hooks=True, session_id="agent-7", hooks={"BeforeTool": [{"hooks": [hook]}]})


POLICY = """#!/bin/sh
case "$(cat)" in
*'"team": "payments"'*|*'"team":"payments"'*) echo '{"decision": "deny", "reason": "payments may not write"}' ;;
esac
"""


@pytest.mark.parametrize("way", ["http", "nats"])
async def test_a_central_policy_tells_teams_and_projects_apart(
    world: CliProject, nats_server: NatsServer, subject: str, tmp_path: Path, way: str
) -> None:
    world.configure(BeforeTool=[world.script("policy.sh", POLICY), world.hook("record")])
    arguments = HTTP if way == "http" else ("--nats", nats_server.url, "--subject", subject)

    with Worker(world, *arguments) as worker:
        hook = (
            {"type": "http", "url": f"{worker.url}/v1/events"}
            if way == "http"
            else {"type": "nats", "servers": [nats_server.url], "subject": subject}
        )

        async def asked(project: str, **metadata: Any) -> str:
            hooks = Hooks(
                Config(
                    enable_hooks=True,
                    working_dir=tmp_path / project,
                    hooks={"BeforeTool": [{"hooks": [hook]}]},
                    metadata=metadata,
                )
            )
            return str((await hooks.run_tool("write_file", {}, lambda args: "written")).llm_content)

        assert await asked("shop", team="payments") == "payments may not write"
        assert await asked("blog", team="web") == "written"
        assert await asked("wiki") == "written"

    shop, blog, wiki = world.payloads("record")
    assert (shop["metadata"], blog["metadata"]) == ({"team": "payments"}, {"team": "web"})
    assert "metadata" not in wiki
    assert [payload["agent"]["project"] for payload in (shop, blog, wiki)] == [
        str(tmp_path / name) for name in ("shop", "blog", "wiki")
    ]
    assert shop["agent"] == {
        "host": socket.gethostname(),
        "user": pwd.getpwuid(os.getuid()).pw_name,
        "project": str(tmp_path / "shop"),
        "pid": os.getpid(),
        "version": llxprt_hooks.__version__,
    }
    assert shop["cwd"] == str(world.root)


def test_a_worker_asks_the_next_one_for_the_agent_that_asked_it(world: CliProject) -> None:
    first, second = world, type(world)(world.root.parent / "second")
    second.configure(BeforeTool=second.hook("policy"))
    agent = {"host": "far", "user": "ada", "project": "/far", "pid": 7, "version": "0"}

    with Worker(second, *HTTP) as last:
        first.configure(BeforeTool={"type": "http", "url": f"{last.url}/v1/events"})
        with Worker(first, *HTTP) as worker:
            worker.post({**CALL, "agent": agent, "metadata": {"team": "web"}})

    [payload] = second.payloads("policy")
    assert (payload["agent"], payload["metadata"]) == (agent, {"team": "web"})


# HTTP.


@pytest.mark.parametrize("way", ["http", "nats"])
async def test_a_worker_gets_to_know_the_call(
    world: CliProject, nats_server: NatsServer, subject: str, way: str
) -> None:
    """Its hooks get the id and the duration if they act, and it records them, with who asked."""
    hook = {"type": "command", "name": "record", "command": world.hook("record")}
    events = {"BeforeTool": [{"hooks": [hook]}], "AfterTool": [{"hooks": [hook]}]}
    world.put("project", {"enableHooks": True, "hooksConfig": {"profile": "full"}, "hooks": events})
    world.approve()
    arguments = HTTP if way == "http" else ("--nats", nats_server.url, "--subject", subject)
    with Worker(world, *arguments) as worker:
        asks = (
            {"type": "http", "url": f"{worker.url}/v1/events"}
            if way == "http"
            else {"type": "nats", "servers": [nats_server.url], "subject": subject}
        )
        groups = {event: [{"hooks": [asks]}] for event in events}
        hooks = Hooks(Config(enable_hooks=True, hooks=groups, profile="full", metadata={"team": "web"}))
        await hooks.run_tool("write_file", {}, lambda args: "written", tool_use_id="call-1")
    before, after = world.payloads("record")
    assert (before["tool_use_id"], after["tool_use_id"]) == ("call-1", "call-1")
    assert ("duration_ms" in before, after["duration_ms"] >= 0) == (False, True)
    first, second = world.run("log", "--where", "team=web", "--json").json_lines
    assert (first["tool_use_id"], "tool_duration_ms" in first) == ("call-1", False)
    assert second["tool_duration_ms"] == after["duration_ms"]


def test_a_payload_is_answered_with_the_final_output(world: CliProject) -> None:
    hooked(world)

    with Worker(world, *HTTP) as worker:
        response = worker.post(CALL)

    assert (response.status, response.json) == (200, DENY)
    [payload] = world.payloads("policy")
    assert payload["tool_input"] == {"file_path": "a"}
    assert payload["session_id"] == "agent-7"
    assert payload["timestamp"] == CALL["timestamp"]
    assert payload["cwd"] == str(world.root)
    assert payload["transcript_path"] == ""


def test_a_result_without_a_decision_is_answered_with_no_content(world: CliProject) -> None:
    hooked(world, None)

    with Worker(world, *HTTP) as worker:
        assert worker.post(CALL) == (204, b"")


def test_a_hook_that_fails_is_an_error(world: CliProject) -> None:
    hooked(world, None, exit_code=7)

    with Worker(world, *HTTP) as worker:
        response = worker.post(CALL)

    assert response.status == 500
    assert response.json["error"]["code"] == "hook_failed"
    assert "exited with code 7" in response.json["error"]["message"]


def test_a_hook_that_fails_is_an_error_whatever_another_one_allows(world: CliProject) -> None:
    guard, other = world.hook("guard", None, exit_code=1), world.hook("other", {"systemMessage": "checked"})
    world.configure(BeforeTool=[guard, other])

    with Worker(world, *HTTP) as worker:
        response = worker.post(CALL)

    assert (response.status, response.json["error"]["code"]) == (500, "hook_failed")


@pytest.mark.parametrize("refusal", [DENY, {"continue": False, "stopReason": "enough"}])
def test_a_refusal_is_the_answer_although_another_hook_fails(world: CliProject, refusal: dict[str, Any]) -> None:
    guard, other = world.hook("guard", None, exit_code=1), world.hook("other", refusal)
    world.configure(BeforeTool=[guard, other])

    with Worker(world, *HTTP) as worker:
        response = worker.post(CALL)

    assert (response.status, response.json) == (200, refusal)


BAD = {
    "not JSON": (b"{", 400, "bad_message", "not valid JSON"),
    "not an object": (b"[]", 400, "bad_message", "must be an object"),
    "no event": (b"{}", 400, "unsupported_event", "unknown hook event None"),
    "an unknown event": (b'{"hook_event_name": "Whenever"}', 400, "unsupported_event", "'Whenever'"),
    "a missing field": (b'{"hook_event_name": "BeforeTool"}', 400, "validation", "lacks `tool_name`"),
    "a wrong call": (json.dumps({**CALL, "tool_use_id": 7}).encode(), 400, "validation", "`tool_use_id`"),
    "a wrong caller": (json.dumps({**CALL, "metadata": "ada"}).encode(), 400, "validation", "`metadata`"),
    "a wrong type": (json.dumps({**CALL, "session_id": 7}).encode(), 400, "validation", "`session_id`"),
    "too large": (b" " * (10 * 2**20 + 1), 413, "bad_message", "larger than"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A worker for requests that change nothing."""
    from tests.support.cli import CliProject

    world = CliProject(tmp_path_factory.mktemp("worker"))
    hooked(world)
    with Worker(world, *HTTP) as worker:
        yield worker


@pytest.mark.parametrize(("body", "status", "code", "words"), BAD.values(), ids=BAD)
def test_a_bad_message_gets_a_structured_error(shared: Worker, body: bytes, status: int, code: str, words: str) -> None:
    response = shared.post(body)

    assert (response.status, response.json["error"]["code"]) == (status, code)
    assert words in response.json["error"]["message"]


def test_a_browsers_simple_request_is_refused(shared: Worker) -> None:
    assert shared.post(CALL, content_type="text/plain").status == 415


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8787", "Origin": "http://evil.example:8787"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_web_pages_are_refused(shared: Worker, headers: dict[str, str]) -> None:
    """A site can give its own name the address of this machine. Its pages could then send anything, and read it."""
    fired = shared.get("/metrics").body
    for response in (shared.post(CALL, **headers), shared.get("/metrics", **headers)):
        assert (response.status, response.json["error"]["code"]) == (403, "forbidden")
    assert shared.get("/metrics").body == fired


@pytest.mark.parametrize("host", ["localhost", "localhost:99", "127.0.0.1:8787", "[::1]:8787"])
def test_programs_on_this_machine_are_answered(shared: Worker, host: str) -> None:
    assert shared.post(CALL, Host=host).status == 200


def test_other_paths_and_methods_are_refused(shared: Worker) -> None:
    assert shared.get("/").status == 404
    assert shared.get("/v1/events").status == 405


def test_health_and_metrics(shared: Worker) -> None:
    shared.post(CALL)
    shared.post({"hook_event_name": "Whenever"})

    assert shared.get("/healthz") == (200, b"ok\n")
    lines = shared.get("/metrics").body.decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    counted = {name: float(value) for name, _, value in samples}
    assert counted['llxprt_hooks_events_total{event="BeforeTool",outcome="blocked"}'] >= 1
    assert counted['llxprt_hooks_events_total{event="unknown",outcome="refused"}'] >= 1
    assert counted['llxprt_hooks_event_seconds_bucket{event="BeforeTool",le="+Inf"}'] >= 1
    assert counted["llxprt_hooks_events_in_progress"] == 0
    of_hook = [name for name in counted if 'event="BeforeTool",hook="' in name]
    assert sum(counted[name] for name in of_hook if "executions_total" in name and 'outcome="blocked"' in name) >= 1
    assert sum(counted[name] for name in of_hook if "hook_seconds_count" in name) >= 1
    assert counted["llxprt_hooks_canary_ok"] == 1


async def test_a_worker_whose_hooks_cannot_block_any_more_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, said = PolicyWorker(Config()), list[str]()
    monkeypatch.setattr(service, "CANARY_SECONDS", 0.01)
    with listen("127.0.0.1", 0) as listener:
        front = HttpFront(worker, listener)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(front._answer), base_url="http://worker")
        watching = asyncio.create_task(service._watch_canary(worker, said.append))
        with monkeypatch.context() as broken:
            broken.setattr(canary, "_COMMAND", "true")
            await eventually(lambda: len(said) == 1)
            ill = await client.get("/healthz")
            assert "llxprt_hooks_canary_ok 0" in worker.metrics.text()
        await eventually(lambda: len(said) == 2)
        well = await client.get("/healthz")
        watching.cancel()
        await client.aclose()
    assert (ill.status_code, ill.text) == (503, "a hook that must block did not: no hook could be run\n")
    assert well.status_code == 200
    assert said == [f"warning: {ill.text.strip()}", "hooks can block again"]


def test_a_worker_does_not_start_where_hooks_cannot_block(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> None:
    hooked(world)
    monkeypatch.setattr(canary, "_COMMAND", "exit 1")
    with world.inside(**APPROVED), pytest.raises(service.ServeError, match="hooks do not work here: a hook that must"):
        service.run_worker(service.ServeOptions(str(world.root), http=service.HttpOptions("127.0.0.1", 0)), print)


def test_workers_that_ask_each_other_in_a_circle_end(world: CliProject) -> None:
    hooked(world)
    with Worker(world, *HTTP) as worker:
        world.configure(level="user", BeforeTool={"type": "http", "url": f"{worker.url}/v1/events"})
        worker.send(signal.SIGHUP)
        worker.wait_for("reloaded")

        # The project's own hook still answers; the one that asks this worker again fails after a few rounds.
        assert worker.post(CALL).json["decision"] == "deny"
        assert worker.post(CALL, Llxprt_Hops="4").status == 508

    assert len(world.payloads("policy")) == 4


def test_with_a_token_other_requests_are_refused(world: CliProject) -> None:
    hooked(world)

    with Worker(world, *HTTP, "--token-env", "POLICY_TOKEN", POLICY_TOKEN="t0ken") as worker:
        assert worker.post(CALL).status == 401
        assert worker.post(CALL, Authorization="Bearer other").status == 401
        assert worker.get("/metrics").status == 401
        assert worker.post(CALL, Authorization="Bearer t0ken", Host="policy.example.com").status == 200
        assert worker.get("/metrics", Authorization="Bearer t0ken").status == 200
        assert worker.get("/healthz").status == 200
    assert len(world.payloads("policy")) == 1
    assert "t0ken" not in worker.text


async def test_an_http_hook_asks_the_worker(world: CliProject) -> None:
    hooked(world)
    with Worker(world, *HTTP) as worker:
        hook = {"type": "http", "url": f"{worker.url}/v1/events"}
        config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]})

        output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert output.get_effective_reason() == "not today"


# NATS.


async def test_a_nats_hook_asks_the_worker(world: CliProject, nats_server: NatsServer, subject: str) -> None:
    hooked(world)

    with Worker(world, "--nats", nats_server.url, "--subject", subject):
        output = await fire_before_tool_hook(asking(nats_server, subject), "write_file", {"file_path": "a"})

    assert output is not None
    assert output.is_blocking_decision()
    assert output.get_effective_reason() == "not today"
    [payload] = world.payloads("policy")
    assert payload["session_id"] == "agent-7"
    assert payload["cwd"] == str(world.root)


async def test_model_data_arrives_in_hook_format(world: CliProject, nats_server: NatsServer, subject: str) -> None:
    world.configure(BeforeModel=world.hook("policy", DENY))
    config = asking(nats_server, subject)
    hooks = {"BeforeModel": config.hooks["BeforeTool"]}
    request = HookFormat({"model": "m", "messages": [{"role": "user", "content": "hi"}], "config": {}})

    with Worker(world, "--nats", nats_server.url, "--subject", subject):
        result = await fire_before_model_hook(Config(enable_hooks=True, hooks=hooks), request)

    assert result.blocked
    assert world.payloads("policy")[0]["llm_request"]["messages"] == [{"role": "user", "content": "hi"}]


async def asked(server: NatsServer, subject: str, *requests: bytes) -> list[dict[str, Any]]:
    client = Client()
    await client.connect(server.url)
    try:
        return [json.loads((await client.request(subject, each, timeout=DEADLINE)).data) for each in requests]
    finally:
        await client.close()


async def test_bad_messages_get_structured_errors(world: CliProject, nats_server: NatsServer, subject: str) -> None:
    hooked(world)
    unknown = {"type": "hook-execution-request", "eventName": "Whenever", "correlationId": "c1", "input": {}}
    wrapped = {
        "type": "HOOK_EXECUTION_REQUEST",
        "payload": {"eventName": "BeforeTool", "correlationId": "c2", "input": CALL},
    }

    with Worker(world, "--nats", nats_server.url, "--subject", subject):
        bytes_, name, good = await asked(
            nats_server, subject, b"\xff", json.dumps(unknown).encode(), json.dumps(wrapped).encode()
        )

    assert (bytes_["success"], bytes_["error"]["code"]) == (False, "bad_message")
    assert (name["correlationId"], name["error"]["code"]) == ("c1", "unsupported_event")
    assert good["payload"]["output"]["finalOutput"] == DENY
    assert good["payload"]["correlationId"] == "c2"


async def test_an_answer_that_nats_cannot_carry_is_an_error(
    world: CliProject, nats_server: NatsServer, subject: str
) -> None:
    world.configure(BeforeTool="head -c 2000000 /dev/zero | tr '\\0' x")

    with Worker(world, "--nats", nats_server.url, "--subject", subject):
        request = {"type": "hook-execution-request", "eventName": "BeforeTool", "correlationId": "c", "input": CALL}
        [answer] = await asked(nats_server, subject, json.dumps(request).encode())

    assert (answer["correlationId"], answer["error"]["code"]) == ("c", "response_too_large")


async def test_workers_of_a_subject_share_its_requests(
    world: CliProject, nats_server: NatsServer, subject: str
) -> None:
    hooked(world)
    config = asking(nats_server, subject)
    arguments = ("--nats", nats_server.url, "--subject", subject, *HTTP)

    with Worker(world, *arguments) as one, Worker(world, *arguments) as other:
        outputs = await asyncio.gather(*(fire_before_tool_hook(config, "write_file", {}) for _ in range(40)))
        counts = [worker.get("/metrics").body.decode() for worker in (one, other)]

    assert all(output is not None and output.is_blocking_decision() for output in outputs)
    assert len(world.payloads("policy")) == 40
    assert all('outcome="blocked"' in count for count in counts)


async def test_another_worker_takes_over_from_one_that_dies(
    world: CliProject, nats_server: NatsServer, subject: str, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    first = f'if [ -n "$DYING" ]; then touch "{started}"; sleep 60; fi'
    world.configure(BeforeTool=world.hook("policy", DENY, first=first))
    arguments = ("--nats", nats_server.url, "--subject", subject)
    config = asking(nats_server, subject, timeout=60_000, retry=59)

    with Worker(world, *arguments, DYING="1") as dying:
        call = asyncio.create_task(fire_before_tool_hook(config, "write_file", {}))
        await eventually(started.exists)
        with await asyncio.to_thread(Worker, world, *arguments):
            dying.send(signal.SIGKILL)
            output = await call

    assert output is not None
    assert output.get_effective_reason() == "not today"


# Signals.


async def test_sigterm_answers_what_has_come_and_takes_nothing_new(
    world: CliProject, nats_server: NatsServer, subject: str, tmp_path: Path
) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    world.configure(
        BeforeTool=world.hook("policy", DENY, first=f'touch "{started}"; while [ ! -e "{go}" ]; do sleep 0.05; done')
    )
    config = asking(nats_server, subject)

    with Worker(world, "--nats", nats_server.url, "--subject", subject, *HTTP) as worker:
        by_nats = asyncio.create_task(fire_before_tool_hook(config, "write_file", {}))
        by_http = asyncio.create_task(asyncio.to_thread(worker.post, CALL))
        await eventually(lambda: len(world.payloads("policy")) == 2)
        worker.send(signal.SIGTERM)
        await asyncio.to_thread(worker.wait_for, "draining")
        await eventually(lambda: _refuses(worker) and not nats_server.has_listener(subject))
        late = asking(nats_server, subject, failClosed=True)
        refused = await fire_before_tool_hook(late, "write_file", {})
        go.touch()
        output, response = await by_nats, await by_http

        assert await asyncio.to_thread(worker.wait) == 0
    assert output is not None
    assert output.get_effective_reason() == "not today"
    assert response.json == DENY
    assert refused is not None
    assert "no worker listens" in refused.get_effective_reason()


def _refuses(worker: Worker) -> bool:
    try:
        return worker.get("/healthz").status == 503
    except OSError:
        return True


def test_a_second_signal_does_not_wait(world: CliProject, tmp_path: Path) -> None:
    hooked(world, None, first="sleep 60")

    with Worker(world, *HTTP) as worker:

        def post() -> None:
            with suppress(OSError):  # the connection may end without an answer
                worker.post(CALL)

        waiting = threading.Thread(target=post)
        waiting.start()
        until(lambda: bool(world.payloads("policy")))
        worker.send(signal.SIGTERM)
        worker.wait_for("draining")
        worker.send(signal.SIGTERM)
        assert worker.wait() == 130
        waiting.join()


def test_sighup_reads_the_settings_again(world: CliProject) -> None:
    hooked(world, level="user")
    with Worker(world, *HTTP) as worker:
        assert worker.post(CALL).json == DENY
        world.configure(level="user", BeforeTool=world.hook("other", {"decision": "deny", "reason": "another"}))

        worker.send(signal.SIGHUP)
        worker.wait_for("reloaded the settings")

        assert worker.post(CALL).json["reason"] == "another"
        assert b'reloads_total{result="success"} 1' in worker.get("/metrics").body


BROKEN = {
    "broken": ("{", "cannot be read"),
    "empty": ("{}", "there are no hooks"),
    "off": ('{"enableHooks": false}', "there are no hooks"),
}


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_settings_that_cannot_be_used_leave_the_old_hooks(world: CliProject, text: str, words: str) -> None:
    hooked(world, level="user")
    with Worker(world, *HTTP) as worker:
        world.put("user", text)

        worker.send(signal.SIGHUP)
        worker.wait_for("the old hooks stay in use")

        assert words in worker.text
        assert worker.post(CALL).json == DENY
        assert b'reloads_total{result="failure"} 1' in worker.get("/metrics").body


def test_a_worker_logs_its_decisions(call: Call, world: CliProject) -> None:
    command = hooked(world)
    with Worker(world, *HTTP) as worker:
        worker.post(CALL)

    [record] = call("log", "--json").json_lines
    assert (record["command"], record["session_id"]) == (command, "agent-7")
    assert record["blocked"]


# What keeps a worker from starting.


def test_hooks_that_are_not_approved_keep_it_from_starting(world: CliProject) -> None:
    hooked(world)

    done = world.run("serve", *HTTP, approved=False)

    assert done.status == 1
    assert f"llxprt-hooks trust -C {world.root}" in done.stderr


def test_without_hooks_it_does_not_start(call: Call, world: CliProject) -> None:
    assert "there are no hooks" in call("serve", *HTTP).sentence()


def test_broken_settings_keep_it_from_starting(call: Call, world: CliProject) -> None:
    hooked(world, level="user")
    world.put("system", "{")

    done = call("serve", *HTTP)

    assert done.status == 1
    assert "cannot be read" in done.stderr


def test_a_worker_that_would_ask_itself_does_not_start(call: Call, world: CliProject) -> None:
    url = "nats://127.0.0.1:9"
    world.configure(BeforeTool={"type": "nats", "servers": [url]})

    done = call("serve", "--nats", url)

    assert done.status == 1
    assert "this worker would call itself" in done.stderr
    assert "cannot connect" in call("serve", "--nats", url, "--subject", "other").sentence()


def test_no_server_is_an_error(call: Call, world: CliProject) -> None:
    hooked(world)

    assert "cannot connect to NATS at nats://127.0.0.1:9" in call("serve", "--nats", "nats://127.0.0.1:9").sentence()


def test_an_address_that_is_in_use_is_an_error(call: Call, world: CliProject) -> None:
    hooked(world)
    with Worker(world, *HTTP) as worker:
        address = worker.url.removeprefix("http://")

        assert f"cannot listen on {address}" in call("serve", "--http", address).sentence()


USAGE = {
    "nothing": ((), "--nats, --http or both"),
    "a subject without NATS": ((*HTTP, "--subject", "a"), "belong to --nats"),
    "a token without HTTP": (("--nats", "nats://a", "--token-env", "A"), "belong to --http"),
    "no port": (("--http", "127.0.0.1"), "HOST:PORT"),
    "another machine": (("--http", "0.0.0.0:0"), "--token-env"),
    "all addresses of IPv6": (("--http", "[::]:0"), "--token-env"),
    "a variable that is not set": ((*HTTP, "--token-env", "NOT_SET"), "NOT_SET"),
    "a certificate without a key": ((*HTTP, "--tls-cert", "/etc/passwd"), "go together"),
    "a file that is not a certificate": (
        (*HTTP, "--tls-cert", "/etc/passwd", "--tls-key", "/etc/passwd"),
        "cannot be used",
    ),
    "a bad server": (("--nats", "http://a"), "expected an address"),
    "a password": (("--nats", "nats://me:s3cret@a"), "credentials"),
    "a bad subject": (("--nats", "nats://a", "--subject", "a.*"), "is not a subject"),
}


@pytest.mark.parametrize(("arguments", "words"), USAGE.values(), ids=USAGE)
def test_wrong_usage(call: Call, world: CliProject, arguments: tuple[str, ...], words: str) -> None:
    hooked(world)

    done = call("serve", *arguments)

    assert done.status == 64
    assert words in done.stderr
    assert "s3cret" not in done.stderr


# Load.


async def test_more_events_than_may_wait_are_refused_at_once(tmp_path: Path) -> None:
    go = tmp_path / "go"
    command = f'while [ ! -e "{go}" ]; do sleep 0.05; done'
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]})
    worker = PolicyWorker(config, most_at_once=2, queue=1)
    taken = [asyncio.create_task(worker.fire("BeforeTool", CALL)) for _ in range(3)]
    await eventually(lambda: (worker.metrics.in_progress, worker.metrics.waiting) == (2, 1))

    refused = await worker.fire("BeforeTool", CALL)
    go.touch()

    assert [str(error) for error in refused.errors] == ["the queue is full: the limit is 1"]
    assert [(await each).success for each in taken] == [True, True, True]
    assert (worker.metrics.in_progress, worker.metrics.waiting) == (0, 0)
    assert 'llxprt_hooks_events_total{event="BeforeTool",outcome="refused"} 1' in worker.metrics.text()


async def test_a_result_that_a_hook_blocks_counts_as_blocked_where_hooks_act() -> None:
    hooks = {"AfterTool": [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}
    for profile, outcome in (("standard", "allowed"), ("full", "blocked")):
        worker = PolicyWorker(Config(enable_hooks=True, hooks=hooks, profile=profile))
        await worker.fire("AfterTool", {**CALL, "tool_response": {"llmContent": "done"}})
        assert f'llxprt_hooks_events_total{{event="AfterTool",outcome="{outcome}"}} 1' in worker.metrics.text()


async def test_a_caller_that_goes_away_while_it_waits_leaves_its_place(tmp_path: Path) -> None:
    go = tmp_path / "go"
    command = f'while [ ! -e "{go}" ]; do sleep 0.05; done'
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]})
    worker = PolicyWorker(config, most_at_once=1, queue=1)
    running, waiting = (asyncio.create_task(worker.fire("BeforeTool", CALL)) for _ in range(2))
    await eventually(lambda: (worker.metrics.in_progress, worker.metrics.waiting) == (1, 1))

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.touch()

    assert (await running).success
    assert (await worker.fire("BeforeTool", CALL)).success
