"""A guard holds although something beside it is odd: arguments, a tool's name, the bus, an error, planning."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    EventEnded,
    HookObserver,
    Hooks,
    InProcessMessageBus,
    MessageBusType,
    ModelCallResult,
    Restriction,
    ToolResult,
    decode_message,
    encode_message,
    execute_model_with_hooks,
    execute_tool_with_hooks,
    fire_before_model_hook,
    fire_before_tool_hook,
    read_response,
)
from llxprt_hooks.core.engine.aggregator import HookAggregator
from tests.support.replies import command_hook, printing

if TYPE_CHECKING:
    from pathlib import Path

Hook = dict[str, Any]
DENY: Hook = {"type": "command", "command": "echo no >&2; exit 2", "name": "guard"}


def config_of(folder: Path, event: str, *hooks: Hook, sequential: bool = False, **options: Any) -> Config:
    groups = {event: [{"sequential": sequential, "hooks": list(hooks)}]}
    return Config(enable_hooks=True, working_dir=folder, hooks=groups, **options)


async def run(config: Config, name: Any = "rm", arguments: Any = None, **options: Any) -> ToolResult:
    return await execute_tool_with_hooks(config, name, arguments, lambda _: "RAN", **options)


@pytest.mark.requirement("HOOK-104")
@pytest.mark.parametrize("arguments", [None, ["rm", "-rf"], "rm -rf", 7])
async def test_a_chain_continues_although_the_arguments_are_not_an_object(tmp_path: Path, arguments: Any) -> None:
    rewriting = command_hook(printing({"hookSpecificOutput": {"tool_input": {"a": 1}}}))

    chain = await run(config_of(tmp_path, "BeforeTool", rewriting, DENY, sequential=True), "rm", arguments)
    alone = await run(config_of(tmp_path, "BeforeTool", rewriting), "rm", arguments)

    assert chain.llm_content == "no"
    assert alone.llm_content == "RAN"


async def test_hooks_run_although_an_asynchronous_bus_refuses_the_subscription(tmp_path: Path) -> None:
    class Refusing(InProcessMessageBus):
        async def subscribe(self, *_: Any) -> Any:  # type: ignore[override]  # a bus may be asynchronous
            raise ConnectionError("the broker is down")

    config = config_of(tmp_path, "BeforeTool", DENY, message_bus=Refusing())
    system = config.get_hook_system()
    assert system is not None

    await system.initialize()

    assert system.get_status().initialized
    assert (await run(config)).llm_content == "no"


async def test_a_hook_that_fails_closed_blocks_if_the_engine_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llxprt_hooks.core.engine.system.HookRegistry", lambda _: 1 / 0)
    closed = config_of(tmp_path, "BeforeTool", {**DENY, "failClosed": True})
    opened = config_of(tmp_path, "BeforeTool", DENY)

    assert "failClosed is set: hook processing failed: division by zero" in (await run(closed)).llm_content
    assert (await run(opened)).llm_content == "RAN"


async def test_a_name_that_cannot_be_hashed_is_restricted_like_any_other(tmp_path: Path) -> None:
    config = config_of(tmp_path, "BeforeTool", DENY)

    result = await run(config, ["x"], {}, restriction=Restriction(frozenset({"glob"})))

    assert "may not be called" in result.llm_content


@pytest.mark.requirement("HOOK-169")
async def test_a_permission_denial_is_a_block_by_message_too(tmp_path: Path) -> None:
    bus, answers = InProcessMessageBus(), list[Any]()
    bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, answers.append)
    denial = command_hook(printing({"hookSpecificOutput": {"permissionDecision": "deny"}}))
    config = config_of(tmp_path, "BeforeTool", denial, message_bus=bus)
    config.get_hook_system()

    fields = {"eventName": "BeforeTool", "input": {"tool_name": "rm", "tool_input": {}}}
    await bus.publish({"type": "hook-execution-request", **fields})

    [answer] = answers
    output = read_response(decode_message(encode_message(answer))).output
    assert output is not None
    assert output.final_output is not None
    assert output.final_output.is_blocking_decision()


async def test_a_guard_that_is_switched_on_while_another_thread_plans_is_run(tmp_path: Path) -> None:
    other: Hook = {"type": "command", "command": "true"}
    config = config_of(tmp_path, "BeforeTool", other, DENY, disabled_hooks=["guard"])
    system = config.get_hook_system()
    assert system is not None
    system.ready_event_handler()
    planned, go_on = threading.Event(), threading.Event()

    class HeldUp(logging.Handler):
        def createLock(self) -> None:  # the other thread logs too, while this one is held up
            self.lock = None

        def emit(self, _: logging.LogRecord) -> None:
            if threading.current_thread() is thread:
                planned.set()
                go_on.wait(60)

    def plan() -> None:
        asyncio.run(_fire(config, "rm"))

    thread = threading.Thread(target=plan)
    logger, handler = logging.getLogger("llxprt:core:hooks:planner"), HeldUp()
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        thread.start()
        assert planned.wait(60)
        system.set_hook_enabled("guard", True)
        await _fire(config, "other")
    finally:
        go_on.set()
        thread.join()
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)

    assert (await run(config)).llm_content == "no"


async def _fire(config: Config, tool: str) -> None:
    await fire_before_tool_hook(config, tool, {})


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


async def test_an_error_without_a_text_is_reported_by_its_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise UnreadableError

    config = config_of(tmp_path, "BeforeTool", {**DENY, "failClosed": True})
    monkeypatch.setattr("llxprt_hooks.core.engine.aggregator.HookAggregator.aggregate_results", failing)

    assert (await run(config)).llm_content.endswith("hook aggregation failed: UnreadableError")


async def test_an_observer_sees_the_block_of_an_engine_that_failed(tmp_path: Path) -> None:
    class Seen(HookObserver):
        ended: EventEnded | None = None

        def event_ended(self, event: EventEnded) -> None:
            self.ended = event

    seen = Seen()
    config = config_of(tmp_path, "BeforeModel", {**DENY, "failClosed": True}, observer=seen)

    assert (await fire_before_model_hook(config, object())).blocked
    assert seen.ended is not None
    assert seen.ended.blocked
    assert seen.ended.event_id


async def test_plugins_with_different_commands_are_different_hooks(tmp_path: Path) -> None:
    plugins: list[Hook] = [{"type": "plugin", "command": "a"}, {"type": "plugin", "command": "b", "failClosed": True}]

    result = await run(config_of(tmp_path, "BeforeTool", *plugins))

    assert "failClosed is set" in result.llm_content


@pytest.mark.parametrize("before_model", [{}, {"decision": "block", "reason": "no"}])
async def test_the_message_of_a_tool_selection_hook_is_kept_if_the_model_is_not_called(
    tmp_path: Path, before_model: Hook
) -> None:
    message = {"systemMessage": "note"} if before_model else {"systemMessage": "note", "continue": False}
    hooks = {
        "BeforeToolSelection": [{"hooks": [command_hook(printing(message))]}],
        "BeforeModel": [{"hooks": [command_hook(printing(before_model))]}],
    }
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks, translator="openai-chat")
    tools = [{"type": "function", "function": {"name": "rm"}}]
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}

    def call(_: object) -> None:
        pytest.fail("the model was called")

    result: ModelCallResult[None] = await execute_model_with_hooks(config, request, call)

    assert result.notes == ("note",)


async def test_a_restriction_that_the_program_and_a_hook_agree_on_applies_to_the_answer(tmp_path: Path) -> None:
    restricting = command_hook(printing({"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}}))
    config = config_of(tmp_path, "BeforeToolSelection", restricting, translator="openai-chat")
    tools = [{"type": "function", "function": {"name": "rm"}}]
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools, "tool_choice": "none"}
    answer = {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}

    result: ModelCallResult[Any] = await execute_model_with_hooks(config, request, lambda _: answer)

    assert not result.restriction.allows("rm")


class BusThatKeepsItsSubscribers(InProcessMessageBus):
    def subscribe(self, *arguments: Any) -> Any:
        super().subscribe(*arguments)
        return lambda: 1 / 0


@pytest.mark.requirement("DELTA-HEVT-004")
@pytest.mark.parametrize("waits", [True, False], ids=["disconnect", "dispose"])
async def test_one_bus_that_fails_does_not_keep_the_others_connected(tmp_path: Path, waits: bool) -> None:
    good, answers = InProcessMessageBus(), list[Any]()
    good.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, answers.append)
    system = config_of(tmp_path, "BeforeTool", DENY).get_hook_system()
    assert system is not None
    await system.connect(good)
    await system.connect(BusThatKeepsItsSubscribers())

    if waits:
        await system.disconnect()
    else:
        system.dispose()

    fields = {"eventName": "BeforeTool", "input": {"tool_name": "rm", "tool_input": {}}}
    await good.publish({"type": "hook-execution-request", **fields})
    assert answers == []


async def test_arguments_that_change_while_a_guard_looks_at_them_do_not_reach_the_tool() -> None:
    own = object()
    arguments: dict[str, Any] = {"command": "ls", "options": [{"all": True}], "own": own}
    arguments["options"].append(arguments["options"])
    looking, changed = asyncio.Event(), asyncio.Event()
    given: list[dict[str, Any]] = []

    async def guard(payload: dict[str, Any]) -> None:
        looking.set()
        await changed.wait()

    hooks = Hooks()
    hooks.on("BeforeTool", guard)
    call = asyncio.create_task(hooks.run_tool("shell", arguments, given.append))
    await looking.wait()
    arguments["command"] = "rm"
    arguments["options"][0]["all"] = False
    changed.set()
    await call

    [final] = given
    assert final["command"] == "ls"
    assert final["options"][0] == {"all": True}
    assert final["options"][1] is final["options"]
    assert final["own"] is own


async def test_arguments_that_nobody_changes_stay_the_same_object() -> None:
    arguments: dict[str, Any] = {"command": "ls", "options": [{"all": True}], "own": object()}
    arguments["options"].append(arguments)
    given: list[dict[str, Any]] = []
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: None)

    await hooks.run_tool("shell", arguments, given.append)

    assert given[0] is arguments


@pytest.mark.requirement("HOOK-113")
@pytest.mark.parametrize(
    ("error", "is_blocked"),
    [(RecursionError(), True), (MemoryError(), False), (OSError(errno.EMFILE, "Too many open files"), False)],
)
async def test_where_the_engine_runs_out_of_stack_the_call_is_blocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_blocked: bool
) -> None:
    def failing(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(HookAggregator, "aggregate_results", failing)

    result = await run(config_of(tmp_path, "BeforeTool", command_hook(printing({}))))

    assert str(result.llm_content).startswith("blocked because hooks cannot run here: ") is is_blocked
