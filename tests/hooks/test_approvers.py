"""Ready-made approvers: the terminal, a web page, and a client of the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from llxprt_hooks import Approval, ApprovalRequest, Config, Hooks, ask
from llxprt_hooks.integrations.approvers import ApprovalPage, acp_approver
from tests.support.processes import DEADLINE, run_python, until

REQUEST = ApprovalRequest("deploy", {"to": "production\u202e", "note": "<b>"}, "is it <i>Friday</i>?", "deploys", "s1")


class Page:
    """The page, and somebody who uses it. The address comes when the first question is asked."""

    def __init__(self, **options: Any) -> None:
        self._addresses: list[str] = []
        self._announced = threading.Event()
        self.approver = ApprovalPage(announce=self._announce, **options)

    def _announce(self, address: str) -> None:
        self._addresses.append(address)
        self._announced.set()

    @property
    def address(self) -> str:
        assert self._announced.wait(DEADLINE)
        return self._addresses[0]

    def request(self, method: str = "GET", path: str = "", body: str = "", **headers: str) -> HTTPResponse:
        place = urlsplit(self.address)
        connection = HTTPConnection(place.netloc, timeout=DEADLINE)
        form = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        connection.request(method, path or place.path, body, {**form, **headers})
        return connection.getresponse()

    def question(self) -> tuple[str, str]:
        """What the page shows, and the question in it."""
        shown = self.request().read().decode()
        found = re.search(r'name=question value="([^"]+)"', shown)
        return shown, found[1] if found else ""

    def answer(self, word: str, **headers: str) -> int:
        until(lambda: self.question()[1] != "")
        body = urlencode({"question": self.question()[1], "answer": word})
        return self.request("POST", body=body, **headers).status


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page()
    yield made
    made.approver.close()


async def asked(page: Page, *answers: str) -> list[Any]:
    """Run a tool about which a hook asks, once for each answer that somebody gives on the page."""
    hooks = Hooks(Config(profile="full", approver=page.approver))
    hooks.on("BeforeTool", lambda payload: ask("sure?"), name="deploys")
    contents = []
    for word in answers:
        call = asyncio.create_task(hooks.run_tool("deploy", {"to": "staging"}, lambda args: "deployed"))
        await asyncio.to_thread(page.answer, word)
        contents.append((await call).llm_content)
    return contents


async def test_a_person_answers_on_the_page(page: Page) -> None:
    assert await asked(page, "once", "no", "maybe") == [
        "deployed",
        "sure? (the answer was no)",
        "sure? (the answer was no)",
    ]
    assert "Nothing is waiting for an answer." in page.question()[0]


def in_background(page: Page) -> tuple[threading.Thread, list[object]]:
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(page.approver(REQUEST)))
    thread.start()
    return thread, answers


def test_the_page_shows_all_of_the_call_and_runs_nothing_of_it(page: Page) -> None:
    thread, answers = in_background(page)
    until(lambda: page.question()[1] != "")
    shown, question = page.question()
    assert "deploys asks: is it &lt;i&gt;Friday&lt;/i&gt;?" in shown
    assert "production\\u202e" in shown
    assert "<b>" not in shown
    response = page.request()
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    response.read()
    assert page.answer("session") == 303
    thread.join(DEADLINE)
    assert answers == [Approval.FOR_SESSION]
    assert question


def test_only_the_page_itself_can_answer(page: Page) -> None:
    thread, answers = in_background(page)
    own = urlsplit(page.address).netloc
    assert page.request(path="/guess/").status == 403
    assert page.request(Host="evil.example").status == 403
    assert page.answer("once", Origin="http://evil.example") == 403
    assert page.request("POST", body="x" * 5000).status == 403
    assert page.answer("no", Origin=f"http://{own}") == 303
    thread.join(DEADLINE)
    assert answers == [False]


def test_a_question_that_nobody_answers_is_answered_with_no() -> None:
    page = Page(expires=0.01)
    assert page.approver(REQUEST) is False
    assert page.approver.address.startswith("http://127.0.0.1:")
    page.approver.close()
    assert page.approver.address == ""


def test_closing_the_page_answers_open_questions_with_no(page: Page) -> None:
    thread, answers = in_background(page)
    until(lambda: page.question()[1] != "")
    page.approver.close()
    thread.join(DEADLINE)
    assert answers == [False]


@pytest.mark.parametrize(
    ("outcome", "answer"),
    [
        ({"outcome": "selected", "optionId": "allow_once"}, True),
        ({"outcome": "selected", "optionId": "allow_always"}, Approval.FOR_SESSION),
        ({"outcome": "selected", "optionId": "reject_once"}, False),
        ({"outcome": "selected", "optionId": ["odd"]}, False),
        ({"outcome": "cancelled"}, False),
        (None, False),
    ],
)
async def test_a_client_of_the_agent_client_protocol_answers(outcome: Any, answer: object) -> None:
    sent: list[dict[str, Any]] = []

    async def request_permission(params: dict[str, Any]) -> Mapping[str, Any]:
        sent.append(params)
        return {"outcome": outcome}

    assert await acp_approver(request_permission)(REQUEST) is answer
    assert sent[0]["sessionId"] == "s1"
    assert sent[0]["toolCall"]["rawInput"] == REQUEST.tool_input
    assert [each["kind"] for each in sent[0]["options"]] == ["allow_once", "allow_always", "reject_once"]


ASK = """
import sys
from llxprt_hooks import ApprovalRequest
from llxprt_hooks.integrations.approvers import ask_on_terminal
print("ANSWER", ask_on_terminal(ApprovalRequest("deploy", {"to": "x\\x1b[2J"}, "sure?", "deploys", "s1")))
"""


@pytest.mark.parametrize(("typed", "answer"), [("y", "True"), ("YES", "True"), ("n", "False"), ("", "False")])
def test_the_person_at_the_terminal_answers(typed: str, answer: str) -> None:
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", ASK])
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, f"{typed}\n".encode())
    while b"ANSWER" not in shown or not shown.endswith(b"\n"):
        shown += os.read(terminal, 4096)
    os.waitpid(child, 0)
    os.close(terminal)
    assert b"deploys asks: sure?" in shown
    assert b"\x1b[2J" not in shown
    assert f"ANSWER {answer}".encode() in shown


def test_without_a_terminal_nobody_can_be_asked() -> None:
    program = f"import os\nos.setsid() if os.getpid() != os.getsid(0) else None\n{ASK}"
    ended = run_python("-c", program)
    assert ended.returncode != 0
    assert "ANSWER" not in ended.stdout


def test_arguments_are_valid_json_on_the_page(page: Page) -> None:
    thread, _ = in_background(page)
    until(lambda: page.question()[1] != "")
    shown = page.question()[0]
    text = re.search(r"<pre>(.*?)</pre>", shown, re.DOTALL)
    assert text is not None
    assert json.loads(text[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">")) == REQUEST.tool_input
    page.answer("no")
    thread.join(DEADLINE)
