"""What the MCP proxy adds to a call, over the same server without it. The server is `cat`: it answers at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from figures import MICROSECONDS, Line, middle

if TYPE_CHECKING:
    from scene import Scene

BUDGET = 0.2e-3
HOOKS = 20
PROXY = [str(Path(sys.executable).with_name("llxprt-hooks")), "mcp-proxy"]
CALL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "write_file", "arguments": {"file_path": "a.txt", "content": "x" * 200}},
    }
).encode()


def mcp_proxy_lines(scene: Scene, *, rounds: int, calls: int) -> list[Line]:
    """Time round trips directly and through the proxy in turn, so that both see the same machine."""
    lines = []
    for title, settings in _settings().items():
        project = scene.folder / f"mcp-{len(lines)}"
        (project / ".llxprt").mkdir(parents=True)
        (project / ".llxprt" / "settings.json").write_text(json.dumps(settings))
        lines.append(_line(title, project, rounds, calls))
    return lines


def _settings() -> dict[str, object]:
    group = [{"matcher": f"^other_{n}$", "hooks": [{"type": "command", "command": "true"}]} for n in range(HOOKS)]
    hooks = {"BeforeTool": group, "AfterTool": group}
    return {
        "the MCP proxy, hooks disabled: added to a call": {"enableHooks": False, "hooks": hooks},
        f"the MCP proxy, none of {HOOKS} hooks matches: added to a call": {"enableHooks": True, "hooks": hooks},
    }


def _line(title: str, project: Path, rounds: int, calls: int) -> Line:
    line = Line(title, MICROSECONDS, BUDGET)
    environment = {**os.environ, "HOME": str(project), "LLXPRT_TRUST_PROJECT_HOOKS": "1"}
    with (
        _Connection(["cat"], environment) as direct,
        _Connection([*PROXY, "-C", str(project), "--", "cat"], environment) as proxied,
    ):
        alone = []
        for _ in range(rounds + 1):
            alone.append(direct.round_trips(calls))
            line.rounds.append(proxied.round_trips(calls) - alone[-1])
    del line.rounds[0]
    line.beside = f"`cat` alone {middle(alone[1:])}"
    return line


class _Connection:
    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def round_trips(self, calls: int) -> float:
        """Return the seconds that one call takes, the median of many."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        sink, source = self._process.stdin.fileno(), self._process.stdout.fileno()
        times = []
        for _ in range(calls):
            started = time.perf_counter()
            os.write(sink, CALL + b"\n")
            received = 0
            while received <= len(CALL):
                received += len(os.read(source, 65536))
            times.append(time.perf_counter() - started)
        return sorted(times)[len(times) // 2]
