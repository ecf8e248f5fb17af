"""A server that is started by a command, offered over HTTP: ``mcp-proxy --http HOST:PORT -- server``.

Each client has a process of its own, so ids, progress and state of two clients are never mixed up. That needs sessions:
a request that stands alone, as since revision 2026-07-28, is refused, and clients then begin a session as before.

Over standard output, nothing says which request a message of the server belongs to. A reply goes to the request with
its id, progress to the one with its token, and everything else to the latest request that is open. Without one, it
waits for the client's stream of its own (GET).
"""

from __future__ import annotations

import asyncio
import math
import sys
from asyncio.subprocess import PIPE, Process
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from starlette.responses import Response

from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks.integrations.proxy.mcp.calls import TAKEN
from llxprt_hooks.integrations.proxy.mcp.guard import GuardedConnection
from llxprt_hooks.integrations.proxy.mcp.json_rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MAX_MESSAGE,
    NO_ID,
    PARSE_ERROR,
    Message,
    head_of,
    key_of,
    params_of,
    replies_in,
)
from llxprt_hooks.integrations.proxy.mcp.server import Passing
from llxprt_hooks.integrations.proxy.mcp.web import (
    JSON,
    SESSION_HEADER,
    Event,
    Front,
    error,
    plain,
    streamed,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer

PATH: Final = "/mcp"
_MAX_SESSIONS: Final = 64
_MAX_KEPT: Final = 1000
_END_SECONDS: Final = 3.0
_HEADER_SECONDS: Final = 5.0
"""After which an answer begins, though the server has not said anything yet."""


class ServedCommand(Front):
    """The proxy before a command."""

    def __init__(
        self, guarded: GuardedServer, command: Sequence[str], *, host: str, allowed_hosts: Iterable[str] = ()
    ) -> None:
        """``host`` is where it listens."""
        super().__init__(PATH, host=host, allowed_hosts=allowed_hosts)
        self._guarded, self._command = guarded, command
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    async def answer(self, request: Request, content: bytes) -> Response:
        if request.url.path != self.path:
            return error(404, f"not found; the server is at {self.path}")
        name = request.headers.get(SESSION_HEADER)
        session = None if name is None else self._sessions.get(name)
        if name is not None and session is None:
            return error(404, "this session has ended, or its server has")
        if name is not None:
            self._sessions.move_to_end(name)
        match request.method:
            case "POST":
                return await self._post(session, content)
            case "GET" if session is not None:
                return session.listen()
            case "DELETE" if session is not None and name is not None:
                del self._sessions[name]
                await session.end()
                return Response(status_code=204)
            case "GET" | "DELETE":
                return error(400, f"the header {SESSION_HEADER} is missing")
        return Response(status_code=405, headers={"allow": "GET, POST, DELETE"})

    async def _post(self, session: _Session | None, content: bytes) -> Response:
        try:
            message = read_json(content)
        except ValueError:
            return error(400, "the message is not valid JSON", PARSE_ERROR)
        if session is not None:
            return await session.post(content, message)
        if not isinstance(message, dict) or message.get("method") != "initialize":
            return error(400, f"the header {SESSION_HEADER} is missing, and this message does not begin a session")
        try:
            return await self._begin(content, message)
        except OSError as failure:
            return error(502, f"cannot start the MCP server: {self._command[0]}: {failure.strerror}")

    async def _begin(self, content: bytes, message: Message) -> Response:
        if len(self._sessions) >= _MAX_SESSIONS and not await self._make_room():
            return error(503, f"{_MAX_SESSIONS} clients are connected already")
        name = uuid4().hex

        def ended() -> None:
            self._sessions.pop(name, None)

        session = self._sessions[name] = _Session(self._guarded, await self._start(), ended)
        response = await session.post(content, message)
        response.headers[SESSION_HEADER] = name
        return response

    async def _make_room(self) -> bool:
        """End the session that has not been used for the longest time, if it waits for nothing."""
        name = next((name for name, session in self._sessions.items() if not session.is_busy), None)
        if name is not None:
            await self._sessions.pop(name).end()
        return name is not None

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE, limit=MAX_MESSAGE)

    async def close(self) -> None:
        await asyncio.gather(*(each.end() for each in [*self._sessions.values()]))


class _Post:
    """A request over HTTP that has not been answered completely."""

    def __init__(self, message: Any) -> None:
        requests = [each for each in (message if isinstance(message, list) else [message]) if isinstance(each, dict)]
        self.is_batch = isinstance(message, list)
        self.ids = {key_of(each["id"]) for each in requests if "method" in each and "id" in each}
        self.pending = {(kind, ident) for kind, ident in self.ids if kind == "text" or _is_finite(ident)}
        """The requests that have not been answered yet."""
        metas = [params_of(each).get("_meta") for each in requests]
        self.tokens = {key_of(meta.get("progressToken")) for meta in metas if isinstance(meta, dict)} - {NO_ID}
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()


class _Session:
    """A process of the server, and the connection of the one client that uses it."""

    def __init__(self, guarded: GuardedServer, process: Process, ended: Callable[[], None]) -> None:
        """``ended`` is called when the process has ended."""
        self._process, self._ended = process, ended
        self._connection = GuardedConnection(guarded, Passing(self._send), Passing(self._deliver))
        self._posts: list[_Post] = []
        self._listener: asyncio.Queue[bytes | None] | None = None
        self._kept: deque[bytes] = deque(maxlen=_MAX_KEPT)
        self._reading = asyncio.ensure_future(self._read())

    @property
    def is_busy(self) -> bool:
        """Whether the client waits for something."""
        return bool(self._posts) or self._listener is not None

    async def post(self, content: bytes, message: Any) -> Response:
        """Send what the client has posted, and return the answer."""
        post = _Post(message)
        if not post.ids <= post.pending:
            return error(400, "an id must be a string or a number", INVALID_REQUEST)
        if any(each.pending & post.pending for each in self._posts):
            return error(400, TAKEN, INVALID_REQUEST)
        self._posts.append(post)
        line = content.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"  # neither is possible inside of a string
        if self._connection.concerns(line):
            self._connection.has_state = True
            self._connection.from_client(line)
        else:
            self._send(line)
        if not post.pending:
            self._posts.remove(post)
            return Response(status_code=202) if post.events.empty() else plain(400, [], post.events.get_nowait() or b"")
        try:
            first = await asyncio.wait_for(post.events.get(), _HEADER_SECONDS)
        except TimeoutError:
            return streamed(self._events(post))
        if first is not None and not post.pending and not post.is_batch and post.events.qsize() == 1:
            self._close(post)
            return plain(200, [], first, JSON)
        return streamed(self._events(post, first))

    async def _events(self, post: _Post, first: bytes | None = None) -> AsyncIterator[bytes]:
        try:
            event = first or await post.events.get()
            while event is not None:
                yield Event(b"event: message\n", event).encoded()
                event = await post.events.get()
        finally:
            self._close(post)

    def _close(self, post: _Post) -> None:
        """The request has been answered, or its client is gone."""
        if post in self._posts:
            self._posts.remove(post)

    def listen(self) -> Response:
        """Return the stream of what the server says without having been asked."""
        if self._listener is not None:
            return error(409, "this session has such a stream already")
        listener: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._listener = listener
        for line in self._kept:
            listener.put_nowait(line)
        self._kept.clear()

        async def events() -> AsyncIterator[bytes]:
            try:
                while (line := await listener.get()) is not None:
                    yield Event(b"event: message\n", line).encoded()
            finally:
                self._listener = None

        return streamed(events())

    def _send(self, line: bytes) -> None:
        """Send a message to the server."""
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(line)

    def _deliver(self, line: bytes) -> None:
        """Send a message of the server to the client."""
        if not line.strip():
            return
        post = self._post_of(line)
        if post is not None:
            post.events.put_nowait(line)
            if not post.pending:
                post.events.put_nowait(None)
        elif self._listener is not None:
            self._listener.put_nowait(line)
        else:
            self._kept.append(line)

    def _post_of(self, line: bytes) -> _Post | None:
        head = head_of(line)
        latest = next((post for post in reversed(self._posts) if post.pending), None)
        if head is None:
            answered = replies_in(line)
            for post in self._posts if answered else ():
                if post.pending & answered:
                    post.pending -= answered
                    return post
            return latest
        if head.is_reply:
            key = key_of(head.id)
            found = next((post for post in self._posts if key in post.pending), None)
            if found is not None:
                found.pending.discard(key)
            return found or (latest if key == NO_ID else None)
        if head.method == "notifications/progress":
            token = key_of(params_of(_object(line)).get("progressToken"))
            return next((post for post in self._posts if token in post.tokens), latest)
        return latest

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            async for line in self._process.stdout:
                if self._connection.is_awaited(line):
                    self._connection.has_state = True
                    self._connection.from_server(line)
                else:
                    self._deliver(line)
        except ValueError:
            print(f"llxprt-hooks: the server sent a message of more than {MAX_MESSAGE >> 20} MiB", file=sys.stderr)
        await self._gone()

    async def _gone(self) -> None:
        self._ended()
        if self._connection.has_state:
            await self._connection.finish(is_over=False)
        problem = {"code": INTERNAL_ERROR, "message": "llxprt-hooks: the MCP server has ended"}
        for post in self._posts:
            for _, ident in sorted(post.pending, key=str):
                post.events.put_nowait(write_json({"jsonrpc": "2.0", "id": ident, "error": problem}))
            post.pending.clear()
            post.events.put_nowait(None)
        if self._listener is not None:
            self._listener.put_nowait(None)
        await _end(self._process)

    async def end(self) -> None:
        """End the process."""
        await _end(self._process)
        await self._reading


async def _end(process: Process) -> None:
    """End a process as MCP says: first its input, then by signals."""
    assert process.stdin is not None
    process.stdin.close()
    for stop in (process.terminate, process.kill):
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)
            return
        with suppress(ProcessLookupError):
            stop()
    await process.wait()


def _is_finite(ident: Any) -> bool:
    return ident is not None and math.isfinite(ident)


def _object(line: bytes) -> Message:
    found = read_json(line)
    return found if isinstance(found, dict) else {}
