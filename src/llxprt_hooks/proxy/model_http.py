"""The model proxy: hooks around the model calls of any agent, in any language, that can be given a base URL.

It is an HTTP server on this machine that passes requests on to the APIs of Anthropic and OpenAI, or to others that
speak the same. A model call that has hooks waits for them; ``model_exchange`` makes it. Everything else passes byte for
byte, as it arrives: other paths, errors, and all calls if no hook is configured for the model.

- A base URL stands for one API, and goes to one configured upstream. There is no way to name another host.
- Keys stay in the requests. Neither they nor any body is logged.
- A browser cannot be made to use it by another site: the ``Host`` and the ``Origin`` of a request are checked.
- If the client goes away, its call ends: the hooks that run for it, and the request to the API.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

import httpx

from llxprt_hooks.engine.executors.http import is_loopback
from llxprt_hooks.events import MODEL_EVENTS, HookEventName
from llxprt_hooks.http_server import Server, listen
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import TranslationError, http_apis, resolve_translator
from llxprt_hooks.transport.model_exchange import (
    AsyncExchange,
    UnseenError,
    call_model,
    check_not_bypassed,
    json_body,
)
from llxprt_hooks.triggers.sessions import Sessions

if TYPE_CHECKING:
    from llxprt_hooks.engine.session import Session
    from llxprt_hooks.hooks import Hooks
    from llxprt_hooks.model import AnyTranslator, TranslatorChoice
    from llxprt_hooks.triggers.model_call import ModelCallResult

log = debug_logger("proxy")

Headers: TypeAlias = list[tuple[bytes, bytes]]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Api:
    """An API, or several with the same base URL."""

    name: str
    path: str
    """The path of its base URL at the proxy: its name, and the path that a gateway for all APIs has for it."""
    variable: str
    """The environment variable from which its clients read the base URL."""
    default: str
    """The base URL of the API itself."""
    error_fields: Mapping[str, Any]
    """What an error of the API has beside the object ``error``."""
    detail_fields: Mapping[str, Any]
    """What that object has beside type and message."""

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Return an error as the API writes it."""
        kind = "invalid_request_error" if status < 500 else "api_error"
        return {**self.error_fields, "error": {"type": kind, "message": message, **self.detail_fields}}


APIS: Final = (
    Api("anthropic", "/anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", {"type": "error"}, {}),
    Api("openai", "/openai/v1", "OPENAI_BASE_URL", "https://api.openai.com/v1", {}, {"param": None, "code": None}),
)
SESSION_HEADER: Final = b"x-llxprt-session-id"

LOOPBACK: Final = "127.0.0.1"
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SESSION_EVENTS: Final = (HookEventName.SESSION_START, HookEventName.SESSION_END)
_HOP_BY_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split()
)
_NOT_CONNECTED: Final = (httpx.ConnectError, httpx.ConnectTimeout)
_LONGEST_SESSION_ID: Final = 200
LARGEST_REQUEST: Final = 256 * 1024**2
"""Bytes of a model call that hooks are shown, decompressed. The APIs accept less."""
_PIECE: Final = 16 * 1024
"""Bytes that are decompressed at once."""
_CONNECT_SECONDS: Final = 30.0
_GRACE_SECONDS: Final = 3
"""How long running calls may continue after the proxy was told to end."""


class UpstreamError(ValueError):
    """A URL cannot be used for an API."""


def upstreams(given: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the base URL of each API, by its name.

    ``URL`` is for all of them, ``NAME=URL`` for one. What is not given is read from the variables of the clients, as
    they would do without the proxy.

    >>> upstreams(["http://localhost:4000"], {})
    {'anthropic': 'http://localhost:4000', 'openai': 'http://localhost:4000/v1'}
    """
    chosen = {api.name: environment.get(api.variable) or api.default for api in APIS}
    for item in given:
        name, equals, url = item.partition("=")
        if equals and "/" not in name:
            if name not in chosen:
                raise UpstreamError(f"unknown API {name!r}; expected one of {', '.join(chosen)}")
            chosen[name] = url
        else:
            root = item.rstrip("/").removesuffix("/v1")
            chosen |= {api.name: root + api.path.removeprefix(f"/{api.name}") for api in APIS}
    for name, url in chosen.items():
        _check_upstream(name, url)
    return {name: url.rstrip("/") for name, url in chosen.items()}


def _check_upstream(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise UpstreamError(f"the upstream of {name} is not a valid URL") from None
    if not is_complete:
        raise UpstreamError(f"the upstream of {name} must be a URL such as https://api.example.com, found {url!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise UpstreamError(f"the upstream of {name} must not have a user, a query or a fragment")


class KnownAgent(Protocol):
    """What an integration knows of the agent whose model calls go through the proxy."""

    sessions: Sessions
    """Of its conversations. It resumes them after a stop."""

    def translator(self, translator: TranslatorChoice, /) -> AnyTranslator:
        """Return a translator with the tool names that hooks see."""

    def hook_name(self, tool_name: str, /) -> str:
        """Return the name under which hooks see a tool."""


class ModelProxy:
    """The proxy, as an ASGI application."""

    def __init__(
        self,
        hooks: Hooks,
        upstreams: Mapping[str, str],
        *,
        host: str = LOOPBACK,
        allowed_hosts: Iterable[str] = (),
        agent: KnownAgent | None = None,
    ) -> None:
        """``host`` is where it listens. ``agent``: its program, if it is part of ours."""
        self._hooks = hooks
        self._agent = agent
        self._was_called = False
        self._upstreams = {name: httpx.URL(url) for name, url in upstreams.items()}
        self._is_local = is_loopback(host)
        self._allowed_hosts = {*_LOOPBACK_NAMES, host.lower(), *(name.lower() for name in allowed_hosts)}
        self._sessions = Sessions(hooks.config) if agent is None else agent.sessions
        translator = resolve_translator if agent is None else agent.translator
        self._translators = [translator(name) for name in http_apis()]
        # A model may think for minutes before it answers, so only the connection has a timeout.
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    def is_bypassed(self) -> bool:
        """Whether there are hooks for model calls, and no request has come."""
        return not self._was_called and self._concerns(MODEL_EVENTS)

    async def close(self) -> None:
        """End the sessions, and wait for their hooks."""
        await self._client.aclose()
        self._sessions.end_all()
        await self._hooks.settle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = _Connection(scope, receive, send)
        work = asyncio.ensure_future(self._serve(connection))
        disconnect = asyncio.ensure_future(connection.disconnected())
        try:
            await asyncio.wait((work, disconnect), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, disconnect):
                task.cancel()
            outcome, _ = await asyncio.gather(work, disconnect, return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome

    async def _serve(self, connection: _Connection) -> None:
        if (problem := self._foreign(connection)) is not None:
            return await connection.answer(403, {"error": {"message": problem}})
        known_apis = [api for api in APIS if api.name in self._upstreams]
        api = next((api for api in known_apis if connection.is_below(api.path)), None)
        if api is None:
            known = ", ".join(api.path for api in known_apis)
            message = f"There is nothing at this path. The base URLs of this proxy have the paths {known}."
            return await connection.answer(404, {"error": {"message": message}})
        try:
            response = await self._call(api, connection)
        except (UnseenError, httpx.InvalidURL) as error:
            return await connection.answer(400, api.error(400, f"llxprt-hooks model-proxy: {error}"))
        except TranslationError as error:
            message = f"llxprt-hooks model-proxy: hooks cannot be shown the answer: {error}"
            return await connection.answer(502, api.error(502, message))
        except httpx.TransportError as error:
            return await connection.answer(502, api.error(502, self._failure(api, error)))
        try:
            await connection.pass_on(response, self._redirect(api, response))
        except httpx.TransportError as error:
            log.warning("an answer is incomplete: %s", self._failure(api, error))
        finally:
            await response.aclose()
        return None

    def _redirect(self, api: Api, response: httpx.Response) -> bytes | None:
        """Return where a redirect leads at the proxy; None if it is not one, or leads to another server."""
        if not response.has_redirect_location:
            return None
        upstream = self._upstreams[api.name]
        base = upstream.raw_path.rstrip(b"/")
        try:
            target = upstream.join(response.headers["location"])
        except httpx.InvalidURL:
            return None
        is_here = (target.scheme, target.netloc) == (upstream.scheme, upstream.netloc)
        if not is_here or not (target.raw_path + b"/").startswith(base + b"/"):
            return None
        return api.path.encode() + target.raw_path[len(base) :]

    def _failure(self, api: Api, error: httpx.TransportError) -> str:
        host = self._upstreams[api.name].netloc.decode()
        what = f"cannot reach {host}" if isinstance(error, _NOT_CONNECTED) else f"the connection to {host} failed"
        return f"llxprt-hooks model-proxy: {what}: {str(error) or type(error).__name__}"

    def _foreign(self, connection: _Connection) -> str | None:
        """Return what is wrong with a request that a web page of another site may have made."""
        host = _hostname(f"//{connection.header(b'host')}")
        if not self._is_allowed(host):
            return f"The host {host!r} is not a name of this proxy. To allow it: model-proxy --allow-host NAME"
        origin = connection.header(b"origin")
        if origin and _hostname(origin) not in {*self._allowed_hosts, host}:
            return "Requests of web pages of other sites are refused."
        return None

    def _is_allowed(self, host: str) -> bool:
        # A page can give its own name any address, but it cannot be reached by an address that is not its own.
        return host in self._allowed_hosts or (not self._is_local and _is_address(host))

    async def _call(self, api: Api, connection: _Connection) -> httpx.Response:
        self._was_called = True
        upstream = self._upstreams[api.name]
        target = upstream.raw_path.rstrip(b"/") + connection.raw_target[len(api.path) :]
        url = upstream.copy_with(raw_path=target or b"/")
        translator = self._translator(connection.method, url.path)
        if translator is None:
            check_not_bypassed(self._hooks, self._translators, connection.method, _normalized(url.path))
        if translator is None or not self._concerns((*MODEL_EVENTS, *_SESSION_EVENTS)):
            request = httpx.Request(connection.method, url, headers=connection.headers(), content=connection.body())
            return await self.handle_async_request(request)
        content = await connection.content()
        body = json_body(_decoded(content, connection.header(b"content-encoding")))
        session = self._session(connection, body)
        if not self._concerns(MODEL_EVENTS):
            request = httpx.Request(connection.method, url, headers=connection.headers(), content=content)
            return await self.handle_async_request(request)
        try:
            translator.read_request(body)
        except TranslationError as error:
            raise UnseenError(f"hooks cannot be shown this request, so it was not sent: {error}") from error
        if self._agent is None and session.stop_reason is not None and _is_prompt(translator, body):
            session.resume()
        request = httpx.Request(connection.method, url, headers=_readable(connection), content=content)
        with self._sessions.active(session):
            exchange = AsyncExchange(request, self)
            response: httpx.Response = await call_model(self._hooks, translator, body, exchange, refuse=self._refuse)
        if response.has_redirect_location and self._redirect(api, response) is None:
            await response.aclose()
            raise httpx.RemoteProtocolError("it redirects to another server, where hooks would not see the answer")
        return response

    def _translator(self, method: str, path: str) -> AnyTranslator | None:
        """Return the translator for a model call; None for any other request."""
        path = _normalized(path)
        for translator in self._translators:
            if translator.wire is not None and translator.wire.matches(method, path):
                return translator
        return None

    def _refuse(self, result: ModelCallResult[Any], tool_name: str) -> str | None:
        """Return why a call is not in the answer: the proxy cannot keep an agent from running a tool."""
        if result.stop_reason is not None:
            return result.stop_reason
        return result.restriction.refusal(tool_name if self._agent is None else self._agent.hook_name(tool_name))

    def _concerns(self, events: Iterable[HookEventName]) -> bool:
        return any(map(self._hooks.has_hooks_for, events))

    def _session(self, connection: _Connection, body: Any) -> Session:
        wanted = connection.header(SESSION_HEADER) or _session_in(body) or self._hooks.config.session_id
        session_id = wanted[:_LONGEST_SESSION_ID]
        return self._sessions.latest(session_id) or self._sessions.begin(session_id)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; called as that of a transport."""
        return await self._client.send(request, stream=True)


def _readable(connection: _Connection) -> Headers:
    """Return the headers of a request whose answer may be read here, so without compression that cannot be."""
    encoding = b"gzip" if "gzip" in connection.header(b"accept-encoding") else b"identity"
    return [*connection.headers(b"accept-encoding"), (b"accept-encoding", encoding)]


def _is_prompt(translator: AnyTranslator, body: Any) -> bool:
    """Whether a request starts a new turn: it ends with what the user said, not with the result of a tool."""
    # Agents add messages of their own at the end, with the time and the like.
    turns = [turn for turn in translator.turns(body) if turn.role != "system"]
    return bool(turns) and turns[-1].role == "user" and bool(turns[-1].text) and not turns[-1].results


_CLAUDE_SESSION: Final = re.compile(r"_session_([0-9a-fA-F-]{36})$")


def _session_in(body: Any) -> str | None:
    """Return the session in ``metadata.user_id``. Claude Code has it there, next to its user and account."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user, str) or not user:
        return None
    if found := _CLAUDE_SESSION.search(user):
        return found[1]
    fields = json_body(user.encode("utf-8", "replace"))
    session_id = fields.get("session_id") if isinstance(fields, dict) else None
    return session_id if isinstance(session_id, str) and session_id else user


def _normalized(path: str) -> str:
    """Return a path as the most lenient server reads it: hooks must not miss a model call because of its spelling.

    >>> _normalized("//V1/x/../messages;v=2/")
    '/v1/messages'
    """
    segments: list[str] = []
    for written in path.lower().replace("\\", "/").split("/"):
        segment = re.split(r"[;?#\s\0]", written, maxsplit=1)[0]
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments)


def _decoded(content: bytes, encoding: str) -> bytes:
    """Return a body without its compression; as it is if that is unknown. Some bytes can decompress to a thousand."""
    if not encoding:
        return content
    pieces = (content[start : start + _PIECE] for start in range(0, len(content), _PIECE))
    decoded = bytearray()
    try:
        for piece in httpx.Response(200, headers={"content-encoding": encoding}, content=pieces).iter_bytes():
            decoded += piece
            _check_size(decoded)
    except httpx.DecodingError:
        return content
    return bytes(decoded)


def _check_size(content: bytearray) -> None:
    if len(content) > LARGEST_REQUEST:
        size = f"{LARGEST_REQUEST // 1024**2} MiB"
        raise UnseenError(f"a request of more than {size} was not sent, because hooks would have to read it")


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _Connection:
    """One request of a client, and the way back to it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        query: bytes = scope["query_string"]
        self.raw_target: bytes = scope["raw_path"] + (b"?" + query if query else b"")
        self._headers: Headers = list(scope["headers"])
        self._receive = receive
        self._send = send
        self._is_read = asyncio.Event()

    def is_below(self, path: str) -> bool:
        """Whether the request is for a base URL with this path."""
        return (self.raw_target.partition(b"?")[0] + b"/").startswith(f"{path}/".encode())

    def header(self, name: bytes) -> str:
        """Return a header as text; empty if it is missing."""
        return next((value.decode("latin-1") for key, value in self._headers if key == name), "")

    def headers(self, *without: bytes) -> Headers:
        """Return the headers that are for the API. The length of a chunked body is not one: it may be wrong."""
        length = [b"content-length"] if self.header(b"transfer-encoding") else []
        return _end_to_end(self._headers, (b"host", b"expect", SESSION_HEADER, *length, *without))

    def body(self) -> AsyncIterator[bytes] | None:
        """Return the body as it arrives; None if the request has none."""
        has_body = self.header(b"content-length") not in ("", "0") or bool(self.header(b"transfer-encoding"))
        if has_body:
            return self.chunks()
        self._is_read.set()
        return None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. If the client goes away, it never ends: the call is cancelled."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._is_read.set()
                await asyncio.Event().wait()
            yield message.get("body", b"")
            if not message.get("more_body"):
                break
        self._is_read.set()

    async def content(self) -> bytes:
        """Return the whole body."""
        content = bytearray()
        async for chunk in self.chunks():
            content += chunk
            _check_size(content)
        return bytes(content)

    async def disconnected(self) -> None:
        """Wait until the client goes away."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(self, status: int, error: Mapping[str, Any]) -> None:
        """Send an error of the proxy's own."""
        content = json.dumps(error).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})

    async def pass_on(self, response: httpx.Response, location: bytes | None = None) -> None:
        """Send a response as it arrives; ``location``: where it redirects to, as the client reaches it."""
        headers = _end_to_end(response.headers.raw, () if location is None else (b"location",))
        headers += [] if location is None else [(b"location", location)]
        await self._send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for chunk in response.aiter_raw():
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], without: Iterable[bytes] = ()) -> Headers:
    """Return the headers that are not only for the next connection."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = {word.strip().lower() for name, value in lowered if name == b"connection" for word in value.split(b",")}
    dropped = {*_HOP_BY_HOP, *named, b"transfer-encoding", *without}
    return [(name, value) for name, value in lowered if name not in dropped]


# The server.


@dataclass(frozen=True, slots=True)
class RunningProxy:
    """A proxy that accepts connections."""

    base_urls: Mapping[str, str]
    """The base URL of each API, by the variable that its clients read."""
    is_bypassed: Callable[[], bool]
    """Whether there are hooks for model calls, and no request has come."""

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the variables for an agent; a proxy of the user's is not used for this machine."""
        direct = {
            name: ",".join(filter(None, [own.get(name), "127.0.0.1,localhost"])) for name in ("NO_PROXY", "no_proxy")
        }
        return {**direct, **self.base_urls}


@asynccontextmanager
async def serving(
    hooks: Hooks,
    upstreams: Mapping[str, str],
    *,
    host: str = LOOPBACK,
    port: int = 0,
    allowed_hosts: Iterable[str] = (),
    agent: KnownAgent | None = None,
) -> AsyncIterator[RunningProxy]:
    """Run a proxy on this event loop, on any free port if ``port`` is 0. Raises ``OSError`` if it cannot listen."""
    listening = listen(host, port)
    try:
        address, number = listening.getsockname()[:2]
        shown = _reachable(address)
        base_urls = {api.variable: f"http://{shown}:{number}{api.path}" for api in APIS if api.name in upstreams}
        for name, url in upstreams.items():
            _check_not_this(name, url, host, number)
        proxy = ModelProxy(hooks, upstreams, host=host, allowed_hosts=allowed_hosts, agent=agent)
    except BaseException:
        listening.close()
        raise
    server = Server(
        proxy, ws="none", date_header=False, timeout_keep_alive=120, timeout_graceful_shutdown=_GRACE_SECONDS
    )
    task = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield RunningProxy(base_urls, proxy.is_bypassed)
    finally:
        server.should_exit = True
        await task
        listening.close()
        await proxy.close()


def _reachable(address: str) -> str:
    """Return the host of a URL for an address at which a proxy listens; all addresses include that of this machine."""
    address = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(address, address)  # noqa: S104 - it is compared, not used
    return f"[{address}]" if ":" in address else address


def _check_not_this(name: str, url: str, host: str, port: int) -> None:
    parts = urlsplit(url)
    is_here = (parts.hostname or "") in (host, *_LOOPBACK_NAMES)
    if is_here and parts.port == port:
        raise UpstreamError(f"the upstream of {name} is this proxy itself: pass --upstream {name}=URL")
