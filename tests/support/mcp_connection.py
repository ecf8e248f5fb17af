"""A client of an MCP server that is behind the proxy. Both speak bare JSON-RPC."""

from __future__ import annotations

import json
import queue
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support import preloaded
from tests.support.processes import DEADLINE
from tests.support.project import SCRIPTS, Project

SERVER = Path(__file__).parents[1] / "cli" / "mcp_server.py"
PROXY = [str(SCRIPTS / "llxprt-hooks"), "mcp-proxy"]


class Connection:
    """A client of a server behind the proxy."""

    def __init__(self, project: Project, *options: str, server: list[str] | None = None, **variables: str) -> None:
        self.project = project
        self._received = project.note("received")
        command = ["--", *(server or [sys.executable, "-IS", str(SERVER), str(self._received)])]
        if project.project_file.exists():
            project.approve()
        self.process = preloaded.start(
            [*PROXY, "-C", str(project.root), *options, *([] if "--upstream" in options else command)],
            env=project.environment(**variables),
            cwd=project.folder,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        line = self.receive_bytes()
        assert line, "the proxy has ended"
        return json.loads(line)

    def receive_bytes(self) -> bytes:
        return self._lines.get(timeout=DEADLINE)

    def call(self, name: str, ident: Any = 1, **arguments: Any) -> Any:
        """Call a tool and return what comes back."""
        self.send(call(name, ident, **arguments))
        return self.receive()

    def text(self, name: str, **arguments: Any) -> str:
        return "\n".join(block["text"] for block in self.call(name, **arguments)["result"]["content"])

    def end(self) -> tuple[int, str]:
        """End the input; return the exit status and what was printed to standard error."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        return self.process.wait(DEADLINE), self.process.stderr.read().decode()

    def close(self) -> None:
        """End both processes, whatever state they are in."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def received(self) -> list[bytes]:
        """The lines that the server got."""
        return self._received.read_bytes().splitlines(keepends=True) if self._received.exists() else []

    def received_calls(self) -> list[Any]:
        return [json.loads(line) for line in self.received() if b"tools" in line and b"call" in line]


def call(name: str, ident: Any = 1, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


class Connections:
    def __init__(self, project: Project, **variables: str) -> None:
        self.project, self.variables = project, variables
        self.made: list[Connection] = []

    def __call__(self, *options: str, server: list[str] | None = None, **variables: str) -> Connection:
        self.made.append(Connection(self.project, *options, server=server, **self.variables, **variables))
        return self.made[-1]
