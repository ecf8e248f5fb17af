"""Hooks around the model: what is sent, what is not, and what becomes of the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import answer, call
from tests.support.replies import STOP

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.e2e.conftest import Played

DEFAULT_MODEL = "gemini-2.5-flash"


@pytest.fixture
def project(tmp_path: Path) -> AgentProject:
    return AgentProject(tmp_path, HTTP)


def stored(run: AgentRun) -> list[dict[str, Any]]:
    """The contents that the transcript holds: the history of the conversation."""
    [transcript] = (run.project.home / ".llxprt" / "transcripts").iterdir()
    entries = [json.loads(line) for line in transcript.read_text().splitlines()]
    return [entry["content"] for entry in entries if entry["type"] == "message"]


# What a BeforeModel hook changes for one request.


def changed_request(project: AgentProject) -> AgentRun:
    changes = {
        "systemMessage": "Be terse.",
        "hookSpecificOutput": {
            "llm_request": {
                "model": "other-model",
                "messages": [{"role": "user", "content": "Do it."}, {"role": "user", "content": "It is Monday."}],
                "config": {"temperature": 0.25, "maxOutputTokens": 99},
                "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["glob"]},
            }
        },
    }
    project.configure(
        BeforeModel=project.hook("change", [changes]),
        AfterModel=project.hook("after", [{"decision": "block", "reason": "cannot be"}]),
    )
    first = answer("Let me ", "look ", [{"text": "around."}, call("glob", pattern="*")], tokens=(10, 20))
    return project.play("-o", "json", answers=[first, answer("Nothing ", "here.", tokens=(30, 40))])


@pytest.mark.requirement("HOOK-038", "HOOK-039", "HOOK-139", "HOOK-156", "HOOK-159", "HOOK-179")
def test_changes_of_a_hook_are_sent_with_one_request(played: Played) -> None:
    run = played(changed_request, HTTP)
    first, second = run.requests
    assert first.path.endswith("/models/other-model:streamGenerateContent?alt=sse")
    assert first.body["generationConfig"] == {"temperature": 0.25, "maxOutputTokens": 99}
    assert first.calling == {"mode": "ANY", "allowedFunctionNames": ["glob"]}
    assert first.texts == [("user", "Do it."), ("user", "It is Monday."), ("user", "[System] Be terse.")]
    assert second.path.endswith(f"/models/{DEFAULT_MODEL}:streamGenerateContent?alt=sse")
    assert "temperature" not in second.body.get("generationConfig", {})
    assert second.calling is None
    assert second.texts == [("user", "Do it."), ("model", "Let me look around.")]
    assert second.contents == stored(run)[:-1]
    assert (first.body["tools"], first.body["systemInstruction"]) == (
        second.body["tools"],
        second.body["systemInstruction"],
    )
    assert len(first.tools) == 7


@pytest.mark.requirement("HOOK-033", "HOOK-043", "HOOK-044", "HOOK-050", "HOOK-141", "HOOK-172", "HOOK-180")
def test_hooks_see_the_request_before_it_is_sent_and_the_complete_response(played: Played) -> None:
    run = played(changed_request, HTTP)
    before = [payload["llm_request"] for payload in run.payloads("change")]
    assert [request["model"] for request in before] == [DEFAULT_MODEL, DEFAULT_MODEL]
    assert before[1]["messages"] == [*before[0]["messages"], {"role": "model", "content": "Let me look around."}]
    responses = [payload["llm_response"] for payload in run.payloads("after")]
    assert [response["text"] for response in responses] == ["Let me look around.", "Nothing here."]
    assert [response["usageMetadata"]["totalTokenCount"] for response in responses] == [30, 70]
    assert [response["candidates"][0]["finishReason"] for response in responses] == ["STOP", "STOP"]
    sent = run.payloads("after")[0]["llm_request"]
    assert (sent["model"], sent["config"]) == ("other-model", {"temperature": 0.25, "maxOutputTokens": 99})
    assert (run.status, run.statuses, run.json["response"]) == (0, ["success"], "Nothing here.")
    assert run.json["hooks"]["AfterModel"]["blocked"] == 0


# A hook that keeps the model from being called, or ends the run.


@pytest.mark.requirement("HOOK-037", "HOOK-156", "HOOK-174", "HOOK-179", "HOOK-202")
def test_a_blocked_model_is_not_called_and_the_run_says_why(project: AgentProject) -> None:
    block = {"decision": "deny", "reason": "out of office"}
    project.configure(BeforeModel=project.hook("block", block), AfterModel=project.hook("after"))
    run = project.play("-o", "json", answers=[answer("Not reached.")])
    assert (run.status, run.json["response"], run.json["stop_reason"]) == (2, "", None)
    assert (run.requests, run.unused, run.payloads("after")) == ([], 1, [])
    assert run.stderr.count("out of office") == 1


@pytest.mark.requirement("HOOK-036", "HOOK-138", "HOOK-156", "HOOK-174", "HOOK-179")
def test_a_synthetic_response_replaces_the_models_answer(project: AgentProject) -> None:
    said = {"decision": "block", "reason": "x", "hookSpecificOutput": {"llm_response": {"text": "From the cache."}}}
    project.configure(BeforeModel=project.hook("cache", [None, said]), AfterModel=project.hook("after"))
    run = project.play("-o", "json", answers=[answer("Hm.", call("glob", pattern="*")), answer("Not reached.")])
    assert (run.status, run.json["response"], run.stderr) == (0, "From the cache.", "")
    assert stored(run)[-1] == {"role": "model", "parts": [{"text": "From the cache."}]}
    assert len(run.payloads("after")) == len(run.requests) == run.unused == 1


@pytest.mark.requirement("HOOK-048", "HOOK-156", "HOOK-180", "HOOK-217")
def test_a_stop_after_the_model_ends_the_run_with_the_reason_as_the_answer(project: AgentProject) -> None:
    project.configure(AfterModel=project.hook("stop", STOP))
    asked = call("write_file", file_path="made.txt", content="x")
    run = project.play("-o", "json", "-y", answers=[answer("I will go on.", asked), answer("Not reached.")])
    assert (run.status, run.json["stop_reason"], run.json["response"]) == (3, "enough", "enough")
    assert "enough" in run.stderr
    assert stored(run)[-1] == {"role": "model", "parts": [{"text": "enough"}]}
    assert (run.calls, len(run.requests)) == ([], 1)


@pytest.mark.requirement("HOOK-048")
def test_the_reason_of_a_stop_after_the_model_is_shown_once(project: AgentProject) -> None:
    project.configure(AfterModel=project.hook("stop", STOP))
    run = project.play(answers=[answer("I will go on.")])
    assert (run.status, run.stdout, run.stderr.count("stopped by")) == (3, "enough\n", 1)
    assert "enough" not in run.stderr
    assert not (project.root / "made.txt").exists()


# The answer after an AfterModel hook.

REDACT = """
response = payload["llm_response"]
response["candidates"][0]["content"]["parts"] = [response["text"].replace("1234", "****")]
del response["text"]
said = {"hookSpecificOutput": {"llm_response": response}}
"""


@pytest.mark.requirement("HOOK-046", "HOOK-156", "HOOK-173", "HOOK-180", "HOOK-217")
def test_only_the_modified_response_is_shown_and_stored(project: AgentProject) -> None:
    project.configure(AfterModel=project.python_hook("redact", REDACT))
    run = project.play(answers=[answer("The key ", "is 12", "34.")])
    assert run.stdout == "The key is ****.\n"
    assert "34." not in run.stderr
    assert stored(run)[-1]["parts"] == [{"text": "The key is ****."}]


@pytest.mark.requirement("HOOK-049", "HOOK-156", "HOOK-180", "HOOK-217")
def test_a_suppressed_answer_is_not_shown_and_its_calls_are_carried_out(project: AgentProject) -> None:
    project.configure(AfterModel=project.hook("hide", [{"suppressOutput": True}]))
    asked = call("write_file", file_path="made.txt", content="x")
    run = project.play("-y", answers=[answer("Between ", "us.", asked), answer("All done.")])
    assert run.stdout == "All done.\n"
    assert "Between" not in run.stderr
    assert (project.root / "made.txt").read_text() == "x"
    assert {"text": "Between us."} in stored(run)[1]["parts"]


@pytest.mark.requirement("HOOK-049")
def test_a_suppressed_answer_is_not_a_response_in_json(project: AgentProject) -> None:
    project.configure(AfterModel=project.hook("hide", {"suppressOutput": True}))
    run = project.play("-o", "json", answers=[answer("Between us.")])
    assert (run.status, run.json["response"]) == (0, "")
    assert "Between us." not in run.stdout + run.stderr


@pytest.mark.requirement("HOOK-159", "HOOK-217")
def test_system_messages_reach_the_model_and_not_the_user(project: AgentProject) -> None:
    events = ("BeforeToolSelection", "BeforeModel", "AfterModel", "AfterTool", "BeforeTool")
    project.configure(**{event: project.hook(event, [{"systemMessage": f"said at {event}."}]) for event in events})
    answers = [answer("One.", call("glob", pattern="*")), answer("Two.", call("glob", pattern="*")), answer("Three.")]
    run = project.play(answers=answers)
    requests = [json.dumps(request.contents) for request in run.requests]
    assert {event: [f"[System] said at {event}." in request for request in requests] for event in events} == {
        "BeforeToolSelection": [True, False, False],
        "BeforeModel": [True, False, False],
        "AfterModel": [False, True, False],
        "AfterTool": [False, True, True],
        "BeforeTool": [False, True, True],
    }
    assert run.stdout == "One.\nTwo.\nThree.\n"
    assert "said at" not in run.stderr
