"""The planner: which hooks run, in which order, in parallel or as a chain; plans are cached."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import Config, Extension, HookEventName
from llxprt_hooks.core.engine.planner import HookPlanner, Skip
from llxprt_hooks.core.engine.registry import HookRegistry, HookRegistryEntry
from llxprt_hooks.settings.definitions import ConfigSource, HookSet
from tests.support.hooks import SUBJECTS, Sets, planned, registry_of
from tests.support.replies import group

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.plan import ExecutionPlan

BEFORE_TOOL = HookEventName.BEFORE_TOOL


def plan_of(registry: HookRegistry, tool_name: str = "write_file") -> ExecutionPlan:
    plan = HookPlanner(registry).create_execution_plan(BEFORE_TOOL, tool_name)
    assert plan is not None
    return plan


class TestSelecting:
    hooks = {  # noqa: RUF012
        "BeforeTool": [
            group("writes", matcher="write_.*"),
            group("reads", matcher="^read_"),
            group("all"),
            group("both", matcher="(read|write)_file"),
        ],
        "AfterTool": [group("after writes", matcher="write"), group("after reads", matcher="read")],
    }

    @pytest.mark.requirement("HOOK-021", "HOOK-022")
    @pytest.mark.parametrize(
        ("tool_name", "expected"),
        [
            ("write_file", ["writes", "all", "both"]),
            ("read_file", ["reads", "all", "both"]),
            ("read_many", ["reads", "all"]),
            ("glob", ["all"]),
        ],
    )
    def test_before_tool_runs_the_hooks_whose_matcher_fits_and_those_without_one(
        self, tool_name: str, expected: list[str]
    ) -> None:
        assert planned(registry_of(self.hooks), BEFORE_TOOL, tool_name) == expected

    @pytest.mark.parametrize(
        ("matcher", "tool_name", "is_planned"),
        [
            ("^refund$", "mcp__shop__refund", True),
            ("^mcp__shop__refund$", "mcp__shop__refund", True),
            ("^mcp__shop__", "mcp__shop__refund", True),
            ("^refund$", "mcp__my__shop__refund", True),
            ("^refund__all$", "mcp__shop__refund__all", True),
            ("^shop$", "mcp__shop__refund", False),
            ("^refund$", "mcp__refund", False),
            ("^refund$", "shop__refund", False),
            ("^refund$", "mcp__shop__list", False),
            pytest.param("^refund$", f"mcp{'__shop' * 9999}__refund", False, id="the name of no server"),
        ],
    )
    def test_a_tool_of_an_mcp_server_is_matched_under_its_full_name_and_its_own(
        self, matcher: str, tool_name: str, is_planned: bool
    ) -> None:
        registry = registry_of({"BeforeTool": [group("guard", matcher=matcher)]})
        assert planned(registry, BEFORE_TOOL, tool_name) == (["guard"] if is_planned else [])

    @pytest.mark.requirement("HOOK-032")
    @pytest.mark.parametrize(
        ("tool_name", "expected"), [("write_file", ["after writes"]), ("read_file", ["after reads"]), ("glob", [])]
    )
    def test_after_tool_runs_the_hooks_whose_matcher_fits(self, tool_name: str, expected: list[str]) -> None:
        assert planned(registry_of(self.hooks), HookEventName.AFTER_TOOL, tool_name) == expected

    def test_a_plan_names_its_event_and_has_the_hooks_configurations(self) -> None:
        plan = plan_of(registry_of({"BeforeTool": [group("check")]}))

        assert plan.event_name is BEFORE_TOOL
        assert [(config.command, config.timeout) for config in plan.hook_configs] == [("check", 60_000)]


class TestDuplicates:
    @pytest.mark.requirement("HOOK-090", "HOOK-091")
    def test_a_command_runs_once_and_the_first_of_highest_priority_is_kept(self) -> None:
        def timed(timeout: int) -> dict[str, list[dict[str, object]]]:
            return {"BeforeTool": [{"hooks": [{"type": "command", "command": "check", "timeout": timeout}]}]}

        sets = [
            HookSet(timed(4), ConfigSource.EXTENSIONS),
            HookSet(timed(2), ConfigSource.USER),
            HookSet(timed(1), ConfigSource.PROJECT),
            HookSet(timed(9), ConfigSource.PROJECT),
        ]
        registry = HookRegistry(Sets(sets))
        registry.initialize()

        assert [config.timeout for config in plan_of(registry).hook_configs] == [1]

    @pytest.mark.requirement("HOOK-091")
    @pytest.mark.parametrize(
        "second",
        [
            group("check", matcher="write_file"),
            group("check", sequential=True),
            {"hooks": [{"type": "command", "command": "check", "timeout": 5}]},
            {"hooks": [{"type": "command", "command": "check", "name": "another", "description": "same"}]},
        ],
        ids=["matcher", "sequential", "timeout", "name"],
    )
    def test_nothing_but_the_command_makes_hooks_different(self, second: dict[str, object]) -> None:
        registry = registry_of({"BeforeTool": [group("check"), second]})

        assert planned(registry, BEFORE_TOOL, "write_file") == ["check"]

    @pytest.mark.requirement("HOOK-091")
    @pytest.mark.parametrize("other", ["check ", " check", "Check", "check 1", "check\n"])
    def test_commands_that_differ_at_all_both_run(self, other: str) -> None:
        assert planned(registry_of({"BeforeTool": [group("check", other)]}), BEFORE_TOOL, "x") == ["check", other]

    @pytest.mark.requirement("HOOK-090", "HOOK-091")
    def test_duplicates_are_dropped_after_matching(self) -> None:
        hooks = {"BeforeTool": [group("check", matcher="read"), group("other"), group("check", matcher="write")]}

        assert planned(registry_of(hooks), BEFORE_TOOL, "write_file") == ["other", "check"]
        assert planned(registry_of(hooks), BEFORE_TOOL, "read_write") == ["check", "other"]

    @pytest.mark.requirement("HOOK-091")
    def test_the_same_command_runs_for_every_event_it_is_configured_for(self) -> None:
        registry = registry_of({event_name.value: [group("check")] for event_name in HookEventName})

        for event_name in HookEventName:
            assert planned(registry, event_name, SUBJECTS.get(event_name)) == ["check"]

    @pytest.mark.requirement("HOOK-090")
    def test_an_extension_cannot_replace_a_projects_hook_with_its_own_of_the_same_command(self) -> None:
        extension = Extension(name="x", hooks={"BeforeTool": [group("check", "more")]}, is_active=True)

        registry = registry_of({"BeforeTool": [group("first", "check")]}, extensions=[extension])

        assert planned(registry, BEFORE_TOOL, "any") == ["first", "check", "more"]


class TestMode:
    @pytest.mark.requirement("HOOK-108")
    @pytest.mark.parametrize("fields", [{}, {"sequential": False}])
    def test_hooks_run_in_parallel_by_default(self, fields: dict[str, bool]) -> None:
        assert plan_of(registry_of({"BeforeTool": [group("a", "b", **fields)]})).sequential is False

    @pytest.mark.requirement("HOOK-109")
    @pytest.mark.parametrize("modes", [(True, False, False), (False, False, True), (True, True, True)])
    def test_one_sequential_group_makes_the_whole_plan_sequential(self, modes: tuple[bool, ...]) -> None:
        groups = [group(f"hook {index}", sequential=mode) for index, mode in enumerate(modes)]

        plan = plan_of(registry_of({"BeforeTool": groups}))

        assert plan.sequential is True
        assert len(plan.hook_configs) == len(modes)

    @pytest.mark.requirement("HOOK-109")
    def test_a_group_whose_hooks_are_not_in_the_plan_is_ignored(self) -> None:
        unmatched = group("b", sequential=True, matcher="read")
        duplicate = group("a", sequential=True)

        assert plan_of(registry_of({"BeforeTool": [group("a"), unmatched, duplicate]})).sequential is False


class TestExplanation:
    def test_a_plan_is_explained_with_every_hook_of_the_event_and_what_kept_it_from_running(self) -> None:
        hooks = {
            "BeforeTool": [
                group("first", matcher="write"),
                group("off"),
                group("elsewhere", matcher="^read"),
                group("first"),
                group("last"),
            ],
            "AfterTool": [group("another event")],
        }
        planner = HookPlanner(registry_of(hooks, disabled_hooks=["off"]))

        explained = planner.explain(BEFORE_TOOL, "write_file")

        assert [(hook.definition.config.command, hook.skip) for hook in explained] == [
            ("first", None),
            ("off", Skip.DISABLED),
            ("elsewhere", Skip.NOT_MATCHED),
            ("first", Skip.DUPLICATE),
            ("last", None),
        ]
        plan = planner.create_execution_plan(BEFORE_TOOL, "write_file")
        assert plan is not None
        assert [hook.definition.config for hook in explained if hook.runs] == list(plan.hook_configs)

    def test_a_guard_with_copies_is_explained_with_the_timeout_that_applies(self) -> None:
        copies = [
            {"type": "command", "command": "guard", "timeout": 1000},
            {"type": "command", "command": "guard", "timeout": 9000, "failClosed": True},
        ]
        planner = HookPlanner(registry_of({"BeforeTool": [{"hooks": copies}]}))

        first, _ = planner.explain(BEFORE_TOOL, "write_file")

        plan = planner.create_execution_plan(BEFORE_TOOL, "write_file")
        assert plan is not None
        assert first.definition.config == plan.hook_configs[0]
        assert (first.definition.config.timeout, first.definition.config.fail_closed) == (9000, True)

    @pytest.mark.parametrize("matcher", ["", "*", " ", " *\t"])
    def test_a_blank_matcher_is_explained_as_one_for_all(self, matcher: str) -> None:
        planner = HookPlanner(registry_of({BEFORE_TOOL: [group("check", matcher=matcher)]}))

        [hook] = planner.explain(BEFORE_TOOL, "write_file")

        assert (hook.runs, hook.why) == (True, "it has no matcher that narrows it")

    def test_an_event_without_matchers_is_explained_as_such(self) -> None:
        planner = HookPlanner(registry_of({"BeforeModel": [group("check", matcher="gemini")]}))

        [hook] = planner.explain(HookEventName.BEFORE_MODEL)

        assert (hook.runs, hook.why) == (True, "BeforeModel ignores matchers")

    def test_disabled_hooks_are_skipped_for_that_reason(self) -> None:
        planner = HookPlanner(registry_of({"BeforeTool": [group("a"), group("b", matcher="^read")]}))

        explained = planner.explain(BEFORE_TOOL, "write_file", hooks_enabled=False)

        assert [hook.skip for hook in explained] == [Skip.HOOKS_OFF, Skip.HOOKS_OFF]


class SpiedRegistry(HookRegistry):
    """A real registry that counts how often it is asked for an event's hooks."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.asked: Counter[HookEventName] = Counter()
        self.initialize()

    def get_hooks_for_event(self, event_name: HookEventName) -> list[HookRegistryEntry]:
        self.asked[event_name] += 1
        return super().get_hooks_for_event(event_name)


class TestMemory:
    @pytest.fixture
    def registry(self) -> SpiedRegistry:
        hooks = {"BeforeTool": [group("writes", matcher="write"), group("more", matcher="write")], "BeforeModel": []}
        return SpiedRegistry(Config(enable_hooks=True, hooks=hooks))

    def test_a_plan_is_made_once_for_each_tool_name(self, registry: SpiedRegistry) -> None:
        planner = HookPlanner(registry)

        first = planner.create_execution_plan(BEFORE_TOOL, "write_file")
        again = [planner.create_execution_plan(BEFORE_TOOL, "write_file") for _ in range(3)]

        assert registry.asked[BEFORE_TOOL] == 1
        assert first is not None
        assert all(plan == first for plan in again)

    def test_empty_plans_are_cached(self, registry: SpiedRegistry) -> None:
        planner = HookPlanner(registry)

        for _ in range(3):
            assert planner.create_execution_plan(BEFORE_TOOL, "glob") is None
            assert planner.create_execution_plan(HookEventName.BEFORE_MODEL) is None

        assert registry.asked == {BEFORE_TOOL: 1, HookEventName.BEFORE_MODEL: 1}

    @pytest.mark.requirement("DELTA-HSYS-002")
    def test_switching_a_hook_makes_new_plans(self, registry: SpiedRegistry) -> None:
        planner = HookPlanner(registry)

        def commands() -> list[str]:
            plan = planner.create_execution_plan(BEFORE_TOOL, "write_file")
            return [] if plan is None else [config.command for config in plan.hook_configs]

        assert commands() == ["writes", "more"]
        registry.set_hook_enabled("writes", False)
        assert commands() == ["more"]
        registry.set_hook_enabled("more", False)
        assert commands() == []
        registry.set_hook_enabled("writes", True)
        assert commands() == ["writes"]

    @pytest.mark.slow
    def test_endless_tool_names_do_not_take_endless_memory(self, registry: SpiedRegistry) -> None:
        planner = HookPlanner(registry)
        names, size = 20_000, 2_000  # 40 MB, were they all kept

        tracemalloc.start()
        try:
            for number in range(names):
                planner.create_execution_plan(BEFORE_TOOL, f"{number:0{size}}")
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert kept < names * size / 3
        assert planner.create_execution_plan(BEFORE_TOOL, "write_file") is not None
