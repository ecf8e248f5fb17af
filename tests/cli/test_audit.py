"""``log`` and ``stats`` on the audit trail of all agents, and ``log verify``."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import uuid
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.fleet.audit.chain import Chain
from llxprt_hooks.fleet.audit.signing import signer
from llxprt_hooks.fleet.audit.spool import SpoolFile, spool_folder
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client
from llxprt_hooks.settings.audit import AuditRule
from tests.support.cli import Run
from tests.support.inspector import inspecting
from tests.support.processes import DEADLINE, until

if TYPE_CHECKING:
    from tests.support.cli import CliProject
    from tests.support.nats_server import NatsServer


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).upper()


def _lines(count: int = 3) -> list[bytes]:
    chain = Chain()
    fields = {"id": "ab", "event_name": "BeforeTool", "duration": 2.0, "project": "/elsewhere", "reason": None}
    return [
        chain.link({**fields, "event_id": f"e{number}", "hook": f"h{number}", "blocked": number == 1})
        for number in range(count)
    ]


def _publish(nats_server: NatsServer, stream: str, lines: list[bytes]) -> None:
    async def publish() -> None:
        client = await open_nats_client(NatsAddress((nats_server.url,)))
        jetstream = client.jetstream()
        await jetstream.add_stream(name=stream, subjects=[f"{stream}.*"])
        for line in lines:
            await jetstream.publish(f"{stream}.a", line)
        await client.close()

    asyncio.run(publish())


def test_log_shows_the_executions_of_all_agents(world: CliProject, nats_server: NatsServer, stream: str) -> None:
    _publish(nats_server, stream, _lines())
    source = ("--nats", nats_server.url, "--stream", stream)
    assert [record["hook"] for record in world.run("log", *source, "--json").json_lines] == ["h0", "h1", "h2"]
    assert [record["hook"] for record in world.run("log", *source, "--blocked", "--json").json_lines] == ["h1"]
    shown = world.run("log", *source, "-n", "1").stdout
    assert "elsewhere" in shown
    assert "h2" in shown
    assert {each["hook"] for each in world.run("stats", *source, "--json").json} == {"h0", "h1", "h2"}


def test_a_stream_without_a_matching_execution_is_reported(
    world: CliProject, nats_server: NatsServer, stream: str
) -> None:
    _publish(nats_server, stream, _lines())
    run = world.run("log", "--nats", nats_server.url, "--stream", stream, "--hook", "other")
    assert (run.status, run.stdout, run.stderr) == (0, "", "the stream has no such execution\n")


def test_verify_finds_what_was_changed(world: CliProject, nats_server: NatsServer, stream: str) -> None:
    lines = _lines()
    _publish(nats_server, stream, [lines[0], lines[1].replace(b"h1", b"h9"), *lines[2:]])
    run = world.run("log", "verify", "--nats", nats_server.url, "--stream", stream)
    assert run.status == 1
    assert "  record 2 was changed: its hash is not that of its content" in run.stdout.splitlines()
    assert run.stdout.endswith("3 records of 1 agent in the stream; chains that are broken: 1\n")


def test_verify_is_content_with_whole_chains(world: CliProject, nats_server: NatsServer, stream: str) -> None:
    _publish(nats_server, stream, [*_lines(), *_lines(2)])
    run = world.run("log", "verify", "--nats", nats_server.url, "--stream", stream)
    assert (run.status, run.stdout) == (0, "5 records of 2 agents in the stream; chains that are broken: 0\n")
    [first, _] = world.run("log", "verify", "--nats", nats_server.url, "--stream", stream, "--json").json_lines
    assert (first["records"], first["first"], first["problems"]) == (3, 1, [])


def test_verify_with_a_key_finds_forgeries(world: CliProject, nats_server: NatsServer, stream: str) -> None:
    made = world.run("log", "keygen", "audit.nk")
    assert made.status == 0
    chain = Chain(signer(world.root / "audit.nk"))
    lines = [chain.link({"hook": "a"}), chain.link({"hook": "b"}), chain.close("now")]
    streams = {"WHOLE": lines, "CUT": lines[:-1], "LATE": lines[1:], "FORGED": _lines()}
    for name, content in streams.items():
        _publish(nats_server, f"{stream}_{name}", content)

    def verify(name: str, *more: str) -> Run:
        key = ("--nats", nats_server.url, "--key", made.stdout.strip(), "--stream", f"{stream}_{name}")
        return world.run("log", "verify", *key, *more)

    whole = "3 records of 1 agent in the stream; chains that are broken: 0\n"
    assert verify("WHOLE") == Run(0, whole, "")
    found = {name: verify(name) for name in ("CUT", "LATE", "FORGED")}
    assert [run.status for run in found.values()] == [1, 1, 1]
    assert "the chain is not closed" in found["CUT"].stdout
    assert "records 1 to 1 are missing" in found["LATE"].stdout
    assert "record 1 is not signed with this key" in found["FORGED"].stdout
    assert verify("CUT", "--allow-open").status == 0


def test_verify_without_a_key_says_what_it_proves(world: CliProject, nats_server: NatsServer, stream: str) -> None:
    _publish(nats_server, stream, [*_lines(), b"{unreadable"])
    run = world.run("log", "verify", "--nats", nats_server.url, "--stream", stream)
    assert run.status == 1
    assert "unreadable lines  broken" in run.stdout
    assert "this finds accidents, but anybody can compute hashes again" in run.stderr


@pytest.mark.parametrize(
    "arguments", [("verify", "--key", "UNOTAKEY"), ("keygen",), ("--key", "U"), ("abc", "def"), ("--allow-open",)]
)
def test_wrong_usage_of_keys(world: CliProject, arguments: tuple[str, ...]) -> None:
    assert world.run("log", *arguments).status == 64


def test_verify_says_that_records_were_removed(world: CliProject, nats_server: NatsServer, stream: str) -> None:
    _publish(nats_server, stream, _lines())

    async def remove_first() -> None:
        client = await open_nats_client(NatsAddress((nats_server.url,)))
        await client.jetstream().delete_msg(stream, 1)
        await client.close()

    asyncio.run(remove_first())
    run = world.run("log", "verify", "--nats", nats_server.url, "--stream", stream)
    assert run.status == 0
    assert "2 records; before that, 1 gone" in run.stdout
    assert run.stderr.endswith("\nremoved from the stream, or expired: 1 message\n")


def test_verify_without_a_server_checks_what_waits_to_be_sent(world: CliProject) -> None:
    lines = _lines(4)
    with world.inside():
        file = SpoolFile.create(spool_folder(AuditRule(("nats://127.0.0.1:4222",))), "a")
    for line in (lines[0], *lines[2:]):
        file.append(line)
    file.close(remove=False)
    run = world.run("log", "verify")
    assert run.status == 1
    assert "record 2 is missing" in run.stdout
    assert "3 records of 1 agent wait to be sent" in run.stdout


def test_verify_without_a_server_does_not_claim_that_earlier_records_were_sent(world: CliProject) -> None:
    with world.inside():
        file = SpoolFile.create(spool_folder(AuditRule(("nats://127.0.0.1:4222",))), "a")
    for line in _lines()[1:]:
        file.append(line)
    file.close(remove=False)
    assert "before that, 1 sent or removed (to check these, pass --nats)" in world.run("log", "verify").stdout


def test_verify_without_an_audit_trail_says_that_it_verified_nothing(world: CliProject) -> None:
    run = world.run("log", "verify")

    assert (run.status, run.stdout) == (0, "")
    assert run.stderr.startswith("nothing to verify: no records wait to be sent. `hooksConfig.audit` turns the audit")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--nats", "http://127.0.0.1"), 64, "expected an address such as"),
        (("--nats", "nats://127.0.0.1:1"), 1, "cannot connect to NATS at nats://127.0.0.1:1"),
    ],
)
def test_a_server_that_cannot_be_read_is_an_error(
    world: CliProject, arguments: tuple[str, ...], status: int, message: str
) -> None:
    for command in ("log", "stats"):
        run = world.run(command, *arguments)
        assert run.status == status
        assert message in run.stderr


def test_a_stream_that_does_not_exist_is_an_error(world: CliProject, nats_server: NatsServer) -> None:
    run = world.run("log", "--nats", nats_server.url, "--stream", "NOWHERE")
    assert run.status == 1
    assert f"NATS at {nats_server.url} has no stream NOWHERE" in run.stderr
    assert run.stdout == ""


def test_the_inspector_shows_the_executions_of_all_agents_as_they_come(
    world: CliProject, nats_server: NatsServer, stream: str
) -> None:
    lines = _lines(4)
    _publish(nats_server, stream, lines[:2])
    with inspecting(world, "--nats", nats_server.url, "--stream", stream) as inspector, inspector.client() as client:
        assert client.get("/api/events").json()["total"] == 2
        _publish(nats_server, stream, lines[2:])
        until(lambda: client.get("/api/events").json()["total"] == 4)


def test_log_follows_the_executions_of_all_agents_as_they_come(
    world: CliProject, nats_server: NatsServer, stream: str
) -> None:
    _publish(nats_server, stream, _lines(1))
    [line] = (json.loads(each) for each in _lines(1))
    arguments = ("log", "--follow", "-n", "0", "--nats", nats_server.url, "--stream", stream, "--blocked")
    with world.start(*arguments) as process:
        shown: list[bytes] = []
        reader = threading.Thread(target=lambda: shown.extend(process.stdout or ()))
        reader.start()
        try:

            def arrived() -> bool:  # what was there before it started to follow is not printed
                more = {**line, "event_id": str(uuid.uuid4()), "hook": "late", "tool_name": "shell", "blocked": True}
                _publish(nats_server, stream, [json.dumps(more).encode()])
                return bool(shown)

            until(arrived)
        finally:
            process.kill()
            reader.join(DEADLINE)
    assert re.search(rb"blocked +2.0 ms .*BeforeTool shell +late", shown[0])


def test_an_inspector_without_its_server_does_not_start(world: CliProject) -> None:
    run = world.run("inspect", "--no-open", "--nats", "nats://127.0.0.1:1")
    assert run.status == 1
    assert "cannot connect to NATS" in run.stderr
