"""The Gemini API over HTTP: sessions of several turns, errors, cut connections."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import Chunks, End, Reply, answer, call, refusal, unfinished

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.e2e.conftest import Played

KEY = "a-key-that-nobody-may-see"


@pytest.fixture
def api(tmp_path: Path) -> AgentProject:
    """A project whose model answers over HTTP."""
    return AgentProject(tmp_path, HTTP)


def watched(project: AgentProject, *replies: Chunks | Reply, **environment: str) -> AgentRun:
    """A run whose model hooks take notes."""
    project.configure(BeforeModel=project.hook("before"), AfterModel=project.hook("after"))
    return project.play("-o", "json", answers=replies, GEMINI_API_KEY=KEY, **environment)


def sentence(run: AgentRun) -> str:
    """The one line on stderr of a run that failed."""
    assert run.status == 1
    assert run.stderr.count("\n") == 1, run.stderr
    [line] = run.stderr.splitlines()
    assert line.startswith("llxprt-hooks: ")
    assert KEY not in run.stderr + run.stdout
    return line


# Turns.


def three_turns(project: AgentProject) -> AgentRun:
    (project.root / "a.txt").write_text("alpha")
    answers = [
        answer("First ", "look.", call("list_directory", dir_path="."), tokens=(1, 2)),
        answer(
            [{"text": "pondering", "thought": True}],
            [{**call("read_file", file_path="a.txt"), "thoughtSignature": "c2lnbmVk"}],
            tokens=(3, 4),
        ),
        answer("It says ", "alpha.", tokens=(5, 6)),
    ]
    return project.run("-o", "json", "-m", "some-model", answers=answers, GEMINI_API_KEY="", GOOGLE_API_KEY=KEY)


def test_each_request_holds_the_whole_conversation_so_far(played: Played) -> None:
    run = played(three_turns, HTTP)
    first, second, third = (request.contents for request in run.requests)
    assert first == [{"role": "user", "parts": [{"text": "Do it."}]}]
    assert second[:1] == first
    assert third[:3] == second
    assert [content["role"] for content in third] == ["user", "model", "user", "model", "user"]
    assert third[1]["parts"] == [{"text": "First look."}, call("list_directory", dir_path=".")]
    assert third[3]["parts"][-1] == {**call("read_file", file_path="a.txt"), "thoughtSignature": "c2lnbmVk"}
    assert third[4]["parts"] == [{"functionResponse": {"name": "read_file", "response": {"output": "alpha"}}}]


def test_a_run_answers_with_its_last_answer_and_the_sum_of_what_it_used(played: Played) -> None:
    run = played(three_turns, HTTP)
    assert (run.status, run.stderr) == (0, "")
    assert run.json["response"] == "It says alpha."
    assert run.json["usage"] == {"promptTokenCount": 9, "candidatesTokenCount": 12, "totalTokenCount": 21}


def test_the_model_that_was_chosen_is_called_with_the_key_and_every_tool(played: Played) -> None:
    for request in played(three_turns, HTTP).requests:
        assert request.path.endswith("/models/some-model:streamGenerateContent?alt=sse")
        assert request.headers["x-goog-api-key"] == KEY
        assert len(request.tools) == 7


# Errors that pass.


def passing_errors(project: AgentProject) -> AgentRun:
    return watched(
        project,
        refusal(429, "slow down", "RESOURCE_EXHAUSTED"),
        answer(call("glob", pattern="*")),
        Reply(status=500, body=b"<html>oh dear</html>"),
        answer("Made it."),
    )


def test_a_transient_error_is_tried_again(played: Played) -> None:
    run = played(passing_errors, HTTP)
    assert (run.status, run.stderr) == (0, "")
    assert run.json["response"] == "Made it."
    first, again, second, second_again = (request.body for request in run.requests)
    assert first == again
    assert second == second_again
    assert first != second


@pytest.mark.requirement("HOOK-172")
def test_a_retry_is_not_a_new_model_call(played: Played) -> None:
    run = played(passing_errors, HTTP)
    assert len(run.payloads("before")) == len(run.payloads("after")) == 2


def lasting_error(project: AgentProject) -> AgentRun:
    return watched(project, *[refusal(503, "The model is overloaded.", "UNAVAILABLE")] * 9)


def test_an_error_that_lasts_ends_the_run(played: Played) -> None:
    run = played(lasting_error, HTTP)
    assert 1 < len(run.requests) < 9
    assert "503" in sentence(run)
    assert "The model is overloaded." in sentence(run)


# Errors that stay.

REFUSED: dict[str, tuple[Reply, list[str]]] = {
    "bad request": (
        refusal(400, "Temperature is out of range.", "INVALID_ARGUMENT"),
        ["400", "Temperature is out of range.", "gemini-2.5-flash"],
    ),
    "wrong key": (refusal(401, "API key not valid.", "UNAUTHENTICATED"), ["401", "API key not valid."]),
    "unknown model": (
        refusal(404, "models/gemini-0 is not found", "NOT_FOUND"),
        ["404", "models/gemini-0 is not found"],
    ),
    "no words": (Reply(status=403, body=b"<html>\n<body>\nno\n</body>\n</html>\n"), ["403", "<body> no </body>"]),
}


@pytest.mark.parametrize(("reply", "words"), REFUSED.values(), ids=REFUSED)
@pytest.mark.requirement("HOOK-207")
def test_a_refusal_is_one_sentence_and_is_not_tried_again(api: AgentProject, reply: Reply, words: list[str]) -> None:
    run = watched(api, reply, answer("Not reached."))
    assert [word for word in words if word not in sentence(run)] == []
    assert len(run.requests) == 1
    assert run.payloads("after") == []


# Answers that break off.

CUT = {
    "reset": Reply(unfinished("Half an ", "answer"), End.RESET),
    "torn": Reply(unfinished("Half an ", "answer"), End.TORN),
    "orderly early end": Reply(unfinished("Half an ", "answer")),
    "no answer at all": Reply([]),
    "error in the stream": Reply(
        [*unfinished("Half"), {"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}]
    ),
    "garbage in the stream": Reply([*unfinished("Half"), '{"candidates": [', *answer("More.")]),
}


@pytest.mark.parametrize("reply", CUT.values(), ids=CUT)
@pytest.mark.requirement("HOOK-207", "HOOK-050")
def test_an_answer_that_broke_off_ends_the_run_and_reaches_no_hook(api: AgentProject, reply: Reply) -> None:
    run = watched(api, answer("Let me look.", call("glob", pattern="*")), reply, answer("Not reached."))
    assert "gemini-2.5-flash" in sentence(run)
    assert (run.json["response"], run.statuses) == ("Let me look.", ["success"])
    assert len(run.payloads("before")) == 2
    assert [payload["llm_response"]["text"] for payload in run.payloads("after")] == ["Let me look."]


def test_the_sentence_is_on_a_line_of_its_own(api: AgentProject) -> None:
    run = api.play(answers=[Reply(unfinished("Half an ", "answer"))])
    assert run.stdout == "Half an answer\n"
    assert sentence(run)


# Answers without text.

EMPTY: dict[str, list[Chunks]] = {
    "refused prompt": [[{"promptFeedback": {"blockReason": "SAFETY"}}]],
    "empty answer": [[{"candidates": [{"index": 0, "finishReason": "STOP"}]}]],
    "unknown finish": [[{"candidates": [{"index": 0, "finishReason": "BRAND_NEW"}]}]],
    "empty answer after a call": [
        answer("Let me look.", call("glob", pattern="*")),
        [{"candidates": [{"index": 0, "finishReason": "MAX_TOKENS"}]}],
    ],
}


@pytest.mark.parametrize("answers", EMPTY.values(), ids=EMPTY)
def test_an_empty_answer_ends_the_turn_and_is_not_an_error(api: AgentProject, answers: list[Chunks]) -> None:
    run = watched(api, *answers)
    assert (run.status, run.json["response"], run.stderr) == (0, "", "")
    assert len(run.payloads("after")) == len(run.requests)


# No API.


@pytest.mark.requirement("HOOK-207")
def test_an_api_that_cannot_be_reached_ends_the_run_with_one_sentence(project: AgentProject) -> None:
    project.configure(AfterModel=project.hook("after"))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        run = project.call("run", "-p", "Do it.", "-o", "json", GEMINI_API_KEY=KEY, GOOGLE_GEMINI_BASE_URL=url)
    assert "gemini-2.5-flash" in sentence(run)
    assert run.payloads("after") == []
