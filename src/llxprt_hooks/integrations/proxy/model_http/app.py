"""The model proxy as an ASGI application: which requests it takes, and what happens to them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx
from starlette.responses import Response

from llxprt_hooks._support.http_server import LOOPBACK, LOOPBACK_NAMES, host_name, is_own_host, is_own_origin
from llxprt_hooks._support.json_codec import repeated_key, write_json
from llxprt_hooks.core.calls.lookup import enforces, model_plans
from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine.session import asked_by
from llxprt_hooks.core.executors.http import is_loopback
from llxprt_hooks.core.protocol.caller import Asked
from llxprt_hooks.events import MODEL_EVENTS, HookEventName
from llxprt_hooks.integrations.http_call import (
    TransportExchange,
    UnseenError,
    call_model,
    called_api,
    claimed_caller,
    json_body,
)
from llxprt_hooks.integrations.proxy.model_http.incoming import SESSION_HEADER, Incoming, PassedOn, normalized
from llxprt_hooks.integrations.proxy.model_http.upstreams import APIS
from llxprt_hooks.model import TranslationError, http_apis, resolve_translator

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from llxprt_hooks.core.calls.model_call import ModelCallResult
    from llxprt_hooks.core.engine.session import Session
    from llxprt_hooks.hooks import Hooks
    from llxprt_hooks.integrations.proxy.model_http.upstreams import Api
    from llxprt_hooks.model import AnyTranslator, TranslatorChoice

_SESSION_EVENTS: Final = (HookEventName.SESSION_START, HookEventName.SESSION_END)
_NOT_CONNECTED: Final = (httpx.ConnectError, httpx.ConnectTimeout)
_MAX_SESSION_ID: Final = 200
_CONNECT_SECONDS: Final = 30.0
_MAX_SHOWN: Final = 200


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
        allowed_paths: Iterable[str] = (),
        agent: KnownAgent | None = None,
        client_metadata: bool = False,
    ) -> None:
        """``host`` is where it listens. ``agent``: its program, if it is part of ours.

        ``allowed_paths`` may get prompts that BeforeModel hooks do not see. With ``client_metadata`` hooks get to know
        what requests say about who asks.
        """
        self._client_metadata = client_metadata
        self._hooks = hooks
        self._agent = agent
        self._was_called = False
        self.host, self.upstreams = host, upstreams
        self._urls = {name: httpx.URL(url) for name, url in upstreams.items()}
        self._is_local = is_loopback(host)
        self._names = {*LOOPBACK_NAMES, host.lower(), *(name.lower() for name in allowed_hosts)}
        self._allowed_paths = frozenset(allowed_paths)
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
        incoming = Incoming(scope, receive)
        response = await incoming.while_connected(self._answer(incoming))
        if response is not None:
            await response(scope, receive, send)

    async def _answer(self, incoming: Incoming) -> Response:
        if (problem := self._foreign(incoming)) is not None:
            return _error(403, {"error": {"message": problem}})
        known_apis = [api for api in APIS if api.name in self._urls]
        api = next((api for api in known_apis if incoming.is_below(api.path)), None)
        if api is None:
            known = ", ".join(api.path for api in known_apis)
            message = f"Not found. The base URLs of this proxy end in {known}."
            return _error(404, {"error": {"message": message}})
        try:
            response = await self._call(api, incoming)
        except (UnseenError, httpx.InvalidURL) as error:
            status, problem = 400, str(error)
        except TranslationError as error:
            status, problem = 502, f"the answer cannot be passed to hooks: {error}"
        except httpx.TransportError as error:
            status, problem = 502, self._failure(api, error)
        else:
            return PassedOn(response, self._redirect(api, response))
        return _error(status, api.error(status, f"llxprt-hooks model-proxy: {problem}"))

    def _redirect(self, api: Api, response: httpx.Response) -> bytes | None:
        """Return where a redirect leads at the proxy; None if it is not one, or leads to another server."""
        if not response.has_redirect_location:
            return None
        upstream = self._urls[api.name]
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
        host = self._urls[api.name].netloc.decode()
        what = f"cannot reach {host}" if isinstance(error, _NOT_CONNECTED) else f"the connection to {host} failed"
        return f"{what}: {str(error) or type(error).__name__}"

    def _foreign(self, incoming: Incoming) -> str | None:
        """Return what is wrong with a request that a web page of another site may have made."""
        host, origin = incoming.headers.get("host", ""), incoming.headers.get("origin")
        if not is_own_host(host, self._names, allow_addresses=not self._is_local):
            name = host_name(host)
            return f"The host {name!r} is not a name of this proxy. To allow it: model-proxy --allow-host NAME"
        if origin and not is_own_origin(origin, host, {*self._names, host_name(host)}):
            return "Cross-origin browser requests are not allowed."
        return None

    async def _call(self, api: Api, incoming: Incoming) -> httpx.Response:
        self._was_called = True
        method, upstream = incoming.method, self._urls[api.name]
        target = upstream.raw_path.rstrip(b"/") + incoming.raw_target[len(api.path) :]
        url = upstream.copy_with(raw_path=target or b"/")
        translator = self._called_api(api, incoming, normalized(url.path))
        headers = incoming.forwarded_headers()
        plans = model_plans(self._hooks.config)
        if translator is None or not (any(plans) or self._concerns(_SESSION_EVENTS)):
            passing = incoming.stream() if incoming.has_body else None
            return await self._send(httpx.Request(method, url, headers=headers, content=passing))
        content = await incoming.content()
        readable = incoming.decompressed(content)
        body = json_body(readable)
        asked = Asked.read(claimed_caller, body, "a request") if self._client_metadata else None
        with asked_by(self._hooks.config, asked):
            session = self._session(incoming, body)
        if not any(plans):
            return await self._send(httpx.Request(method, url, headers=headers, content=content))
        if (name := _ambiguous_key(readable, body)) is not None:
            raise UnseenError(
                f"this request was not sent: {name[:_MAX_SHOWN]!r} occurs twice in one object, or in two spellings, "
                "and servers differ in which one they read"
            )
        try:
            translator.read_request(body)
        except TranslationError as error:
            raise UnseenError(f"this request cannot be passed to hooks, so it was not sent: {error}") from error
        if self._agent is None and session.stop_reason is not None and _is_prompt(translator, body):
            session.resume()
        request = httpx.Request(method, url, headers=incoming.readable_headers(), content=content)
        with session.active(), asked_by(self._hooks.config, asked):
            exchange = TransportExchange(request, self._send, is_async=True)
            response: httpx.Response = await call_model(
                self._hooks.config, plans, translator, body, exchange, refuse=self._refuse
            )
        if response.has_redirect_location and self._redirect(api, response) is None:
            await response.aclose()
            raise httpx.RemoteProtocolError("it redirects to another server, where hooks would not see the answer")
        return response

    def _called_api(self, api: Api, incoming: Incoming, path: str) -> AnyTranslator | None:
        """Return the translator of the API that a request calls; None if it is not a model call.

        Raises ``UnseenError`` for a request that may have a prompt in it that BeforeModel hooks would not see (D-91).
        """
        config = self._hooks.config
        for method in incoming.methods:
            if (translator := called_api(config, self._translators, method, path)) is not None:
                return translator
        if "POST" in incoming.methods and enforces(config, HookEventName.BEFORE_MODEL):
            below = incoming.raw_target.partition(b"?")[0][len(api.path) :].decode("ascii", "replace")
            at_upstream = self._urls[api.name].path.rstrip("/") + below
            if self._allowed_paths.isdisjoint((below, at_upstream, api.path + below)):
                raise UnseenError(
                    f"a request to {at_upstream[:_MAX_SHOWN]} was not sent, because BeforeModel hooks could not see a "
                    f"prompt in it. To allow it: model-proxy --allow-path {at_upstream[:_MAX_SHOWN]}"
                )
        return None

    def _refuse(self, result: ModelCallResult[Any], tool_name: str) -> str | None:
        """Return why a call is not in the answer: the proxy cannot keep an agent from running a tool."""
        if result.stop_reason is not None:
            return result.stop_reason
        return result.restriction.refusal(tool_name if self._agent is None else self._agent.hook_name(tool_name))

    def _concerns(self, events: Iterable[HookEventName]) -> bool:
        return any(map(self._hooks.has_hooks_for, events))

    def _session(self, incoming: Incoming, body: Any) -> Session:
        wanted = incoming.headers.get(SESSION_HEADER) or _session_in(body) or self._hooks.config.session_id
        session_id = wanted[:_MAX_SESSION_ID]
        return self._sessions.latest(session_id) or self._sessions.begin(session_id)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True)


def _error(status: int, body: Mapping[str, Any]) -> Response:
    return Response(write_json(body), status, media_type="application/json")


def _ambiguous_key(content: bytes, body: Any) -> str | None:
    """Return a key that is repeated, or that a request or a message has in two spellings: some servers ignore case.

    The arguments and schemas of tools may have `id` and `ID`.
    """
    if not isinstance(body, dict):
        return None
    if (repeated := repeated_key(content.decode(json.detect_encoding(content), "surrogatepass"))) is not None:
        return repeated
    messages = [*_items(body, "messages"), *_items(body, "input")]
    for each in [body, *messages, *(part for message in messages for part in _items(message, "content"))]:
        spellings: dict[str, str] = {}
        for name in each if isinstance(each, dict) else ():
            if spellings.setdefault(name.casefold(), name) != name:
                return str(name)
    return None


def _items(value: Any, name: str) -> list[Any]:
    items = value.get(name) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


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
