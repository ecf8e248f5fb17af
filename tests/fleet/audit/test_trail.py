"""Records reach the stream: all of them, each once, also after an outage, a crash, a fork."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nkeys  # type: ignore[import-untyped]
import pytest
from nats.errors import TimeoutError as NoMessageError
from nats.js import JetStreamContext

from llxprt_hooks import Config
from llxprt_hooks._support.json_codec import write_payload
from llxprt_hooks.core.engine.observer import HookObserver
from llxprt_hooks.fleet.audit.chain import Chain, verify
from llxprt_hooks.fleet.audit.signing import new_key, signature_check
from llxprt_hooks.fleet.audit.spool import Sent, SpoolFile, spool_files, spool_folder
from llxprt_hooks.fleet.audit.stream import AuditStream, StreamReader
from llxprt_hooks.fleet.audit.trail import AuditTrail
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client
from llxprt_hooks.settings.audit import AuditRule
from tests.support.nats_server import NatsServer
from tests.support.processes import DEADLINE, until

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from tests.support.project import Project

AGENT = """
import asyncio, os, sys, time
from llxprt_hooks import Config
from llxprt_hooks.fleet.audit import trail

trail.LAST_CHANCE = 30.0  # a busy machine may need more than the two seconds
config = Config.load(".")

async def main(count):
    system = config.get_hook_system()
    await system.initialize()
    handler = system.get_event_handler()
    number = 0
    while number != count:
        number += 1
        await handler.fire_before_tool_event("write_file", {"number": number})
        print(number, flush=True)

asyncio.run(main(int(sys.argv[1])))
"""


@pytest.fixture
def server(own_nats_server: NatsServer) -> NatsServer:
    return own_nats_server


def _configure(sandbox: Project, server: NatsServer, command: str = "true", **audit: Any) -> None:
    hook = {"type": "command", "command": command, "name": "guard"}
    sandbox.put(
        "user",
        {
            "enableHooks": True,
            "hooksConfig": {"audit": {"nats": {"servers": [server.url]}, **audit}},
            "hooks": {"BeforeTool": [{"hooks": [hook]}]},
        },
    )


def _agent(sandbox: Project, *arguments: str, code: str = AGENT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=sandbox.root,
        env=sandbox.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(sandbox: Project, *arguments: str, code: str = AGENT) -> str:
    agent = _agent(sandbox, *arguments, code=code)
    _, errors = agent.communicate(timeout=DEADLINE)
    assert agent.returncode == 0, errors
    return errors


def _stream(server: NatsServer) -> list[dict[str, Any]]:
    """Everything in the stream; the chains are whole, and no record is there twice."""
    reader = StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS")
    lines = list(reader.lines())
    assert reader.removed == 0
    assert all(verdict.problems == [] and verdict.first == 1 for verdict in verify(lines).values())
    records = [json.loads(line) for line in lines]
    assert len({record["id"] for record in records}) == len(records)
    return records


def test_every_execution_is_in_the_stream_when_the_agent_has_ended(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server, "echo nothing personal >&2; exit 2")
    assert _run(sandbox, "3") == ""
    records = _stream(server)
    assert [record["seq"] for record in records] == [1, 2, 3]
    assert spool_files() == []
    record = records[0]
    assert (record["hook"], record["event_name"], record["level"]) == ("guard", "BeforeTool", "user")
    assert (record["blocked"], record["reason"]) == (True, "nothing personal")
    assert len(record["content_hash"]) == 64
    assert "payload" not in record
    agents = [record["agent"] for record in records]
    assert agents == [agents[0]] * 3
    assert (agents[0]["host"], agents[0]["project"]) == (socket.gethostname(), str(sandbox.root))
    assert agents[0].keys() == {"host", "user", "project", "pid", "version"}
    assert len({record["chain"] for record in records}) == 1


def test_payloads_are_sent_only_on_request(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server, payloads=True)
    _run(sandbox, "1")
    (record,) = _stream(server)
    assert record["payload"]["tool_input"] == {"number": 1}
    assert record["input_digest"] == hashlib.sha256(write_payload(record["payload"])).hexdigest()


def test_after_an_outage_the_next_agent_sends_what_is_left(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    server.stop()
    assert "the audit trail cannot be sent and is kept in" in _run(sandbox, "3")
    assert len(spool_files()) == 1
    server.start()
    _run(sandbox, "1")
    assert len(_stream(server)) == 4
    assert spool_files() == []


def test_an_agent_continues_when_the_server_is_back(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    server.stop()
    # All that it writes is counted below, so nothing is removed from its file.
    agent = _agent(sandbox, "-1", code=AGENT.replace("config =", "trail.SpoolFile.empty_if_large = id\nconfig ="))
    assert agent.stdout is not None
    for _ in range(5):
        agent.stdout.readline()
    server.start()
    until(lambda: _count(server) > 5)
    server.stop()
    for _ in range(5):
        agent.stdout.readline()
    server.start()
    agent.kill()
    agent.communicate()
    written = sum(len(file.read_bytes().splitlines()) for file in spool_files())
    _run(sandbox, "1")
    assert len(_stream(server)) == written + 1


def _count(server: NatsServer) -> int:
    try:
        return len(list(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines()))
    except LookupError:
        return 0


def test_what_a_killed_agent_has_decided_is_not_lost(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    decided = 0
    for _ in range(3):
        agent = _agent(sandbox, "-1")
        assert agent.stdout is not None
        for _ in range(20):
            agent.stdout.readline()
        agent.kill()
        decided += 20 + len(agent.communicate()[0].splitlines())
    _run(sandbox, "1")
    records = _stream(server)
    assert len(records) >= decided + 1
    assert spool_files() == []


def test_a_forked_process_has_a_chain_of_its_own(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    _run(sandbox, "2", code=f"{AGENT}\nif os.fork() == 0:\n    asyncio.run(main(1))\nelse:\n    os.wait()")
    records = _stream(server)
    assert sorted(record["seq"] for record in records) == [1, 1, 2]
    assert spool_files() == []


def test_a_forked_process_that_lives_on_does_not_keep_the_records(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    server.stop()
    living_on = "if os.fork() == 0:\n    os.closerange(0, 3)\n    time.sleep(10)\n    os._exit(0)"
    _run(sandbox, "2", code=f"{AGENT}\n{living_on}")
    server.start()
    _run(sandbox, "1")
    assert len(_stream(server)) == 3


def test_an_observer_of_the_program_is_notified_too(sandbox: Project, server: NatsServer) -> None:
    class Mine(HookObserver):
        seen: list[str]

        def hook_ended(self, result: HookExecutionResult) -> None:
            self.seen.append(result.hook_config.identity)

    _configure(sandbox, server)
    mine = Mine()
    mine.seen = []
    asyncio.run(_fire(Config.load(sandbox.root, observer=mine)))
    assert mine.seen == ["guard"]
    until(lambda: _count(server) == 1)


async def _fire(config: Config) -> bool:
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    result = await system.get_event_handler().fire_before_tool_event("write_file", {})
    return result.success


def test_a_trail_that_cannot_be_written_is_an_error_and_changes_no_decision(
    sandbox: Project, server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    _configure(sandbox, server)
    sandbox.write(sandbox.home / ".llxprt" / "audit", "not a folder")
    assert asyncio.run(_fire(Config.load(sandbox.root)))
    assert "an execution is missing in the audit trail" in caplog.text


def test_where_blocking_is_forbidden_a_thread_writes(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    run = "asyncio.run(main(int(sys.argv[1])))"
    guarded = f"import atexit, blockbuster\nwith blockbuster.blockbuster_ctx():\n    {run}"
    # A process that has used blockbuster crashes when the interpreter is taken down.
    code = AGENT.replace(run, guarded).replace("print(number, flush=True)", "pass")
    _run(sandbox, "3", code=f"{code}\natexit._run_exitfuncs()\nos._exit(0)")
    assert [record["seq"] for record in _stream(server)] == [1, 2, 3]


def test_a_stream_that_exists_is_used_as_it_is(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    for _ in range(2):
        _run(sandbox, "2")
    assert len(_stream(server)) == 4


def test_following_a_stream_waits_for_more(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    _run(sandbox, "1")
    following = StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines(follow=True)
    assert json.loads(next(following))["seq"] == 1
    _run(sandbox, "1")
    assert json.loads(next(following))["seq"] == 1
    following.close()


def test_a_stream_whose_last_message_was_removed_can_be_read(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    _run(sandbox, "2")
    reader = StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS")
    assert len(list(reader.lines())) == 2
    _run(sandbox, "1")
    _admin(server, lambda stream: stream.delete_msg("LLXPRT_HOOKS", 3))

    assert list(reader.lines()) == []
    assert reader.removed == 1
    _run(sandbox, "1")
    assert [json.loads(line)["seq"] for line in reader.lines()] == [1]


def test_a_server_that_sends_nothing_of_a_stream_is_an_error(
    sandbox: Project, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a busy server would look like a stream without records, in which nothing is wrong."""
    _configure(sandbox, server)
    _run(sandbox, "1")

    async def nothing_comes(*_: object, **__: object) -> None:
        raise NoMessageError

    monkeypatch.setattr(JetStreamContext.PushSubscription, "next_msg", nothing_comes)
    with pytest.raises(ConnectionError, match="stopped sending the stream"):
        list(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines())


@pytest.mark.parametrize("path", ["~/user.nk", "secret/user.nk"])
def test_credentials_are_in_the_home_or_in_the_project(sandbox: Project, tmp_path: Path, path: str) -> None:
    pair = nkeys.from_seed(nkeys.encode_seed(uuid.uuid4().bytes + uuid.uuid4().bytes, nkeys.PREFIX_BYTE_USER))
    seed = sandbox.home / "user.nk" if path.startswith("~") else sandbox.root / path
    seed.parent.mkdir(exist_ok=True)
    seed.write_bytes(pair.seed + b"\n")
    settings = tmp_path / "nats.conf"
    settings.write_text(f"authorization {{ users = [ {{ nkey: {pair.public_key.decode()} }} ] }}")
    with NatsServer("-c", str(settings)).running() as server:
        _configure(sandbox, server, nats={"servers": [server.url], "credentials": path})
        _run(sandbox, "1")
        reader = StreamReader(NatsAddress((server.url,), str(seed)), "LLXPRT_HOOKS")
        assert len(list(reader.lines())) == 1


def test_a_server_without_the_stream_says_so(server: NatsServer) -> None:
    with pytest.raises(LookupError, match="has no stream NOWHERE"):
        list(StreamReader(NatsAddress((server.url,)), "NOWHERE").lines())


def _admin(server: NatsServer, act: Callable[[JetStreamContext], Awaitable[object]]) -> None:
    async def connected() -> None:
        client = await open_nats_client(NatsAddress((server.url,)))
        await act(client.jetstream())
        await client.close()

    asyncio.run(connected())


def test_a_message_of_somebody_else_does_not_count_as_sent(sandbox: Project, server: NatsServer) -> None:
    """Otherwise a client that may add to the stream could make an agent believe that all its records are there."""
    _configure(sandbox, server)
    _run(sandbox, "1")
    agent = _agent(sandbox, "-1")
    assert agent.stdout is not None
    agent.stdout.readline()
    until(lambda: len(_agents(server)) == 2)
    (victim,) = _agents(server)[1:]
    _admin(server, lambda stream: stream.publish(f"LLXPRT_HOOKS.{victim}", b'{"seq":999999}'))
    agent.stdout.readline()
    agent.kill()
    agent.communicate()
    _run(sandbox, "1")
    lines = list(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines())
    assert verify(lines)[victim].problems == []
    assert spool_files() == []


def test_nobody_can_take_the_ids_of_records_in_advance(sandbox: Project, server: NatsServer) -> None:
    """The server drops a message whose id it has seen: the records of an agent could be made to vanish."""
    _configure(sandbox, server)
    _run(sandbox, "1")
    agent = _agent(sandbox, "-1")
    assert agent.stdout is not None
    agent.stdout.readline()
    until(lambda: len(_agents(server)) == 2)
    [victim] = _agents(server)[1:]

    async def take(stream: JetStreamContext) -> None:
        for number in range(500):
            await stream.publish("LLXPRT_HOOKS.x", b"{}", headers={"Nats-Msg-Id": f"{victim}-{number}"})

    _admin(server, take)
    agent.kill()
    printed, _ = agent.communicate()
    _run(sandbox, "1")
    verdict = verify(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines())[victim]
    assert (verdict.problems, verdict.records > len(printed.splitlines())) == ([], True)


def test_a_message_with_the_id_of_a_record_does_not_replace_it(server: NatsServer) -> None:
    """What the stream has under an id that was taken is compared with the record."""
    line = Chain().link({"hook": "a"})

    async def send() -> None:
        client = await open_nats_client(NatsAddress((server.url,)))
        stream = AuditStream(client, "TAKEN")
        await stream.ensure()
        taken = {"Nats-Msg-Id": hashlib.sha256(line).hexdigest()}
        await client.jetstream().publish("TAKEN.x", b"other", headers=taken)
        async for _ in stream.publish("a", [line], Sent(), {}):
            pass
        await client.close()

    asyncio.run(send())
    assert list(StreamReader(NatsAddress((server.url,)), "TAKEN").lines()) == [b"other", line]


def test_a_signed_trail_is_closed_at_the_end(sandbox: Project, server: NatsServer) -> None:
    is_signed = signature_check(new_key(sandbox.home / "audit.nk"))
    _configure(sandbox, server, signingKey="~/audit.nk")
    assert _run(sandbox, "3") == ""
    lines = list(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines())
    [verdict] = verify(lines, is_signed).values()
    assert (verdict.records, verdict.problems, verdict.is_closed) == (4, [], True)
    assert spool_files() == []


def test_a_trail_whose_key_is_missing_is_an_error(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server, signingKey="~/missing.nk")
    assert "an execution is missing in the audit trail: the signing key" in _run(sandbox, "1")


def _agents(server: NatsServer) -> list[str]:
    lines = StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines()
    return list(dict.fromkeys(json.loads(line)["chain"] for line in lines))


def test_what_the_stream_no_longer_has_is_not_sent_again(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    agent = _agent(sandbox, "-1")
    assert agent.stdout is not None
    for _ in range(20):
        agent.stdout.readline()
    until(lambda: _count(server) >= 20)
    _admin(server, lambda stream: stream.purge_stream("LLXPRT_HOOKS"))
    server.stop()
    server.start()
    until(lambda: _count(server) > 0)
    agent.kill()
    agent.communicate()
    _run(sandbox, "1")
    lines = list(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines())
    first, *_ = verify(lines).values()
    assert first.first > 20
    assert first.problems == []


def test_a_record_that_the_stream_refuses_is_set_aside_and_delays_nothing(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server, payloads=True)
    _admin(
        server, lambda stream: stream.add_stream(name="LLXPRT_HOOKS", subjects=["LLXPRT_HOOKS.*"], max_msg_size=9000)
    )
    large = AGENT.replace('{"number": number}', '{"number": number, "text": "x" * 20000 * (number == 2)}')
    assert "the server refuses a record" in _run(sandbox, "3", code=large)
    lines = list(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines())
    assert [json.loads(line)["seq"] for line in lines] == [1, 3]
    assert spool_files() == []
    (refused,) = (sandbox.home / ".llxprt" / "audit").glob("*/*.refused")
    assert json.loads(refused.read_bytes())["seq"] == 2


def test_a_file_that_cannot_be_sent_does_not_delay_others(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    folder = spool_folder(AuditRule((server.url,)))
    chain = Chain()
    for agent in ("0.x y", chain.agent):  # the first is not a valid subject
        file = SpoolFile.create(folder, agent)
        file.append(chain.link({"id": agent, "hook": "h", "type": "command"}))
        file.close(remove=False)
    assert "cannot be sent" in _run(sandbox, "1")
    lines = list(StreamReader(NatsAddress((server.url,)), "LLXPRT_HOOKS").lines())
    assert len(lines) == 2
    assert [file.stem for file in spool_files()] == ["0.x y"]


def test_a_host_name_is_found_at_the_end_of_a_program(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    settings = sandbox.user_file.read_text().replace("127.0.0.1", "localhost")
    sandbox.put("user", settings)
    assert _run(sandbox, "1") == ""
    assert len(_stream(server)) == 1
    assert spool_files() == []


def test_a_record_after_the_end_is_left_to_the_next_agent(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    late = "import atexit\natexit.register(lambda: asyncio.run(main(1)))\n"
    _run(sandbox, "1", code=late + AGENT)
    assert len(spool_files()) == 1
    _run(sandbox, "1")
    assert len(_stream(server)) == 3
    assert spool_files() == []


def test_a_fork_while_a_record_is_written_does_not_hang(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    forking = """
import threading
config.observer._lock.acquire()
child = os.fork()
if child == 0:
    asyncio.run(main(1))
else:
    config.observer._lock.release()
    assert os.waitpid(child, 0)[1] == 0
"""
    _run(sandbox, "1", code=AGENT + forking)
    assert len(_stream(server)) == 2


def test_many_records_arrive_in_order(sandbox: Project, server: NatsServer) -> None:
    _configure(sandbox, server)
    server.stop()
    _run(sandbox, "150")
    server.start()
    _run(sandbox, "1")
    assert [record["seq"] for record in _stream(server)] in ([*range(1, 151), 1], [1, *range(1, 151)])


def test_what_others_have_left_can_be_sent_before_the_first_record(sandbox: Project, server: NatsServer) -> None:
    rule = AuditRule((server.url,))
    chain = Chain()
    file = SpoolFile.create(spool_folder(rule), chain.agent)
    file.append(chain.link({"id": "1", "hook": "h"}))
    file.close(remove=False)

    trail = AuditTrail(rule, str(sandbox.root))
    trail.start()
    trail.close()

    assert len(_stream(server)) == 1
    assert spool_files() == []
