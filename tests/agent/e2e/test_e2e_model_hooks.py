"""Hooks around the model: what is sent, what is not, and what becomes of the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent.e2e.e2e_scenes import both_ways
from tests.support.agent import HTTP, AgentProject, AgentRun
from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from tests.agent.e2e.conftest import Played

DEFAULT_MODEL = "gemini-2.5-flash"


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


@pytest.mark.requirement("HOOK-038", "HOOK-139", "HOOK-156", "HOOK-179")
def test_the_model_and_the_settings_that_a_hook_set_are_what_is_sent(played: Played) -> None:
    first, second = played(changed_request, HTTP).requests
    assert first.path.endswith("/models/other-model:streamGenerateContent?alt=sse")
    assert first.body["generationConfig"] == {"temperature": 0.25, "maxOutputTokens": 99}
    assert first.calling == {"mode": "ANY", "allowedFunctionNames": ["glob"]}
    assert second.path.endswith(f"/models/{DEFAULT_MODEL}:streamGenerateContent?alt=sse")
    assert "temperature" not in second.body.get("generationConfig", {})
    assert second.calling is None


@pytest.mark.requirement("HOOK-038", "HOOK-139")
def test_what_the_hook_format_lacks_is_sent_unchanged(played: Played) -> None:
    first, second = played(changed_request, HTTP).requests
    assert first.body["tools"] == second.body["tools"]
    assert first.body["systemInstruction"] == second.body["systemInstruction"]
    assert len(first.tools) == 7


@pytest.mark.requirement("HOOK-039", "HOOK-179")
def test_a_message_that_a_hook_adds_is_sent_after_the_existing_ones(played: Played) -> None:
    [first, _] = played(changed_request, HTTP).requests
    assert first.texts[:2] == [("user", "Do it."), ("user", "It is Monday.")]


@pytest.mark.requirement("HOOK-159", "HOOK-179")
def test_a_system_message_is_added_to_that_one_request_only(played: Played) -> None:
    first, second = played(changed_request, HTTP).requests
    assert first.texts[2:] == [("user", "[System] Be terse.")]
    assert "Be terse." not in json.dumps(second.body)


def test_the_history_keeps_what_was_said_and_not_what_a_hook_made_of_it(played: Played) -> None:
    run = played(changed_request, HTTP)
    assert run.requests[1].texts == [("user", "Do it."), ("model", "Let me look around.")]
    assert run.requests[1].contents == stored(run)[:-1]


@both_ways
@pytest.mark.requirement("HOOK-033", "HOOK-141")
def test_a_before_model_hook_sees_the_complete_request(played: Played, over: str) -> None:
    first, second = (payload["llm_request"] for payload in played(changed_request, over).payloads("change"))
    assert first["model"] == second["model"] == DEFAULT_MODEL
    assert first["messages"] == [{"role": "user", "content": "Do it."}]
    assert second["messages"] == [*first["messages"], {"role": "model", "content": "Let me look around."}]


@both_ways
@pytest.mark.requirement("HOOK-043", "HOOK-050", "HOOK-172")
def test_an_after_model_hook_runs_once_a_model_call_with_the_complete_response(played: Played, over: str) -> None:
    run = played(changed_request, over)
    responses = [payload["llm_response"] for payload in run.payloads("after")]
    assert [response["text"] for response in responses] == ["Let me look around.", "Nothing here."]
    assert [response["usageMetadata"]["totalTokenCount"] for response in responses] == [30, 70]
    assert [response["candidates"][0]["finishReason"] for response in responses] == ["STOP", "STOP"]
    assert run.json["hooks"]["AfterModel"]["fired"] == 2


@both_ways
@pytest.mark.requirement("HOOK-044", "HOOK-050", "HOOK-139")
def test_an_after_model_hook_sees_the_request_as_it_was_sent(played: Played, over: str) -> None:
    request = played(changed_request, over).payloads("after")[0]["llm_request"]
    assert request["model"] == "other-model"
    assert request["config"] == {"temperature": 0.25, "maxOutputTokens": 99}
    assert request["toolConfig"] == {"mode": "ANY", "allowedFunctionNames": ["glob"]}
    assert [message["content"] for message in request["messages"]] == ["Do it.", "It is Monday.", "[System] Be terse."]


@both_ways
@pytest.mark.requirement("HOOK-180")
def test_an_after_model_hook_cannot_block(played: Played, over: str) -> None:
    run = played(changed_request, over)
    assert run.status == 0
    assert run.statuses == ["success"]
    assert run.json["response"] == "Nothing here."
    assert run.json["hooks"]["AfterModel"]["blocked"] == 0


# A conversation full of calls and responses, whose messages a hook changes.

REARRANGE = """
from pathlib import Path
messages = payload["llm_request"]["messages"]
if len([m for m in messages if m["role"] == "model"]) == 2:
    messages[0]["content"] = "Do something else."
    messages.insert(0, {"role": "system", "content": "At the front."})
    messages = [m for m in messages if m["content"] != "Second."] + [{"role": "user", "content": "At the end."}]
    said = {"hookSpecificOutput": {"llm_request": {"messages": messages}}}
"""


def rearranged_messages(project: AgentProject) -> AgentRun:
    (project.root / "a.txt").write_text("a")
    project.configure(BeforeModel=project.python_hook("rearrange", REARRANGE))
    first = {**call("read_file", file_path="a.txt"), "thoughtSignature": "c2lnbmVk"}
    first["functionCall"]["id"] = "call-1"
    second = [{"text": "Second."}, call("glob", pattern="*"), call("read_file", file_path="missing.txt")]
    return project.play(
        "-o", "json", answers=[answer([{"text": "First."}, first]), answer(second), answer("Third."), answer("x")]
    )


def without_text(contents: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Role and parts of each content that has other parts than text."""
    others = [(content["role"], [part for part in content["parts"] if "text" not in part]) for content in contents]
    return [(role, parts) for role, parts in others if parts]


@pytest.mark.requirement("HOOK-038", "HOOK-139")
def test_calls_and_responses_of_earlier_turns_are_sent_intact_after_a_hook_changed_the_messages(played: Played) -> None:
    run = played(rearranged_messages, HTTP)
    assert len(run.payloads("rearrange")) == len(run.requests) == 3
    last = run.requests[2]
    first_call, first_response, second_call, second_response = without_text(last.contents)
    assert first_call == (
        "model",
        [
            {
                "functionCall": {"id": "call-1", "name": "read_file", "args": {"file_path": "a.txt"}},
                "thoughtSignature": "c2lnbmVk",
            }
        ],
    )
    assert first_response == (
        "user",
        [{"functionResponse": {"id": "call-1", "name": "read_file", "response": {"output": "a"}}}],
    )
    assert [part["functionCall"]["name"] for part in second_call[1]] == ["glob", "read_file"]
    responses = [part["functionResponse"] for part in second_response[1]]
    assert [response["name"] for response in responses] == ["glob", "read_file"]
    assert [list(response["response"]) for response in responses] == [["output"], ["error"]]
    assert without_text(stored(run)) == without_text(last.contents)


@pytest.mark.requirement("HOOK-038", "HOOK-039", "HOOK-139")
def test_messages_are_sent_as_a_hook_rearranged_them(played: Played) -> None:
    last = played(rearranged_messages, HTTP).requests[2]
    assert [text for _, text in last.texts] == ["[System] At the front.", "Do something else.", "First.", "At the end."]


def test_nothing_comes_between_a_call_and_its_response(played: Played) -> None:
    contents = played(rearranged_messages, HTTP).requests[2].contents
    called = [
        index for index, content in enumerate(contents) if any("functionCall" in part for part in content["parts"])
    ]
    assert len(called) == 2
    for index in called:
        assert all("functionResponse" in part for part in contents[index + 1]["parts"])


# A hook that answers instead of the model.


def blocked_model(project: AgentProject) -> AgentRun:
    project.configure(
        BeforeModel=project.hook("block", {"decision": "deny", "reason": "out of office"}),
        AfterModel=project.hook("after"),
    )
    return project.play("-o", "json", answers=[answer("Not reached.")])


@both_ways
@pytest.mark.requirement("HOOK-037", "HOOK-156", "HOOK-174", "HOOK-179", "HOOK-202")
def test_a_blocked_model_is_not_called_and_the_run_says_why(played: Played, over: str) -> None:
    run = played(blocked_model, over)
    assert run.status == 2
    assert run.requests == []
    assert run.unused == (1 if over == HTTP else 0)
    assert run.payloads("after") == []
    assert run.json["response"] == ""
    assert run.json["stop_reason"] is None
    assert run.stderr.count("out of office") == 1


def synthetic_answer(project: AgentProject) -> AgentRun:
    said = {
        "decision": "block",
        "reason": "cached",
        "hookSpecificOutput": {"llm_response": {"text": "From the cache."}},
    }
    project.configure(BeforeModel=project.hook("cache", [None, said]), AfterModel=project.hook("after"))
    return project.play("-o", "json", answers=[answer("Hm.", call("glob", pattern="*")), answer("Not reached.")])


@both_ways
@pytest.mark.requirement("HOOK-036", "HOOK-138", "HOOK-156", "HOOK-174", "HOOK-179")
def test_a_synthetic_response_replaces_the_models_answer(played: Played, over: str) -> None:
    run = played(synthetic_answer, over)
    assert run.status == 0
    assert run.json["response"] == "From the cache."
    assert stored(run)[-1] == {"role": "model", "parts": [{"text": "From the cache."}]}
    assert "cached" not in run.stderr


@both_ways
@pytest.mark.requirement("HOOK-036", "HOOK-138", "HOOK-174")
def test_nothing_is_sent_where_a_hook_answers(played: Played, over: str) -> None:
    run = played(synthetic_answer, over)
    assert len(run.payloads("cache")) == 2
    assert len(run.payloads("after")) == 1
    assert len(run.requests) == run.unused == (1 if over == HTTP else 0)


def stopped_before_the_model(project: AgentProject) -> AgentRun:
    project.configure(BeforeModel=project.hook("stop", [None, {"continue": False, "stopReason": "closing time"}]))
    return project.play("-o", "json", answers=[answer("Hm.", call("glob", pattern="*")), answer("Not reached.")])


@both_ways
@pytest.mark.requirement("HOOK-040", "HOOK-156", "HOOK-179")
def test_a_stop_before_the_model_ends_the_run(played: Played, over: str) -> None:
    run = played(stopped_before_the_model, over)
    assert run.status == 3
    assert run.json["stop_reason"] == "closing time"
    assert "closing time" in run.stderr
    assert len(run.requests) == run.unused == (1 if over == HTTP else 0)


# The answer, as an AfterModel hook leaves it.


def redacted_answer(project: AgentProject) -> AgentRun:
    project.configure(
        AfterModel=project.python_hook(
            "redact",
            'response = payload["llm_response"]\n'
            'response["candidates"][0]["content"]["parts"] = [response["text"].replace("1234", "****")]\n'
            'del response["text"]\n'
            'said = {"hookSpecificOutput": {"llm_response": response}}',
        )
    )
    return project.play(answers=[answer("The key ", "is 12", "34.")])


@both_ways
@pytest.mark.requirement("HOOK-046", "HOOK-156", "HOOK-173", "HOOK-180", "HOOK-217")
def test_a_modified_response_is_what_is_shown_and_stored(played: Played, over: str) -> None:
    run = played(redacted_answer, over)
    assert run.stdout == "The key is ****.\n"
    assert stored(run)[-1]["parts"] == [{"text": "The key is ****."}]


@both_ways
@pytest.mark.requirement("HOOK-046", "HOOK-173")
def test_nothing_of_the_original_is_shown_while_it_streams(played: Played, over: str) -> None:
    run = played(redacted_answer, over)
    assert run.stdout.count("The key") == 1
    assert "1234" not in run.stdout + run.stderr
    assert "34." not in run.stdout + run.stderr


def suppressed_answer(project: AgentProject) -> AgentRun:
    project.configure(AfterModel=project.hook("hide", [{"suppressOutput": True}]))
    asked = call("write_file", file_path="made.txt", content="x")
    return project.play("-y", answers=[answer("Between ", "us.", asked), answer("All done.")])


def suppressed_last_answer(project: AgentProject) -> AgentRun:
    project.configure(AfterModel=project.hook("hide", {"suppressOutput": True}))
    return project.play("-o", "json", answers=[answer("Between us.")])


@both_ways
@pytest.mark.requirement("HOOK-049", "HOOK-156", "HOOK-180", "HOOK-217")
def test_a_suppressed_answer_is_not_shown_and_its_calls_are_carried_out(played: Played, over: str) -> None:
    run = played(suppressed_answer, over)
    assert run.stdout == "All done.\n"
    assert "Between" not in run.stderr
    assert (run.project.root / "made.txt").read_text() == "x"
    assert {"text": "Between us."} in stored(run)[1]["parts"]


@pytest.mark.requirement("HOOK-049")
def test_a_suppressed_answer_is_not_a_response_in_json_either(played: Played) -> None:
    run = played(suppressed_last_answer)
    assert (run.status, run.json["response"]) == (0, "")
    assert "Between us." not in run.stdout + run.stderr


def stopped_after_the_model(project: AgentProject) -> AgentRun:
    project.configure(AfterModel=project.hook("stop", {"continue": False, "stopReason": "that will do"}))
    asked = call("write_file", file_path="made.txt", content="x")
    return project.play("-o", "json", "-y", answers=[answer("I will go on.", asked), answer("Not reached.")])


@both_ways
@pytest.mark.requirement("HOOK-048", "HOOK-156", "HOOK-180", "HOOK-217")
def test_a_stop_after_the_model_ends_the_run_with_the_reason_as_the_answer(played: Played, over: str) -> None:
    run = played(stopped_after_the_model, over)
    assert run.status == 3
    assert run.json["stop_reason"] == "that will do"
    assert "that will do" in run.stderr
    assert run.json["response"] == "that will do"
    assert stored(run)[-1] == {"role": "model", "parts": [{"text": "that will do"}]}
    assert run.calls == []
    assert not (run.project.root / "made.txt").exists()
    assert len(run.requests) == run.unused == (1 if over == HTTP else 0)


def repeated_answer(project: AgentProject) -> AgentRun:
    repeat = 'said = {"hookSpecificOutput": {"llm_response": payload["llm_response"]}}'
    project.configure(AfterModel=project.python_hook("repeat", repeat))
    asked = call("write_file", file_path="made.txt", content="x")
    return project.play("-o", "json", "-y", answers=[answer("On ", "it.", asked), answer("Done.")])


def test_an_answer_that_a_hook_merely_repeats_keeps_its_calls(played: Played) -> None:
    run = played(repeated_answer)
    assert (run.status, run.statuses, run.json["response"]) == (0, ["success"], "Done.")
    assert len(run.payloads("repeat")) == 2


# Messages for the model only.


def messages_for_the_model(project: AgentProject) -> AgentRun:
    def once(event: str) -> str:
        return project.hook(event, [{"systemMessage": f"said at {event}."}])

    project.configure(
        **{
            event: once(event)
            for event in ("BeforeToolSelection", "BeforeModel", "AfterModel", "AfterTool", "BeforeTool")
        }
    )
    answers = [answer("One.", call("glob", pattern="*")), answer("Two.", call("glob", pattern="*")), answer("Three.")]
    return project.play(answers=answers)


@pytest.mark.requirement("HOOK-159", "HOOK-217")
def test_each_system_message_reaches_the_model_in_its_place(played: Played) -> None:
    first, second, third = (json.dumps(request.contents) for request in played(messages_for_the_model, HTTP).requests)
    in_which = {
        event: [f"[System] said at {event}." in request for request in (first, second, third)]
        for event in ("BeforeToolSelection", "BeforeModel", "AfterModel", "AfterTool", "BeforeTool")
    }
    assert in_which == {
        "BeforeToolSelection": [True, False, False],
        "BeforeModel": [True, False, False],
        "AfterModel": [False, True, False],
        "AfterTool": [False, True, True],
        "BeforeTool": [False, True, True],
    }


@pytest.mark.requirement("HOOK-159")
def test_no_system_message_is_shown_to_the_user(played: Played) -> None:
    run = played(messages_for_the_model, HTTP)
    assert run.stdout == "One.\nTwo.\nThree.\n"
    assert "said at" not in run.stderr
