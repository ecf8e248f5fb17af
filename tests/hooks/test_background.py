"""The six events that nobody waits for: they run beside the program, and can be given time at its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    HookEventName,
    HookSystem,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
    fire_after_agent_hook,
    fire_before_agent_hook,
    fire_notification_hook,
    fire_pre_compress_hook,
    fire_session_end_hook,
    fire_session_start_hook,
    has_hooks_for,
    observe,
    settle,
)
from llxprt_hooks.core.loops import drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.engine_project import EngineProject, Texts

EVENTS: dict[str, tuple[Callable[[Config], object], dict[str, Any]]] = {
    "SessionStart": (lambda config: fire_session_start_hook(config), {"source": "startup"}),
    "SessionEnd": (lambda config: fire_session_end_hook(config, SessionEndReason.CLEAR), {"reason": "clear"}),
    "BeforeAgent": (lambda config: fire_before_agent_hook(config, "Go"), {"prompt": "Go"}),
    "AfterAgent": (
        lambda config: fire_after_agent_hook(config, "Go", "Done", True),
        {"prompt": "Go", "prompt_response": "Done", "stop_hook_active": True},
    ),
    "PreCompress": (lambda config: fire_pre_compress_hook(config, PreCompressTrigger.AUTO), {"trigger": "auto"}),
    "Notification": (
        lambda config: fire_notification_hook(config, NotificationType.TOOL_PERMISSION, "May I?", {"a": 1}),
        {"notification_type": "ToolPermission", "message": "May I?", "details": {"a": 1}},
    ),
}


@pytest.mark.requirement("HOOK-203")
@pytest.mark.parametrize("event", EVENTS)
async def test_each_event_runs_its_hooks_without_being_awaited(project: EngineProject, event: str) -> None:
    fire, fields = EVENTS[event]
    config = project.config({event: project.hook(says={"decision": "block", "continue": False})})

    assert fire(config) is None
    assert await settle(config) == 0

    payload = project.payload()
    assert payload["hook_event_name"] == event
    assert {name: payload[name] for name in fields} == fields


async def test_a_matcher_decides_for_background_events_too(project: EngineProject) -> None:
    group = {"matcher": "resume", "hooks": [{"type": "command", "command": project.hook()}]}
    config = project.config({"SessionStart": [group]})

    fire_session_start_hook(config)
    await settle(config)
    assert project.runs() == 0

    fire_session_start_hook(config, SessionStartSource.RESUME)
    await settle(config)
    assert project.runs() == 1


async def test_what_still_runs_after_the_time_is_counted_and_continues(project: EngineProject) -> None:
    config = project.config({"SessionEnd": project.endless_hook("endless")})
    fire_session_end_hook(config)
    await project.started()

    assert await settle(config, seconds=0.01) == 1

    [task] = asyncio.all_tasks() - {asyncio.current_task()}
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert await settle(config) == 0


async def test_events_of_another_configuration_are_not_waited_for(project: EngineProject) -> None:
    busy, idle = project.config({"SessionEnd": project.endless_hook("endless")}), project.config({})
    fire_session_end_hook(busy)

    assert await settle(idle) == 0

    [task] = asyncio.all_tasks() - {asyncio.current_task()}
    task.cancel()
    await asyncio.wait([task])


def test_without_an_event_loop_hooks_run_in_the_background(project: EngineProject, warnings_of_engine: Texts) -> None:
    config = project.config({"SessionStart": project.hook()})
    fire_session_start_hook(config)

    assert drive(settle(config)) == 0
    assert project.payload()["source"] == "startup"
    assert warnings_of_engine() == []


async def test_settling_waits_for_the_events_of_this_loop_and_of_the_background(project: EngineProject) -> None:
    config = project.config({"SessionStart": project.hook("start"), "SessionEnd": project.hook("end")})
    fire_session_start_hook(config)
    await asyncio.to_thread(fire_session_end_hook, config)

    assert await settle(config) == 0
    assert (project.runs("start"), project.runs("end")) == (1, 1)


class Broken(Config):
    def get_hook_system(self) -> HookSystem | None:
        raise ImportError("there is no hook system")


async def test_a_configuration_that_breaks_raises_nothing(project: EngineProject, warnings_of_engine: Texts) -> None:
    config = project.config({"SessionStart": project.hook()}, Broken)

    observe(config, HookEventName.SESSION_START, source="startup")

    assert await settle(config) == 0
    assert not has_hooks_for(config, HookEventName.SESSION_START)
    assert warnings_of_engine()


def test_whether_there_are_hooks_can_be_asked(project: EngineProject) -> None:
    group = {"matcher": "^write_", "hooks": [{"type": "command", "command": "true"}]}
    config = project.config({"BeforeTool": [group]})

    assert has_hooks_for(config, HookEventName.BEFORE_TOOL, "write_file")
    assert not has_hooks_for(config, HookEventName.BEFORE_TOOL, "glob")
    assert not has_hooks_for(config, HookEventName.AFTER_MODEL)
