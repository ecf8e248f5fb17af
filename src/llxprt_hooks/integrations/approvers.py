"""Ready-made approvers: who decides about a call if a hook asks.

``Config(profile="full", approver=ask_on_terminal)`` asks the person at the terminal, ``ask_in_inspector`` the person
who has ``llxprt-hooks inspect`` open, ``ApprovalPage()`` on a web page of the program itself, and ``acp_approver(…)``
the client of an agent that speaks the Agent Client Protocol.
"""

from __future__ import annotations

import hmac
import html
import json
import secrets
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from llxprt_hooks._support.json_codec import decode_text, write_json
from llxprt_hooks._support.text import PROSE, escape_for_terminal
from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.approval import Answer, Approval, ApprovalRequest, NobodyToAsk
from llxprt_hooks.integrations.inspector_questions import EXPIRES, WORDS, ask_everywhere

_TERMINAL: Final = Path("/dev/tty")


def ask_on_terminal(request: ApprovalRequest) -> bool:
    """Ask the person at this program's terminal; without a terminal, nobody can be asked, and the call is denied."""
    question = f"\n{_summary(request)}\nAllow {escape_for_terminal(request.tool_name)}? [y/N] "
    try:
        with _TERMINAL.open("rb", buffering=0) as answers, _TERMINAL.open("wb", buffering=0) as screen:
            screen.write(question.encode(errors="backslashreplace"))
            return answers.readline().strip().lower() in (b"y", b"yes")
    except OSError as error:
        raise NobodyToAsk(f"the program has no terminal: {error.strerror}") from error


async def ask_in_inspector(request: ApprovalRequest) -> Answer:
    """Ask the person who has the inspector open. If nobody has, say how to open it, and wait for that.

    A question that nobody answers within five minutes denies the call.
    """
    return await loops.on_asyncio(ask_everywhere(request))


def acp_approver(
    request_permission: Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]],
) -> Callable[[ApprovalRequest], Awaitable[Answer]]:
    """Return an approver for agents of the Agent Client Protocol.

    ``request_permission`` sends ``session/request_permission`` with these parameters to the client, and returns its
    response.
    """

    async def approver(request: ApprovalRequest) -> Answer:
        call = {"toolCallId": request.tool_use_id or request.digest, "title": f"{request.tool_name}: {request.reason}"}
        options = [{"optionId": kind, "name": name, "kind": kind} for kind, (name, _) in _ACP_OPTIONS.items()]
        tool_call = {**call, "rawInput": request.tool_input}
        response = await request_permission(
            {"sessionId": request.session_id, "toolCall": tool_call, "options": options}
        )
        outcome = response.get("outcome") or {}
        chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
        return _ACP_OPTIONS[chosen][1] if isinstance(chosen, str) and chosen in _ACP_OPTIONS else False

    return approver


_ACP_OPTIONS: Final[Mapping[str, tuple[str, Answer]]] = {
    "allow_once": ("Allow once", True),
    "allow_always": ("Allow for this session", Approval.FOR_SESSION),
    "reject_once": ("Reject", False),
}


class ApprovalPage:
    """An approver that asks on a web page, which only this machine can open, and only with the page's address.

    The server starts with the first question, and then prints the address, unless ``announce`` does something else with
    it. A question that nobody answers within five minutes is answered with no.
    """

    def __init__(
        self, port: int = 0, *, announce: Callable[[str], object] | None = None, expires: float = EXPIRES
    ) -> None:
        self._port = port
        self._announce = announce or _print_address
        self._expires = expires
        self._token = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._open: dict[str, _Question] = {}

    def __call__(self, request: ApprovalRequest) -> Answer:
        """Wait for the answer to a question, in the thread of the caller."""
        question, identity = _Question(request), secrets.token_urlsafe(12)
        with self._lock:
            self._open[identity] = question
            is_new = self._server is None
            if is_new:
                self._server = self._started()
        if is_new:
            self._announce(self.address)
        try:
            question.answered.wait(self._expires)
        finally:
            with self._lock:
                self._open.pop(identity, None)
        return question.answer

    @property
    def address(self) -> str:
        """The address of the page; empty before the first question."""
        return f"http://127.0.0.1:{self._server.server_port}/{self._token}/" if self._server else ""

    def close(self) -> None:
        """Answer open questions with no, and end the server."""
        with self._lock:
            server, self._server = self._server, None
            questions = list(self._open.values())
        for question in questions:
            question.answered.set()
        if server is not None:
            server.shutdown()
            server.server_close()

    def _started(self) -> ThreadingHTTPServer:
        page = self

        class Handler(_Handler):
            approvals = page

        server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="llxprt-hooks-approvals", daemon=True).start()
        return server

    def answer(self, identity: str, word: str) -> None:
        """Answer a question; one that is not open any more is left alone."""
        with self._lock:
            question = self._open.pop(identity, None)
        if question is not None:
            question.answer = WORDS.get(word, (False, ""))[0]
            question.answered.set()

    def is_own(self, path: str, host: str, origin: str | None) -> bool:
        """Whether a request is for this page, from this page or from a person who has its address."""
        own_host = self.address.removeprefix("http://").partition("/")[0]
        has_token = hmac.compare_digest(path.strip("/").encode(), self._token.encode())
        return has_token and host == own_host and origin in (None, f"http://{own_host}")

    def html(self) -> str:
        """Return the page, with the open questions."""
        with self._lock:
            questions = [question.html(identity) for identity, question in self._open.items()]
        return _PAGE.replace("QUESTIONS", "".join(questions) or "<p>Nothing is waiting for an answer.</p>")


class _Question:
    def __init__(self, request: ApprovalRequest) -> None:
        self.request = request
        self.answered = threading.Event()
        self.answer: Answer = False

    def html(self, identity: str) -> str:
        request = self.request
        buttons = "".join(f'<button name="answer" value="{word}">{name}</button>' for word, (_, name) in WORDS.items())
        return (
            f"<form method=post><h2>{_shown(request.tool_name)}</h2><p>{_shown(request.hook)} asks: "
            f"{_shown(request.reason)}</p><pre>{_shown(_arguments(request))}</pre>"
            f'<input type=hidden name=question value="{identity}">{buttons}</form>'
        )


_MAX_BODY: Final = 4096

_PAGE: Final = """<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=2>
<meta name=viewport content="width=device-width"><title>Approvals</title><style>
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}
form{border:1px solid #8886;border-radius:.5rem;padding:0 1rem 1rem;margin:1rem 0}h2{font-size:1.1rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8882;padding:.75rem;border-radius:.25rem}
button{font:inherit;padding:.5rem 1rem;margin:.25rem .5rem .25rem 0}</style><h1>Approvals</h1>QUESTIONS</html>"""

_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


class _Handler(BaseHTTPRequestHandler):
    approvals: ApprovalPage
    timeout = 10

    def do_GET(self) -> None:
        self._respond(200, self.approvals.html()) if self._is_own() else self._respond(403, "")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self._is_own() or not length.isdecimal() or int(length) > _MAX_BODY:
            self._respond(403, "")
            return
        fields = parse_qs(decode_text(self.rfile.read(int(length))))
        self.approvals.answer(*(fields.get(name, [""])[0] for name in ("question", "answer")))
        self.send_response(303)
        self.send_header("Location", self.path)
        self.end_headers()

    def _is_own(self) -> bool:
        return self.approvals.is_own(self.path, self.headers.get("Host", ""), self.headers.get("Origin"))

    def _respond(self, status: int, page: str) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name in the base class
        """Log nothing: the path is the key to the page."""


def _print_address(address: str) -> None:
    print(f"llxprt-hooks: a hook asks. Answer on {address}", file=sys.stderr, flush=True)


def _summary(request: ApprovalRequest) -> str:
    asks = f"{request.hook} asks: {request.reason}"
    return escape_for_terminal(f"{asks}\n{request.tool_name} {_arguments(request)}", keep=PROSE)


def _arguments(request: ApprovalRequest) -> str:
    """Return all arguments as JSON, in which no character is invisible."""
    return json.dumps(json.loads(write_json(request.tool_input)), indent=2, ensure_ascii=True)


def _shown(text: str) -> str:
    return html.escape(escape_for_terminal(text, keep=PROSE))
