"""A policy worker as a process: ``llxprt-hooks serve``."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.support import preloaded
from tests.support.cli import COMMAND
from tests.support.processes import DEADLINE, until
from tests.support.project import APPROVED

if TYPE_CHECKING:
    from tests.support.project import Project


class Response(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Worker:
    """A worker in a project. It is ready when this is created, and ended when the block is left."""

    def __init__(self, project: Project, *arguments: str, approved: bool = True, **environment: str) -> None:
        self.lines: list[str] = []
        """What it has printed to stderr."""
        self.process = preloaded.start(
            [COMMAND, "serve", *arguments],
            cwd=project.root,
            env=project.environment(**(APPROVED if approved else {}), **environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.wait_for("llxprt-hooks: ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    @property
    def text(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        found = re.search(r"listening on (\S+)", self.text)
        assert found
        return found[1]

    def wait_for(self, words: str) -> None:
        """Wait until it has printed something."""
        until(lambda: words in self.text or self._has_ended())
        assert words in self.text, self.text

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        status = self.process.wait(DEADLINE)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status

    def post(self, payload: Any, **headers: str) -> Response:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        all_headers = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self._send(urllib.request.Request(f"{self.url}/v1/events", data, all_headers))

    def get(self, path: str, **headers: str) -> Response:
        return self._send(urllib.request.Request(f"{self.url}{path}", headers=headers))

    def _send(self, request: urllib.request.Request) -> Response:
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return Response(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, error.read())

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.decode())

    def _has_ended(self) -> bool:
        return self.process.poll() is not None and not self._reader.is_alive()
