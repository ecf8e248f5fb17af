"""Starts ``llxprt-hooks`` in a copy of a process that has imported it: nine tenths of a short command are imports.

What the command itself can tell apart is its own command line in ``/proc``. It is a child of the test, with its own
descriptors, folder and environment, and ends like any process. Where that cannot be had, it is started as users do.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import platform
import pty
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

_CLONE: Final = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
_CLONE_PARENT: Final = 0x8000
_SIGCHLD: Final = 17
_IN_EVERY_COMMAND: Final = (
    *("llxprt_hooks.cli.main", "llxprt_hooks.config", "llxprt_hooks.hooks", "llxprt_hooks.cli.approval"),
    *(f"llxprt_hooks.cli.commands.{name}" for name in ("fire", "list", "log", "trust", "validate")),
    *(f"llxprt_hooks.commands.{name}" for name in ("fire", "list", "log", "validate.diagnose", "validate.inspection")),
    *("rich.console", "rich.status", "rich.table", "rich.text", "msgspec.json", "regress"),
)
_IN_COMMANDS: Final = {
    "run": (
        *("llxprt_hooks.agent.build", "llxprt_hooks.agent.screen.interactive", "llxprt_hooks.cli.commands.run"),
        "llxprt_hooks.model.google_genai",
    ),
    "inspect": ("llxprt_hooks.cli.commands.inspect", "llxprt_hooks.cli.web.server"),
    "mcp-proxy": (
        *("llxprt_hooks.cli.commands.mcp_proxy", "jsonschema.validators", "asyncio"),
        *(f"llxprt_hooks.integrations.proxy.mcp.{name}" for name in ("http", "reached", "served")),
    ),
    "model-proxy": ("llxprt_hooks.cli.commands.model_proxy", "llxprt_hooks.integrations.proxy.model_http.app"),
    "serve": ("llxprt_hooks.cli.commands.serve", "llxprt_hooks.fleet.serve.http_front", "nats"),
}


class Preloaded(subprocess.Popen[bytes]):
    """The command as a child process, like ``Popen([COMMAND, …])``, started from a process that has imported it."""

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        # The first of them is executable; the pipes follow shell.
        preexec, cwd, env, pipes = rest[1], rest[4], rest[5], rest[9:15]
        stdin, _, _, stdout, _, stderr = pipes
        in_terminal = preexec is _log_in
        self.pid = _server().start([list(args), os.fspath(cwd), dict(env), in_terminal], (stdin, stdout, stderr))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def start(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    as_users_do: bool = False,
) -> subprocess.Popen[bytes]:
    """Start the installed command; ``as_users_do`` for tests of what other processes see of it."""
    kind = Preloaded if not as_users_do and _can_be_preloaded(env) else subprocess.Popen
    return kind(list(command), cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)


def start_in_terminal(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], size: tuple[int, int]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the installed command in a pseudo-terminal of its own; the descriptor is the person's side of it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, size)
    kind = Preloaded if _can_be_preloaded(env) else subprocess.Popen
    process = kind(list(command), cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=_log_in)
    os.close(theirs)
    return process, ours


def _log_in() -> None:
    """In the child: its standard input is the terminal of a new session."""
    os.login_tty(0)


def _can_be_preloaded(env: Mapping[str, str]) -> bool:
    """Whether a Python with this environment would have started like the one that has imported the command."""
    own = any(name.startswith(("PYTHON", "LC_", "COVERAGE")) for name in env)
    return sys.platform == "linux" and _CLONE is not None and not own and env.get("LANG") == "C.UTF-8"


class _Server:
    """The process that has imported the command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", __file__, str(theirs.fileno())],
                cwd="/",
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent"},
                # Python makes the objects of its streams when it starts, and those of commands are pipes.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.end)

    def start(self, what: list[Any], streams: tuple[int, int, int]) -> int:
        request = json.dumps(what, ensure_ascii=True).encode()
        with self._lock:
            socket.send_fds(self._socket, [len(request).to_bytes(8, "big")], streams)
            self._socket.sendall(request)
            return int.from_bytes(_received(self._socket, 8), "big")

    def end(self) -> None:
        self._socket.close()
        self._process.communicate()


_servers: dict[int, _Server] = {}


def _server() -> _Server:
    """The server of this process, which is started when it is first needed."""
    if (server := _servers.get(os.getpid())) is None:
        server = _servers[os.getpid()] = _Server()
    return server


def end_server() -> None:
    """End the server of this process, for tests that wait for any child of it. The next command starts another one."""
    if (server := _servers.pop(os.getpid(), None)) is not None:
        atexit.unregister(server.end)
        server.end()


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (part := connection.recv(size - len(data))):
            raise EOFError
        data += part
    return data


# What runs in that process.


def _serve(connection: socket.socket) -> bool:
    """Start commands until the tests have ended. Returns True in the process of a command."""
    for name in _IN_EVERY_COMMAND:
        import_module(name)
    gc.freeze()
    while True:
        with suppress(EOFError):
            size, streams, _, _ = socket.recv_fds(connection, 8, 3)
            if not size:
                return False
            command, cwd, env, in_terminal = json.loads(_received(connection, int.from_bytes(size, "big")))
            for name in _IN_COMMANDS.get(command[1] if len(command) > 1 else "", ()):
                import_module(name)
            if (pid := _clone()) == 0:
                connection.close()
                _become(command, cwd, env, streams)
                if in_terminal:
                    _log_in()
                    _open_streams()
                return True
            for stream in streams:
                os.close(stream)
            connection.sendall(pid.to_bytes(8, "big"))


def _clone() -> int:
    """Fork, as a child of our parent, which can so wait for it."""
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = ctypes.PyDLL(None).syscall(_CLONE, _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    assert pid >= 0
    return int(pid)


def _become(command: list[str], cwd: str, env: dict[str, str], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.argv = command
    sys.path[0] = str(Path(command[0]).parent)


def _open_streams() -> None:
    """As Python does when it starts: in a terminal, what is printed is written line by line."""
    for number, (name, mode) in enumerate([("stdin", "r"), ("stdout", "w"), ("stderr", "w")]):
        errors = getattr(sys, name).errors
        stream = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        from llxprt_hooks.cli.main import main

        main()
