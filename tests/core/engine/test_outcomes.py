"""An event, a hook and a question in one word, for logs, counters and traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, HookEventName, HookObserver, Hooks, Observers, QuestionEnded, allow, ask, deny, stop
from llxprt_hooks.core.engine.results import build_failure_envelope, make_empty_success_result
from llxprt_hooks.core.engine.session import asked_by, who_asks
from llxprt_hooks.core.protocol.caller import Asked


def broken(payload: Any) -> None:
    raise ValueError("broken")


@pytest.mark.parametrize(
    ("answer", "profile", "of_hook", "of_event"),
    [
        (lambda payload: None, "standard", "allowed", "allowed"),
        (lambda payload: allow(), "standard", "allowed", "allowed"),
        (lambda payload: deny("no"), "standard", "blocked", "blocked"),
        (lambda payload: stop("enough"), "standard", "stopped", "stopped"),
        (lambda payload: ask("sure?"), "standard", "allowed", "allowed"),
        (lambda payload: ask("sure?"), "full", "asked", "asked"),
        (broken, "standard", "failed", "failed"),
    ],
)
async def test_what_was_decided_in_one_word(answer: Any, profile: str, of_hook: str, of_event: str) -> None:
    hooks = Hooks(Config(profile=profile))
    hooks.on("BeforeTool", answer)
    system = hooks.config.get_hook_system()
    assert system is not None

    result = await system.ready_event_handler().fire_before_tool_event("glob", {})

    assert [each.outcome for each in result.results] == [of_hook]
    assert result.outcome(HookEventName.BEFORE_TOOL) == of_event


@pytest.mark.parametrize(("command", "word"), [("exit 2", "would_block"), ("exit 3", "failed"), ("true", "allowed")])
async def test_a_hook_in_observe_mode_is_counted_apart(tmp_path: Path, command: str, word: str) -> None:
    hook = {"type": "command", "command": command, "mode": "observe"}
    system = Hooks(hooks={"BeforeTool": [{"hooks": [hook]}]}, working_dir=tmp_path).config.get_hook_system()
    assert system is not None

    result = await system.ready_event_handler().fire_before_tool_event("glob", {})

    assert [each.outcome for each in result.results] == [word]
    assert result.outcome(HookEventName.BEFORE_TOOL) == "allowed"


def test_an_event_that_the_engine_cannot_handle_is_refused() -> None:
    assert build_failure_envelope(ValueError("x"), "planning").outcome(HookEventName.BEFORE_TOOL) == "refused"
    assert make_empty_success_result().outcome(HookEventName.BEFORE_TOOL) == "allowed"


class Watching(HookObserver):
    def __init__(self) -> None:
        self.questions: list[QuestionEnded] = []

    def question_ended(self, question: QuestionEnded) -> None:
        self.questions.append(question)


@pytest.mark.parametrize("watched", [True, False])
async def test_observers_get_to_know_the_answer_to_a_question(watched: bool) -> None:
    watching = Watching()
    observer = Observers(watching, HookObserver()) if watched else None
    hooks = Hooks(Config(profile="full", approver=lambda request: True, observer=observer))
    hooks.on("BeforeTool", lambda payload: ask("sure?"), name="guard")

    assert (await hooks.run_tool("glob", {}, lambda arguments: "ran")).llm_content == "ran"

    assert [(each.request.hook, each.verdict.answered.value) for each in watching.questions] == (
        [("guard", "approved")] if watched else []
    )


async def test_an_approver_that_suspends_the_call_leaves_it_waiting() -> None:
    watching = Watching()
    hooks = Hooks(Config(profile="full", observer=watching))
    hooks.on("BeforeTool", lambda payload: ask("sure?"))
    call = hooks.tool_call("glob", {})

    def suspend(request: Any) -> bool:
        raise Suspended

    call.approver = suspend
    with pytest.raises(Suspended):
        await call.before()

    assert [each.verdict.answered.value for each in watching.questions] == ["waiting for the answer"]


class Suspended(Exception):
    pass


async def test_who_asks_is_known_to_the_call_else_to_its_conversation() -> None:
    hooks = Hooks()
    known: list[Any] = []
    hooks.on("BeforeTool", lambda payload: known.append(payload.get("metadata")))
    config = hooks.config
    with asked_by(config, None):
        assert who_asks(config) is None
    with asked_by(object(), Asked({"user": "eve"})):
        await hooks.run_tool("glob", {}, lambda arguments: "ran")
    async with hooks.session("s1", metadata={"team": "web"}) as session:
        session.asked = Asked({"user": "bob", "team": "app"})
        await hooks.run_tool("glob", {}, lambda arguments: "ran")
        with asked_by(config, Asked({"user": "ada"}).within(session.asked)):
            await hooks.run_tool("glob", {}, lambda arguments: "ran")

    assert known == [None, {"user": "bob", "team": "web"}, {"user": "ada", "team": "web"}]
    assert Asked({"a": 1}).within(None) == Asked({"a": 1})


async def test_a_caller_that_cannot_be_read_blocks_what_hooks_could_block(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: None, fail_closed=True)
    hooks.on("AfterTool", lambda payload: None)
    unknown = Asked.read(lambda context: context["user"], {}, "Example")
    with asked_by(hooks.config, unknown):
        refused = await hooks.run_tool("glob", {}, lambda arguments: "ran")
        await hooks.tool_call("glob", {}).after("ran")

    assert "hooks cannot know who asks" in str(refused.llm_content)
    assert "AfterTool: `metadata` of Example failed" in caplog.text
