"""The MCP proxy: hooks for the tools of any MCP server that talks over standard input and output.

It sits between a client and a server, and reads JSON-RPC, one message per line. Tool calls that have hooks wait for
them, each on its own. Everything else passes byte for byte: a slow hook delays nothing but its own call.

Two threads carry the lines, one in each direction. A line that hooks do not concern is written by the thread that read
it. The others are handled on the background event loop, where hooks run; that loop never waits for a pipe.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks.core import loops
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.core.protocol.inputs import name_text
from llxprt_hooks.events import TOOL_EVENTS
from llxprt_hooks.integrations.base import ToolCallHalves
from llxprt_hooks.integrations.mcp_calls import McpIntegration
from llxprt_hooks.integrations.mcp_results import OUTPUT_SCHEMA, STRUCTURED, effects, is_final, refusal, tool_result
from llxprt_hooks.integrations.proxy.json_rpc import (
    NO_ID,
    Key,
    Message,
    called_tool,
    edited,
    head_of,
    key_of,
    params_of,
)
from llxprt_hooks.integrations.proxy.line_pipes import LinePipe, read_lines

if TYPE_CHECKING:
    from llxprt_hooks.hooks import Hooks

_DRAIN_SECONDS: Final = 2.0
"""How long the output of a server that has ended is read: a process that it left behind may hold it open."""
_FLUSH_SECONDS: Final = 5.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_CALL, _LIST, _TASK_RESULT, _CANCELLED = "tools/call", "tools/list", "tasks/result", "notifications/cancelled"
_PARSE_ERROR, _INVALID_PARAMS = -32700, -32602
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""In ``_meta`` of a request since revision 2026-07-28, in which every result has a ``resultType``."""


def run_proxy(
    hooks: Hooks,
    command: Sequence[str],
    *,
    server_name: str | None = None,
    aliases: Mapping[str, str] | None = None,
) -> int:
    """Start a server, and carry messages between it and standard input and output until it ends.

    Returns the server's exit status; the negative number of the signal that ended it. Raises ``OSError`` if it cannot
    be started.
    """
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    proxy = _Proxy(hooks, server, server_name, aliases or {})
    for number in _SIGNALS:
        signal.signal(number, proxy.forward_signal)
    return proxy.run()


@dataclass(eq=False, slots=True)
class _Call:
    """A tool call that has hooks."""

    halves: ToolCallHalves
    task: asyncio.Task[None] | None = None
    """What hooks are doing at the moment."""
    is_sent: bool = False


class _Proxy:
    def __init__(
        self, hooks: Hooks, server: subprocess.Popen[bytes], server_name: str | None, aliases: Mapping[str, str]
    ) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self._integration = McpIntegration(hooks.config, server_name=server_name, aliases=aliases)
        self._server = server
        # A connection is not a session: no session event fires. It keeps a stop for the calls that follow.
        self._session = Session(hooks.config, hooks.config.session_id, "")
        self._has_tool_hooks = self._integration.has_hooks(*TOOL_EVENTS)
        self._has_state = False
        """Whether the event loop has seen any message; set before it gets one."""
        self._to_server = LinePipe(server.stdin.fileno())
        self._to_client = LinePipe(1)
        # Of the event loop; the thread of the server only looks whether something waits for a reply.
        self._calls: dict[Key, _Call] = {}
        self._waiting: dict[Key, Callable[[Message, bytes], bytes | None]] = {}
        self._task_calls: dict[str, _Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False

    def run(self) -> int:
        client = threading.Thread(target=self._carry_to_server, name="mcp-client", daemon=True)
        server = threading.Thread(target=self._carry_to_client, name="mcp-server", daemon=True)
        client.start()
        server.start()
        status = self._wait()
        server.join(_DRAIN_SECONDS)
        if self._has_state:
            loops.run(self._finish())
        self._to_client.flush(_FLUSH_SECONDS)
        return status

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

    async def _finish(self) -> None:
        """The server is gone: end the hooks of calls that it cannot get, let hooks see the results that it gave."""
        for call in self._calls.values():
            if call.task is not None and (self._ended or not call.is_sent):
                call.task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # From the client, in its thread.

    def _carry_to_server(self) -> None:
        for line in read_lines(0):
            try:
                if self._concerns_hooks(line):
                    self._has_state = True
                    loops.call_soon(self._from_client, line)
                else:
                    self._to_server.write(line)
            except BrokenPipeError:  # report it to the client, as if it had written to the server itself
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                return
        if self._has_state:
            loops.call_soon(self._from_client, None)
        else:
            self._to_server.close()

    def _concerns_hooks(self, line: bytes) -> bool:
        if not self._has_tool_hooks:
            return False
        head = head_of(line)
        if head is None:
            return bool(line.strip())
        method = head.method
        if method == _CALL:
            return (tool := called_tool(head)) is None or self._is_hooked(tool)
        return method == _LIST or (self._has_state and method in (_CANCELLED, _TASK_RESULT))

    def _is_hooked(self, tool_name: Any) -> bool:
        return self._integration.has_tool_hooks(tool_name, self._session)

    # From the server, in its thread.

    def _carry_to_client(self) -> None:
        source = self._server.stdout
        assert source is not None
        with source, suppress(BrokenPipeError):
            for line in read_lines(source.fileno()):
                if self._waiting and self._is_awaited(line):
                    loops.call_soon(self._from_server, line)
                else:
                    self._to_client.write(line)

    def _is_awaited(self, line: bytes) -> bool:
        head = head_of(line)
        if head is None:
            return bool(line.strip())
        return head.method is None and key_of(head.id) in self._waiting

    # On the event loop.

    def _from_client(self, line: bytes | None) -> None:
        if line is None:
            self._start(self._close_when_sent())
            return
        try:
            message = read_json(line)
        except ValueError:
            self._refuse_unreadable()
            return
        if isinstance(message, list):
            self._start(self._send_batch(message))
        elif isinstance(message, dict):
            self._handle(message, line)
        else:
            self._to_server.write_later(line)

    def _refuse_unreadable(self) -> None:
        """A server that reads it in spite of all would run a tool whose hooks have not seen the call."""
        reason = "Parse error: the message is not valid JSON; hooks cannot check it, so it was not sent to the server"
        print(f"llxprt-hooks: {reason}", file=sys.stderr)
        self._answer({"jsonrpc": "2.0", "id": None, "error": {"code": _PARSE_ERROR, "message": reason}})

    def _handle(self, message: Message, line: bytes) -> None:
        if message.get("method") == _CALL:
            call = self._calls[key_of(message.get("id"))] = _Call(self._halves(message))
            call.task = self._start(self._send_call(call, message, line))
        elif self._passes(message):
            self._to_server.write_later(line)

    def _passes(self, message: Message) -> bool:
        """Take note of a message that is not a call; return whether the server gets it."""
        method, key, params = message.get("method"), key_of(message.get("id")), params_of(message)
        if method == _CANCELLED:
            return self._cancel(key_of(params.get("requestId")))
        if method == _LIST:
            self._waiting[key] = self._listed
        elif method == _TASK_RESULT and (call := self._task_calls.pop(name_text(params.get("taskId")), None)):
            self._expect(call, key)
        return True

    def _halves(self, message: Message) -> ToolCallHalves:
        params = params_of(message)
        name: Any = params.get("name")
        arguments = params.get("arguments")
        given = arguments if isinstance(arguments, dict) else {}
        return ToolCallHalves(self._integration, name, given, self._session)

    async def _send_call(self, call: _Call, message: Message, line: bytes) -> None:
        key = key_of(message.get("id"))
        if (answer := await self._before(call, message)) is not None:
            self._calls.pop(key, None)
            self._answer(answer)
            return
        self._expect(call, key)
        self._to_server.write_later(_rewritten(call, message, line))

    async def _before(self, call: _Call, message: Message) -> Message | None:
        """Run the hooks before a call; return the answer in the server's place, if there is one."""
        params, arguments = message.get("params"), params_of(message).get("arguments")
        if not isinstance(params, dict) or not isinstance(arguments, (dict, NoneType)):
            found = "arguments" if isinstance(params, dict) else "params"
            error = {"code": _INVALID_PARAMS, "message": f"`{found}` of tools/call must be an object"}
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
        result = await call.halves.before()
        if result is None:
            return None
        meta = params.get("_meta")
        is_recent = isinstance(meta, dict) and _VERSION_KEY in meta
        refused = {**refusal(result), **({"resultType": "complete"} if is_recent else {})}
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": refused}

    async def _send_batch(self, batch: list[Any]) -> None:
        """Send a batch once the hooks of all its calls are done. Refused calls are answered in a batch of their own."""
        answers: list[Message] = []

        async def checked(message: Any) -> Any:
            if not isinstance(message, dict):
                return message
            if message.get("method") != _CALL:
                return message if self._passes(message) else None
            if not self._is_hooked(params_of(message).get("name")):
                return message
            call, key = _Call(self._halves(message)), key_of(message.get("id"))
            if (answer := await self._before(call, message)) is not None:
                answers.append(answer)
                return None
            self._expect(call, key)
            return read_json(_rewritten(call, message, write_json(message)))

        remaining = [each for each in await asyncio.gather(*map(checked, batch)) if each is not None]
        if any("id" in answer and answer["id"] is not None for answer in answers):
            self._to_client.write_later(write_json(answers) + b"\n")
        if remaining or not batch:
            self._to_server.write_later(write_json(remaining) + b"\n")

    def _expect(self, call: _Call, key: Key) -> None:
        call.is_sent = True
        call.task = None
        if key == NO_ID:
            self._calls.pop(key, None)
            return
        self._calls[key] = call
        self._waiting[key] = lambda message, line: self._returned(call, key, message, line)

    def _cancel(self, key: Key) -> bool:
        """Cancel a call, and end its hooks; return whether the server has to know: not if it never got the call."""
        call = self._calls.pop(key, None)
        self._waiting.pop(key, None)
        if call is not None and call.task is not None:
            call.task.cancel()
        return call is None or call.is_sent

    async def _close_when_sent(self) -> None:
        """The client sends nothing more: close the server's input when the calls that wait for hooks are sent."""
        while sending := {task for task in self._tasks if task is not asyncio.current_task()}:
            await asyncio.wait(sending)
        self._to_server.close_later()

    def _from_server(self, line: bytes) -> None:
        try:
            message = read_json(line)
        except ValueError:
            message = None
        if isinstance(message, list):
            replies = [self._replied(each, write_json(each)) for each in message]
            kept = [read_json(reply) for reply in replies if reply is not None]
            if kept or not message:
                self._to_client.write_later(line if kept == message else write_json(kept) + b"\n")
        elif (reply := self._replied(message, line)) is not None:
            self._to_client.write_later(reply)

    def _replied(self, message: Any, line: bytes) -> bytes | None:
        """Return the line for the client now; None if it is sent later."""
        if not isinstance(message, dict) or message.get("method") is not None:
            return line
        handle = self._waiting.pop(key_of(message.get("id")), None)
        return line if handle is None else handle(message, line)

    def _listed(self, message: Message, line: bytes) -> bytes:
        """A list of tools, without the output schemas of those that have hooks."""
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(tools := result.get("tools"), list):
            return line
        names = (tool.get("name") for tool in tools if isinstance(tool, dict))
        self._integration.check_aliases(names, more_follow=result.get("nextCursor") is not None)
        listed = [self._described(tool) for tool in tools]
        return line if listed == tools else edited(line, message, ("result",), {"tools": listed})

    def _described(self, tool: Any) -> Any:
        if not isinstance(tool, dict) or OUTPUT_SCHEMA not in tool or not self._is_hooked(tool.get("name")):
            return tool
        return {name: value for name, value in tool.items() if name != OUTPUT_SCHEMA}

    def _returned(self, call: _Call, key: Key, message: Message, line: bytes) -> bytes | None:
        result = message.get("result")
        if isinstance(result, dict) and is_final(result):
            call.task = self._start(self._return(call, key, message, line))
            return None
        self._calls.pop(key, None)
        task = result.get("task") if isinstance(result, dict) else None
        task_id = task.get("taskId") if isinstance(task, dict) else None
        if isinstance(task_id, str):
            self._task_calls[task_id] = call
        return line

    async def _return(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        result: Message = message["result"]
        try:
            outcome = await call.halves.after(tool_result(result))
        finally:
            self._calls.pop(key, None)
        if (changed := effects(result, outcome)) is not None:
            line = edited(line, message, ("result",), changed, STRUCTURED)
        self._to_client.write_later(line)

    def _answer(self, message: Message) -> None:
        if message["id"] is not None or "error" in message:
            self._to_client.write_later(write_json(message) + b"\n")

    def _start(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _rewritten(call: _Call, message: Message, line: bytes) -> bytes:
    """Return a call with the arguments that hooks changed; without changes, the same bytes."""
    given = params_of(message).get("arguments") or {}
    changes = {
        name: value for name, value in call.halves.hooked.input.items() if value is not given.get(name, _MISSING)
    }
    return edited(line, message, ("params", "arguments"), changes) if changes else line


_MISSING: Final = object()
