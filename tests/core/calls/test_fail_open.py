"""Whatever breaks inside, a trigger gives its safe default; only cancellation passes through, and leaves nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    AfterModelHookResult,
    AggregatedHookResult,
    BeforeModelHookResult,
    BeforeToolSelectionHookResult,
    Config,
    ExecutionPlan,
    GenerateContentParameters,
    HookEventName,
    HookExecutionResult,
    HookObserver,
    HookSystem,
    HookTranslator,
    InProcessMessageBus,
    ToolResult,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_after_tool_hook,
    fire_before_model_hook,
    fire_before_tool_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.runner import HookRunner
from tests.support.processes import DEADLINE, lives

if TYPE_CHECKING:
    from google.genai.types import GenerateContentResponse

    from llxprt_hooks.settings.definitions import HookSet
    from tests.support.engine_project import EngineProject, Texts

Triggers = dict[str, tuple[Callable[[Config], Coroutine[Any, Any, Any]], Any]]

EVENTS = ("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection")
MODEL_TRIGGERS = ("before model", "after model", "tool selection")

BLOCK = {"decision": "block", "reason": "no", "continue": False, "systemMessage": "m", "suppressOutput": True}


@pytest.fixture
def triggers(llm_request: GenerateContentParameters, llm_response: GenerateContentResponse) -> Triggers:
    """Each trigger, and the safe default of it."""
    return {
        "before tool": (lambda config: fire_before_tool_hook(config, "glob", {"a": 1}), None),
        "after tool": (lambda config: fire_after_tool_hook(config, "glob", {"a": 1}, {"llmContent": "x"}), None),
        "wrapper": (
            lambda config: execute_tool_with_hooks(config, "glob", {"a": 1}, lambda given: ToolResult(str(given))),
            ToolResult("{'a': 1}"),
        ),
        "before model": (lambda config: fire_before_model_hook(config, llm_request), BeforeModelHookResult()),
        "after model": (
            lambda config: fire_after_model_hook(config, llm_request, llm_response),
            AfterModelHookResult(response=llm_response),
        ),
        "tool selection": (
            lambda config: fire_before_tool_selection_hook(config, llm_request),
            BeforeToolSelectionHookResult(),
        ),
    }


def all_triggers(*names: Any) -> pytest.MarkDecorator:
    marks = {
        "before tool": pytest.mark.requirement("HOOK-111", "HOOK-113", "HOOK-115"),
        "before model": pytest.mark.requirement("HOOK-111", "HOOK-113", "HOOK-116"),
    }
    other = pytest.mark.requirement("HOOK-111", "HOOK-113")
    return pytest.mark.parametrize("trigger", [pytest.param(name, marks=marks.get(name, other)) for name in names])


ALL = ("before tool", "after tool", "wrapper", *MODEL_TRIGGERS)


# Broken configurations.


class NoHookSets(Config):
    @property
    def hook_sets(self) -> Sequence[HookSet]:
        raise PermissionError("the hooks cannot be read")


class NoSystem(Config):
    def get_hook_system(self) -> HookSystem | None:
        raise ImportError("there is no hook system")


class NoSession(Config):
    @property
    def session_id(self) -> str:
        raise LookupError("there is no session")

    @session_id.setter
    def session_id(self, value: Any) -> str:
        pass


class NoDisabled(Config):
    @property
    def disabled_hooks(self) -> Sequence[str]:
        raise ValueError("nobody knows what is disabled")

    @disabled_hooks.setter
    def disabled_hooks(self, value: Any) -> Sequence[str]:
        pass


@pytest.mark.parametrize("kind", [NoHookSets, NoSystem, NoSession, NoDisabled])
@all_triggers(*ALL)
async def test_a_configuration_that_breaks_allows_everything_with_a_warning(
    project: EngineProject, triggers: Triggers, trigger: str, kind: type[Any], warnings_of_engine: Texts
) -> None:
    fire, default = triggers[trigger]
    config = project.config({event: project.hook(event, BLOCK) for event in EVENTS}, kind)
    assert await fire(config) == default
    assert warnings_of_engine()
    assert [project.runs(event) for event in EVENTS] == [0] * 5


@all_triggers(*ALL)
async def test_a_working_directory_that_does_not_exist_allows_everything_with_a_warning(
    project: EngineProject, triggers: Triggers, trigger: str, warnings_of_engine: Texts
) -> None:
    fire, default = triggers[trigger]
    missing = project.root / "gone"
    config = project.config({event: project.hook(event, BLOCK) for event in EVENTS}, working_dir=missing)
    assert await fire(config) == default
    assert any(str(missing) in warning for warning in warnings_of_engine())


@all_triggers(*ALL)
async def test_definitions_that_make_no_sense_allow_everything_with_a_warning(
    project: EngineProject, triggers: Triggers, trigger: str, warnings_of_engine: Texts
) -> None:
    fire, default = triggers[trigger]
    nonsense = [7, {"hooks": 7}, {"hooks": [7, {"type": "unknown"}, {"type": "command"}, {"type": "plugin"}]}]
    assert await fire(project.config(dict.fromkeys(EVENTS, nonsense))) == default
    assert warnings_of_engine()


# Broken parts, wired in by the hook system itself.


class BrokenPlanner(HookPlanner):
    def create_execution_plan(self, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
        raise RuntimeError("broken planner")


class BrokenRunner(HookRunner):
    async def execute_hooks_parallel(self, *args: Any) -> list[HookExecutionResult]:
        raise RuntimeError("broken runner")


class BrokenAggregator(HookAggregator):
    def aggregate_results(
        self, results: Sequence[HookExecutionResult], event_name: HookEventName
    ) -> AggregatedHookResult:
        raise RuntimeError("broken aggregator")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("HookPlanner", BrokenPlanner),
        ("HookRunner", BrokenRunner),
        ("HookAggregator", BrokenAggregator),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
@all_triggers(*ALL)
async def test_a_part_that_breaks_allows_everything_with_a_warning(
    project: EngineProject,
    triggers: Triggers,
    trigger: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    part: type[Any],
    warnings_of_engine: Texts,
) -> None:
    monkeypatch.setattr(f"llxprt_hooks.core.engine.system.{name}", part)
    fire, default = triggers[trigger]
    assert await fire(project.config({event: project.hook(event, BLOCK) for event in EVENTS})) == default
    assert any("failed" in warning for warning in warnings_of_engine())


async def test_a_decision_is_kept_if_only_its_report_fails(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch, warnings_of_engine: Texts
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("broken report")

    monkeypatch.setattr("llxprt_hooks.core.engine.plan.report_end", broken)
    output = await fire_before_tool_hook(
        project.config({"BeforeTool": project.hook("BeforeTool", BLOCK)}, observer=HookObserver()), "write_file", {}
    )
    assert output is not None
    assert output.is_blocking_decision()
    assert any("broken report" in warning for warning in warnings_of_engine())


@all_triggers(*ALL)
async def test_hooks_run_by_direct_call_although_the_message_bus_cannot_be_subscribed_to(
    project: EngineProject, triggers: Triggers, trigger: str
) -> None:
    class BrokenBus(InProcessMessageBus):
        def subscribe(self, message_type: Any, subscriber: Any) -> Any:
            raise ConnectionError("no bus")

    fire, _ = triggers[trigger]
    hooks = {event: project.hook(event, BLOCK) for event in EVENTS}
    assert await fire(project.config(hooks, message_bus=BrokenBus())) == await fire(project.config(hooks))


# Broken translation.


def breaking(name: str) -> Callable[..., Any]:
    def broken(self: object, *args: Any) -> Any:
        raise ZeroDivisionError(f"{name} broke")

    return broken


def translator(*broken: Any) -> HookTranslator[Any, Any, Any]:
    from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1

    made: HookTranslatorGenAIv1 = type("Broken", (HookTranslatorGenAIv1,), {name: breaking(name) for name in broken})()
    return made


@all_triggers(*MODEL_TRIGGERS)
async def test_a_translator_that_breaks_on_the_way_in_allows_everything_and_runs_no_hook(
    project: EngineProject, triggers: Triggers, trigger: str, warnings_of_engine: Texts
) -> None:
    fire, default = triggers[trigger]
    broken = translator("to_hook_llm_request", "to_hook_llm_response")
    config = project.config({event: project.hook(event, BLOCK) for event in EVENTS}, translator=broken)
    assert await fire(config) == default
    assert any("broke" in warning for warning in warnings_of_engine())
    assert [project.runs(event) for event in EVENTS] == [0] * 5


@pytest.mark.requirement("HOOK-036", "HOOK-111", "HOOK-184")
async def test_a_translator_that_breaks_on_the_way_out_takes_no_block_or_stop_with_it(
    project: EngineProject, llm_request: GenerateContentParameters, llm_response: GenerateContentResponse
) -> None:
    said = {
        **BLOCK,
        "hookSpecificOutput": {
            "llm_request": {"model": "x"},
            "llm_response": {"text": "x"},
            "toolConfig": {"mode": "NONE"},
        },
    }
    broken = translator("from_hook_llm_request", "from_hook_llm_response", "from_hook_tool_config")
    config = project.config({event: project.hook(event, said) for event in EVENTS}, translator=broken)
    stop: dict[str, Any] = {"should_stop": True, "stop_reason": "no", "system_message": "m", "suppress_output": True}
    assert await fire_before_model_hook(config, llm_request) == BeforeModelHookResult(blocked=True, reason="no", **stop)
    after = await fire_after_model_hook(config, llm_request, llm_response)
    assert after == AfterModelHookResult(response=llm_response, **stop)
    selected = await fire_before_tool_selection_hook(config, llm_request)
    assert selected == BeforeToolSelectionHookResult(**stop)


@pytest.mark.requirement("HOOK-111", "HOOK-116")
@pytest.mark.parametrize("request_given", [None, 7, object(), {"nothing": "known"}, "text"])
async def test_an_object_that_is_not_a_request_allows_everything(
    project: EngineProject, request_given: Any, llm_response: GenerateContentResponse
) -> None:
    config = project.config({event: project.hook(event, BLOCK) for event in EVENTS})
    assert await fire_before_model_hook(config, request_given) == BeforeModelHookResult()
    assert await fire_before_tool_selection_hook(config, request_given) == BeforeToolSelectionHookResult()
    assert (await fire_after_model_hook(config, request_given, llm_response)).response is llm_response


@pytest.mark.requirement("HOOK-111", "HOOK-115")
@pytest.mark.parametrize("name", [None, 7, ["glob"], {"a": 1}, "\ud800", ""])
@pytest.mark.parametrize("given", [None, 7, {"a": object(), "b": 2**80, "c": "\ud800", 3: {1, 2}}])
async def test_unusual_names_and_arguments_raise_nothing(project: EngineProject, name: Any, given: Any) -> None:
    group = {"matcher": "x|^$", "hooks": [{"type": "command", "command": project.hook(says={"reason": "seen"})}]}
    config = project.config({"BeforeTool": [group], "AfterTool": [group]})
    for output in (
        await fire_before_tool_hook(config, name, given),
        await fire_after_tool_hook(config, name, given, {}),
    ):
        assert output is None or output.reason == "seen"


# Logging that breaks.


@pytest.mark.requirement("HOOK-111", "HOOK-115", "HOOK-116")
async def test_logging_that_breaks_neither_raises_nor_undoes_a_block(
    project: EngineProject, llm_request: GenerateContentParameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    root = logging.getLogger()
    handler = Raising(logging.DEBUG)
    root.addHandler(handler)
    try:
        blocking = project.config({event: project.hook(event, exit_code=2, says="hint") for event in EVENTS})
        result = await execute_tool_with_hooks(blocking, "glob", {}, lambda _: pytest.fail("the tool ran"))
        assert result.llm_content == "Blocked by hook"
        assert (await fire_before_model_hook(blocking, llm_request)).blocked
        broken = project.config({event: project.hook(event, BLOCK) for event in EVENTS}, NoHookSets)
        assert await fire_before_tool_hook(broken, "glob", {}) is None
        assert await fire_before_model_hook(broken, llm_request) == BeforeModelHookResult()
    finally:
        root.removeHandler(handler)


# Initialization after a failure.


@pytest.mark.requirement("HOOK-113")
async def test_a_configuration_that_recovers_is_used_again(project: EngineProject) -> None:
    class Flaky(Config):
        broken = True

        @property
        def hook_sets(self) -> Sequence[HookSet]:
            if self.broken:
                raise OSError("not yet")
            return super().hook_sets

    config = project.config({"BeforeTool": project.hook(says={"decision": "deny"})}, Flaky)
    assert await fire_before_tool_hook(config, "glob", {}) is None
    assert isinstance(config.get_hook_system(), HookSystem)
    config.broken = False
    output = await fire_before_tool_hook(config, "glob", {})
    assert output is not None
    assert output.is_blocking_decision()


# Cancellation.


@pytest.mark.requirement("HOOK-111")
@pytest.mark.parametrize("trigger", ALL)
async def test_cancellation_passes_through_a_trigger_and_leaves_no_process_behind(
    project: EngineProject, triggers: Triggers, trigger: str
) -> None:
    config = project.config({event: project.endless_hook(event) for event in EVENTS})
    task = asyncio.create_task(triggers[trigger][0](config))
    event = {
        "before tool": "BeforeTool",
        "wrapper": "BeforeTool",
        "after tool": "AfterTool",
        "before model": "BeforeModel",
        "after model": "AfterModel",
        "tool selection": "BeforeToolSelection",
    }[trigger]
    pids = await project.started(event)
    assert all(lives(pid) for pid in pids)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(DEADLINE):
            await task
    assert task.cancelled()
    assert not any(lives(pid) for pid in pids)


async def test_cancellation_in_the_tool_itself_passes_through_and_after_tool_does_not_fire(
    project: EngineProject,
) -> None:
    running = asyncio.Event()

    async def tool(tool_input: Mapping[str, Any]) -> Any:
        running.set()
        await asyncio.sleep(600)

    config = project.config({"AfterTool": project.hook("after")})
    task = asyncio.create_task(execute_tool_with_hooks(config, "glob", {}, tool))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert project.runs("after") == 0
