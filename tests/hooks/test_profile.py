"""What the answers of hooks do under the profile ``full``, and that under ``standard`` they do not do it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from llxprt_hooks import (
    Approval,
    ApprovalRequest,
    Config,
    DefaultHookOutput,
    Hooks,
    StopRequested,
    TurnEnd,
    TurnResult,
    ask,
    change_request,
    context,
    deny,
    grant_trust,
    message,
    replace_answer,
    replace_result,
    restrict,
    rewrite,
    stop,
    trust_status,
)
from llxprt_hooks.core.calls.approval import NobodyToAsk
from llxprt_hooks.settings.trust.status import TrustState
from tests.support import leaks

if TYPE_CHECKING:
    from tests.support.project import Project

Answer: TypeAlias = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any] | None]
CLEAR = {"hookSpecificOutput": {"clearContext": True}}
PERMITTED = {"hookSpecificOutput": {"permissionDecision": "allow"}}
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
RESPONSE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}


def hooks_with(profile: str = "full", approver: Any = None, **answers: Answer) -> Hooks:
    """Hooks in which a function, called like its event, gives this answer."""
    hooks = Hooks(Config(profile=profile, approver=approver))
    for event, answer in answers.items():
        hooks.on(event, answer if callable(answer) else lambda payload, given=answer: given, name=f"hook-{event}")
    return hooks


def tool(arguments: dict[str, Any]) -> str:
    return f"wrote {arguments['path']}"


def failing_tool(arguments: object) -> str:
    raise OSError("disk full")


# Prompts and turns.


async def test_a_prompt_can_be_refused_only_where_hooks_act() -> None:
    refused = await hooks_with(BeforeAgent=deny("no secrets")).before_turn("my key is 7")
    assert (refused.blocked, refused.reason, refused.decided_by) == (True, "no secrets", ("hook-BeforeAgent",))
    passed = await hooks_with("standard", BeforeAgent=deny("no secrets")).before_turn("my key is 7")
    assert (passed.blocked, passed.reason, passed.prompt) == (False, None, "my key is 7")


async def test_context_follows_the_prompt_after_a_blank_line() -> None:
    hooks = hooks_with(BeforeAgent=context("It is Monday."))
    assert (await hooks.before_turn("What day is it?")).prompt == "What day is it?\n\nIt is Monday."
    hooks = hooks_with("standard", BeforeAgent=context("It is Monday."))
    assert (await hooks.before_turn("What day is it?")).prompt == "What day is it?"


async def test_a_refused_prompt_is_not_run() -> None:
    ran: list[str] = []
    result = await hooks_with(BeforeAgent=deny("no")).run_turn("do it", ran.append)
    assert result == TurnResult(blocked=True, reason="no")
    assert ran == []


async def test_a_stop_before_the_agent_ends_the_turn_without_an_exception() -> None:
    ran: list[str] = []
    result = await hooks_with(BeforeAgent=stop("enough")).run_turn("do it", ran.append)
    assert (result.response, result.blocked, result.stop_reason) == (None, False, "enough")
    assert ran == []


async def test_an_agent_continues_with_the_reason_until_the_hook_is_content() -> None:
    seen: list[tuple[str, str, bool]] = []

    def until_tested(payload: dict[str, Any]) -> Mapping[str, Any] | None:
        seen.append((payload["prompt"], payload["prompt_response"], payload["stop_hook_active"]))
        return None if payload["stop_hook_active"] else deny("run the tests")

    result = await hooks_with(AfterAgent=until_tested).run_turn("do it", lambda prompt: f"done: {prompt}")
    assert (result.response, result.continuations) == ("done: run the tests", 1)
    assert seen == [("do it", "done: do it", False), ("run the tests", "done: run the tests", True)]


async def test_under_the_standard_profile_nobody_continues() -> None:
    hooks = hooks_with("standard", AfterAgent=deny("run the tests"))
    result = await hooks.run_turn("do it", lambda prompt: "done")
    assert (result.response, result.continuations) == ("done", 0)
    await hooks.settle()


async def test_the_number_of_continuations_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    prompts: list[str] = []
    result = await hooks_with(AfterAgent=deny("again")).run_turn("do it", prompts.append)
    assert (len(prompts), result.continuations, result.stop_reason) == (9, 8, None)
    assert "AfterAgent: the agent has continued 8 times in a row" in caplog.text


async def test_the_limit_holds_for_a_program_with_a_loop_of_its_own_until_the_next_prompt() -> None:
    hooks = hooks_with(AfterAgent=deny("again"))

    async def continued() -> int:
        await hooks.before_turn("do it")
        count = 0
        while (await hooks.after_turn("do it", "done", stop_hook_active=count > 0)).next_prompt is not None:
            count += 1
        return count

    async with hooks.session("s1"):
        assert [await continued(), await continued()] == [8, 8]


async def test_a_stop_beats_a_block_at_the_end_of_a_turn() -> None:
    answer = {**deny("again"), **stop("enough")}
    end = await hooks_with(AfterAgent=answer).after_turn("do it", "done")
    assert end == TurnEnd(should_stop=True, stop_reason="enough")


@pytest.mark.parametrize("value", [True, 1, "true", False])
async def test_only_true_clears_the_conversation(value: object) -> None:
    answer = {"hookSpecificOutput": {"clearContext": value}}
    result = await hooks_with(AfterAgent=answer).run_turn("do it", lambda prompt: "done")
    assert result.clear_context is (value is True)
    assert (await hooks_with("standard", AfterAgent=CLEAR).run_turn("a", lambda prompt: "b")).clear_context is False


async def test_a_stop_inside_of_a_turn_starts_no_further_one() -> None:
    hooks = hooks_with(AfterAgent=deny("again"), AfterTool=stop("budget spent"))
    prompts: list[str] = []

    async def run(prompt: str) -> str:
        prompts.append(prompt)
        await hooks.run_tool("write_file", {"path": "a"}, tool)
        return "done"

    async with hooks.session("s1"):
        result = await hooks.run_turn("do it", run)
    assert (result.response, result.stop_reason, prompts) == ("done", "budget spent", ["do it"])
    outside = await hooks.run_turn("do it", run)  # a stop outside of a session is raised inside of `run`
    assert (outside.response, outside.stop_reason) == (None, "budget spent")


async def test_what_the_program_raises_passes_through() -> None:
    with pytest.raises(OSError, match="disk full"):
        await hooks_with(BeforeAgent=context("x")).run_turn("do it", lambda prompt: failing_tool({}))


async def test_a_turn_can_be_cancelled_while_its_hooks_run() -> None:
    started = asyncio.Event()

    async def slow(payload: dict[str, Any]) -> None:
        started.set()
        await asyncio.sleep(600)

    hooks = Hooks(Config(profile="full"))
    hooks.on("BeforeAgent", slow)
    turn = asyncio.create_task(hooks.run_turn("do it", lambda prompt: "done"))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


def test_turns_work_without_an_event_loop() -> None:
    hooks = hooks_with(
        BeforeAgent=context("It is Monday."), AfterAgent=deny("again"), SessionStart=context("You are in a test.")
    )
    prompts: list[str] = []

    def run(prompt: str) -> str:
        prompts.append(prompt)
        return "done"

    with hooks.session("s1"):
        hooks.config.max_continuations = 1
        result = hooks.sync.run_turn("do it", run)
        assert hooks.sync.before_turn("next").prompt == "next\n\nIt is Monday."
    assert (result.continuations, result.response) == (1, "done")
    assert prompts == ["do it\n\nYou are in a test.\n\nIt is Monday.", "again"]


# The start of a session, and compression.


async def test_context_of_the_start_reaches_the_first_prompt_of_its_own_session_once() -> None:
    hooks = hooks_with(SessionStart=lambda payload: context(f"This is {payload['session_id']}."))

    async def prompts(session_id: str) -> list[str]:
        async with hooks.session(session_id):
            await asyncio.sleep(0)
            return [(await hooks.before_turn(prompt)).prompt for prompt in ("one", "two")]

    first, second = await asyncio.gather(prompts("s1"), prompts("s2"))
    assert first == ["one\n\nThis is s1.", "two"]
    assert second == ["one\n\nThis is s2.", "two"]


async def test_a_refused_prompt_does_not_use_up_the_context_of_the_start() -> None:
    hooks = hooks_with(
        SessionStart=context("Be brief."),
        BeforeAgent=lambda payload: deny("no") if payload["prompt"] == "bad" else None,
    )
    with hooks.session("s1"):
        assert (await hooks.before_turn("bad")).blocked
        assert (await hooks.before_turn("good")).prompt == "good\n\nBe brief."


async def test_compression_can_be_blocked() -> None:
    assert await hooks_with(PreCompress=deny("keep it")).before_compression("manual") == "keep it"
    assert await hooks_with("standard", PreCompress=deny("keep it")).before_compression("manual") is None


@pytest.mark.parametrize(
    ("event", "fields"), [("SessionEnd", {}), ("Notification", {"notification_type": "x", "message": "y"})]
)
async def test_some_events_only_watch_even_where_hooks_act(
    event: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    hooks = hooks_with()
    hooks.on(event, lambda payload: deny("no"))
    hooks.observe(event, **fields)
    assert await hooks.settle() == 0
    assert "has no effect, because this program does not wait" not in caplog.text


async def test_a_program_that_only_observes_a_prompt_is_told_that_hooks_cannot_act(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hooks = hooks_with(BeforeAgent=deny("no"))
    for _ in range(2):
        hooks.observe("BeforeAgent", prompt="x")
    await hooks.settle()
    assert caplog.text.count("BeforeAgent: what these hooks decide has no effect") == 1


# Asking a person.


async def test_the_approver_decides_about_a_call_with_its_final_arguments() -> None:
    asked: list[ApprovalRequest] = []

    async def approver(request: ApprovalRequest) -> bool:
        asked.append(request)
        return bool(request.tool_input["path"] == "b")

    hooks = hooks_with(approver=approver, BeforeTool={**ask("deploys need a yes"), **rewrite(path="b")})
    result = await hooks.run_tool("deploy", {"path": "a"}, tool)
    assert result.llm_content == "wrote b"
    only = asked[0]
    assert (only.tool_name, only.tool_input, only.reason) == ("deploy", {"path": "b"}, "deploys need a yes")
    assert (only.hook, len(asked)) == ("hook-BeforeTool", 1)


@pytest.mark.parametrize("answer", [False, None, 0, 1, "yes", object()])
async def test_anything_but_a_true_answer_denies(answer: object) -> None:
    hooks = hooks_with(approver=lambda request: answer, BeforeTool=ask("why"))
    result = await hooks.run_tool("deploy", {"path": "a"}, tool)
    assert result.error == {"message": "why (the answer was no)", "type": "hook_blocked"}
    assert result.decided_by == ("hook-BeforeTool",)


async def test_nobody_to_ask_or_an_approver_that_fails_denies() -> None:
    alone = await hooks_with(BeforeTool=ask("why")).run_tool("deploy", {"path": "a"}, tool)
    assert alone.llm_content == "why (nobody could be asked: the program has no approver)"
    broken = hooks_with(approver=failing_tool, BeforeTool=ask("why"))
    result = await broken.run_tool("deploy", {"path": "a"}, tool)
    assert result.llm_content == "why (nobody could be asked: the approver failed: disk full)"


async def test_under_the_standard_profile_ask_asks_nobody() -> None:
    asked: list[ApprovalRequest] = []
    hooks = hooks_with("standard", approver=asked.append, BeforeTool=ask("why"))
    assert (await hooks.run_tool("deploy", {"path": "a"}, tool)).llm_content == "wrote a"
    assert asked == []


async def test_nobody_is_asked_about_a_call_that_another_hook_denies() -> None:
    asked: list[ApprovalRequest] = []
    hooks = hooks_with(approver=asked.append, BeforeTool=ask("why"))
    hooks.on("BeforeTool", lambda payload: deny("never"), name="guard")
    result = await hooks.run_tool("deploy", {"path": "a"}, tool)
    assert (result.decided_by, asked) == (("guard",), [])


async def test_a_framework_is_asked_only_where_the_program_has_no_approver() -> None:
    for approver, reason in ((None, "why (nobody could be asked: the user is away)"), (lambda request: True, None)):
        hooks = hooks_with(approver=approver, BeforeTool=ask("why"))
        call = hooks.tool_call("deploy", {"path": "a"})
        call.approver = away
        refused = await call.before()
        assert (refused and refused.llm_content) == reason
    hooks = hooks_with(BeforeTool=ask("why"))
    call = hooks.tool_call("deploy", {"path": "a"})
    call.approver = leave
    with pytest.raises(OSError, match="later"):  # a framework may leave a call by an exception of its own
        await call.before()


async def leave(request: ApprovalRequest) -> bool:
    raise OSError("later")


async def away(request: ApprovalRequest) -> bool:
    raise NobodyToAsk("the user is away")


async def test_an_approval_for_the_session_covers_the_same_call_only() -> None:
    asked: list[dict[str, Any]] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request.tool_input)
        return Approval.FOR_SESSION

    hooks = hooks_with(approver=approver, BeforeTool=ask("why"))
    async with hooks.session("s1"):
        for path in ("a", "a", "b"):
            await hooks.run_tool("deploy", {"path": path}, tool)
    async with hooks.session("s2"):
        await hooks.run_tool("deploy", {"path": "a"}, tool)
    for _ in range(2):  # outside of sessions, it counts once
        await hooks.run_tool("deploy", {"path": "c"}, tool)
    assert [each["path"] for each in asked] == ["a", "b", "a", "c", "c"]


async def test_an_approver_that_waits_does_not_delay_the_event_loop() -> None:
    answered = threading.Event()
    hooks = hooks_with(approver=lambda request: answered.wait(60), BeforeTool=ask("why"))
    call = asyncio.create_task(hooks.run_tool("deploy", {"path": "a"}, tool))
    await asyncio.sleep(0)
    answered.set()  # only a loop that goes on gets here
    assert (await call).llm_content == "wrote a"


def test_an_approver_is_asked_in_the_thread_of_a_synchronous_caller() -> None:
    threads: list[threading.Thread] = []

    def approver(request: ApprovalRequest) -> bool:
        threads.append(threading.current_thread())
        return True

    hooks = hooks_with(approver=approver, BeforeTool=ask("why"))
    assert hooks.sync.run_tool("deploy", {"path": "a"}, tool).llm_content == "wrote a"
    assert threads == [threading.current_thread()]


async def test_an_allow_answers_the_program_s_own_question_unless_a_hook_asks() -> None:
    async def approved(profile: str, *answers: Answer) -> bool:
        hooks = hooks_with(profile, approver=lambda request: False)
        for number, answer in enumerate(answers):
            hooks.on("BeforeTool", lambda payload, given=answer: given, name=str(number))
        call = hooks.tool_call("deploy", {"path": "a"})
        await call.before()
        return call.is_approved

    assert await approved("full", PERMITTED)
    assert not await approved("standard", PERMITTED)
    assert not await approved("full", {"decision": "allow"})
    assert not await approved("full", PERMITTED, ask("why"))
    assert not await approved("full", PERMITTED, deny("why"))


# Tool results.


@pytest.mark.parametrize(
    ("answer", "content", "display", "error"),
    [
        (replace_result("[removed]"), "[removed]", "[removed]", None),
        (replace_result(""), "", "", None),
        (replace_result({"llmContent": "[removed]"}), "[removed]", "wrote a", None),
        (replace_result({"returnDisplay": "done"}), "wrote a", "done", None),
        (deny("leaks a key"), "leaks a key", "leaks a key", {"message": "leaks a key", "type": "hook_blocked"}),
        ({**deny("leaks a key"), **replace_result("x")}, "leaks a key", "leaks a key",
         {"message": "leaks a key", "type": "hook_blocked"}),
        ({"hookSpecificOutput": {"tool_response": "x", "additionalContext": "y"}}, "x\n\ny", "x", None),
        ({"hookSpecificOutput": {"tool_response": 5}}, "wrote a", "wrote a", None),
    ],
)  # fmt: skip
async def test_a_result_can_be_replaced(answer: Answer, content: str, display: str, error: object) -> None:
    result = await hooks_with(AfterTool=answer).run_tool("write_file", {"path": "a"}, tool)
    assert (result.llm_content, result.return_display, result.error) == (content, display, error)
    standard = await hooks_with("standard", AfterTool=answer).run_tool("write_file", {"path": "a"}, tool)
    assert standard.llm_content.startswith("wrote a")
    assert (standard.return_display, standard.error) == ("wrote a", None)


async def test_the_last_hook_that_replaces_a_result_wins() -> None:
    hooks = hooks_with(AfterTool=replace_result("first"))
    hooks.on("AfterTool", lambda payload: replace_result("second"))
    assert (await hooks.run_tool("write_file", {"path": "a"}, tool)).llm_content == "second"


def test_a_decorated_function_returns_what_replaced_its_result() -> None:
    hooks = hooks_with(AfterTool=lambda payload: replace_result("nothing") if payload["tool_input"]["n"] > 1 else None)

    @hooks.tool
    def count(n: int) -> list[int]:
        return list(range(n))

    assert (count(1), count(2)) == ([0], "nothing")


async def test_hooks_that_act_see_a_tool_that_raised_and_can_replace_its_result() -> None:
    seen: list[dict[str, Any]] = []
    watching = hooks_with(AfterTool=seen.append)
    with pytest.raises(OSError, match="disk full"):
        await watching.run_tool("write_file", {"path": "a"}, failing_tool)
    assert [payload["tool_response"] for payload in seen] == [{"error": {"message": "disk full", "type": "OSError"}}]
    result = await hooks_with(AfterTool=replace_result("try another disk")).run_tool(
        "write_file", {"path": "a"}, failing_tool
    )
    assert (result.llm_content, result.error) == ("try another disk", None)
    with pytest.raises(OSError, match="disk full"):
        await hooks_with("standard", AfterTool=replace_result("x")).run_tool("write_file", {"path": "a"}, failing_tool)


async def test_only_hooks_that_act_get_the_id_of_a_call_and_its_duration() -> None:
    seen: dict[str, dict[str, Any]] = {}

    def note(payload: dict[str, Any]) -> None:
        seen[payload["hook_event_name"]] = payload

    for profile in ("full", "standard"):
        hooks = hooks_with(profile, BeforeTool=note, AfterTool=note)
        call = hooks.tool_call("write_file", {"path": "a"}, tool_use_id="call_7")
        await call.before()
        await call.after("done")
        ids = [seen[event].get("tool_use_id") for event in ("BeforeTool", "AfterTool")]
        assert ids == (["call_7", "call_7"] if profile == "full" else [None, None])
        assert ("duration_ms" in seen["AfterTool"]) is (profile == "full")
        assert "duration_ms" not in seen["BeforeTool"]


async def test_the_duration_is_that_of_the_tool_where_no_hook_runs_before_it() -> None:
    durations: list[int] = []
    hooks = hooks_with(AfterTool=lambda payload: durations.append(payload["duration_ms"]))
    started = time.perf_counter()
    await hooks.run_tool("write_file", {"path": "a"}, tool)
    assert 0 <= durations[0] <= round((time.perf_counter() - started) * 1000)


# Model calls.


async def test_a_hook_can_answer_in_place_of_the_model_without_a_block() -> None:
    async def answered(profile: str) -> Any:
        hooks = hooks_with(profile, BeforeModel=replace_answer("from the cache"))
        result: Any = await hooks.call_model(REQUEST, lambda request: RESPONSE, translator="openai-chat")
        assert not result.blocked
        return result.response["choices"][0]["message"]["content"]

    assert [await answered("full"), await answered("standard")] == ["from the cache", "hi"]


async def test_a_blocked_answer_is_replaced_by_the_reason_and_calls_nothing() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "rm", "arguments": "{}"}}
    message = {"role": "assistant", "content": "unsafe", "tool_calls": [call]}
    response = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}

    async def answered(profile: str) -> Any:
        hooks = hooks_with(profile, AfterModel=deny("unsafe"))  # the reason is what the model said: still no call
        result: Any = await hooks.call_model(REQUEST, lambda request: response, translator="openai-chat")
        return result.response["choices"][0]["message"]

    refused = await answered("full")
    assert (refused["content"], refused.get("tool_calls")) == ("unsafe", None)
    assert await answered("standard") == message


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        (change_request(model="small"), {"hookSpecificOutput": {"llm_request": {"model": "small"}}}),
        (
            restrict("glob", mode="ANY"),
            {"hookSpecificOutput": {"toolConfig": {"mode": "ANY", "allowedFunctionNames": ["glob"]}}},
        ),
        (message("be brief"), {"systemMessage": "be brief"}),
    ],
)
def test_helpers_write_what_a_script_would_print(reply: Mapping[str, Any], output: Mapping[str, Any]) -> None:
    assert DefaultHookOutput(reply).to_dict() == output


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ("temperature", "a model request has no field `temperature`: write config={'temperature': …}"),
        ("prompt", "a model request has no field `prompt`"),
    ],
)
def test_a_field_that_a_request_does_not_have_is_an_error_where_it_is_written(field: str, why: str) -> None:
    fields: dict[str, Any] = {field: 1}
    with pytest.raises(TypeError) as caught:
        change_request(**fields)
    assert str(caught.value) == why


# What holds for every event.


@pytest.mark.parametrize("sequential", [False, True])
async def test_a_deny_beats_an_allow_of_a_later_hook_in_model_events_too(sequential: bool) -> None:
    def said(answer: str) -> dict[str, str]:
        return {"type": "command", "command": f"echo '{answer}'"}

    def group(*answers: str) -> list[dict[str, Any]]:
        return [{"sequential": sequential, "hooks": list(map(said, answers))}]

    settings = {"BeforeModel": group('{"decision": "deny", "reason": "no"}', '{"decision": "allow"}')}
    hooks = Hooks(Config(profile="full", enable_hooks=True, hooks=settings))
    result: Any = await hooks.call_model(REQUEST, lambda request: RESPONSE, translator="openai-chat")
    assert (result.blocked, result.reason) == (True, "no")


@pytest.mark.parametrize("event", ["BeforeAgent", "AfterTool"])
async def test_a_failure_blocks_only_with_fail_closed(event: str) -> None:
    def broken(payload: dict[str, Any]) -> None:
        raise ValueError("oops")

    for fail_closed in (False, True):
        hooks = Hooks(Config(profile="full"))
        hooks.on(event, broken, fail_closed=fail_closed)
        if event == "BeforeAgent":
            assert (await hooks.before_turn("x")).blocked is fail_closed
        else:
            result = await hooks.run_tool("write_file", {"path": "a"}, tool)
            assert (result.error is not None) is fail_closed


async def test_a_hook_that_only_observes_does_not_act() -> None:
    command = """echo '{"decision": "deny", "reason": "no"}'"""
    settings = [{"hooks": [{"type": "command", "command": command, "mode": "observe"}]}]
    hooks = Hooks(Config(profile="full", enable_hooks=True, hooks={"BeforeAgent": settings, "AfterTool": settings}))
    assert not (await hooks.before_turn("x")).blocked
    assert (await hooks.run_tool("write_file", {"path": "a"}, tool)).error is None
    await hooks.settle()


async def test_scripts_act_like_functions() -> None:
    block = [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]
    hooks = Hooks(Config(profile="full", enable_hooks=True, hooks={"BeforeAgent": block, "AfterTool": block}))
    assert (await hooks.before_turn("x")).reason == "no"
    assert (await hooks.run_tool("write_file", {"path": "a"}, tool)).llm_content == "no"


async def test_a_stop_outside_of_a_session_is_still_raised_by_a_tool_call() -> None:
    with pytest.raises(StopRequested):
        await hooks_with(AfterTool=stop("enough")).run_tool("write_file", {"path": "a"}, tool)


def test_an_unknown_profile_is_an_error_of_the_program() -> None:
    with pytest.raises(ValueError, match="`profile` must be 'standard' or 'full', found 'fulll'"):
        Config(profile="fulll")


async def test_hooks_registered_after_the_first_event_act_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    hooks = hooks_with(BeforeAgent=context("x"))
    await hooks.before_turn("one")
    hooks.on("BeforeAgent", lambda payload: deny("late"))
    assert (await hooks.before_turn("two")).reason == "late"


# The full view.


@pytest.mark.parametrize("place", leaks.PLACES)
@pytest.mark.parametrize("api", leaks.APIS)
async def test_a_guard_sees_secrets_in_results_calls_and_system_prompts(api: str, place: str) -> None:
    for profile, is_blocked in (("full", True), ("standard", False)):
        hooks, sent = Hooks(Config(profile=profile)), list[Any]()
        hooks.on("BeforeModel", leaks.refusing, fail_closed=True)

        def call(request: Any, sent: list[Any] = sent) -> Any:
            sent.append(request)
            return leaks.answer(api)

        result = await hooks.call_model(leaks.request(api, place), call, translator=api)
        assert (result.blocked, len(sent)) == (is_blocked, 0 if is_blocked else 1)


@pytest.mark.parametrize("place", ["result", "prompt"])
@pytest.mark.parametrize("api", leaks.APIS)
async def test_secrets_are_redacted_wherever_a_text_is(api: str, place: str) -> None:
    hooks, sent = Hooks(Config(profile="full")), list[Any]()
    hooks.on("BeforeModel", leaks.redacting, fail_closed=True)

    def call(request: Any) -> Any:
        sent.append(str(request))
        return leaks.answer(api)

    await hooks.call_model(leaks.request(api, place), call, translator=api)

    assert leaks.SECRET not in sent[0]
    assert "it is ***" in sent[0]
    assert str(leaks.request(api, place)).count("c1") == sent[0].count("c1")


@pytest.mark.parametrize("api", leaks.APIS)
async def test_arguments_of_calls_are_redacted_in_the_answer(api: str) -> None:
    hooks = Hooks(Config(profile="full"))
    hooks.on("AfterModel", leaks.redacting)

    result = await hooks.call_model(leaks.request(api, ""), lambda request: leaks.answer(api), translator=api)

    assert str(result.response) == str(leaks.answer(api)).replace(leaks.SECRET, "***")


async def test_a_call_in_the_history_cannot_be_changed() -> None:
    """A guard that must not fail blocks, because what it wanted cannot be done."""
    for fail_closed in (True, False):
        hooks, sent = Hooks(Config(profile="full")), list[Any]()
        hooks.on("BeforeModel", leaks.redacting, fail_closed=fail_closed)
        given = leaks.request("openai-chat", "arguments")
        result = await hooks.call_model(given, sent.append, translator="openai-chat")
        assert result.blocked is fail_closed
        assert sent == ([] if fail_closed else [given])


# Settings.


def settings_with(profile: str) -> dict[str, Any]:
    block = [{"hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]
    return {"enableHooks": True, "hooksConfig": {"profile": profile}, "hooks": {"BeforeAgent": block}}


async def test_an_unknown_profile_in_settings_is_not_full_and_a_warning(world: Project) -> None:
    world.put("user", settings_with("fulll"))
    with world.inside():
        hooks = Hooks.load(world.root)
        assert not (await hooks.before_turn("x")).blocked
        assert hooks.config.settings is not None
        [problem] = hooks.config.settings.problems
    assert problem.message == '`profile` must be "standard" or "full", found "fulll", which is ignored'


@pytest.mark.parametrize(("own", "written"), [("full", "standard"), ("standard", "full")])
async def test_the_programs_profile_beats_the_settings_and_survives_a_reload(
    world: Project, own: str, written: str
) -> None:
    world.put("user", settings_with(written))
    with world.inside():
        hooks = Hooks(Config.load(world.root, profile=own))
        assert (await hooks.before_turn("x")).blocked == (own == "full")
        world.put("user", {**settings_with(written), "other": 1})
        hooks.reload()
        assert (await hooks.before_turn("x")).blocked == (own == "full")


async def test_a_change_of_the_profile_needs_approval(world: Project) -> None:
    world.put("project", settings_with("standard"))
    with world.inside():
        grant_trust(world.root)
        assert trust_status(world.root).state is TrustState.TRUSTED
        world.put("project", settings_with("full"))
        assert trust_status(world.root).state is TrustState.CHANGED
