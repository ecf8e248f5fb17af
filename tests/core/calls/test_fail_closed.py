"""``failClosed`` where it is not the hook that fails but the engine around it: the call is still blocked."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    GenerateContentParameters,
    HookExecutionResult,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1
from tests.support.engine_project import system_of

if TYPE_CHECKING:
    from google.genai.types import GenerateContentResponse

    from llxprt_hooks.core.engine.plan import ExecutionPlan
    from llxprt_hooks.model.format import LLMRequest
    from tests.support.engine_project import EngineProject


def guarded(project: EngineProject, *, closed: bool = True, says: Any = None, **options: Any) -> Config:
    """A configuration whose one hook, for every event that can block, must not fail."""
    group = {"hooks": [{"type": "command", "command": project.hook(says=says), "failClosed": closed}]}
    events = ("BeforeTool", "BeforeModel", "AfterModel", "BeforeToolSelection")
    config: Config = project.config({event: [group] for event in events}, **options)
    return config


class Unreadable(HookTranslatorGenAIv1):
    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        raise ZeroDivisionError("out of range")


@pytest.mark.parametrize("request_given", [None, 7, object(), {"nothing": "known"}, "text"])
async def test_a_request_that_cannot_be_read_is_blocked(project: EngineProject, request_given: Any) -> None:
    result = await fire_before_model_hook(guarded(project), request_given)

    assert result.blocked
    assert result.reason is not None
    assert result.reason.startswith("blocked because failClosed is set: hook translation failed: llm_request is ")


@pytest.mark.slow
def test_a_request_is_blocked_where_the_sdk_is_not_installed(project: EngineProject) -> None:
    program = f"""
import asyncio, sys
sys.modules["google.genai"] = None
from llxprt_hooks import Config, GenerateContentParameters, fire_before_model_hook
hook = {{"type": "command", "command": {project.hook()!r}, "failClosed": True}}
config = Config(enable_hooks=True, hooks={{"BeforeModel": [{{"hooks": [hook]}}]}})
result = asyncio.run(fire_before_model_hook(config, GenerateContentParameters("m", "Hello")))
print(result.blocked, result.reason)
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.startswith("True blocked because failClosed is set: hook translation failed: ")
    assert "pip install 'llxprt-hooks[agent]'" in printed


class BrokenRunner(HookRunner):
    async def execute_hooks_parallel(self, *args: Any) -> list[HookExecutionResult]:
        raise RuntimeError("broken runner")


async def test_a_runner_that_breaks_blocks_tool_and_model(
    project: EngineProject, llm_request: GenerateContentParameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llxprt_hooks.core.engine.system.HookRunner", BrokenRunner)

    model = await fire_before_model_hook(guarded(project), llm_request)
    tool = await execute_tool_with_hooks(guarded(project), "glob", {}, lambda _: pytest.fail("the tool ran"))

    assert model.blocked
    for reason in (model.reason, tool.llm_content):
        assert reason == "blocked because failClosed is set: hook execution failed: broken runner"


class BrokenPlanner(HookPlanner):
    def create_execution_plan(self, *args: Any) -> ExecutionPlan | None:
        raise RuntimeError("broken planner")


@pytest.mark.parametrize("closed", [True, False])
async def test_a_planner_that_breaks_blocks_if_any_hook_of_the_event_must_not_fail(
    project: EngineProject, llm_request: GenerateContentParameters, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    monkeypatch.setattr("llxprt_hooks.core.engine.system.HookPlanner", BrokenPlanner)
    handler = system_of(guarded(project, closed=closed)).ready_event_handler()

    direct = (await handler.fire_before_tool_event("glob", {})).final_output
    unknown = (await handler.fire_event("BeforeTool", {"tool_name": "glob"})).final_output
    tool = await execute_tool_with_hooks(guarded(project, closed=closed), "glob", {}, lambda _: "RAN")
    model = await fire_before_model_hook(guarded(project, closed=closed), llm_request)

    assert [output is not None and output.is_blocking_decision() for output in (direct, unknown)] == [closed, closed]
    assert (tool.llm_content != "RAN") is closed
    assert model.blocked is closed


async def test_a_failure_blocks_by_the_plan_that_the_event_started_with(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = guarded(project)

    async def failing(*args: Any) -> list[HookExecutionResult]:
        monkeypatch.setattr(HookPlanner, "create_execution_plan", BrokenPlanner.create_execution_plan)
        system_of(config).get_registry().set_hook_enabled(project.hook(), enabled=False)
        raise RuntimeError("broken runner")

    monkeypatch.setattr(HookRunner, "execute_hooks_parallel", failing)

    tool = await execute_tool_with_hooks(config, "glob", {}, lambda _: "RAN")

    assert tool.llm_content == "blocked because failClosed is set: hook execution failed: broken runner"


async def test_hooks_that_cannot_be_read_at_all_block_only_where_settings_say_so(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("broken registry")

    config = guarded(project)
    handler = system_of(config).ready_event_handler()
    monkeypatch.setattr("llxprt_hooks.core.engine.registry.HookRegistry.get_hooks_for_event", failing)

    assert (await handler.fire_before_tool_event("glob", {})).final_output is None
    assert "failClosed" in (await execute_tool_with_hooks(config, "glob", {}, lambda _: "RAN")).llm_content


class Unwritable(HookTranslatorGenAIv1):
    def with_model(self, request: Any, model: Any) -> Any:
        raise ZeroDivisionError("no such model")

    def from_hook_llm_request(self, hook_request: Any, base_request: Any) -> Any:
        if "model" in hook_request:
            raise ZeroDivisionError("no such model")
        return super().from_hook_llm_request(hook_request, base_request)


CHANGES = {
    "model": "unknown",
    "messages": [
        {"role": "user", "content": "What is in the picture?"},
        {"role": "model", "content": "A cat."},
        {"role": "user", "content": "[redacted]"},
    ],
}


async def test_a_change_that_cannot_be_applied_blocks_the_request(
    project: EngineProject, llm_request: GenerateContentParameters
) -> None:
    config = guarded(project, says={"hookSpecificOutput": {"llm_request": CHANGES}}, translator=Unwritable())

    result = await fire_before_model_hook(config, llm_request)

    assert result.blocked
    assert result.modified_request is None
    assert result.reason == "blocked because failClosed is set: hook processing failed: no such model"


@pytest.mark.requirement("HOOK-111")
@pytest.mark.parametrize("order", [("model", "messages"), ("messages", "model")])
async def test_without_fail_closed_the_other_changes_are_applied(
    project: EngineProject, llm_request: GenerateContentParameters, order: tuple[Any, ...]
) -> None:
    says = {"hookSpecificOutput": {"llm_request": {name: CHANGES[name] for name in order}}}
    config = guarded(project, closed=False, says=says, translator=Unwritable())

    result = await fire_before_model_hook(config, llm_request)

    assert result.modified_request is not None
    assert result.modified_request.model == llm_request.model
    assert "And now?" not in json.dumps([c.model_dump(mode="json") for c in result.modified_request.contents])


@pytest.mark.requirement("HOOK-180", "HOOK-181")
async def test_events_that_cannot_block_continue(
    project: EngineProject, llm_request: GenerateContentParameters, llm_response: GenerateContentResponse
) -> None:
    config = guarded(project, translator=Unreadable())

    after = await fire_after_model_hook(config, llm_request, llm_response)
    selection = await fire_before_tool_selection_hook(config, llm_request)

    assert after.response is llm_response
    assert (after.should_stop, selection.should_stop, selection.tool_config) == (False, False, None)
