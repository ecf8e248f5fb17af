"""Who may use the inspector: only the person who started it, in a page that the inspector itself served.

A page on loopback is within reach of every program on the machine and, through the browser, of every site on the
internet. So each request must come with the token or with the cookie that the token was exchanged for, it must name
this server as its host (a site cannot point its own name here), and a request that runs hooks or answers a question
must come from this server's own page. Agents that ask have a key of their own, which opens nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse

from llxprt_hooks._support.http_server import is_own_host, is_own_origin
from llxprt_hooks._support.tcp_sockets import is_opened_by_this_user
from llxprt_hooks.integrations.inspector_questions import PATH as ASKED_AT

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NAMES = ("127.0.0.1", "localhost")

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


class Access:
    """ASGI middleware that lets only its own page in."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._port = port
        self._cookie = f"llxprt_inspect_{port}"  # the cookies of a host are shared by all its ports
        self._secret = secrets.token_urlsafe(32)
        self._address = f"http://127.0.0.1:{port}/"
        self._token = secrets.token_urlsafe(32)
        self.agent_key = secrets.token_urlsafe(32)
        """What agents show to ask a question. It is of no use for anything else."""
        self._ticket: str | None = None

    @property
    def address(self) -> str:
        """The address for a person, which can be used again."""
        return f"{self._address}?token={self._token}"

    def address_for_once(self) -> str:
        """Return an address that works once. It is for a browser's command line, which other users can see."""
        self._ticket = secrets.token_urlsafe(32)
        return f"{self._address}?token={self._ticket}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal, new_cookie = self._check(scope, headers)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = {**_HEADERS, **({"Set-Cookie": new_cookie} if new_cookie else {})}
                added = [(name.lower().encode(), value.encode()) for name, value in more.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        app = self._app if refusal is None else PlainTextResponse(f"{refusal}\n", status_code=403)
        await app(scope, receive, send_safely)

    def _check(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> tuple[str | None, str | None]:
        """Return why a request is refused, if it is; and the cookie to set."""
        host = headers.get("host", "")
        if not is_own_host(host, _NAMES, port=self._port):
            return "This server answers only under its own address.", None
        if scope["path"] == ASKED_AT and scope["method"] == "POST":
            is_agent = _same(headers.get("authorization", ""), f"Bearer {self.agent_key}")
            return None if is_agent else "Only agents of the same user may ask.", None
        fetched_by = headers.get("sec-fetch-site", "same-origin")
        is_own_page = is_own_origin(headers.get("origin", ""), host) and fetched_by == "same-origin"
        if scope["method"] not in ("GET", "HEAD") and not is_own_page:
            return "Only the inspector's own page may send this.", None
        if self._has_cookie(headers.get("cookie", "")):
            return None, None
        if scope["path"] == "/" and self._has_token(scope):
            return None, f"{self._cookie}={self._secret}; Path=/; HttpOnly; SameSite=Strict"
        return "Open the address that `llxprt-hooks inspect` printed: it has a token.", None

    def _has_cookie(self, header: str) -> bool:
        try:
            cookies = SimpleCookie(header)
        except CookieError:
            return False
        morsel = cookies.get(self._cookie)
        return morsel is not None and _same(morsel.value, self._secret)

    def _has_token(self, scope: MutableMapping[str, Any]) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        # Another user who reads the address from the browser's command line could be quicker than the browser.
        is_ticket = self._ticket is not None and _same(given, self._ticket)
        if is_ticket and is_opened_by_this_user(scope["client"], scope["server"]):
            self._ticket = None
            return True
        return _same(given, self._token)


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())
