"""Observers receive what hooks do, tied together by ids; nothing they do changes what hooks decide."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llxprt_hooks import (
    AggregatedHookResult,
    Config,
    EventEnded,
    EventStarted,
    HookExecutionResult,
    HookObserver,
    HookStarted,
    Observers,
)

HOOKS = {
    "BeforeTool": [
        {
            "hooks": [
                {"type": "command", "name": "guard", "command": "echo no >&2; exit 2"},
                {"type": "command", "name": "other", "command": "true"},
            ]
        }
    ]
}
METHODS = ["event_started", "hook_started", "hook_ended", "event_ended"]


class Listener(HookObserver):
    """Notes each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None]] = []

    def event_started(self, event: EventStarted) -> None:
        self.calls.append(("event started", event.event_name))

    def hook_started(self, hook: HookStarted) -> None:
        self.calls.append(("started", hook.hook_config.name))

    def hook_ended(self, result: HookExecutionResult) -> None:
        self.calls.append(("ended", result.hook_config.name))

    def event_ended(self, event: EventEnded) -> None:
        assert event.wall_time > 0
        self.calls.append(("event ended", event.event_name))


class Troublemaker(HookObserver):
    """Raises in one of its methods."""

    def __init__(self, method: str) -> None:
        setattr(self, method, self._raise)

    def _raise(self, _: object) -> None:
        raise RuntimeError("trouble")


async def fire(observer: Any, event: str = "BeforeTool") -> AggregatedHookResult:
    system = Config(enable_hooks=True, hooks=HOOKS, observer=observer).get_hook_system()
    assert system
    handler = system.ready_event_handler()
    if event == "BeforeTool":
        return await handler.fire_before_tool_event("write_file", {})
    return await handler.fire_before_agent_event("hello")


async def test_an_observer_sees_the_event_and_each_of_its_hooks() -> None:
    listener = Listener()

    await fire(listener)

    assert listener.calls[0] == ("event started", "BeforeTool")
    for name in ("guard", "other"):
        assert [what for what, who in listener.calls if who == name] == ["started", "ended"]
    assert listener.calls[5:] == [("event ended", "BeforeTool")]


async def test_an_observer_sees_nothing_of_an_event_without_hooks() -> None:
    listener = Listener()

    await fire(listener, "BeforeAgent")

    assert listener.calls == []


@pytest.mark.parametrize("method", METHODS)
async def test_an_observer_that_raises_changes_nothing(method: str, caplog: pytest.LogCaptureFixture) -> None:
    quiet = await fire(Listener())

    result = await fire(Troublemaker(method))

    assert result.final_output == quiet.final_output
    assert [(each.hook_config.name, each.exit_code) for each in result.results] == [("guard", 2), ("other", 0)]
    assert result.errors == []
    assert "the hook observer Troublemaker raised in" in caplog.text


@pytest.mark.parametrize("method", METHODS)
async def test_a_raising_observer_does_not_affect_the_others(method: str) -> None:
    before, after = Listener(), Listener()

    result = await fire(Observers(before, Troublemaker(method), after))

    assert result.final_output is not None
    assert result.final_output.is_blocking_decision()
    assert before.calls == after.calls
    assert sorted(what for what, _ in after.calls) == [
        "ended",
        "ended",
        "event ended",
        "event started",
        "started",
        "started",
    ]


async def test_any_object_can_be_an_observer_and_gets_the_calls_it_has_methods_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Counter:
        ended = 0

        def hook_ended(self, result: HookExecutionResult) -> None:
            self.ended += 1

    counter = Counter()

    result = await fire(counter)

    assert counter.ended == 2
    assert result.final_output is not None
    assert result.final_output.is_blocking_decision()
    assert caplog.text == ""


# The ids.


class Tree(HookObserver):
    """A trace of events and their hooks, built from the ids alone: nothing else of what it receives is compared."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self._event_of: dict[str, str] = {}

    def event_started(self, event: EventStarted) -> None:
        assert event.event_id not in self.events
        planned = [config.name for config in event.plan.hook_configs]
        self.events[event.event_id] = {"payload": event.payload, "planned": planned, "hooks": {}, "ended": None}

    def hook_started(self, hook: HookStarted) -> None:
        assert hook.execution_id not in self._event_of
        self._event_of[hook.execution_id] = hook.event_id
        self.events[hook.event_id]["hooks"][hook.execution_id] = "running"

    def hook_ended(self, result: HookExecutionResult) -> None:
        assert self._event_of[result.execution_id] == result.event_id
        self.events[result.event_id]["hooks"][result.execution_id] = result.stdout

    def event_ended(self, event: EventEnded) -> None:
        self.events[event.event_id]["ended"] = event.processed.aggregated


async def test_ids_distinguish_concurrent_events_and_hooks() -> None:
    """Two events of the same name with the same three hooks at once, which differ in nothing but their payloads."""
    hooks = [
        {"type": "command", "name": "same", "command": f'sed \'s/.*"path":"\\([a-z]*\\)".*/{number} \\1/\''}
        for number in range(3)
    ]
    tree = Tree()
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": hooks}]}, observer=tree)
    system = config.get_hook_system()
    assert system
    handler = system.ready_event_handler()

    one, two = await asyncio.gather(
        *(handler.fire_before_tool_event("read_file", {"path": path}) for path in ("one", "two"))
    )

    assert len(tree.events) == 2
    for path, result in (("one", one), ("two", two)):
        [event] = [each for each in tree.events.values() if each["payload"]["tool_input"] == {"path": path}]
        assert event["planned"] == ["same", "same", "same"]
        assert sorted(text.strip() for text in event["hooks"].values()) == [f"{number} {path}" for number in range(3)]
        assert event["ended"] is result
        assert {each.event_id for each in result.results} < set(tree.events)
        assert {each.execution_id for each in result.results} == set(event["hooks"])


async def test_the_hooks_of_a_chain_share_the_event_and_each_has_its_own_execution() -> None:
    hooks = [
        {"type": "command", "command": 'echo \'{"hookSpecificOutput": {"tool_input": {"a": 1}}}\''},
        {"type": "command", "command": "true"},
    ]
    tree = Tree()
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"sequential": True, "hooks": hooks}]}, observer=tree)
    system = config.get_hook_system()
    assert system

    result = await system.ready_event_handler().fire_before_tool_event("read_file", {})

    [event_id] = tree.events
    assert [each.event_id for each in result.results] == [event_id, event_id]
    assert list(tree.events[event_id]["hooks"]) == [each.execution_id for each in result.results]
    assert len(tree.events[event_id]["hooks"]) == 2
