"""An inspector that runs, and records for it to show."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from llxprt_hooks import Config, HookLog
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.support.cli import CliProject

GUARD: dict[str, list[dict[str, Any]]] = {
    "BeforeTool": [
        {
            "matcher": "write_file",
            "hooks": [
                {
                    "type": "command",
                    "name": "no-secrets",
                    "command": "grep -q AKIA && { echo 'it has a key' >&2; exit 2; }; exit 0",
                }
            ],
        },
        {"matcher": "Write", "hooks": [{"type": "command", "name": "typo", "command": "true"}]},
    ],
    "AfterTool": [{"hooks": [{"type": "command", "name": "broken", "command": "echo 'no disk' >&2; exit 9"}]}],
}
"""A guard, a hook whose matcher is wrong, and one that always fails."""


@dataclass(frozen=True)
class Inspector:
    """An inspector in a process of its own."""

    process: subprocess.Popen[bytes]
    address: str

    @property
    def origin(self) -> str:
        return self.address.partition("/?")[0]

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A browser that opened the address."""
        with httpx.Client(base_url=self.origin, timeout=DEADLINE, headers={"Origin": self.origin}) as client:
            assert client.get(self.address).status_code == 200
            yield client

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(DEADLINE)


@contextmanager
def inspecting(world: CliProject, *arguments: str, **environment: str) -> Iterator[Inspector]:
    """Run an inspector in a project."""
    process = world.start("inspect", "--no-open", *arguments, **environment)
    with process:
        try:
            assert process.stdout
            address = process.stdout.readline().decode().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{43}", address), (
                process.stderr and process.stderr.read()
            )
            yield Inspector(process, address)
        finally:
            if process.poll() is None:
                process.kill()


def fire(world: CliProject, tool: str, arguments: Mapping[str, Any], *, payloads: bool = True) -> None:
    """Let an agent's tool call run its hooks, recorded as `run` does."""

    async def call() -> None:
        config = Config.load(world.root, observer=HookLog(world.root, payloads=payloads))
        system = config.get_hook_system()
        assert system
        handler = system.ready_event_handler()
        await handler.fire_before_tool_event(tool, arguments)
        await handler.fire_after_tool_event(tool, arguments, {"llmContent": "done"})

    with world.inside(LLXPRT_TRUST_PROJECT_HOOKS="1"):
        asyncio.run(call())
