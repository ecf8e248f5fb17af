"""How one event flows through the engine: plan, translate, run, merge, and a single result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    AggregatedHookResult,
    DefaultHookOutput,
    ExecutionPlan,
    HookEventHandler,
    HookEventName,
    HookExecutionResult,
    HookFormat,
    HookStageError,
    ProcessedHookResult,
    SessionStartSource,
    TranslationError,
)
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.results import build_failure_envelope
from llxprt_hooks.core.engine.runner import HookRunner

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject, Ready, Texts

Spied = Callable[[dict[str, Any]], HookEventHandler]

REQUEST = HookFormat({"messages": [{"role": "user", "content": "hi"}]})
RESPONSE = HookFormat({"text": "hello"})


def fire(handler: HookEventHandler, event: Any) -> Any:
    return {
        "BeforeTool": lambda: handler.fire_before_tool_event("write_file", {"a": 1}),
        "AfterTool": lambda: handler.fire_after_tool_event("write_file", {"a": 1}, {"llmContent": "x"}),
        "BeforeModel": lambda: handler.fire_before_model_event(REQUEST),
        "AfterModel": lambda: handler.fire_after_model_event(REQUEST, RESPONSE),
        "BeforeToolSelection": lambda: handler.fire_before_tool_selection_event(REQUEST),
        "BeforeAgent": lambda: handler.fire_before_agent_event("do it"),
        "SessionStart": lambda: handler.fire_session_start_event(SessionStartSource.STARTUP),
    }[event]()


FIVE = ("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection")


# No hook.


@pytest.mark.requirement("HOOK-145", "DELTA-HFAIL-003")
@pytest.mark.parametrize("event", FIVE)
async def test_an_event_without_matching_hooks_is_an_empty_success(
    project: EngineProject, ready: Ready, event: str
) -> None:
    result = await fire(await ready(project.config({})), event)
    assert result.success is True
    assert result.final_output is None
    assert result.all_outputs == []
    assert result.errors == []
    assert result.total_duration == 0


@pytest.mark.requirement("DELTA-HFAIL-004")
async def test_an_empty_success_is_a_fresh_one_each_time(project: EngineProject, ready: Ready) -> None:
    handler = await ready(project.config({}))
    first = await fire(handler, "BeforeTool")
    first.errors.append(ValueError("spoilt"))
    first.all_outputs.append(DefaultHookOutput({"decision": "deny"}))
    second = await fire(handler, "BeforeTool")
    assert second is not first
    assert (second.success, second.errors, second.all_outputs) == (True, [], [])


# Who is asked for what.


@pytest.fixture
def asked() -> Any:
    """What the parts of the engine are asked, in order."""
    return []


@pytest.fixture
def spied(project: EngineProject, asked: Any) -> Spied:
    """An event handler whose parts note what they are asked and then do it."""

    class Planner(HookPlanner):
        def create_execution_plan(self, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
            asked.append(("plan", event_name, subject))
            return super().create_execution_plan(event_name, subject)

    class Runner(HookRunner):
        async def execute_hooks_parallel(self, *args: Any) -> list[HookExecutionResult]:
            asked.append(("parallel", len(args[0])))
            return await super().execute_hooks_parallel(*args)

        async def execute_hooks_sequential(self, *args: Any) -> list[HookExecutionResult]:
            asked.append(("sequential", len(args[0])))
            return await super().execute_hooks_sequential(*args)

    class Aggregator(HookAggregator):
        def aggregate_results(
            self, results: Sequence[HookExecutionResult], event_name: HookEventName
        ) -> AggregatedHookResult:
            asked.append(("aggregate", [result.success for result in results], event_name))
            return super().aggregate_results(results, event_name)

    return lambda events: project.handler(project.config(events), planner=Planner, runner=Runner, aggregator=Aggregator)


@pytest.mark.requirement("HOOK-162")
@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool"])
async def test_tool_events_are_planned_for_the_name_of_the_tool(spied: Spied, asked: Any, event: str) -> None:
    await fire(spied({}), event)
    assert asked == [("plan", event, "write_file")]


@pytest.mark.requirement("HOOK-163")
@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "BeforeToolSelection"])
async def test_model_events_are_planned_without_anything_to_match(spied: Spied, asked: Any, event: str) -> None:
    await fire(spied({}), event)
    assert asked == [("plan", event, None)]


@pytest.mark.requirement("HOOK-164", "HOOK-166")
@pytest.mark.parametrize("event", FIVE)
async def test_a_sequential_plan_is_run_one_after_another_and_then_merged(
    project: EngineProject, spied: Spied, asked: Any, event: str
) -> None:
    hooks = [{"type": "command", "command": project.hook(name, exit_code=code)} for name, code in (("a", 0), ("b", 1))]
    await fire(spied({event: [{"sequential": True, "hooks": hooks}]}), event)
    assert asked[1:] == [("sequential", 2), ("aggregate", [True, False], event)]


@pytest.mark.requirement("HOOK-165", "HOOK-166")
@pytest.mark.parametrize("event", FIVE)
async def test_any_other_plan_is_run_in_parallel_and_then_merged(
    project: EngineProject, spied: Spied, asked: Any, event: str
) -> None:
    result = await fire(spied({event: [project.hook("a"), project.hook("b", exit_code=1)]}), event)
    assert asked[1:] == [("parallel", 2), ("aggregate", [True, False], event)]
    assert isinstance(result, AggregatedHookResult)
    assert result.total_duration == sum(run.duration for run in result.results) > 0


async def test_many_events_can_be_fired_at_once_on_one_handler(project: EngineProject, ready: Ready) -> None:
    handler = await ready(project.config({"BeforeTool": 'cat > "$LLXPRT_PROJECT_DIR/$$.stdin"; printf "{}"'}))
    results = await asyncio.gather(*(handler.fire_before_tool_event(f"tool{i}", {"i": i}) for i in range(20)))
    assert all(result.success for result in results)
    assert len(list(project.root.glob("*.stdin"))) == 20


# One reading of the common fields.


def reading(project: EngineProject, data: Any) -> ProcessedHookResult:
    output = None if data is None else DefaultHookOutput(data)
    return project.handler(project.config({})).process_common_hook_output_fields(
        AggregatedHookResult(success=True, final_output=output)
    )


@pytest.mark.requirement("DELTA-HRUN-002", "DELTA-HRUN-004", "DELTA-HAPP-001")
@pytest.mark.parametrize(
    ("data", "should_stop", "stop_reason"),
    [
        (None, False, None),
        ({}, False, None),
        ({"continue": True}, False, None),
        ({"decision": "deny", "reason": "r"}, False, None),
        ({"continue": False, "stopReason": "s"}, True, "s"),
        ({"continue": False, "reason": "r"}, True, "r"),
        ({"continue": False, "stopReason": "s", "reason": "r"}, True, "s"),
        ({"continue": False, "stopReason": "", "reason": "r"}, True, "r"),
        ({"continue": False, "stopReason": "s", "reason": "r", "decision": "deny"}, True, "s"),
        ({"continue": False}, True, "No reason provided"),
    ],
)
def test_stop_intent_is_read_with_one_canonical_reason(
    project: EngineProject, data: dict[str, Any] | None, should_stop: bool, stop_reason: str | None
) -> None:
    processed = reading(project, data)
    assert (processed.should_stop, processed.stop_reason) == (should_stop, stop_reason)


@pytest.mark.requirement("DELTA-HRUN-003", "DELTA-HRUN-004")
@pytest.mark.parametrize(
    ("data", "message", "suppress"),
    [
        (None, None, False),
        ({}, None, False),
        ({"systemMessage": "m"}, "m", False),
        ({"suppressOutput": True}, None, True),
        ({"suppressOutput": False, "systemMessage": ""}, None, False),
        ({"suppressOutput": True, "systemMessage": "m", "decision": "deny"}, "m", True),
    ],
)
def test_message_and_suppression_are_read_in_one_place(
    project: EngineProject, data: dict[str, Any] | None, message: str | None, suppress: bool
) -> None:
    processed = reading(project, data)
    assert (processed.system_message, processed.suppress_output) == (message, suppress)


@pytest.mark.requirement("DELTA-HRUN-004")
def test_the_reading_keeps_the_result_that_it_was_made_from(project: EngineProject) -> None:
    result = AggregatedHookResult(success=True, final_output=DefaultHookOutput({"continue": False}))
    processed = project.handler(project.config({})).process_common_hook_output_fields(result)
    assert isinstance(processed, ProcessedHookResult)
    assert processed.aggregated is result


@pytest.mark.requirement("DELTA-HRUN-001", "DELTA-HRUN-003")
@pytest.mark.parametrize("event", FIVE)
async def test_every_event_goes_through_that_reading_before_its_result_is_returned(
    project: EngineProject, ready: Ready, caplog: pytest.LogCaptureFixture, event: str
) -> None:
    caplog.set_level(logging.DEBUG, "llxprt:core:hooks:handler")
    said = {"continue": False, "stopReason": "enough", "systemMessage": "note", "suppressOutput": True}
    handler = await ready(project.config({event: project.hook(says=said)}))
    processed = handler.process_common_hook_output_fields(await fire(handler, event))
    (batch,) = [record.hook_batch for record in caplog.records if hasattr(record, "hook_batch")]
    fields = ("should_stop", "stop_reason", "system_message", "suppress_output")
    assert {name: batch[name] for name in fields} == {name: getattr(processed, name) for name in fields}
    assert [batch[name] for name in fields] == [True, "enough", "note", True]


# Failures of the engine itself.


class BrokenPlanner(HookPlanner):
    def create_execution_plan(self, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
        raise LookupError("the planner broke")


class BrokenRunner(HookRunner):
    async def execute_hooks_parallel(self, *args: Any) -> list[HookExecutionResult]:
        raise OSError("the runner broke")

    async def execute_hooks_sequential(self, *args: Any) -> list[HookExecutionResult]:
        raise OSError("the runner broke")


class BrokenAggregator(HookAggregator):
    def aggregate_results(
        self, results: Sequence[HookExecutionResult], event_name: HookEventName
    ) -> AggregatedHookResult:
        raise ArithmeticError("the aggregator broke")


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "planning": ({"planner": BrokenPlanner}, "the planner broke"),
    "execution": ({"runner": BrokenRunner}, "the runner broke"),
    "aggregation": ({"aggregator": BrokenAggregator}, "the aggregator broke"),
}


@pytest.mark.requirement("HOOK-113", "HOOK-147", "DELTA-HFAIL-001")
@pytest.mark.parametrize("event", [*FIVE, "BeforeAgent", "SessionStart"])
@pytest.mark.parametrize("stage", BROKEN)
async def test_a_broken_part_gives_a_failure_envelope_that_names_the_stage(
    project: EngineProject, stage: str, event: str, warnings_of_engine: Texts, caplog: pytest.LogCaptureFixture
) -> None:
    parts, message = BROKEN[stage]
    result = await fire(project.handler(project.config({event: project.hook()}), **parts), event)
    assert (result.success, result.final_output, result.all_outputs) == (False, None, [])
    (error,) = result.errors
    assert isinstance(error, HookStageError)
    assert error.stage == stage
    assert message in str(error)
    assert any(message in warning and event in warning for warning in warnings_of_engine())
    assert project.runs() == (1 if stage == "aggregation" else 0)


@pytest.mark.requirement("HOOK-147", "DELTA-HPAY-004", "DELTA-HFAIL-001")
@pytest.mark.parametrize(
    ("event", "fired"),
    [
        ("BeforeModel", lambda handler: handler.fire_before_model_event(object())),
        ("BeforeToolSelection", lambda handler: handler.fire_before_tool_selection_event({"nothing": "known"})),
        ("AfterModel", lambda handler: handler.fire_after_model_event(REQUEST, object())),
    ],
)
async def test_model_data_that_cannot_be_translated_gives_a_failure_envelope_and_runs_nothing(
    project: EngineProject, ready: Ready, event: str, fired: Callable[..., Any]
) -> None:
    result = await fired(await ready(project.config({event: project.hook()})))
    assert result.success is False
    assert result.errors[0].stage == "translation"
    assert isinstance(result.errors[0].__cause__, TranslationError)
    assert project.runs() == 0


@pytest.mark.requirement("HOOK-113", "DELTA-HFAIL-001")
async def test_a_registry_that_was_never_initialized_gives_a_failure_envelope(project: EngineProject) -> None:
    from llxprt_hooks import HookEventHandler, HookRegistry

    config = project.config({"BeforeTool": project.hook()})
    handler = HookEventHandler(config, HookPlanner(HookRegistry(config)), HookRunner(), HookAggregator())
    result = await handler.fire_before_tool_event("glob", {})
    assert result.success is False
    assert "initialize" in str(result.errors[0])


@pytest.mark.requirement("HOOK-147", "DELTA-HFAIL-001")
async def test_a_payload_that_cannot_be_built_gives_a_failure_envelope(project: EngineProject) -> None:
    config = project.config({"BeforeTool": project.hook()})
    handler = project.handler(config)
    del config.session_id
    result = await handler.fire_before_tool_event("glob", {})
    assert result.success is False
    assert "session_id" in str(result.errors[0])
    assert project.runs() == 0


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_a_failure_envelope_is_not_a_success_and_keeps_cause_and_details() -> None:
    cause = ValueError("what happened")
    envelope = build_failure_envelope(cause, "planning", {"eventName": "BeforeTool"})
    assert (envelope.success, envelope.final_output, envelope.all_outputs) == (False, None, [])
    (error,) = envelope.errors
    assert isinstance(error, HookStageError)
    assert error.__cause__ is cause
    assert (error.stage, error.details) == ("planning", {"eventName": "BeforeTool"})
    assert "what happened" in str(error)


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_a_failure_that_names_its_stage_already_keeps_it() -> None:
    error = HookStageError("unsupported_event", "there is no such event")
    envelope = build_failure_envelope(error, "validation")
    assert envelope.success is False
    assert envelope.errors == [error]


class RaisingHandler(logging.Handler):
    """A log handler of the embedding program, with a bug."""

    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("the disk for logs is full")


@pytest.fixture
def broken_logging() -> Iterator[None]:
    """Every record of the engine meets a log handler that raises."""
    handler = RaisingHandler(logging.DEBUG)
    engine = [
        logger
        for name, logger in logging.Logger.manager.loggerDict.items()
        if name.startswith("llxprt:core:hooks:") and isinstance(logger, logging.Logger)
    ]
    assert engine
    levels = [logger.level for logger in engine]
    for logger in engine:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield
    for logger, level in zip(engine, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.mark.requirement("HOOK-147", "HOOK-111")
async def test_a_raising_logger_does_not_lose_the_decision(
    project: EngineProject, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_warnings(record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            raise RuntimeError("no room for details")
        return True

    logger = logging.getLogger("test_events_handler")
    monkeypatch.setattr(logger, "filters", [only_warnings])
    caplog.set_level(logging.DEBUG, logger=logger.name)
    handler = project.handler(project.config({"BeforeTool": project.hook(exit_code=2)}), logger=logger)

    result = await handler.fire_before_tool_event("glob", {})

    assert result.final_output is not None
    assert result.final_output.is_blocking_decision()
    assert any("its plan" in message and "no room for details" in message for message in caplog.messages)


@pytest.mark.requirement("HOOK-147", "HOOK-111")
@pytest.mark.parametrize("stage", BROKEN)
async def test_a_log_handler_that_raises_does_not_turn_a_failure_into_an_exception(
    project: EngineProject, broken_logging: None, stage: str
) -> None:
    result = await fire(
        project.handler(project.config({"BeforeTool": project.hook()}), **BROKEN[stage][0]), "BeforeTool"
    )
    assert result.errors[0].stage == stage
