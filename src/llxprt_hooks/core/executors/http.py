"""Hooks of type ``http``: the payload is sent to a URL by POST, and the response is the answer.

Connections are kept, for each event loop. httpx is imported when the first hook runs. Its transport is used directly:
no redirects, cookies, proxies or log records, which would show more, or to others, than the settings say.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec

from llxprt_hooks._support.text import missing_extra, without_credentials
from llxprt_hooks.core.executors.base import DEFAULT_MAX_PROCESSES, PROBE_SECONDS, Executor, HookRun, Probe
from llxprt_hooks.core.loops import PerLoop
from llxprt_hooks.core.protocol.headers import hop_headers, timeout_headers
from llxprt_hooks.process import ProcessSlots, call_blocking, no_fork
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.shape import ArrayOf, Field, FieldProblem, Scalar, Shape

if TYPE_CHECKING:
    import ssl

    import httpx

    from llxprt_hooks.core.engine.results import HookExecutionResult

_FIXED_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    # A compressed body could become far larger than the limit before it is counted.
    "accept-encoding": "identity",
    "user-agent": "llxprt-hooks",
}
_OWN_HEADERS: Final = ("content-length", "transfer-encoding", "connection")
"""Headers that belong to the connection."""

_KEEP_SECONDS: Final = 4.0
"""For an idle connection. Many servers close one after 5 seconds. A request at that moment would get no answer, and is
not sent again, because the server may have taken it."""

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_URLS: Final = re.compile(r"[\s\\\x00-\x20\x7f]")
_NOT_IN_HEADERS: Final = re.compile(r"[^\t\x20-\x7e]")
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)


class HttpSpec(msgspec.Struct, frozen=True):
    """Where the payload is sent, and with which headers. Their values are secret."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    allowed_variables: frozenset[str] = frozenset()
    allow_insecure: bool = False

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return f"HttpSpec({without_credentials(self.url)!r}, headers: {names})"


class HttpExecutor(Executor[HttpSpec]):
    """Sends the payload with POST. A status of 2xx is an answer, anything else a failure."""

    fields: ClassVar[Mapping[str, Field]] = {
        "url": Field(
            Scalar(Kind.STRING, not_blank=True),
            "Where the event is sent as JSON, with POST. `http:` is for this machine, unless `allowInsecure` is set.",
            required=True,
            address=True,
        ),
        "headers": Field(
            Shape("headers", "Names and values, which are never shown.", {}, open=True),
            "Headers of the request. In a value, `$NAME` and `${NAME}` are variables that `allowedEnvVars` lists.",
            default={},
            nullable=True,
            secret=True,
        ),
        "allowedEnvVars": Field(
            ArrayOf(Scalar(Kind.STRING)),
            "The environment variables that header values may contain.",
            default=[],
            nullable=True,
        ),
        "allowInsecure": Field(
            Scalar(Kind.BOOLEAN),
            "Allows `http:` to other machines, and to other users' servers on this machine. They, and others on the "
            "network, can read the payload and change the decision.",
            default=False,
            nullable=True,
        ),
    }
    described = ("url",)
    extra = "http"
    is_remote = True
    packages = ("httpx", "certifi")
    example: ClassVar[Mapping[str, object]] = {
        "url": "https://policy.example.com/v1/events",
        "headers": {"Authorization": "Bearer $POLICY_TOKEN"},
        "allowedEnvVars": ["POLICY_TOKEN"],
    }

    def read(self, fields: Mapping[str, Any]) -> HttpSpec | list[FieldProblem]:
        headers = fields["headers"] or {}
        if problems := [FieldProblem("headers", problem, discards=True) for problem in header_problems(headers)]:
            return problems
        return HttpSpec(
            fields["url"].strip(),
            tuple(headers.items()),
            frozenset(fields["allowedEnvVars"] or ()),
            bool(fields["allowInsecure"]),
        )

    def describe(self, spec: HttpSpec) -> str:
        return without_credentials(spec.url)

    def key(self, spec: HttpSpec) -> str:
        """Headers are part of the key: a different token may get a different answer."""
        if not spec.headers:
            return spec.url
        return f"{spec.url} {hashlib.sha256(repr(sorted(spec.headers)).encode()).hexdigest()}"

    def problems(self, spec: HttpSpec, environment: Mapping[str, str]) -> Iterator[FieldProblem]:
        if problem := _url_problem(spec):
            yield FieldProblem("url", problem, discards=True)
        for name, value in spec.headers:
            for variable in variables_in(value):
                if variable not in spec.allowed_variables:
                    problem = f"the value of `{name}` contains ${variable}, which `allowedEnvVars` does not list"
                    yield FieldProblem("headers", f"{problem}: it is sent as it is written", discards=False)
                elif variable not in environment:
                    problem = f"the value of `{name}` contains ${variable}, which is not set here"
                    yield FieldProblem("headers", f"{problem}: without it, the hook fails", discards=False)

    async def run(self, spec: HttpSpec, run: HookRun) -> HookExecutionResult:
        if problem := _url_problem(spec):
            return run.failed(f"was not sent: {problem}")
        headers = _expanded(spec, run.environment)
        if isinstance(headers, str):
            return run.failed(f"was not sent: {headers}")
        run.payload()  # now: the caller may change what it gave us while this waits
        is_checked = _is_checked(spec)
        transport = await _transports.get(is_checked)  # a connection that was not checked is not used for others
        extensions = {"trace": _check_server} if is_checked else {}
        return await run.runtime.shared(_RequestSlots).run(
            partial(_post, transport, spec.url, headers, extensions, run)
        )

    async def probe(self, spec: HttpSpec, working_dir: str) -> Probe | None:
        """Open a connection, and close it: any request could mean something to a server that is not ours."""
        if _url_problem(spec):
            return None
        parts = urlsplit(spec.url)
        is_encrypted = parts.scheme == "https"
        port = parts.port or (443 if is_encrypted else 80)
        tried = f"{'an encrypted' if is_encrypted else 'a'} connection to {parts.hostname}, port {port}"
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                context = _tls_context() if is_encrypted else None
                _, writer = await asyncio.open_connection(parts.hostname, port, ssl=context)
        except TimeoutError:
            why = f"was not opened in {PROBE_SECONDS} s"
        except (OSError, UnicodeError) as error:
            why = f"could not be opened: {error}"
        else:
            server, client = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
            writer.transport.abort()
            await writer.wait_closed()
            if not _is_checked(spec) or (stranger := _stranger(server, client)) is None:
                return Probe(True, f"{tried} was opened")
            return Probe(False, f"{tried} was opened, but {stranger}")
        return Probe(False, f"{tried} {why}. Start the server, or correct `url`")


class _RequestSlots(ProcessSlots):
    """Limits the requests of a configuration at once, as processes are (D-32). A hook's time counts from its start."""

    def __init__(self) -> None:
        super().__init__(DEFAULT_MAX_PROCESSES)


class _OtherUserError(Exception):
    """The port belongs to another user of this machine."""


def _is_checked(spec: HttpSpec) -> bool:
    """Whether only this user or root may answer: nothing else proves who is at a port of this machine."""
    return not spec.allow_insecure and urlsplit(spec.url).scheme == "http"


async def _check_server(event: str, info: Mapping[str, Any]) -> None:
    """End a new connection, before anything is sent, if another user has accepted it. Called by httpcore."""
    if event != "connection.connect_tcp.complete":
        return
    stream = info["return_value"]
    stranger = _stranger(stream.get_extra_info("server_addr"), stream.get_extra_info("client_addr"))
    if stranger is not None:
        await stream.aclose()
        raise _OtherUserError(stranger)


def _stranger(server: tuple[Any, ...], client: tuple[Any, ...]) -> str | None:
    """Return which other user has accepted a connection, and what to do; None if nobody is known."""
    from llxprt_hooks._support.tcp_sockets import other_user_at

    owner = call_blocking(partial(other_user_at, server[:2], client[:2]))
    if owner is None:
        return None
    return (
        f"port {server[1]} of this machine belongs to another user (id {owner}), who could read the payload and "
        "answer in the place of your worker. If that user runs it, set `allowInsecure`, or use https"
    )


async def _post(
    transport: httpx.AsyncHTTPTransport,
    url: str,
    headers: Mapping[str, str],
    extensions: dict[str, Any],
    run: HookRun,
) -> HookExecutionResult:
    import httpx

    seconds = run.timeout_ms / 1000
    all_headers = {**headers, **timeout_headers(seconds)}
    request = httpx.Request("POST", url, headers=all_headers, content=run.payload(), extensions=extensions)
    try:
        async with asyncio.timeout(seconds):
            response = await transport.handle_async_request(request)
            try:
                return await _read(response, run)
            finally:
                await response.aclose()
    except TimeoutError:
        return run.timed_out()
    except _OtherUserError as error:
        return run.failed(f"was not sent: {error}")
    except httpx.ProtocolError:  # its text may quote headers, which are secret
        return run.failed("got no answer: the request or the response is not valid HTTP")
    except httpx.TransportError as error:
        return run.failed(f"got no answer: {str(error) or type(error).__name__}")


async def _read(response: httpx.Response, run: HookRun) -> HookExecutionResult:
    status = response.status_code
    if not 200 <= status < 300:
        return run.failed(f"got status {_status_words(status)}")
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        return run.failed("got a compressed answer, which it did not ask for")
    chunks, size, limit = [], 0, run.runtime.output_limit
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > limit:
            return run.failed(f"got more than the limit of {limit} bytes; none of it was used")
        chunks.append(chunk)
    return run.answered(b"".join(chunks))


def _status_words(status: int) -> str:
    from http import HTTPStatus

    try:
        words = f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        words = str(status)
    return f"{words}; redirects are not followed" if 300 <= status < 400 else words


async def _opened(_: bool) -> httpx.AsyncHTTPTransport:
    return call_blocking(_make_transport)


def _make_transport() -> httpx.AsyncHTTPTransport:
    with no_fork:  # a forked process would have locks of the imports, and of OpenSSL, that are never released
        return _transport()


def _transport() -> httpx.AsyncHTTPTransport:
    try:
        import httpx

        context = _tls_context()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing_extra("a hook of type `http`", "http", error), name=error.name) from error
    limits = httpx.Limits(
        max_connections=None, max_keepalive_connections=DEFAULT_MAX_PROCESSES, keepalive_expiry=_KEEP_SECONDS
    )
    return httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)


def _tls_context() -> ssl.SSLContext:
    import ssl

    import certifi

    context = ssl.create_default_context()  # the system's certificates, or those of SSL_CERT_FILE
    context.load_verify_locations(certifi.where())  # some containers have none
    return context


_transports: Final = PerLoop(_opened, lambda transport: transport.aclose())


def _url_problem(spec: HttpSpec) -> str | None:
    """Return why nothing can be sent to a URL; else None."""
    try:
        parts = urlsplit(spec.url)
        host, is_valid = parts.hostname, parts.port is None or parts.port > 0
    except ValueError:
        return "`url` is not a valid URL"
    if not (host and is_valid and parts.scheme in ("http", "https")) or _NOT_IN_URLS.search(spec.url):
        return '`url` is not a valid URL: expected one such as "https://policy.example.com/v1/events"'
    if "@" in spec.url:  # anywhere: all before it is hidden, so that it would not be clear where the payload goes
        return "`url` must not contain a user or password: put them in a header, and write another `@` as %40"
    if parts.scheme == "http" and not spec.allow_insecure and not is_loopback(host):
        return "`url` is not encrypted and leads to another machine: use https, or set `allowInsecure`"
    return None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, without asking for its address."""
    import ipaddress

    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def header_problems(headers: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the names and types of headers."""
    for name, value in headers.items():
        if not isinstance(value, str):
            yield f"the value of `{name}` must be a string"
        elif not _HEADER_NAME.fullmatch(name):
            yield f"`{name}` is not the name of a header"
        elif name.lower() in _OWN_HEADERS:
            yield f"`{name}` cannot be set: it belongs to the connection"


def variables_in(value: str) -> Iterator[str]:
    """Yield the variables that the value of a header contains."""
    return (braced or plain for braced, plain in _VARIABLE.findall(value))


def _expanded(spec: HttpSpec, environment: Mapping[str, str]) -> dict[str, str] | str:
    """Return all headers with the variables that they may contain, or what is wrong, without any value."""
    headers = expanded_headers(spec.headers, spec.allowed_variables, environment)
    return headers if isinstance(headers, str) else {**_FIXED_HEADERS, **headers, **hop_headers()}


def expanded_headers(
    given: Iterable[tuple[str, str]], allowed: frozenset[str], environment: Mapping[str, str]
) -> dict[str, str] | str:
    """Return headers with the variables that they may contain, or what is wrong, without any value."""
    headers = {}
    for name, value in given:
        needed = [variable for variable in variables_in(value) if variable in allowed]
        if missing := next((variable for variable in needed if variable not in environment), None):
            return f"the header `{name}` needs the variable {missing}, which is not set"
        if needed:
            value = _VARIABLE.sub(partial(_value, allowed, environment), value)
        if _NOT_IN_HEADERS.search(value):
            return f"the value of the header `{name}` has characters that headers cannot contain"
        headers[name.lower()] = value.strip(" \t")  # around a value they do not count, and may not be sent
    return headers


def _value(allowed: frozenset[str], environment: Mapping[str, str], found: re.Match[str]) -> str:
    name = found[1] or found[2]
    return environment[name] if name in allowed else found[0]
