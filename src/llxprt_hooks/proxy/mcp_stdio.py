"""The MCP proxy: hooks for the tools of any MCP server that talks over standard input and output.

It sits between a client and a server, and reads JSON-RPC, one message per line. Tool calls that have hooks wait for
them, each on its own. Everything else passes byte for byte: a slow hook delays nothing but its own call.

Two threads carry the lines, one in each direction. A line that hooks do not concern is written by the thread that read
it. The others are handled on the background event loop, where hooks run; that loop never waits for a pipe.
"""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from llxprt_hooks.engine.session import Session
from llxprt_hooks.events import HookEventName
from llxprt_hooks.protocol.inputs import name_text
from llxprt_hooks.protocol.json_codec import read_json, write_json
from llxprt_hooks.proxy.exit_status import end_by_signal, status_of_failed_start
from llxprt_hooks.transport.mcp_results import (
    OUTPUT_SCHEMA,
    STRUCTURED,
    effects,
    hook_tool_name,
    is_final,
    refusal,
    tool_result,
)
from llxprt_hooks.triggers import portal
from llxprt_hooks.triggers.aliases import AliasCheck
from llxprt_hooks.triggers.relevance import is_hooked

if TYPE_CHECKING:
    from llxprt_hooks.hooks import Hooks
    from llxprt_hooks.triggers.tool import HookedToolCall

Message = dict[str, Any]
Key = tuple[str, Any]

_CHUNK: Final = 1 << 16
_DRAIN_SECONDS: Final = 2.0
"""How long the output of a server that has ended is read: a process that it left behind may hold it open."""
_FLUSH_SECONDS: Final = 5.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_CALL, _LIST, _TASK_RESULT, _CANCELLED = "tools/call", "tools/list", "tasks/result", "notifications/cancelled"
_PARSE_ERROR, _INVALID_PARAMS = -32700, -32602
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""In ``_meta`` of a request since revision 2026-07-28, in which every result has a ``resultType``."""


class _Head(msgspec.Struct):
    """What has to be known of every message. The decoder resolves escapes, so no spelling of a method is missed."""

    method: Any = None
    id: Any = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _CallParams(msgspec.Struct):
    name: Any = None


_head = msgspec.json.Decoder(_Head)
_call_params = msgspec.json.Decoder(_CallParams)
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def run_proxy(
    hooks: Hooks,
    command: Sequence[str],
    *,
    server_name: str | None = None,
    aliases: Mapping[str, str] | None = None,
) -> int:
    """Start a server, and carry messages between it and standard input and output until it ends.

    Returns the server's exit status; if a signal ended the server, the same signal ends this process.
    """
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except OSError as error:
        print(f"llxprt-hooks: cannot start the MCP server: {command[0]}: {error.strerror}", file=sys.stderr)
        return status_of_failed_start(error)
    proxy = _Proxy(hooks, server, server_name, aliases or {})
    for number in _SIGNALS:
        signal.signal(number, proxy.forward_signal)
    status = proxy.run()
    return status if status >= 0 else end_by_signal(-status)


@dataclass(eq=False, slots=True)
class _Call:
    """A tool call that has hooks."""

    hooked: HookedToolCall
    task: asyncio.Task[None] | None = None
    """What hooks are doing at the moment."""
    is_sent: bool = False


class _Proxy:
    def __init__(
        self, hooks: Hooks, server: subprocess.Popen[bytes], server_name: str | None, aliases: Mapping[str, str]
    ) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self._hooks = hooks
        self._config = hooks.config
        self._server = server
        self._server_name = server_name
        self._aliases = aliases
        self._check_aliases = AliasCheck(aliases)
        # A connection is not a session: no session event fires. It keeps a stop for the calls that follow.
        self._session = Session(hooks.config, hooks.config.session_id, "")
        self._has_tool_hooks = any(map(hooks.has_hooks_for, (HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL)))
        self._has_state = False
        """Whether the event loop has seen any message; set before it gets one."""
        self._to_server = _Pipe(server.stdin.fileno())
        self._to_client = _Pipe(1)
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
            portal.run(self._finish())
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
        for line in _lines(0):
            try:
                if self._concerns_hooks(line):
                    self._has_state = True
                    portal.call_soon(self._from_client, line)
                else:
                    self._to_server.write(line)
            except BrokenPipeError:  # report it to the client, as if it had written to the server itself
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                return
        if self._has_state:
            portal.call_soon(self._from_client, None)
        else:
            self._to_server.close()

    def _concerns_hooks(self, line: bytes) -> bool:
        if not self._has_tool_hooks:
            return False
        try:
            head = _head.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return bool(line.strip())  # a batch, or something that only a lenient reader reads
        method = head.method
        if method == _CALL:
            try:
                return self._is_hooked(_call_params.decode(head.params).name)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                return True
        return method == _LIST or (self._has_state and method in (_CANCELLED, _TASK_RESULT))

    def _is_hooked(self, tool_name: Any) -> bool:
        return self._session.stop_reason is not None or is_hooked(self._config, self._hook_name(tool_name))

    def _hook_name(self, tool_name: Any) -> str:
        return hook_tool_name(tool_name, self._server_name, self._aliases)

    # From the server, in its thread.

    def _carry_to_client(self) -> None:
        source = self._server.stdout
        assert source is not None
        with source, suppress(BrokenPipeError):
            for line in _lines(source.fileno()):
                if self._waiting and self._is_awaited(line):
                    portal.call_soon(self._from_server, line)
                else:
                    self._to_client.write(line)

    def _is_awaited(self, line: bytes) -> bool:
        try:
            head = _head.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return bool(line.strip())
        return head.method is None and _key(head.id) in self._waiting

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
            call = self._calls[_key(message.get("id"))] = _Call(self._hooked(message))
            call.task = self._start(self._send_call(call, message, line))
        elif self._passes(message):
            self._to_server.write_later(line)

    def _passes(self, message: Message) -> bool:
        """Take note of a message that is not a call; return whether the server gets it."""
        method, key, params = message.get("method"), _key(message.get("id")), _params(message)
        if method == _CANCELLED:
            return self._cancel(_key(params.get("requestId")))
        if method == _LIST:
            self._waiting[key] = self._listed
        elif method == _TASK_RESULT and (call := self._task_calls.pop(name_text(params.get("taskId")), None)):
            self._expect(call, key)
        return True

    def _hooked(self, message: Message) -> HookedToolCall:
        params = _params(message)
        arguments = params.get("arguments")
        outer = self._session
        outer.enter()
        try:
            name = self._hook_name(params.get("name"))
            return self._hooks.tool_call(name, arguments if isinstance(arguments, dict) else {})
        finally:
            outer.leave()

    async def _send_call(self, call: _Call, message: Message, line: bytes) -> None:
        key = _key(message.get("id"))
        if (answer := await self._before(call, message)) is not None:
            self._calls.pop(key, None)
            self._answer(answer)
            return
        self._expect(call, key)
        self._to_server.write_later(_rewritten(call, message, line))

    async def _before(self, call: _Call, message: Message) -> Message | None:
        """Run the hooks before a call; return the answer in the server's place, if there is one."""
        params, arguments = message.get("params"), _params(message).get("arguments")
        if not isinstance(params, dict) or not isinstance(arguments, (dict, NoneType)):
            found = "arguments" if isinstance(params, dict) else "params"
            error = {"code": _INVALID_PARAMS, "message": f"`{found}` of tools/call must be an object"}
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
        result = await call.hooked.before()
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
            if not self._is_hooked(_params(message).get("name")):
                return message
            call, key = _Call(self._hooked(message)), _key(message.get("id"))
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
        if key == _NO_ID:
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
        handle = self._waiting.pop(_key(message.get("id")), None)
        return line if handle is None else handle(message, line)

    def _listed(self, message: Message, line: bytes) -> bytes:
        """A list of tools, without the output schemas of those that have hooks."""
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(tools := result.get("tools"), list):
            return line
        names = (tool.get("name") for tool in tools if isinstance(tool, dict))
        self._check_aliases(names, more_follow=result.get("nextCursor") is not None)
        listed = [self._described(tool) for tool in tools]
        return line if listed == tools else _edited(line, message, ("result",), {"tools": listed})

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
            outcome = await call.hooked.after(tool_result(result))
        finally:
            self._calls.pop(key, None)
        if (changed := effects(result, outcome)) is not None:
            line = _edited(line, message, ("result",), changed, STRUCTURED)
        self._to_client.write_later(line)

    def _answer(self, message: Message) -> None:
        if message["id"] is not None or "error" in message:
            self._to_client.write_later(write_json(message) + b"\n")

    def _start(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Pipe:
    """Lines to one side. Each is written as a whole, also if several writers share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._later: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None

    def write(self, line: bytes) -> None:
        """Write a line, and wait until the other side has room for it."""
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]

    def close(self) -> None:
        with self._lock:
            # The number stays taken: a late write must not reach another file.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._descriptor)

    def write_later(self, line: bytes) -> None:
        """Write a line in another thread, after those that were given before."""
        self._do_later(lambda: self.write(line))

    def close_later(self) -> None:
        self._do_later(self.close)

    def flush(self, seconds: float) -> None:
        """Wait for the lines that are still to be written."""
        if self._writer is not None:
            self._later.put(None)
            self._writer.join(seconds)

    def _do_later(self, action: Callable[[], None]) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._work, name="mcp-writer", daemon=True)
            self._writer.start()
        self._later.put(action)

    def _work(self) -> None:
        while (action := self._later.get()) is not None:
            with suppress(OSError):  # nobody reads any more; the threads that read notice it
                action()


def _lines(descriptor: int) -> Iterator[bytes]:
    """Yield complete lines with their ends; at the end of the input, also an incomplete one."""
    parts: list[bytes] = []
    while data := _read(descriptor):
        start = 0
        while (end := data.find(b"\n", start) + 1) > 0:
            parts.append(data[start:end])
            yield b"".join(parts)
            parts.clear()
            start = end
        if start < len(data):
            parts.append(data[start:])
    if parts:
        yield b"".join(parts)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that was closed
        return b""


_NO_ID: Final[Key] = ("none", None)


def _key(ident: Any) -> Key:
    """Return an id as a key: ``1`` and ``"1"`` are two ids, ``1`` and ``true`` as well."""
    if isinstance(ident, str):
        return "text", ident
    if isinstance(ident, (int, float)) and not isinstance(ident, bool):
        return "number", ident
    return _NO_ID


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _rewritten(call: _Call, message: Message, line: bytes) -> bytes:
    """Return a call with the arguments that hooks changed; without changes, the same bytes."""
    given = _params(message).get("arguments") or {}
    changes = {name: value for name, value in call.hooked.input.items() if value is not given.get(name, _MISSING)}
    return _edited(line, message, ("params", "arguments"), changes) if changes else line


_MISSING: Final = object()


def _edited(line: bytes, message: Message, path: Sequence[str], changes: Message, *removed: str) -> bytes:
    """Return a message with other fields at a path. All else keeps its bytes, also what this program cannot express."""
    try:
        return _edit_raw(line, path, changes, removed) + b"\n"
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return write_json(_edit(message, path, changes, removed)) + b"\n"


def _edit_raw(text: bytes, path: Sequence[str], changes: Message, removed: Sequence[str]) -> bytes:
    fields = _raw_fields.decode(text)
    if path:
        inner = bytes(fields.get(path[0], b"{}"))
        fields[path[0]] = msgspec.Raw(_edit_raw(inner, path[1:], changes, removed))
    else:
        fields |= {name: msgspec.Raw(write_json(value)) for name, value in changes.items()}
        fields = {name: value for name, value in fields.items() if name not in removed}
    return msgspec.json.encode(fields)


def _edit(message: Message, path: Sequence[str], changes: Message, removed: Sequence[str]) -> Message:
    if path:
        return {**message, path[0]: _edit(message.get(path[0]) or {}, path[1:], changes, removed)}
    return {name: value for name, value in {**message, **changes}.items() if name not in removed}
