"""From configuration to hook system: when it is made, when it is initialized, what it owns and what it offers."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    Extension,
    GenerateContentParameters,
    HookEventHandler,
    HookRegistry,
    HookRegistryNotInitializedError,
    HookSystem,
    HookSystemNotInitializedError,
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
from tests.support.engine_project import EngineProject, system_of
from tests.support.project import hooks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.genai.types import GenerateContentResponse

    from llxprt_hooks.settings.definitions import HookSet
    from tests.support.engine_project import EngineProject

PARTS = (HookRegistry, HookPlanner, HookRunner, HookAggregator, HookEventHandler)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every part of the engine that is made, by class name, in order."""
    names: list[str] = []
    for part in PARTS:

        def noted(self: object, *args: Any, _part: Any = part, _init: Any = part.__init__, **kwargs: Any) -> None:
            names.append(_part.__name__)
            _init(self, *args, **kwargs)

        monkeypatch.setattr(part, "__init__", noted)
    return names


@pytest.fixture
def initializations(monkeypatch: pytest.MonkeyPatch) -> list[HookRegistry]:
    """Every call of ``HookRegistry.initialize``."""
    calls: list[HookRegistry] = []
    initialize = HookRegistry.initialize

    def noted(self: HookRegistry) -> None:
        calls.append(self)
        initialize(self)

    monkeypatch.setattr(HookRegistry, "initialize", noted)
    return calls


class ReadCounting(Config):
    """Counts how often its hooks are read."""

    reads = 0

    @property
    def hook_sets(self) -> Sequence[HookSet]:
        self.reads += 1
        return super().hook_sets


@pytest.mark.requirement("HOOK-001")
def test_an_enabled_configuration_makes_its_hook_system_on_the_first_call_and_keeps_it(
    project: EngineProject, made: list[str]
) -> None:
    config = project.config({"BeforeTool": project.hook()})
    assert made == []
    system = system_of(config)
    assert isinstance(system, HookSystem)
    assert sorted(made) == sorted(part.__name__ for part in PARTS)
    assert config.get_hook_system() is system


@pytest.mark.requirement("HOOK-002", "HOOK-010")
def test_a_disabled_configuration_has_no_hook_system_and_makes_no_part_of_one(
    project: EngineProject, made: list[str]
) -> None:
    config = project.config({"BeforeTool": project.hook()}, enable_hooks=False)
    assert config.get_hook_system() is None
    assert made == []


@pytest.mark.requirement("HOOK-002")
def test_hooks_are_disabled_unless_switched_on(project: EngineProject) -> None:
    assert Config(hooks=hooks_of({"BeforeTool": project.hook()})).get_hook_system() is None


@pytest.mark.requirement("HOOK-003")
async def test_the_registry_is_initialized_once_however_many_events_fire(
    project: EngineProject,
    initializations: list[HookRegistry],
    llm_request: GenerateContentParameters,
    llm_response: GenerateContentResponse,
) -> None:
    config = project.config(
        {"BeforeTool": project.hook("a"), "BeforeModel": project.hook("b"), "AfterModel": project.hook("c")},
        ReadCounting,
    )
    for _ in range(2):
        await execute_tool_with_hooks(config, "glob", {}, lambda _: "done")
        await fire_before_model_hook(config, llm_request)
        await fire_after_model_hook(config, llm_request, llm_response)
        await system_of(config).initialize()
    assert len(initializations) == 1
    assert config.reads == 1


@pytest.mark.requirement("HOOK-003")
def test_the_registry_is_initialized_once_however_many_threads_ask_at_once(
    project: EngineProject, initializations: list[HookRegistry]
) -> None:
    everybody = threading.Barrier(8)

    class SlowlyRead(ReadCounting):
        @property
        def hook_sets(self) -> Sequence[HookSet]:
            time.sleep(0.1)  # long enough for the other threads to come and ask
            return super().hook_sets

    config = project.config({"BeforeTool": project.hook()}, SlowlyRead)
    system = system_of(config)

    def ask(_: Any) -> Any:
        everybody.wait(10)
        return system.ready_event_handler()

    with ThreadPoolExecutor(8) as threads:
        handlers = list(threads.map(ask, range(8)))
    assert len({id(handler) for handler in handlers}) == 1
    assert len(initializations) == 1
    assert config.reads == 1


@pytest.mark.requirement("HOOK-004")
async def test_initializing_again_does_not_read_the_configuration_again(project: EngineProject) -> None:
    config = project.config({"BeforeTool": project.hook()}, ReadCounting)
    system = system_of(config)
    await system.initialize()
    entries = system.get_all_hooks()
    await system.initialize()
    await system.initialize()
    assert config.reads == 1
    assert all(before is after for before, after in zip(entries, system.get_all_hooks(), strict=True))


@pytest.mark.requirement("HOOK-005", "HOOK-148")
@pytest.mark.parametrize("accessor", ["get_event_handler", "get_registry"])
async def test_accessors_refuse_before_initialization_and_answer_after_it(
    project: EngineProject, accessor: str
) -> None:
    system = project.system({})
    with pytest.raises(HookSystemNotInitializedError):
        getattr(system, accessor)()
    await system.initialize()
    assert getattr(system, accessor)() is not None


@pytest.mark.requirement("HOOK-005")
@pytest.mark.parametrize(
    "manage", [lambda system: system.get_all_hooks(), lambda system: system.set_hook_enabled("x", False)]
)
def test_management_refuses_before_initialization(project: EngineProject, manage: Callable[..., Any]) -> None:
    with pytest.raises(HookSystemNotInitializedError):
        manage(project.system({}))


def test_a_registry_by_itself_refuses_before_initialization(project: EngineProject) -> None:
    with pytest.raises(HookRegistryNotInitializedError):
        HookRegistry(project.config({})).get_all_hooks()


@pytest.mark.requirement("HOOK-006")
async def test_hook_system_exposes_only_registry_handler_and_status(
    project: EngineProject,
) -> None:
    system = project.system({})
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
async def test_all_triggers_share_one_instance_of_every_part(
    project: EngineProject,
    made: list[str],
    llm_request: GenerateContentParameters,
    llm_response: GenerateContentResponse,
) -> None:
    config = project.config(
        {
            event: project.hook(event)
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
    assert project.runs("BeforeTool") == 4
    assert project.runs("BeforeToolSelection") == 2
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
async def test_whichever_trigger_fires_first_initializes_the_system(
    project: EngineProject,
    fire: Callable[..., Any],
    llm_request: GenerateContentParameters,
    llm_response: GenerateContentResponse,
) -> None:
    config = project.config({"BeforeTool": project.hook()}, ReadCounting)
    system = system_of(config)
    assert not system.get_status().initialized
    await fire(config, llm_request, llm_response)
    assert system.get_status().initialized
    assert config.reads == 1


@pytest.mark.requirement("HOOK-009")
async def test_the_status_shows_whether_it_is_initialized_and_the_number_of_hooks(project: EngineProject) -> None:
    system = project.system({"BeforeTool": [project.hook("a"), project.hook("b")], "AfterModel": project.hook("c")})
    assert (system.get_status().initialized, system.get_status().total_hooks) == (False, 0)
    await system.initialize()
    assert (system.get_status().initialized, system.get_status().total_hooks) == (True, 3)


def test_all_threads_get_the_same_hook_system(project: EngineProject) -> None:
    config = project.config({})
    with ThreadPoolExecutor(16) as threads:
        systems = list(threads.map(lambda _: config.get_hook_system(), range(64)))
    assert len({id(system) for system in systems}) == 1


def test_a_configuration_that_is_switched_off_later_fires_nothing_more(project: EngineProject) -> None:
    config = project.config({})
    assert config.get_hook_system() is not None
    config.enable_hooks = False
    assert config.get_hook_system() is None


# Wiring and management.


@pytest.mark.requirement("DELTA-HSYS-002")
async def test_hooks_are_listed_with_their_name_event_source_and_state(project: EngineProject) -> None:
    hooks = {"BeforeTool": [{"matcher": "write", "hooks": [{"type": "command", "command": "true", "name": "guard"}]}]}
    system = project.system(
        hooks,
        extensions=[Extension(name="x", hooks=hooks_of({"AfterTool": "false"}), is_active=True)],
        disabled_hooks=["guard"],
    )
    await system.initialize()
    listed = [(hook.name, hook.event_name, hook.source, hook.matcher, hook.enabled) for hook in system.get_all_hooks()]
    assert listed == [
        ("guard", "BeforeTool", "project", "write", False),
        ("false", "AfterTool", "extensions", None, True),
    ]


@pytest.mark.requirement("DELTA-HSYS-002")
async def test_a_hook_can_be_switched_off_and_on_between_events(project: EngineProject) -> None:
    named = {"hooks": [{"type": "command", "command": project.hook("named"), "name": "guard"}]}
    nameless = project.hook("nameless")
    config = project.config({"BeforeTool": [named, nameless]})
    system = system_of(config)
    await system.initialize()

    async def ran() -> tuple[int, int]:
        await fire_before_tool_hook(config, "glob", {})
        return project.runs("named"), project.runs("nameless")

    assert await ran() == (1, 1)
    assert system.set_hook_enabled("guard", False)
    assert await ran() == (1, 2)
    assert system.set_hook_enabled(nameless, False)
    assert await ran() == (1, 2)
    assert system.set_hook_enabled("guard", True)
    assert await ran() == (2, 2)
    assert not system.set_hook_enabled("nobody", False)


# The configuration itself.


def test_a_configuration_without_a_session_id_makes_one_of_its_own() -> None:
    assert Config().session_id
    assert Config().session_id != Config().session_id


def test_a_relative_working_directory_is_sent_to_hooks_in_full(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.root / "project").mkdir()
    monkeypatch.chdir(project.root)
    assert Config(working_dir="project").working_dir == str(project.root / "project")
    assert Config().working_dir == str(project.root)


def test_hooks_that_are_not_a_mapping_are_refused_with_a_sentence() -> None:
    with pytest.raises(TypeError, match="event names"):
        Config(hooks=["BeforeTool"])  # type: ignore[arg-type]  # the mistake
