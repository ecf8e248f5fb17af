"""When a call finds its hooks, and what it does with values and requests that change or cannot be shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llxprt_hooks import (
    Config,
    HookEventName,
    Hooks,
    ToolResult,
    deny,
    fire_after_model_hook,
    fire_after_tool_hook,
    fire_notification_hook,
    observe,
    stop,
)


class Ambiguous:
    """Has no truth value, like an array or a data frame."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")


async def test_a_result_that_hooks_cannot_be_shown_is_kept() -> None:
    hooks = Hooks()
    hooks.on("AfterTool", lambda payload: deny("never seen"))
    result = ToolResult("done", metadata=Ambiguous())  # type: ignore[arg-type]

    assert await hooks.run_tool("deploy", {}, lambda _: result) is result
    assert await fire_after_tool_hook(hooks.config, "deploy", {}, result) is None


async def test_a_tool_call_finds_its_hooks_when_it_begins() -> None:
    hooks = Hooks()
    call = hooks.tool_call("deploy", {})
    hooks.on("BeforeTool", lambda payload: deny("not today"))

    refused = await call.before()

    assert refused is not None
    assert refused.llm_content == "not today"
    assert len(refused.decided_by) == 1


async def test_a_stop_keeps_a_call_from_starting_whose_own_hooks_were_still_running() -> None:
    hooks, stopped, ran = Hooks(), asyncio.Event(), list[dict[str, Any]]()

    @hooks.on("BeforeTool")
    async def guard(payload: dict[str, Any]) -> Any:
        if payload["tool_name"] == "first":
            return stop("enough")
        await stopped.wait()
        return None

    async def first() -> None:
        await hooks.run_tool("first", {}, ran.append)
        stopped.set()

    with hooks.session("s"):
        second, _ = await asyncio.gather(hooks.run_tool("second", {}, ran.append), first())

    assert ran == []
    assert second.stop_reason == "enough"


@pytest.mark.parametrize("answer", ["changed", "It runs."])
async def test_a_warning_names_the_calls_that_a_replaced_response_loses(
    answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "It runs.", "tool_calls": [call]}
    response = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    hooks = Hooks()
    hooks.on("AfterModel", lambda payload: {"hookSpecificOutput": {"llm_response": {"text": answer}}})

    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    await fire_after_model_hook(hooks.config, request, response, translator="openai-chat")

    assert ("its 1 tool call is dropped" in caplog.text) is (answer == "changed")


async def test_the_second_half_alone_has_its_hooks_too() -> None:
    hooks = Hooks()
    hooks.on("AfterTool", lambda payload: {"systemMessage": "seen"})

    assert (await hooks.tool_call("deploy", {}).after("done")).llm_content == "done\n\n[System] seen"


async def test_a_model_call_finds_its_hooks_when_it_begins() -> None:
    hooks = Hooks()
    call = hooks.model_call({"model": "m", "messages": []}, translator="openai-chat")
    hooks.on("BeforeModel", lambda payload: deny("not today"))

    result = await call.before()

    assert result is not None
    assert (result.blocked, result.reason, len(result.decided_by)) == (True, "not today", 1)


async def test_after_model_is_shown_the_request_as_it_was_sent() -> None:
    hooks = Hooks()
    shown: list[Any] = []
    hooks.on("BeforeModel", lambda payload: None)
    hooks.on("AfterModel", lambda payload: shown.append(payload["llm_request"]["messages"]))
    request: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}

    def send(final: dict[str, Any]) -> Any:
        final["messages"].append({"role": "user", "content": "by the way"})
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}}]}

    await hooks.call_model(request, send, translator="openai-chat")

    assert [message["content"] for message in shown[0]] == ["hello", "by the way"]


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (HookEventName.SESSION_START, {}),
        ("BeforeAgent", {"prompt": "p"}),
        (HookEventName.NOTIFICATION, {"notification_type": 9, "message": "m", "details": {}}),
    ],
)
async def test_an_event_with_wrong_fields_is_skipped_with_a_warning(
    event: Any, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    hooks = Hooks()
    seen: list[Any] = []
    for each in ("SessionStart", "BeforeAgent", "Notification"):
        hooks.on(each, seen.append)

    observe(hooks.config, event, **fields)
    await hooks.settle()

    assert seen == []
    assert "SessionStart" in caplog.text or "BeforeAgent" in caplog.text or "Notification" in caplog.text


async def test_observed_fields_are_in_the_order_of_the_event_and_no_others() -> None:
    hooks = Hooks()
    seen: list[Any] = []
    hooks.on("Notification", lambda payload: seen.append(list(payload)[-3:]))

    observe(hooks.config, HookEventName.NOTIFICATION, details={}, other=1, message="m", notification_type="Idle")
    fire_notification_hook(hooks.config, "Idle", "m")
    await hooks.settle()

    assert seen == [["notification_type", "message", "details"]] * 2


async def test_a_synchronous_settle_counts_what_it_cannot_wait_for() -> None:
    hooks = Hooks()
    hooks.on("SessionStart", lambda payload: None)
    hooks.observe("SessionStart")

    assert hooks.sync.settle(0.1) == 1
    await asyncio.sleep(0)
    assert await hooks.settle() == 0


async def test_a_failure_that_blocks_nothing_is_not_reported_as_a_block(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hook = {"type": "command", "command": "true", "failClosed": True}
    config = Config(enable_hooks=True, hooks={"AfterTool": [{"hooks": [hook]}]})

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("llxprt_hooks.core.engine.aggregator.HookAggregator.aggregate_results", broken)
    await fire_after_tool_hook(config, "deploy", {}, {})

    assert "AfterTool of deploy: aggregation failed, so it goes ahead without hooks: broken" in caplog.text
