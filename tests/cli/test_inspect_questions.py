"""Questions of agents in the inspector: who may ask, who may answer, for what, and for how long."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from llxprt_hooks import Answered, ApprovalRequest, Config, HookLog, Hooks, NobodyToAsk, ask
from llxprt_hooks.commands.inspect.questions import GONE_AFTER, MAX_QUESTIONS, Questions, UnknownQuestionError
from llxprt_hooks.commands.log import LogFilter, LogReader
from llxprt_hooks.integrations.approvers import ask_in_inspector
from llxprt_hooks.integrations.inspector_questions import PATH, announced, ask_everywhere, open_inspectors
from llxprt_hooks.settings.levels import inspectors_folder
from tests.support.inspector import Inspector, inspecting
from tests.support.processes import DEADLINE, until

if TYPE_CHECKING:
    from tests.support.cli import CliProject

REQUEST = ApprovalRequest("deploy", {"to": "production\u202e", "note": "<b>"}, "is it tested?", "deploys", "s1")


@pytest.fixture(autouse=True)
def project(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> Path:
    world.enter(monkeypatch)
    return world.root


@pytest.fixture
def inspector(world: CliProject) -> Iterator[Inspector]:
    with inspecting(world) as running:
        until(lambda: len(open_inspectors()) == 1)
        yield running


def questions(client: httpx.Client) -> Any:
    """The questions on the page, as soon as there is any."""
    with client.stream("GET", "/api/stream") as response:
        is_next = False
        for line in response.iter_lines():
            if is_next and line != "data: []":
                return json.loads(line.removeprefix("data: "))
            is_next = line == "event: questions"
    raise AssertionError("the inspector has ended")


def answer(client: httpx.Client, word: object, **changed: str) -> httpx.Response:
    [shown] = questions(client)
    return client.post("/api/answer", json={"id": shown["id"], "digest": shown["digest"], "answer": word, **changed})


async def asked(client: httpx.Client, word: str) -> Any:
    """Run a tool about which a hook asks, and answer on the page."""
    hooks = Hooks(Config(profile="full", approver=ask_in_inspector, observer=HookLog()))
    hooks.on("BeforeTool", lambda payload: ask("is it tested?"), name="deploys")
    call = asyncio.create_task(hooks.run_tool("deploy", {"to": "staging"}, lambda arguments: "deployed"))
    assert (await asyncio.to_thread(answer, client, word)).json() == {"answered": True}
    return (await call).llm_content


@pytest.mark.parametrize(
    ("word", "answered", "result"),
    [
        ("once", Answered.APPROVED, "deployed"),
        ("session", Answered.FOR_SESSION, "deployed"),
        ("no", Answered.DENIED, "is it tested? (the answer was no)"),
    ],
)
async def test_a_person_answers_in_the_inspector(
    inspector: Inspector, word: str, answered: Answered, result: str
) -> None:
    with inspector.client() as client:
        assert await asked(client, word) == result
    [record] = [each for each in LogReader(where=LogFilter(answers=True)).read() if "answer" in each]
    assert record["answer"] == answered


@contextmanager
def agent() -> Iterator[subprocess.Popen[bytes]]:
    """An agent that asks, in a process of its own."""
    code = (
        "import asyncio\nfrom llxprt_hooks import ApprovalRequest\n"
        "from llxprt_hooks.integrations.approvers import ask_in_inspector\n"
        f"print(asyncio.run(ask_in_inspector({REQUEST!r})))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_page_gets_all_of_the_call_and_no_invisible_character(inspector: Inspector) -> None:
    with agent() as process, inspector.client() as client:
        [shown] = questions(client)
        assert shown["arguments"] == [["to", "production\\u202e"], ["note", "<b>"]]
        assert (shown["tool_name"], shown["hook"], shown["reason"]) == ("deploy", "deploys", "is it tested?")
        assert (shown["project"], shown["pid"], shown["digest"]) == (str(Path.cwd()), process.pid, REQUEST.digest)
        assert answer(client, "session").status_code == 200
        assert process.communicate(timeout=DEADLINE)[0] == b"Approval.FOR_SESSION\n"


def test_an_answer_is_for_one_call_and_counts_once(inspector: Inspector) -> None:
    with agent() as process, inspector.client() as client:
        [shown] = questions(client)
        assert answer(client, "once", digest="0" * 64).status_code == 409
        assert answer(client, "once", id="another").status_code == 409
        assert answer(client, "maybe").status_code == 400
        assert answer(client, ["once"]).status_code == 400
        assert answer(client, "no").status_code == 200
        again = {"id": shown["id"], "digest": shown["digest"], "answer": "once"}
        assert client.post("/api/answer", json=again).status_code == 409
        assert process.communicate(timeout=DEADLINE)[0] == b"False\n"


def test_only_the_page_can_answer_and_only_agents_of_the_user_can_ask(inspector: Inspector) -> None:
    [found] = open_inspectors()
    key = {"Authorization": f"Bearer {found.key}"}
    said = {"id": "x", "digest": "y", "answer": "once"}
    with httpx.Client(base_url=inspector.origin, timeout=DEADLINE) as stranger:
        for path in (PATH, "/api/answer"):
            assert stranger.post(path, json=said).status_code == 403
            assert stranger.post(path, json=said, headers={**key, "Host": "evil.example"}).status_code == 403
        assert stranger.post("/api/answer", json=said, headers=key).status_code == 403
        assert stranger.post("/api/answer", json=said, headers={**key, "Origin": inspector.origin}).status_code == 403
        assert stranger.get("/api/stream", headers=key).status_code == 403
        assert stranger.get(PATH, headers=key).status_code == 403
        assert stranger.post(PATH, json=said, headers=key).status_code == 400
    with inspector.client() as client:
        assert client.post("/api/answer", json=said, headers={"Origin": "http://evil.example"}).status_code == 403


def test_the_agent_asks_there(inspector: Inspector, world: CliProject) -> None:
    hook = {"type": "command", "name": "deploys", "command": """echo '{"decision": "ask", "reason": "sure?"}'"""}
    settings = {"enableHooks": True, "hooksConfig": {"profile": "full"}, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    world.write(world.project_file, settings)
    parts = [{"functionCall": {"name": "glob", "args": {"pattern": "*"}}}], [{"text": "Done."}]
    answers = [
        {"candidates": [{"content": {"role": "model", "parts": each}, "finishReason": "STOP"}]} for each in parts
    ]
    lines = [json.dumps({"method": "generateContent", "response": each}) for each in answers]
    (world.root / "answers.jsonl").write_text("\n".join(lines))
    options = ("-p", "deploy", "--replay", "answers.jsonl", "-o", "json", "--ask-in-inspector")
    with world.start("run", *options) as process, inspector.client() as client:
        assert answer(client, "once").status_code == 200
        said = json.loads(process.communicate(timeout=DEADLINE)[0])
    assert [(each["status"], each["asked"]) for each in said["tool_calls"]] == [("success", "approved")]


def test_an_agent_that_ends_takes_its_question_with_it(inspector: Inspector) -> None:
    with inspector.client() as client:
        with agent():
            [shown] = questions(client)
        said = {"id": shown["id"], "digest": "0" * 64, "answer": "once"}
        assert client.post("/api/answer", json=said).status_code == 409
        with agent() as other:
            until(lambda: [each["pid"] for each in questions(client)] == [other.pid])


def test_an_inspector_that_is_opened_later_gets_the_question(world: CliProject) -> None:
    with agent() as process:
        assert process.stderr is not None
        assert b"llxprt-hooks inspect" in process.stderr.readline()
        with inspecting(world) as inspector, inspector.client() as client:
            assert answer(client, "once").status_code == 200
            assert process.communicate(timeout=DEADLINE)[0] == b"True\n"


def test_an_inspector_that_an_agent_started_is_not_asked(world: CliProject) -> None:
    with inspecting(world, LLXPRT_AGENT="1") as inspector, inspector.client() as client:
        assert client.get("/api/overview").status_code == 200
        assert open_inspectors() == []


def test_what_an_inspector_left_behind_is_not_asked() -> None:
    with announced(40000, "key"):
        [found] = open_inspectors()
        assert (found.port, found.key) == (40000, "key")
        file = inspectors_folder() / "40000.json"
        assert file.stat().st_mode & 0o077 == 0
        left = file.read_text()
    assert not file.exists()
    file.write_text(left)
    assert open_inspectors() == []


async def test_a_question_that_nobody_answers_denies(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NobodyToAsk, match="nobody answered within 0 seconds"):
        await ask_everywhere(REQUEST, expires=0.01)
    assert "run: llxprt-hooks inspect" in capsys.readouterr().err


# The questions themselves, without a server.


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def question(identity: str = "q", **changed: Any) -> dict[str, Any]:
    texts = dict.fromkeys(("tool_name", "reason", "hook", "session_id", "project"), "x")
    return {**texts, "id": identity, "digest": "d", "tool_input": {}, "seconds_left": 300, **changed}


def test_a_question_is_gone_when_its_time_is_over_or_its_agent_is_silent() -> None:
    clock = Clock()
    questions = Questions(clock)
    questions.told(question(seconds_left=GONE_AFTER / 2))
    questions.told(question("p"))
    clock.now += GONE_AFTER * 0.6
    assert [each["id"] for each in questions.waiting()] == ["p"]
    with pytest.raises(UnknownQuestionError):
        questions.answer("q", "d", "once")
    clock.now += GONE_AFTER
    assert questions.waiting() == []
    questions.told(question("p"))
    questions.answer("p", "d", "once")
    assert questions.told(question("p")) == "once"


@pytest.mark.parametrize(
    "said",
    [
        {},
        question(tool_input="x"),
        question(seconds_left=301),
        question(seconds_left=float("nan")),
        question(seconds_left=0),
        question(reason=None),
        question(tool_input={"text": "x" * 300_000}),
    ],
)
def test_what_is_not_a_question_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"question|arguments"):
        Questions().told(said)


def test_questions_are_limited_and_keep_their_arguments() -> None:
    questions = Questions()
    for number in range(MAX_QUESTIONS):
        questions.told(question(str(number)))
    with pytest.raises(ValueError, match="Too many"):
        questions.told(question("more"))
    with pytest.raises(ValueError, match="another call"):
        questions.told(question("1", digest="other"))
