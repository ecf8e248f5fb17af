"""D-23: if an event has no hook, a trigger costs a few lookups and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    AfterModelHookResult,
    BeforeModelHookResult,
    BeforeToolSelectionHookResult,
    Config,
    HookTranslator,
    ToolResult,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_after_tool_hook,
    fire_before_model_hook,
    fire_before_tool_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.core.calls.lookup import unmatched_hooks
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from tests.support.engine_project import EngineProject, Ready


class Untouchable:
    """An object that the fast path must not use."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"looked at {name}")

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("looked inside")


REQUEST: Any = Untouchable()
RESPONSE: Any = Untouchable()

TRIGGERS: dict[str, tuple[Callable[[Config], Coroutine[Any, Any, Any]], Any]] = {
    "before tool": (lambda config: fire_before_tool_hook(config, "glob", REQUEST), None),
    "after tool": (lambda config: fire_after_tool_hook(config, "glob", REQUEST, RESPONSE), None),
    "before model": (lambda config: fire_before_model_hook(config, REQUEST), BeforeModelHookResult()),
    "after model": (
        lambda config: fire_after_model_hook(config, REQUEST, RESPONSE),
        AfterModelHookResult(response=RESPONSE),
    ),
    "tool selection": (
        lambda config: fire_before_tool_selection_hook(config, REQUEST),
        BeforeToolSelectionHookResult(),
    ),
}


def finished_at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns without ever suspending, driven by hand: no event loop, so no task or timer."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    pytest.fail("the trigger suspended")


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, AfterModelHookResult):
        return isinstance(found, AfterModelHookResult) and found.response is expected.response and not found.should_stop
    return bool(found == expected)


class Watched(Config):
    """Notes when the fields of a payload are read."""

    payload_reads: list[str]

    def __getattribute__(self, name: str) -> Any:
        if name in ("session_id", "working_dir", "transcript_path"):
            object.__getattribute__(self, "__dict__").setdefault("payload_reads", []).append(name)
        return super().__getattribute__(name)


def refusing(name: str) -> Callable[..., Any]:
    def refuse(self: object, *args: Any) -> Any:
        raise AssertionError(f"{name} was called")

    return refuse


NoTranslation = type(
    "NoTranslation",
    (HookTranslator,),
    {name: refusing(name) for name in vars(HookTranslator) if name.islower() and not name.startswith("_")},
)


@pytest.fixture(params=["disabled", "nothing configured", "other events only", "matcher of another tool"])
def without_hooks(request: pytest.FixtureRequest, project: EngineProject) -> Config:
    """Configurations in which no hook is for the five events, or for the tool `glob`."""
    other_tool = [{"matcher": "^write_file$", "hooks": [{"type": "command", "command": project.hook("other")}]}]
    all_five = dict.fromkeys(
        ("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection"), project.hook("any")
    )
    configurations: dict[str, tuple[dict[str, Any], bool]] = {
        "disabled": (all_five, False),
        "nothing configured": ({}, True),
        "other events only": ({"SessionStart": project.hook("other"), "Notification": project.hook("more")}, True),
        "matcher of another tool": ({"BeforeTool": other_tool, "AfterTool": other_tool}, True),
    }
    events, enabled = configurations[request.param]
    return project.config(events, Watched, enable_hooks=enabled, translator=NoTranslation())


@pytest.mark.requirement("HOOK-010", "HOOK-011", "HOOK-012", "HOOK-013")
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_trigger_without_hooks_neither_suspends_nor_runs_a_process_nor_builds_a_payload(
    without_hooks: Config, trigger: str, project: EngineProject
) -> None:
    fire, expected = TRIGGERS[trigger]
    assert same(finished_at_once(fire(without_hooks)), expected)
    assert same(finished_at_once(fire(without_hooks)), expected)
    assert [project.runs(name) for name in ("any", "other", "more")] == [0, 0, 0]
    assert "payload_reads" not in vars(without_hooks)


@pytest.mark.requirement("HOOK-011")
async def test_an_event_without_hooks_that_is_fired_directly_builds_no_payload(
    project: EngineProject, ready: Ready
) -> None:
    config = project.config({"SessionStart": project.hook()}, Watched, translator=NoTranslation())
    handler = await ready(config)
    fired = [
        handler.fire_before_tool_event("glob", REQUEST),
        handler.fire_after_tool_event("glob", REQUEST, RESPONSE),
        handler.fire_before_model_event(REQUEST),
        handler.fire_after_model_event(REQUEST, RESPONSE),
        handler.fire_before_tool_selection_event(REQUEST),
        handler.fire_before_agent_event(REQUEST),
    ]
    assert all(finished_at_once(event).success for event in fired)
    assert project.runs() == 0
    assert "payload_reads" not in vars(config)


async def test_the_payload_watch_would_notice_a_payload(project: EngineProject) -> None:
    config = project.config({"BeforeTool": project.hook()}, Watched)
    await fire_before_tool_hook(config, "glob", {})
    assert "session_id" in config.payload_reads


@pytest.mark.requirement("HOOK-013")
def test_a_tool_without_hooks_runs_in_the_wrapper_without_suspending(without_hooks: Config) -> None:
    given = {"pattern": "*"}
    result = ToolResult(llm_content="done")
    received = []

    def glob(tool_input: Mapping[str, Any]) -> Any:
        received.append(tool_input)
        return result

    assert finished_at_once(execute_tool_with_hooks(without_hooks, "glob", given, glob)) is result
    assert received == [given]


AUDITED = """
import sys
from llxprt_hooks import *

hook = [{"matcher": "^write_file$", "hooks": [{"type": "command", "command": "true"}]}]
config = Config(enable_hooks=%(enabled)s, hooks={"BeforeTool": hook, "AfterTool": hook}, working_dir="/")

seen = []
watching = False
harmless = {"sys._getframe"}  # the module typing looks up its caller when a type is made
sys.addaudithook(lambda event, arguments: seen.append(event) if watching and event not in harmless else None)


def finish(coroutine):
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise SystemExit("suspended")


def fire_all():
    finish(fire_before_tool_hook(config, "glob", {}))
    finish(fire_after_tool_hook(config, "glob", {}, {}))
    finish(execute_tool_with_hooks(config, "glob", {}, lambda tool_input: "done"))
    finish(fire_before_model_hook(config, object()))
    finish(fire_after_model_hook(config, object(), object()))
    finish(fire_before_tool_selection_hook(config, object()))


watching = True
fire_all()
fire_all()
watching = False
assert not seen, seen
assert not [name for name in sys.modules if name.split(".")[0] == "google"]
watching = True
open("/dev/null").close()
watching = False
assert seen, "the watch is blind"
"""


@pytest.mark.requirement("HOOK-013")
@pytest.mark.parametrize("enabled", [False, True], ids=["disabled", "unmatched"])
def test_without_hooks_nothing_is_opened_spawned_imported_or_connected_to(enabled: bool) -> None:
    code = AUDITED % {"enabled": enabled}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr


def test_hooks_whose_matchers_match_none_of_the_tools_are_found() -> None:
    groups = [{"matcher": matcher, "hooks": [{"type": "command", "command": f"echo {matcher}"}]} for matcher in "ab"]
    config = Config(enable_hooks=True, hooks={"BeforeTool": groups})
    assert [hook.matcher for hook in unmatched_hooks(config, ["a", "c"])] == ["b"]
    assert unmatched_hooks(Config(), ["a"]) == []
