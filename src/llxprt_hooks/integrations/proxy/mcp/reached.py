"""A server that is reached over HTTP, for a client on standard input and output: ``mcp-proxy --upstream URL``.

Each line of the client is posted, and each message of the server's answers becomes a line; both pass the guard. What a
client over HTTP has to know, this module knows in its place: the session, the revision of the protocol, the stream of
what the server says without having been asked, and how to resume a stream that broke off. A request that the server
cannot answer is answered here, so that no client waits in vain.
"""

from __future__ import annotations

import asyncio
import base64
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httpx

from llxprt_hooks._support.json_codec import read_json, read_json_object, write_json
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.integrations.proxy.mcp.guard import GuardedConnection
from llxprt_hooks.integrations.proxy.mcp.http import CONNECT_SECONDS, body_of, kind_of
from llxprt_hooks.integrations.proxy.mcp.json_rpc import (
    CALL,
    INTERNAL_ERROR,
    MAX_MESSAGE,
    Key,
    key_of,
    params_of,
    replies_in,
)
from llxprt_hooks.integrations.proxy.mcp.line_pipes import LinePipe, read_lines
from llxprt_hooks.integrations.proxy.mcp.offers import INITIALIZE
from llxprt_hooks.integrations.proxy.mcp.server import Passing
from llxprt_hooks.integrations.proxy.mcp.web import EVENTS, JSON, SESSION_HEADER, TooLargeError, events_of

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer

log = debug_logger("proxy")

_VERSION_HEADER: Final = "mcp-protocol-version"
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_NAMES: Final = {CALL: "name", "prompts/get": "name", "resources/read": "uri"}
"""What a request is about. Since revision 2026-07-28, a header repeats it."""
_PLAIN: Final[re.Pattern[str]] = re.compile(r"(?!=\?base64\?)[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
_NOTIFY_SECONDS: Final = 30.0
"""That a notification may take, because what the client sends after it waits."""
_PATIENCE: Final = 5.0
"""Seconds for the answers that are still open when the client closes its output."""
_END_SECONDS: Final = 3.0
_RESUME_SECONDS: Final = 1.0
_MAX_RESUMES: Final = 5
"""Attempts in succession that get no event."""
_MAX_SHOWN: Final = 300
_ADVICE: Final = {
    401: "pass a token with --header 'Authorization: Bearer $NAME', where NAME is a variable of the environment",
    403: "the server does not accept the token, or no request without one",
    404: "check the URL",
    405: "check the URL: the server may not speak Streamable HTTP there",
}


def run_reached(guarded: GuardedServer, url: str, headers: Mapping[str, str]) -> None:
    """Carry messages between standard input and output and a server, until the client closes its output."""
    asyncio.run(_run(guarded, url, headers))


async def _run(guarded: GuardedServer, url: str, headers: Mapping[str, str]) -> None:
    async with httpx.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        limits=httpx.Limits(max_connections=None),
    ) as client:
        await _Reached(guarded, client, url).run()


class _FailedError(Exception):
    """Why a message got no answer."""


@dataclass
class _Position:
    """Where a stream of events can be resumed."""

    last: str = ""
    seconds: float = _RESUME_SECONDS

    def note(self, fields: bytes) -> None:
        """Take note of the lines of an event before its data."""
        for line in fields.decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id" and _PLAIN.fullmatch(value):
                self.last = value
            elif name == "retry" and value.isdecimal():
                self.seconds = min(int(value) / 1000, _NOTIFY_SECONDS)


@dataclass(eq=False)
class _Post:
    """A line of the client that is sent to the server."""

    line: bytes
    message: Any
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        each = self.message if isinstance(self.message, list) else [self.message]
        requests = [one for one in each if isinstance(one, dict) and "method" in one and one.get("id") is not None]
        self.pending: set[Key] = {key_of(one["id"]) for one in requests}
        """The requests that have not been answered yet."""
        single = self.message if isinstance(self.message, dict) else {}
        self.method, self.params = single.get("method"), params_of(single)
        meta = self.params.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        self.version = version if isinstance(version, str) else None
        """The revision, if the message names it, as since 2026-07-28."""

    def headers(self) -> dict[str, str]:
        """Return what headers repeat of the message."""
        if self.version is None or not isinstance(self.method, str):
            return {}
        name = self.params.get(_NAMES.get(self.method, ""))
        named = {"mcp-name": _encoded(name)} if isinstance(name, str) else {}
        return {_VERSION_HEADER: _encoded(self.version), "mcp-method": _encoded(self.method), **named}


class _Reached:
    def __init__(self, guarded: GuardedServer, client: httpx.AsyncClient, url: str) -> None:
        self._client, self._url = client, url
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        """What the client sends to the server, in order; None at its end."""
        self._to_client = LinePipe(1)
        self._loop = asyncio.get_running_loop()
        to_server = Passing(self._lines.put_nowait, close=lambda: self._lines.put_nowait(None))
        self._connection = GuardedConnection(guarded, to_server, self._to_client, self._call_soon)
        self._limit = MAX_MESSAGE if guarded.is_guarded else sys.maxsize
        self._session: dict[str, str] = {}
        """The headers that a session has."""
        self._posts: set[_Post] = set()
        self._listening: asyncio.Task[None] | None = None
        self._client_is_gone = asyncio.Event()

    async def run(self) -> None:
        """Carry messages until the client is gone, or a signal ends this."""
        sending = asyncio.ensure_future(self._send_all())
        finishing = asyncio.ensure_future(self._finish(sending))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, finishing.cancel)
        threading.Thread(target=self._read_client, name="mcp-client", daemon=True).start()
        is_over = True
        with suppress(asyncio.CancelledError, TimeoutError):
            await finishing
            is_over = False
        running = [sending, *filter(None, [self._listening, *(post.task for post in self._posts)])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._connection.finish(is_over=is_over)
        await self._end_session()
        await asyncio.to_thread(self._to_client.flush, _PATIENCE)

    def _call_soon(self, function: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)

    # From the client.

    def _read_client(self) -> None:
        for line in read_lines(0, self._limit):
            self._call_soon(self._from_client, line)
        self._call_soon(self._client_is_gone.set)

    def _from_client(self, line: bytes | None) -> None:
        if line is None:
            self._connection.has_state = True
            self._connection.too_large()
        elif self._connection.concerns(line):
            self._connection.has_state = True
            self._connection.from_client(line)
        elif line.strip():
            self._lines.put_nowait(line)

    async def _finish(self, sending: asyncio.Task[None]) -> None:
        """Wait until the client is gone, then for what it still gets. Raises ``TimeoutError`` if that takes long."""
        await self._client_is_gone.wait()
        self._connection.from_client(None)
        async with asyncio.timeout(_PATIENCE):
            await sending
            while tasks := [post.task for post in self._posts if post.task is not None and not post.task.done()]:
                await asyncio.wait(tasks)

    # To the server.

    async def _send_all(self) -> None:
        while (line := await self._lines.get()) is not None:
            try:
                message = read_json(line)
            except ValueError:
                message = None
            post = _Post(line, message)
            if post.method == "notifications/cancelled" and self._aborts(post):
                continue
            self._posts.add(post)
            post.task = asyncio.create_task(self._post(post))
            post.task.add_done_callback(partial(self._forget, post))
            if not post.pending or post.method == INITIALIZE:  # all that follows is to arrive after it
                await asyncio.wait([post.task])

    def _forget(self, post: _Post, _: object) -> None:
        self._posts.discard(post)

    def _aborts(self, post: _Post) -> bool:
        """Whether a request is canceled by the end of its connection, as since revision 2026-07-28."""
        key = key_of(post.params.get("requestId"))
        found = next((each for each in self._posts if key in each.pending and each.version), None)
        if found is not None and found.task is not None:
            found.task.cancel()
        return found is not None

    async def _post(self, post: _Post) -> None:
        problem = "the MCP server has ended its answer without a result"
        try:
            async with asyncio.timeout(None if post.pending else _NOTIFY_SECONDS):
                await self._exchange(post)
        except TooLargeError:
            problem = f"the answer of the MCP server is larger than {MAX_MESSAGE >> 20} MiB"
        except _FailedError as failure:
            problem = str(failure)
        except httpx.LocalProtocolError:  # its text may quote headers, which are secret
            problem = "the request is not valid HTTP"
        except httpx.ConnectError as failure:
            problem = f"cannot reach the MCP server: {failure}"
        except httpx.HTTPError as failure:
            problem = f"the connection to the MCP server broke off: {str(failure) or type(failure).__name__}"
        except TimeoutError:
            problem = f"the MCP server did not accept a message in {_NOTIFY_SECONDS:.0f} seconds"
        else:
            if not post.pending:
                return
        problem = f"llxprt-hooks: {problem}"
        print(escape_for_terminal(problem), file=sys.stderr)
        for _, ident in sorted(post.pending, key=str):
            error = {"code": INTERNAL_ERROR, "message": problem}
            await self._receive(write_json({"jsonrpc": "2.0", "id": ident, "error": error}), post)

    async def _exchange(self, post: _Post) -> None:
        headers = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON, **post.headers()}
        async with self._answer("POST", headers, post.line.strip()) as response:
            if session := response.headers.get(SESSION_HEADER):
                self._session[SESSION_HEADER] = session
            kind = kind_of(response)
            if kind == EVENTS and response.is_success:
                await self._follow(response, post)
                return
            body = await body_of(response)
        if kind == JSON and post.pending & replies_in(body):  # an error has a status of its own since 2026-07-28
            await self._receive(body, post)
        elif not response.is_success:
            raise _FailedError(self._refusal(response, body))
        elif post.pending:
            found = f"of type {kind or 'unknown'}" if kind != JSON else "that is no reply to the request"
            raise _FailedError(
                f"the MCP server sent an answer {found}; expected {JSON} or {EVENTS} with a JSON-RPC reply"
            )
        elif post.method == "notifications/initialized" and self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    @asynccontextmanager
    async def _answer(
        self, method: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncIterator[httpx.Response]:
        request = self._client.build_request(method, self._url, headers={**self._session, **headers}, content=content)
        response = await self._client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    def _refusal(self, response: httpx.Response, body: bytes) -> str:
        """Return why the server did not answer."""
        status = str(response.status_code)
        with suppress(ValueError):
            status = f"{status} ({HTTPStatus(response.status_code).phrase})"
        error = (read_json_object(body) or {}).get("error")
        said = f": {str(error.get('message'))[:_MAX_SHOWN]}" if isinstance(error, dict) else ""
        advice = _ADVICE.get(response.status_code, "")
        if response.is_redirect:
            advice = f"redirects are not followed: use --upstream {response.headers.get('location', '')[:_MAX_SHOWN]}"
        elif response.status_code == 404 and SESSION_HEADER in self._session:
            advice = "the server has ended the session: restart this server in your client"
        return f"the MCP server answered with status {status}{said}{advice and f'; {advice}'}"

    async def _end_session(self) -> None:
        if SESSION_HEADER not in self._session:
            return
        with suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS), self._answer("DELETE", {}):
                pass

    # From the server.

    async def _listen(self) -> None:
        """Pass on what the server says without having been asked, if it offers that."""
        try:
            await self._resume(_Position(), None, "the stream of the MCP server's own messages has ended")
        except (_FailedError, TooLargeError, httpx.HTTPError) as failure:
            log.warning("%s", failure if isinstance(failure, _FailedError) else type(failure).__name__)

    async def _follow(self, response: httpx.Response, post: _Post) -> None:
        """Pass on the messages of an answer, also those after it broke off."""
        position = _Position()
        try:
            await self._pass_on(response, position, post)
        except httpx.TransportError:
            if not position.last:
                raise
        if post.pending and position.last:
            await asyncio.sleep(position.seconds)
            await self._resume(position, post, "the MCP server's answer broke off")

    async def _resume(self, position: _Position, post: _Post | None, problem: str) -> None:
        """Read a stream again and again, until the request is answered. Raises ``_FailedError`` if it cannot be."""
        attempts = 0
        while attempts < _MAX_RESUMES:
            attempts += 1
            headers = {"accept": EVENTS, **({"last-event-id": position.last} if position.last else {})}
            with suppress(httpx.TransportError):
                async with self._answer("GET", headers) as response:
                    if not response.is_success or kind_of(response) != EVENTS:
                        raise _FailedError(f"{problem}, and cannot be resumed: status {response.status_code}")
                    if await self._pass_on(response, position, post):
                        attempts = 0
                if post is not None and not post.pending:
                    return
            await asyncio.sleep(position.seconds)
        raise _FailedError(f"{problem}, and was not resumed in {_MAX_RESUMES} attempts")

    async def _pass_on(self, response: httpx.Response, position: _Position, post: _Post | None) -> bool:
        """Pass on the messages of a stream, until the request is answered; return whether there were any."""
        has_events = False
        async for event in events_of(response.aiter_bytes()):
            has_events = True
            position.note(event.fields)
            if event.message:
                await self._receive(event.message, post)
            if post is not None and not post.pending:
                break
        return has_events

    async def _receive(self, message: bytes, post: _Post | None) -> None:
        line = message.replace(b"\r", b" ").replace(b"\n", b" ").strip() + b"\n"  # neither is possible in a string
        if post is not None:
            answered = post.pending & replies_in(line)
            if answered and post.method == INITIALIZE:
                self._note_version(line)
            post.pending -= answered
        if self._connection.is_awaited(line):
            self._connection.has_state = True
            self._connection.from_server(line)
        else:
            self._to_client.write_later(line)
        written = asyncio.Event()
        self._to_client.write_later(b"", then=lambda: self._call_soon(written.set))
        await written.wait()  # a client that does not read lets the server wait

    def _note_version(self, line: bytes) -> None:
        result = (read_json_object(line) or {}).get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        if isinstance(version, str) and _PLAIN.fullmatch(version):
            self._session[_VERSION_HEADER] = version


def _encoded(value: str) -> str:
    """Return text as headers can contain it.

    >>> _encoded("add"), _encoded("zählen")
    ('add', '=?base64?esOkaGxlbg==?=')
    """
    return value if _PLAIN.fullmatch(value) else f"=?base64?{base64.b64encode(value.encode()).decode()}?="
