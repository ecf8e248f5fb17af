"""A conversation of several prompts over HTTP: what was said before, as the model is told it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pexpect
import pytest

from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.cli import COMMAND, ended
from tests.support.gemini import Chunks, Gemini, Reply, answer, call
from tests.support.processes import DEADLINE, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.e2e.conftest import Played

Sign: TypeAlias = "str | Callable[[], bool]"
"""How it is known that a line has been carried out: something is shown, or has happened."""


def converse(
    project: AgentProject, replies: Sequence[Chunks | Reply], lines: list[tuple[str, Sign]], *arguments: str
) -> AgentRun:
    """An interactive session: each line is typed when the one before has been carried out."""
    given = [each if isinstance(each, Reply) else Reply(each) for each in replies]
    with Gemini(given).running() as gemini:
        environment = project.environment(TERM="xterm", GEMINI_API_KEY="test", GOOGLE_GEMINI_BASE_URL=gemini.url)
        terminal = pexpect.spawn(
            COMMAND, ["run", *arguments], cwd=str(project.root), env=environment, timeout=DEADLINE, encoding="utf-8"
        )
        terminal.expect(">")
        for line, sign in lines:
            terminal.send(f"{line}\r")
            if isinstance(sign, str):
                terminal.expect_exact(sign)
            else:
                until(sign)
        terminal.send("/quit\r")
        return AgentRun(ended(terminal)[1], "", "", project, *gemini.used())


def new_answer(text: str) -> dict[str, object]:
    return {"hookSpecificOutput": {"llm_response": {"candidates": [{"content": {"role": "model", "parts": [text]}}]}}}


def changed_answers(project: AgentProject) -> AgentRun:
    redacted = {"hookSpecificOutput": {"llm_response": {"text": "The key is ****."}}}
    cached = {"decision": "block", "hookSpecificOutput": {"llm_response": {"text": "From the cache."}}}
    project.configure(
        AfterModel=project.hook("after", [redacted, new_answer("Something else."), {"suppressOutput": True}]),
        BeforeModel=project.hook("before", [None, None, cached]),
    )
    return converse(
        project,
        [
            answer("The key ", "is sesame."),
            answer("Anything.", call("write_file", file_path="made.txt", content="x")),
            answer("Hidden.", call("glob", pattern="*")),
            answer("Over."),
        ],
        [("one", "****"), ("two", "Something else"), ("three", "From the cache"), ("four", "Over")],
        "-y",
    )


@pytest.mark.requirement("HOOK-036", "HOOK-046", "HOOK-047", "HOOK-049", "HOOK-138", "HOOK-173", "HOOK-180", "HOOK-217")
def test_the_conversation_has_the_answers_after_hooks(tmp_path: Path) -> None:
    """Modified, replaced, synthetic and suppressed."""
    run = changed_answers(AgentProject(tmp_path, HTTP))
    assert run.requests[2].texts == [
        ("user", "one"),
        ("model", "The key is ****."),
        ("user", "two"),
        ("model", "Something else."),
        ("user", "three"),
        ("model", "From the cache."),
        ("user", "four"),
    ]
    assert run.requests[3].contents[-2]["parts"] == [{"text": "Hidden."}, call("glob", pattern="*")]
    sent = json.dumps([request.body for request in run.requests])
    assert [word for word in ("sesame", "Anything.") if word in sent] == []
    assert not (run.project.root / "made.txt").exists()
    assert (len(run.requests), run.unused) == (4, 0)


def compressed_and_cleared(project: AgentProject) -> AgentRun:
    hooks = {
        event: project.hook(event) for event in ("PreCompress", "SessionStart", "SessionEnd", "BeforeToolSelection")
    }
    project.configure(**hooks)
    return converse(
        project,
        [
            answer("First."),
            answer("A short summary."),
            answer("Second.", tokens=(600_000, 1)),
            answer("Another summary."),
            answer("Third.", tokens=(700_000, 1)),
            answer("Fourth."),
        ],
        [
            ("one", "First"),
            ("/compress", lambda: len(project.payloads("SessionStart")) == 2),
            ("two", "Second"),
            ("three", "Third"),
            ("/clear", lambda: len(project.payloads("SessionStart")) == 4),
            ("four", "Fourth"),
        ],
    )


@pytest.mark.requirement("HOOK-203")
def test_compressing_and_clearing_fire_their_events(played: Played) -> None:
    run = played(compressed_and_cleared, HTTP)
    assert [payload["trigger"] for payload in run.payloads("PreCompress")] == ["manual", "auto"]
    starts = [payload["source"] for payload in run.payloads("SessionStart")]
    assert starts == ["startup", "compress", "compress", "clear"]
    assert [payload["reason"] for payload in run.payloads("SessionEnd")] == ["clear", "exit"]


def test_a_summary_replaces_the_conversation_and_clear_empties_it(played: Played) -> None:
    run = played(compressed_and_cleared, HTTP)
    assert "tools" not in run.requests[1].body
    assert len(run.payloads("BeforeToolSelection")) == 4
    assert [text for _, text in run.requests[2].texts][1:] == ["A short summary.", "two"]
    assert [text for _, text in run.requests[4].texts][1:] == ["Another summary.", "three"]
    assert len(run.requests) == 6
    assert run.requests[5].texts == [("user", "four")]


STOP_SUMMARIES = """grep -q summary && echo '{"continue": false, "stopReason": "enough"}' || true"""


@pytest.mark.requirement("HOOK-048")
def test_the_reason_of_a_stop_does_not_replace_the_conversation(tmp_path: Path) -> None:
    project = AgentProject(tmp_path, HTTP)
    project.configure(AfterModel=STOP_SUMMARIES)
    run = converse(
        project,
        [answer("First."), answer("A short summary."), answer("Second.")],
        [("one", "First"), ("/compress", "no summary"), ("two", "Second")],
    )

    assert run.requests[2].texts == [("user", "one"), ("model", "First."), ("user", "two")]


NOTE_SUMMARIES = """grep -q Summarize && echo '{"systemMessage": "mind the gap"}' || true"""


@pytest.mark.requirement("HOOK-159")
def test_a_message_about_a_summary_reaches_the_model_with_the_next_request(tmp_path: Path) -> None:
    project = AgentProject(tmp_path, HTTP)
    project.configure(AfterModel=NOTE_SUMMARIES, SessionStart=project.hook("SessionStart"))
    run = converse(
        project,
        [answer("First."), answer("A short text."), answer("Second."), answer("Third.")],
        [
            ("one", "First"),
            ("/compress", lambda: len(project.payloads("SessionStart")) == 2),
            ("two", "Second"),
            ("three", "Third"),
        ],
    )

    told = ["mind the gap" in str(request.body) for request in run.requests]
    assert told == [False, False, True, False]
