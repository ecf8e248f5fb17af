"""From configuration to hook system: when it is made, when it is initialized, what it owns and what it offers."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from llxprt_hooks import (
    Config,
    Extension,
    HookEventHandler,
    HookExecutionRequest,
    HookRegistry,
    HookRegistryNotInitializedError,
    HookSystem,
    HookSystemNotInitializedError,
    InProcessMessageBus,
    MessageBusType,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_after_tool_hook,
    fire_before_model_hook,
    fire_before_tool_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.engine.aggregator import HookAggregator
from llxprt_hooks.engine.planner import HookPlanner
from llxprt_hooks.engine.runner import HookRunner

PARTS = (HookRegistry, HookPlanner, HookRunner, HookAggregator, HookEventHandler)


@pytest.fixture
def made(monkeypatch):
    """Every part of the engine that is made, by class name, in order."""
    names: list[str] = []
    for part in PARTS:

        def noted(self, *args, _part=part, _init=part.__init__, **kwargs):
            names.append(_part.__name__)
            _init(self, *args, **kwargs)

        monkeypatch.setattr(part, "__init__", noted)
    return names


@pytest.fixture
def initializations(monkeypatch):
    """Every call of ``HookRegistry.initialize``."""
    calls: list[HookRegistry] = []
    initialize = HookRegistry.initialize

    def noted(self):
        calls.append(self)
        initialize(self)

    monkeypatch.setattr(HookRegistry, "initialize", noted)
    return calls


class ReadCounting(Config):
    """Counts how often its hooks are read."""

    reads = 0

    @property
    def hook_sets(self):
        self.reads += 1
        return super().hook_sets


@pytest.mark.requirement("HOOK-001")
def test_an_enabled_configuration_makes_its_hook_system_on_the_first_call_and_keeps_it(lab, made):
    config = lab.config({"BeforeTool": lab.hook()})
    assert made == []
    system = config.get_hook_system()
    assert isinstance(system, HookSystem)
    assert sorted(made) == sorted(part.__name__ for part in PARTS)
    assert config.get_hook_system() is system


@pytest.mark.requirement("HOOK-002", "HOOK-010")
def test_a_disabled_configuration_has_no_hook_system_and_makes_no_part_of_one(lab, made):
    config = lab.config({"BeforeTool": lab.hook()}, enable_hooks=False)
    assert config.get_hook_system() is None
    assert made == []


@pytest.mark.requirement("HOOK-002")
def test_hooks_are_disabled_unless_switched_on(lab):
    assert Config(hooks=lab.hooks({"BeforeTool": lab.hook()})).get_hook_system() is None


@pytest.mark.requirement("HOOK-003")
async def test_the_registry_is_initialized_once_however_many_events_fire(
    lab, initializations, llm_request, llm_response
):
    config = lab.config(
        {"BeforeTool": lab.hook("a"), "BeforeModel": lab.hook("b"), "AfterModel": lab.hook("c")}, ReadCounting
    )
    for _ in range(2):
        await execute_tool_with_hooks(config, "glob", {}, lambda _: "done")
        await fire_before_model_hook(config, llm_request)
        await fire_after_model_hook(config, llm_request, llm_response)
        await config.get_hook_system().initialize()
    assert len(initializations) == 1
    assert config.reads == 1


@pytest.mark.requirement("HOOK-003")
def test_the_registry_is_initialized_once_however_many_threads_ask_at_once(lab, initializations):
    everybody = threading.Barrier(8)

    class SlowlyRead(ReadCounting):
        @property
        def hook_sets(self):
            time.sleep(0.1)  # long enough for the other threads to come and ask
            return super().hook_sets

    config = lab.config({"BeforeTool": lab.hook()}, SlowlyRead)
    system = config.get_hook_system()

    def ask(_):
        everybody.wait(10)
        return system.ready_event_handler()

    with ThreadPoolExecutor(8) as threads:
        handlers = list(threads.map(ask, range(8)))
    assert len({id(handler) for handler in handlers}) == 1
    assert len(initializations) == 1
    assert config.reads == 1


@pytest.mark.requirement("HOOK-004")
async def test_initializing_again_does_not_read_the_configuration_again(lab):
    config = lab.config({"BeforeTool": lab.hook()}, ReadCounting)
    system = config.get_hook_system()
    await system.initialize()
    entries = system.get_all_hooks()
    await system.initialize()
    await system.initialize()
    assert config.reads == 1
    assert all(before is after for before, after in zip(entries, system.get_all_hooks(), strict=True))


@pytest.mark.requirement("HOOK-005", "HOOK-148")
@pytest.mark.parametrize("accessor", ["get_event_handler", "get_registry"])
async def test_accessors_refuse_before_initialization_and_answer_after_it(lab, accessor):
    system = lab.config({}).get_hook_system()
    with pytest.raises(HookSystemNotInitializedError):
        getattr(system, accessor)()
    await system.initialize()
    assert getattr(system, accessor)() is not None


@pytest.mark.requirement("HOOK-005")
@pytest.mark.parametrize(
    "manage", [lambda system: system.get_all_hooks(), lambda system: system.set_hook_enabled("x", False)]
)
def test_management_refuses_before_initialization(lab, manage):
    with pytest.raises(HookSystemNotInitializedError):
        manage(lab.config({}).get_hook_system())


def test_a_registry_by_itself_refuses_before_initialization(lab):
    with pytest.raises(HookRegistryNotInitializedError):
        HookRegistry(lab.config({})).get_all_hooks()


@pytest.mark.requirement("HOOK-006")
async def test_the_hook_system_shows_registry_handler_and_status_but_no_planner_runner_or_aggregator(lab):
    system = lab.config({}).get_hook_system()
    await system.initialize()
    assert isinstance(system.get_registry(), HookRegistry)
    assert isinstance(system.get_event_handler(), HookEventHandler)
    assert system.get_registry() is system.get_registry()
    assert system.get_event_handler() is system.get_event_handler() is system.ready_event_handler()
    assert system.get_status() is not None
    public = {name: getattr(system, name) for name in dir(system) if not name.startswith("_")}
    assert not [name for name, value in public.items() if isinstance(value, PARTS)]
    assert not [name for name in public if any(part in name for part in ("planner", "runner", "aggregator"))]


@pytest.mark.requirement("HOOK-006", "HOOK-007", "HOOK-142")
async def test_all_triggers_share_one_instance_of_every_part(lab, made, llm_request, llm_response):
    config = lab.config(
        {
            event: lab.hook(event)
            for event in ("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection")
        }
    )
    for _ in range(2):
        await fire_before_tool_hook(config, "glob", {})
        await fire_after_tool_hook(config, "glob", {}, {"llmContent": "x"})
        await execute_tool_with_hooks(config, "glob", {}, lambda _: "done")
        await fire_before_model_hook(config, llm_request)
        await fire_after_model_hook(config, llm_request, llm_response)
        await fire_before_tool_selection_hook(config, llm_request)
    assert lab.runs("BeforeTool") == 4
    assert lab.runs("BeforeToolSelection") == 2
    assert sorted(made) == sorted(part.__name__ for part in PARTS)


@pytest.mark.requirement("HOOK-008", "HOOK-206")
@pytest.mark.parametrize(
    "fire",
    [
        lambda config, request, response: fire_before_tool_hook(config, "glob", {}),
        lambda config, request, response: fire_after_tool_hook(config, "glob", {}, {"llmContent": "x"}),
        lambda config, request, response: execute_tool_with_hooks(config, "glob", {}, lambda _: "done"),
        lambda config, request, response: fire_before_model_hook(config, request),
        lambda config, request, response: fire_after_model_hook(config, request, response),
        lambda config, request, response: fire_before_tool_selection_hook(config, request),
    ],
    ids=["before tool", "after tool", "wrapper", "before model", "after model", "tool selection"],
)
async def test_whichever_trigger_fires_first_initializes_the_system(lab, fire, llm_request, llm_response):
    config = lab.config({"BeforeTool": lab.hook()}, ReadCounting)
    system = config.get_hook_system()
    assert not system.get_status().initialized
    await fire(config, llm_request, llm_response)
    assert system.get_status().initialized
    assert config.reads == 1


@pytest.mark.requirement("HOOK-206")
def test_neither_configuration_nor_hook_system_reads_hooks_when_made(lab):
    config = lab.config({"BeforeTool": lab.hook()}, ReadCounting)
    system = config.get_hook_system()
    assert config.reads == 0
    assert not system.get_status().initialized
    assert lab.runs() == 0


@pytest.mark.requirement("HOOK-009")
async def test_the_status_tells_whether_it_is_initialized_and_how_many_hooks_there_are(lab):
    system = lab.config({"BeforeTool": [lab.hook("a"), lab.hook("b")], "AfterModel": lab.hook("c")}).get_hook_system()
    assert (system.get_status().initialized, system.get_status().total_hooks) == (False, 0)
    await system.initialize()
    assert (system.get_status().initialized, system.get_status().total_hooks) == (True, 3)


def test_all_threads_get_the_same_hook_system(lab):
    config = lab.config({})
    with ThreadPoolExecutor(16) as threads:
        systems = list(threads.map(lambda _: config.get_hook_system(), range(64)))
    assert len({id(system) for system in systems}) == 1


def test_a_configuration_that_is_switched_off_later_fires_nothing_more(lab):
    config = lab.config({})
    assert config.get_hook_system() is not None
    config.enable_hooks = False
    assert config.get_hook_system() is None


# Wiring and management.


@pytest.mark.requirement("DELTA-HSYS-001")
async def test_the_hook_system_hands_its_message_bus_to_the_event_handler(lab):
    bus = InProcessMessageBus()
    responses = []
    bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, responses.append)
    lab.config({"BeforeTool": lab.hook()}, message_bus=bus).get_hook_system()
    await bus.publish(HookExecutionRequest("BeforeTool", {"tool_name": "glob", "tool_input": {}}, "c1"))
    assert [response.correlation_id for response in responses] == ["c1"]
    assert lab.runs() == 1


@pytest.mark.requirement("DELTA-HSYS-001")
async def test_the_hook_system_hands_a_debug_logger_to_the_event_handler(lab, caplog, ready):
    caplog.set_level("DEBUG", "llxprt:core:hooks:handler")
    handler = await ready(lab.config({"BeforeTool": lab.hook()}))
    await handler.fire_before_tool_event("glob", {})
    (record,) = [record for record in caplog.records if hasattr(record, "hook_execution")]
    assert record.name == "llxprt:core:hooks:handler"
    assert record.hook_execution["success"] is True


@pytest.mark.requirement("DELTA-HSYS-002")
async def test_hooks_are_listed_with_their_name_event_source_and_state(lab):
    hooks = {"BeforeTool": [{"matcher": "write", "hooks": [{"type": "command", "command": "true", "name": "guard"}]}]}
    system = lab.config(
        hooks,
        extensions=[Extension(name="x", hooks=lab.hooks({"AfterTool": "false"}), is_active=True)],
        disabled_hooks=["guard"],
    ).get_hook_system()
    await system.initialize()
    listed = [(hook.name, hook.event_name, hook.source, hook.matcher, hook.enabled) for hook in system.get_all_hooks()]
    assert listed == [
        ("guard", "BeforeTool", "project", "write", False),
        ("false", "AfterTool", "extensions", None, True),
    ]


@pytest.mark.requirement("DELTA-HSYS-002")
async def test_a_hook_can_be_switched_off_and_on_between_events(lab):
    named = {"hooks": [{"type": "command", "command": lab.hook("named"), "name": "guard"}]}
    nameless = lab.hook("nameless")
    config = lab.config({"BeforeTool": [named, nameless]})
    system = config.get_hook_system()
    await system.initialize()

    async def ran() -> tuple[int, int]:
        await fire_before_tool_hook(config, "glob", {})
        return lab.runs("named"), lab.runs("nameless")

    assert await ran() == (1, 1)
    assert system.set_hook_enabled("guard", False)
    assert await ran() == (1, 2)
    assert system.set_hook_enabled(nameless, False)
    assert await ran() == (1, 2)
    assert system.set_hook_enabled("guard", True)
    assert await ran() == (2, 2)
    assert not system.set_hook_enabled("nobody", False)


# The configuration itself.


async def test_hooks_of_inactive_extensions_and_hooks_that_are_disabled_do_not_run(lab):
    config = lab.config(
        {"BeforeTool": [lab.hook("own"), {"hooks": [{"type": "command", "command": lab.hook("off"), "name": "off"}]}]},
        extensions=[
            Extension(name="on", hooks=lab.hooks({"BeforeTool": lab.hook("active")}), is_active=True),
            Extension(name="out", hooks=lab.hooks({"BeforeTool": lab.hook("inactive")}), is_active=False),
        ],
        disabled_hooks=["off"],
    )
    await fire_before_tool_hook(config, "glob", {})
    assert {name: lab.runs(name) for name in ("own", "off", "active", "inactive")} == {
        "own": 1,
        "off": 0,
        "active": 1,
        "inactive": 0,
    }


def test_a_configuration_without_a_session_id_makes_one_of_its_own():
    assert Config().session_id
    assert Config().session_id != Config().session_id


def test_a_relative_working_directory_is_told_to_hooks_in_full(lab, monkeypatch):
    (lab.folder / "project").mkdir()
    monkeypatch.chdir(lab.folder)
    assert Config(working_dir="project").working_dir == str(lab.folder / "project")
    assert Config().working_dir == str(lab.folder)


def test_hooks_that_are_no_mapping_are_refused_with_a_sentence():
    with pytest.raises(TypeError, match="event names"):
        Config(hooks=["BeforeTool"])


async def test_a_configuration_that_a_program_made_is_trusted(lab):
    await fire_before_tool_hook(lab.config({"BeforeTool": lab.hook()}), "glob", {})
    assert lab.runs() == 1


@pytest.mark.parametrize(("approved", "runs"), [(True, 1), (False, 0)])
async def test_a_loaded_configuration_runs_project_hooks_only_when_they_are_approved(lab, monkeypatch, approved, runs):
    settings = lab.folder / ".llxprt" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"enableHooks": True, "hooks": lab.hooks({"BeforeTool": lab.hook()})}))
    if approved:
        monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    config = Config.load(lab.folder)
    await fire_before_tool_hook(config, "glob", {})
    assert lab.runs() == runs
    assert config.settings is not None
    assert bool(config.settings.notices) is not approved
