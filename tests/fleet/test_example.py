"""The files of ``examples/fleet``: the permissions of NATS hold, and the systemd unit starts a command that exists."""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nkeys  # type: ignore[import-untyped]
import pytest
from nats.errors import TimeoutError as NatsTimeoutError

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.cli.commands.serve import command as serve
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client
from tests.support.nats_server import NatsServer
from tests.support.processes import DEADLINE
from tests.support.worker import Worker

if TYPE_CHECKING:
    from tests.support.cli import CliProject

FILES = Path(__file__).parents[2] / "examples" / "fleet"


def key(folder: Path, name: str) -> tuple[str, str]:
    """Make an NKey; its public half, and the file with its seed."""
    pair = nkeys.from_seed(nkeys.encode_seed(uuid.uuid4().bytes + uuid.uuid4().bytes, nkeys.PREFIX_BYTE_USER))
    file = folder / f"{name}.nk"
    file.write_bytes(pair.seed)
    return pair.public_key.decode(), str(file)


@pytest.fixture
def agent(tmp_path: Path) -> tuple[str, str]:
    return key(tmp_path, "agent")


@pytest.fixture
def worker(tmp_path: Path) -> tuple[str, str]:
    return key(tmp_path, "worker")


@pytest.fixture
def server(tmp_path: Path, agent: tuple[str, str], worker: tuple[str, str]) -> Iterator[NatsServer]:
    """One server with the example's settings, but without its cluster and certificates."""
    text = (FILES / "nats.conf").read_text()
    text = text.replace("UAGENTSPUBLICKEY", agent[0]).replace("UWORKERSPUBLICKEY", worker[0])
    for block in ("tls", "jetstream", "cluster"):
        text, found = re.subn(rf"^{block} \{{.*?^\}}\n", "", text, flags=re.MULTILINE | re.DOTALL)
        assert found == 1
    settings = tmp_path / "nats.conf"
    settings.write_text(text)
    with NatsServer("-c", str(settings)).running() as server:
        yield server


async def test_agents_ask_and_workers_answer(
    world: CliProject, server: NatsServer, agent: tuple[str, str], worker: tuple[str, str]
) -> None:
    world.configure(BeforeTool=world.hook("policy", {"decision": "deny", "reason": "the policy says no"}))
    hook = {"type": "nats", "servers": [server.url], "credentials": agent[1]}
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]})

    with Worker(world, "--nats", server.url, "--credentials", worker[1]):
        output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert output.get_effective_reason() == "the policy says no"


async def test_an_agent_cannot_answer(world: CliProject, server: NatsServer, agent: tuple[str, str]) -> None:
    client = await open_nats_client(NatsAddress((server.url,), agent[1]))

    async def pretend(message: object) -> None:
        raise AssertionError("an agent got a request")

    await client.subscribe("llxprt.hooks", "llxprt-hooks", cb=pretend)
    hook = {"type": "nats", "servers": [server.url], "credentials": agent[1]}
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [{**hook, "failClosed": True}]}]})

    output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert "no worker listens" in output.get_effective_reason()
    await client.close()


async def test_an_agent_adds_to_the_audit_trail_and_cannot_remove_it(
    world: CliProject, server: NatsServer, agent: tuple[str, str]
) -> None:
    hook = {"type": "command", "command": "exit 2"}
    audit = {"nats": {"servers": [server.url], "credentials": agent[1]}}
    hooks = {"BeforeTool": [{"hooks": [hook]}]}
    world.put("user", {"enableHooks": True, "hooksConfig": {"audit": audit}, "hooks": hooks})
    events = 0
    while events < 2 or list((world.home / ".llxprt" / "audit").glob("*/*.jsonl")):
        assert events < 10, "the records are not sent"
        world.run("fire", "BeforeTool")  # on a busy machine it may end before all is sent; the next one sends the rest
        events += 1

    client = await open_nats_client(NatsAddress((server.url,), agent[1]))
    jetstream = client.jetstream(timeout=DEADLINE)
    assert (await jetstream.stream_info("LLXPRT_HOOKS")).state.messages == events
    with pytest.raises(NatsTimeoutError):
        await client.jetstream(timeout=1).purge_stream("LLXPRT_HOOKS")
    assert (await jetstream.stream_info("LLXPRT_HOOKS")).state.messages == events
    await client.close()


def test_the_systemd_unit_starts_a_command_that_exists() -> None:
    unit = (FILES / "llxprt-hooks-worker.service").read_text().replace("\\\n", " ")
    found = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert found
    program, name, *arguments = shlex.split(found[1])

    assert (Path(program).name, name) == ("llxprt-hooks", "serve")
    known = {option for parameter in serve.params for option in parameter.opts}
    assert {each for each in arguments if each.startswith("-")} <= known
    assert "ExecReload=/bin/kill -HUP $MAINPID" in unit
