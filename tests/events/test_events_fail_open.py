"""Whatever breaks inside, a trigger gives its safe default; only cancellation passes through, and leaves nothing."""

from __future__ import annotations

import asyncio
import logging
import os

import pytest

from llxprt_hooks import (
    AfterModelHookResult,
    BeforeModelHookResult,
    BeforeToolSelectionHookResult,
    Config,
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
from llxprt_hooks.engine.aggregator import HookAggregator
from llxprt_hooks.engine.event_handler import HookEventHandler
from llxprt_hooks.engine.planner import HookPlanner
from llxprt_hooks.engine.runner import HookRunner

EVENTS = ("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection")
MODEL_TRIGGERS = ("before model", "after model", "tool selection")

BLOCK = {"decision": "block", "reason": "no", "continue": False, "systemMessage": "m", "suppressOutput": True}


@pytest.fixture
def triggers(llm_request, llm_response):
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


def all_triggers(*names):
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
    def hook_sets(self):
        raise PermissionError("the hooks cannot be read")


class NoSystem(Config):
    def get_hook_system(self):
        raise ImportError("there is no hook system")


class NoSession(Config):
    @property
    def session_id(self):
        raise LookupError("there is no session")

    @session_id.setter
    def session_id(self, value):
        pass


class NoDisabled(Config):
    @property
    def disabled_hooks(self):
        raise ValueError("nobody knows what is disabled")

    @disabled_hooks.setter
    def disabled_hooks(self, value):
        pass


@pytest.mark.parametrize("kind", [NoHookSets, NoSystem, NoSession, NoDisabled])
@all_triggers(*ALL)
async def test_a_configuration_that_breaks_allows_everything_with_a_warning(
    lab, triggers, trigger, kind, warnings_of_engine
):
    fire, default = triggers[trigger]
    config = lab.config({event: lab.hook(event, BLOCK) for event in EVENTS}, kind)
    assert await fire(config) == default
    assert warnings_of_engine()
    assert [lab.runs(event) for event in EVENTS] == [0] * 5


@all_triggers(*ALL)
async def test_a_working_directory_that_does_not_exist_allows_everything_with_a_warning(
    lab, triggers, trigger, warnings_of_engine
):
    fire, default = triggers[trigger]
    missing = lab.folder / "gone"
    config = lab.config({event: lab.hook(event, BLOCK) for event in EVENTS}, working_dir=missing)
    assert await fire(config) == default
    assert any(str(missing) in warning for warning in warnings_of_engine())


@all_triggers(*ALL)
async def test_definitions_that_make_no_sense_allow_everything_with_a_warning(
    lab, triggers, trigger, warnings_of_engine
):
    fire, default = triggers[trigger]
    nonsense = [7, {"hooks": 7}, {"hooks": [7, {"type": "unknown"}, {"type": "command"}, {"type": "plugin"}]}]
    assert await fire(lab.config(dict.fromkeys(EVENTS, nonsense))) == default
    assert warnings_of_engine()


# Broken parts, wired in by the hook system itself.


class BrokenPlanner(HookPlanner):
    def create_execution_plan(self, event_name, subject=None):
        raise RuntimeError("broken planner")


class LateBrokenPlanner(HookPlanner):
    """Breaks on the second question, when a trigger has already found that there is a hook."""

    asked = 0

    def create_execution_plan(self, event_name, subject=None):
        self.asked += 1
        if self.asked > 1:
            raise RuntimeError("broken planner")
        return super().create_execution_plan(event_name, subject)


class BrokenRunner(HookRunner):
    async def execute_hooks_parallel(self, *args):
        raise RuntimeError("broken runner")


class BrokenAggregator(HookAggregator):
    def aggregate_results(self, results, event_name):
        raise RuntimeError("broken aggregator")


class BrokenHandler(HookEventHandler):
    async def _fire(self, *args):
        raise RuntimeError("broken handler")


class BrokenReading(HookEventHandler):
    def process_common_hook_output_fields(self, result):
        raise RuntimeError("broken reading")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("HookPlanner", BrokenPlanner),
        ("HookPlanner", LateBrokenPlanner),
        ("HookRunner", BrokenRunner),
        ("HookAggregator", BrokenAggregator),
        ("HookEventHandler", BrokenHandler),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
@all_triggers(*ALL)
async def test_a_part_that_breaks_allows_everything_with_a_warning(
    lab, triggers, trigger, monkeypatch, name, part, warnings_of_engine
):
    monkeypatch.setattr(f"llxprt_hooks.engine.system.{name}", part)
    fire, default = triggers[trigger]
    assert await fire(lab.config({event: lab.hook(event, BLOCK) for event in EVENTS})) == default
    assert any("failed" in warning for warning in warnings_of_engine())


async def test_a_decision_stands_where_only_the_report_of_it_breaks(lab, monkeypatch, warnings_of_engine):
    monkeypatch.setattr("llxprt_hooks.engine.system.HookEventHandler", BrokenReading)
    output = await fire_before_tool_hook(lab.config({"BeforeTool": lab.hook("BeforeTool", BLOCK)}), "write_file", {})
    assert output.is_blocking_decision()
    assert any("failed" in warning for warning in warnings_of_engine())


@all_triggers(*MODEL_TRIGGERS)
async def test_a_reading_that_breaks_allows_model_calls_with_a_warning(
    lab, triggers, trigger, monkeypatch, warnings_of_engine
):
    monkeypatch.setattr("llxprt_hooks.engine.system.HookEventHandler", BrokenReading)
    fire, default = triggers[trigger]
    assert await fire(lab.config({event: lab.hook(event, BLOCK) for event in EVENTS})) == default
    assert any("failed" in warning for warning in warnings_of_engine())


@all_triggers(*ALL)
async def test_hooks_run_by_direct_call_although_the_message_bus_cannot_be_subscribed_to(lab, triggers, trigger):
    class BrokenBus(InProcessMessageBus):
        def subscribe(self, message_type, subscriber):
            raise ConnectionError("no bus")

    fire, _ = triggers[trigger]
    hooks = {event: lab.hook(event, BLOCK) for event in EVENTS}
    assert await fire(lab.config(hooks, message_bus=BrokenBus())) == await fire(lab.config(hooks))


# Broken translation.


def breaking(name):
    def broken(self, *args):
        raise ZeroDivisionError(f"{name} broke")

    return broken


def translator(*broken) -> HookTranslator:
    from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1

    return type("Broken", (HookTranslatorGenAIv1,), {name: breaking(name) for name in broken})()


@all_triggers(*MODEL_TRIGGERS)
async def test_a_translator_that_breaks_on_the_way_in_allows_everything_and_runs_no_hook(
    lab, triggers, trigger, warnings_of_engine
):
    fire, default = triggers[trigger]
    broken = translator("to_hook_llm_request", "to_hook_llm_response")
    config = lab.config({event: lab.hook(event, BLOCK) for event in EVENTS}, translator=broken)
    assert await fire(config) == default
    assert any("broke" in warning for warning in warnings_of_engine())
    assert [lab.runs(event) for event in EVENTS] == [0] * 5


@pytest.mark.requirement("HOOK-036", "HOOK-111", "HOOK-184")
async def test_a_translator_that_breaks_on_the_way_out_takes_no_block_or_stop_with_it(lab, llm_request, llm_response):
    said = {
        **BLOCK,
        "hookSpecificOutput": {
            "llm_request": {"model": "x"},
            "llm_response": {"text": "x"},
            "toolConfig": {"mode": "NONE"},
        },
    }
    broken = translator("from_hook_llm_request", "from_hook_llm_response", "from_hook_tool_config")
    config = lab.config({event: lab.hook(event, said) for event in EVENTS}, translator=broken)
    stop = {"should_stop": True, "stop_reason": "no", "system_message": "m", "suppress_output": True}
    assert await fire_before_model_hook(config, llm_request) == BeforeModelHookResult(blocked=True, reason="no", **stop)
    after = await fire_after_model_hook(config, llm_request, llm_response)
    assert after == AfterModelHookResult(response=llm_response, **stop)
    selected = await fire_before_tool_selection_hook(config, llm_request)
    assert selected == BeforeToolSelectionHookResult(**stop)


@pytest.mark.requirement("HOOK-111", "HOOK-116")
@pytest.mark.parametrize("request_given", [None, 7, object(), {"nothing": "known"}, "text"])
async def test_a_request_that_is_none_allows_everything(lab, request_given, llm_response):
    config = lab.config({event: lab.hook(event, BLOCK) for event in EVENTS})
    assert await fire_before_model_hook(config, request_given) == BeforeModelHookResult()
    assert await fire_before_tool_selection_hook(config, request_given) == BeforeToolSelectionHookResult()
    assert (await fire_after_model_hook(config, request_given, llm_response)).response is llm_response


@pytest.mark.requirement("HOOK-111")
async def test_a_response_that_is_none_is_given_back_as_it_is(lab, llm_request):
    config = lab.config({"AfterModel": lab.hook(says=BLOCK)})
    response = object()
    assert (await fire_after_model_hook(config, llm_request, response)).response is response
    assert lab.runs() == 0


@pytest.mark.requirement("HOOK-111", "HOOK-115")
@pytest.mark.parametrize("name", [None, 7, ["glob"], {"a": 1}, "\ud800", ""])
@pytest.mark.parametrize("given", [None, 7, {"a": object(), "b": float("nan"), "c": "\ud800", 3: {1, 2}}])
async def test_odd_names_and_arguments_raise_nothing(lab, name, given):
    group = {"matcher": "x|^$", "hooks": [{"type": "command", "command": lab.hook(says={"reason": "seen"})}]}
    config = lab.config({"BeforeTool": [group], "AfterTool": [group]})
    for output in (
        await fire_before_tool_hook(config, name, given),
        await fire_after_tool_hook(config, name, given, {}),
    ):
        assert output is None or output.reason == "seen"


# Logging that breaks.


@pytest.mark.requirement("HOOK-111", "HOOK-115", "HOOK-116")
async def test_logging_that_breaks_neither_raises_nor_undoes_a_block(lab, llm_request, monkeypatch):
    class Raising(logging.Handler):
        def emit(self, record):
            raise OSError("disk full")

    root = logging.getLogger()
    handler = Raising(logging.DEBUG)
    root.addHandler(handler)
    try:
        blocking = lab.config({event: lab.hook(event, exit_code=2, says="hint") for event in EVENTS})
        result = await execute_tool_with_hooks(blocking, "glob", {}, lambda _: pytest.fail("the tool ran"))
        assert result.llm_content == "Blocked by hook"
        assert (await fire_before_model_hook(blocking, llm_request)).blocked
        broken = lab.config({event: lab.hook(event, BLOCK) for event in EVENTS}, NoHookSets)
        assert await fire_before_tool_hook(broken, "glob", {}) is None
        assert await fire_before_model_hook(broken, llm_request) == BeforeModelHookResult()
    finally:
        root.removeHandler(handler)


# Initialization after a failure.


@pytest.mark.requirement("HOOK-113")
async def test_a_configuration_that_recovers_is_heard_again(lab):
    class Flaky(Config):
        broken = True

        @property
        def hook_sets(self):
            if self.broken:
                raise OSError("not yet")
            return super().hook_sets

    config = lab.config({"BeforeTool": lab.hook(says={"decision": "deny"})}, Flaky)
    assert await fire_before_tool_hook(config, "glob", {}) is None
    assert isinstance(config.get_hook_system(), HookSystem)
    config.broken = False
    assert (await fire_before_tool_hook(config, "glob", {})).is_blocking_decision()


# Cancellation.


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.requirement("HOOK-111")
@pytest.mark.parametrize("trigger", ALL)
async def test_cancellation_passes_through_a_trigger_and_leaves_no_process_behind(lab, triggers, trigger):
    config = lab.config({event: lab.endless(event) for event in EVENTS})
    task = asyncio.create_task(triggers[trigger][0](config))
    event = {
        "before tool": "BeforeTool",
        "wrapper": "BeforeTool",
        "after tool": "AfterTool",
        "before model": "BeforeModel",
        "after model": "AfterModel",
        "tool selection": "BeforeToolSelection",
    }[trigger]
    pid = await lab.started(event)
    assert is_alive(pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(20):
            await task
    assert task.cancelled()
    assert not is_alive(pid)


async def test_cancellation_ends_all_hooks_that_run_side_by_side(lab):
    config = lab.config({"BeforeTool": [lab.endless("a"), lab.endless("b"), lab.hook("done")]})
    task = asyncio.create_task(fire_before_tool_hook(config, "glob", {}))
    pids = [await lab.started(name) for name in "ab"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [is_alive(pid) for pid in pids] == [False, False]


async def test_cancellation_in_the_tool_itself_passes_through_and_after_tool_does_not_fire(lab):
    running = asyncio.Event()

    async def tool(tool_input):
        running.set()
        await asyncio.sleep(600)

    config = lab.config({"AfterTool": lab.hook("after")})
    task = asyncio.create_task(execute_tool_with_hooks(config, "glob", {}, tool))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lab.runs("after") == 0


async def test_a_time_limit_of_the_caller_is_kept(lab):
    config = lab.config({"BeforeTool": lab.endless()})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await fire_before_tool_hook(config, "glob", {})
    pid = lab.process_id()
    assert pid is None or not is_alive(pid)
