"""The MCP proxy: hooks for the tools of any MCP server that talks over standard input and output.

It sits between a client and a server, and reads JSON-RPC, one message per line. Tool calls that have hooks wait for
them, each on its own. Everything else passes byte for byte: a slow hook delays nothing but its own call.

Two threads carry the lines, one in each direction. A line that hooks do not concern is written by the thread that read
it. The others are handled on the background event loop, where hooks run; that loop never waits for a pipe.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from llxprt_hooks.core import loops
from llxprt_hooks.integrations.proxy.mcp.guard import GuardedConnection
from llxprt_hooks.integrations.proxy.mcp.json_rpc import MAX_MESSAGE
from llxprt_hooks.integrations.proxy.mcp.line_pipes import LinePipe, read_lines

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer

_DRAIN_SECONDS: Final = 2.0
"""How long the output of a server that has ended is read: a process that it left behind may hold it open."""
_FLUSH_SECONDS: Final = 5.0
_FLOOD: Final = (
    f"llxprt-hooks: the server sent a message of more than {MAX_MESSAGE >> 20} MiB, which cannot be checked, "
    "so it was ended"
)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_proxy(guarded: GuardedServer, command: Sequence[str]) -> int:
    """Start a server, and carry messages between it and standard input and output until it ends.

    Returns the server's exit status; the negative number of the signal that ended it. Raises ``OSError`` if it cannot
    be started.
    """
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    proxy = _Proxy(guarded, server)
    for number in _SIGNALS:
        signal.signal(number, proxy.forward_signal)
    return proxy.run()


class _Proxy:
    def __init__(self, guarded: GuardedServer, server: subprocess.Popen[bytes]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self._server = server
        self._to_server = LinePipe(server.stdin.fileno())
        self._to_client = LinePipe(1)
        self._connection = GuardedConnection(guarded, self._to_server, self._to_client, loops.call_soon)
        self._limit = MAX_MESSAGE if guarded.is_guarded else math.inf
        self._ended = False

    def run(self) -> int:
        client = threading.Thread(target=self._carry_to_server, name="mcp-client", daemon=True)
        server = threading.Thread(target=self._carry_to_client, name="mcp-server", daemon=True)
        client.start()
        server.start()
        status = self._wait()
        server.join(_DRAIN_SECONDS)
        self._finish()
        self._to_client.flush(_FLUSH_SECONDS)
        return status

    def _finish(self) -> None:
        """The server says nothing more: wait for the hooks of what it said."""
        if self._connection.has_state:
            loops.run(self._connection.finish(is_over=self._ended))

    def _wait(self) -> int:
        """Wait for the end of the server, in a way that every signal interrupts.

        A signal that comes right before a blocking call of this thread would not: Python runs its handler only after
        the call.
        """
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

        def wait() -> None:
            self._server.wait()
            os.write(writing, b"\0")

        threading.Thread(target=wait, name="mcp-wait", daemon=True).start()
        while self._server.returncode is None:
            os.read(reading, 1024)
        return self._server.returncode

    def forward_signal(self, number: int, _: object) -> None:
        """Signals are for the server. A signal that ends it does not wait for hooks either."""
        self._ended = True
        self._server.send_signal(number)

    def _carry_to_server(self) -> None:
        connection = self._connection
        for line in read_lines(0, self._limit):
            try:
                if line is None:
                    connection.has_state = True
                    loops.call_soon(connection.too_large)
                elif connection.concerns(line):
                    connection.has_state = True
                    loops.call_soon(connection.from_client, line)
                else:
                    self._to_server.write(line)
            except BrokenPipeError:  # report it to the client, as if it had written to the server itself
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                return
        if connection.has_state:
            loops.call_soon(connection.from_client, None)
        else:
            self._to_server.close()

    def _carry_to_client(self) -> None:
        source = self._server.stdout
        assert source is not None
        with source, suppress(BrokenPipeError):
            for line in read_lines(source.fileno(), self._limit):
                if line is None:
                    print(_FLOOD, file=sys.stderr)
                    self._server.terminate()
                    return
                if self._connection.is_awaited(line):
                    self._connection.has_state = True
                    loops.call_soon(self._connection.from_server, line)
                else:
                    self._to_client.write(line)
        self._finish()
        self._to_client.close_later()  # the client sees that the server has closed its output, though it still runs
