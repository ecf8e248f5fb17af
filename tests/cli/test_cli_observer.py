"""Observers are told, never asked: nothing they do changes what hooks decide."""

from __future__ import annotations

from typing import Any

import pytest

from llxprt_hooks import AggregatedHookResult, Config, Observers

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


class Listener:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def hook_started(self, event_name: str, hook_config: Any) -> None:
        self.told.append(("started", hook_config.name))

    def hook_ended(self, result: Any) -> None:
        self.told.append(("ended", result.hook_config.name))

    def event_ended(self, event_name: str, processed: Any, wall_time: float) -> None:
        assert wall_time > 0
        self.told.append(("event ended", event_name))


class Troublemaker:
    """Raises at one of the three."""

    def __init__(self, where: str) -> None:
        self._where = where

    def hook_started(self, event_name: str, hook_config: Any) -> None:
        self._raise_at("hook_started")

    def hook_ended(self, result: Any) -> None:
        self._raise_at("hook_ended")

    def event_ended(self, event_name: str, processed: Any, wall_time: float) -> None:
        self._raise_at("event_ended")

    def _raise_at(self, where: str) -> None:
        if where == self._where:
            raise RuntimeError("trouble")


async def fire(observer: Any, event: str = "BeforeTool") -> AggregatedHookResult:
    system = Config(enable_hooks=True, hooks=HOOKS, observer=observer).get_hook_system()
    assert system
    handler = system.ready_event_handler()
    if event == "BeforeTool":
        return await handler.fire_before_tool_event("write_file", {})
    return await handler.fire_before_agent_event("hello")


async def test_an_observer_is_told_of_each_hook_and_of_the_event() -> None:
    listener = Listener()

    await fire(listener)

    for name in ("guard", "other"):
        assert [what for what, who in listener.told if who == name] == ["started", "ended"]
    assert listener.told[4:] == [("event ended", "BeforeTool")]


async def test_an_observer_is_told_nothing_of_an_event_without_hooks() -> None:
    listener = Listener()

    await fire(listener, "BeforeAgent")

    assert listener.told == []


@pytest.mark.parametrize("where", ["hook_started", "hook_ended", "event_ended"])
async def test_an_observer_that_raises_changes_nothing(where: str, caplog: pytest.LogCaptureFixture) -> None:
    quiet = await fire(Listener())

    result = await fire(Troublemaker(where))

    assert result.final_output == quiet.final_output
    assert [(each.hook_config.name, each.exit_code) for each in result.results] == [("guard", 2), ("other", 0)]
    assert result.errors == []
    assert "the observer of hooks failed, which changes nothing for them" in caplog.text


@pytest.mark.parametrize("where", ["hook_started", "hook_ended", "event_ended"])
async def test_of_several_observers_one_that_raises_keeps_nothing_from_the_others(where: str) -> None:
    before, after = Listener(), Listener()

    result = await fire(Observers(before, Troublemaker(where), after))

    assert result.final_output is not None
    assert result.final_output.is_blocking_decision()
    assert before.told == after.told
    assert sorted(what for what, _ in after.told) == ["ended", "ended", "event ended", "started", "started"]


async def test_an_observer_without_the_methods_of_one_changes_nothing() -> None:
    result = await fire(object())

    assert result.final_output is not None
    assert result.final_output.is_blocking_decision()
