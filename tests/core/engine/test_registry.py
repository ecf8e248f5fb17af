"""The registry: all usable hooks of the configuration, by priority, each of which can be switched."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from llxprt_hooks import Config, Extension, HookEventName, HookRegistryNotInitializedError
from llxprt_hooks.core.engine.registry import HookRegistry, HookRegistryEntry
from llxprt_hooks.settings.definitions import ConfigSource, HookSet
from tests.support.hooks import Sets, planned, registry_of
from tests.support.replies import group

BEFORE_TOOL = HookEventName.BEFORE_TOOL


def commands(entries: list[HookRegistryEntry]) -> list[str]:
    return [entry.config.command for entry in entries]


@pytest.mark.requirement("HOOK-085")
def test_settings_hooks_are_the_projects_and_extension_hooks_the_extensions() -> None:
    registry = registry_of(
        {"BeforeTool": [group("from settings")], "AfterModel": [group("from settings too")]},
        extensions=[
            Extension(name="x", hooks={"BeforeTool": [group("from x")]}, is_active=True),
            Extension(name="y", hooks={"BeforeModel": [group("from y")]}, is_active=True),
        ],
    )

    assert {entry.config.command: entry.source for entry in registry.get_all_hooks()} == {
        "from settings": ConfigSource.PROJECT,
        "from settings too": ConfigSource.PROJECT,
        "from x": ConfigSource.EXTENSIONS,
        "from y": ConfigSource.EXTENSIONS,
    }


@pytest.mark.requirement("HOOK-085")
def test_an_extension_that_is_not_active_contributes_nothing() -> None:
    hooks = {"BeforeTool": [group("from x")]}

    registry = registry_of({}, extensions=[Extension(name="x", hooks=hooks, is_active=False)])

    assert registry.get_all_hooks() == []


@pytest.mark.requirement("HOOK-086", "HOOK-187")
def test_hooks_come_by_priority_of_their_source_and_in_their_own_order_within_it() -> None:
    sources = [ConfigSource.EXTENSIONS, ConfigSource.SYSTEM, ConfigSource.USER, ConfigSource.PROJECT]
    sets = [HookSet({"BeforeTool": [group(f"{source} 1", f"{source} 2")]}, source) for source in sources]
    registry = HookRegistry(Sets([*sets, HookSet({"BeforeTool": [group("project 3")]})]))
    registry.initialize()

    in_order = ["project 1", "project 2", "project 3", "user 1", "user 2", "system 1", "system 2"]
    in_order += ["extensions 1", "extensions 2"]
    assert commands(registry.get_hooks_for_event(BEFORE_TOOL)) == in_order
    assert commands(registry.get_all_hooks()) == in_order


@pytest.mark.requirement("HOOK-187")
def test_the_priorities_are_one_to_four_and_one_is_the_highest() -> None:
    assert [(source.value, source.priority) for source in ConfigSource] == [
        ("project", 1),
        ("user", 2),
        ("system", 3),
        ("extensions", 4),
    ]


@pytest.mark.requirement("HOOK-086")
def test_project_hooks_precede_extension_hooks_whatever_the_events_say() -> None:
    extension = Extension(name="x", hooks={"BeforeTool": [group("extension")]}, is_active=True)
    registry = registry_of({"AfterTool": [group("other")], "BeforeTool": [group("project")]}, extensions=[extension])

    assert planned(registry, BEFORE_TOOL, "any") == ["project", "extension"]


@pytest.mark.requirement("HOOK-191")
@pytest.mark.parametrize(
    ("entry", "tells"),
    [
        ({"type": "prompt", "command": "check"}, "prompt"),
        ({"command": "check"}, "type"),
        ({"type": "command"}, "command"),
        ({"type": "command", "command": None}, "command"),
    ],
)
def test_an_unusable_hook_is_discarded_with_a_warning(
    entry: dict[str, Any], tells: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry = registry_of({"BeforeTool": [{"hooks": [entry]}, group("good")]})

    assert commands(registry.get_all_hooks()) == ["good"]
    [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.name.startswith("llxprt:core:hooks:")
    assert tells in warning.getMessage()
    assert "hooks.BeforeTool[0].hooks[0]" in warning.getMessage()


@pytest.mark.requirement("HOOK-191")
def test_usable_hooks_of_both_types_are_registered_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    plugin = {"type": "plugin", "name": "p"}

    registry = registry_of({"BeforeTool": [{"hooks": [plugin, {"type": "command", "command": "check"}]}]})

    assert [entry.config.type for entry in registry.get_all_hooks()] == ["plugin", "command"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_registry_that_is_not_initialized_says_so() -> None:
    registry = HookRegistry(Config(enable_hooks=True, hooks={"BeforeTool": [group("check")]}))

    for ask in (registry.get_all_hooks, lambda: registry.get_hooks_for_event(BEFORE_TOOL)):
        with pytest.raises(HookRegistryNotInitializedError):
            ask()


def test_the_configuration_is_read_once() -> None:
    class Counting(Sets):
        reads = 0

        def __getattribute__(self, name: str) -> Any:
            if name == "hook_sets":
                Counting.reads += 1
            return super().__getattribute__(name)

    registry = HookRegistry(Counting([HookSet({"BeforeTool": [group("check")]})]))
    before = Counting.reads
    registry.initialize()
    registry.initialize()

    assert Counting.reads - before == 1
    assert commands(registry.get_all_hooks()) == ["check"]


def named(name: str, command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "name": name}]}


@pytest.mark.requirement("DELTA-HSYS-002")
class TestSwitching:
    """Hooks are listed and switched by name, or by command where they have no name."""

    hooks = {  # noqa: RUF012
        "BeforeTool": [named("guard", "guard.sh"), group("plain.sh")],
        "AfterTool": [named("guard", "audit.sh")],
        "BeforeModel": [named("other", "plain.sh")],
    }

    def test_all_hooks_are_listed_enabled_or_not(self) -> None:
        registry = registry_of(self.hooks, disabled_hooks=["guard"])

        assert [(entry.name, entry.enabled) for entry in registry.get_all_hooks()] == [
            ("guard", False),
            ("plain.sh", True),
            ("guard", False),
            ("other", True),
        ]

    def test_disabling_a_name_switches_all_its_hooks_and_no_others(self) -> None:
        registry = registry_of(self.hooks)

        assert registry.set_hook_enabled("guard", False) is True

        assert planned(registry, BEFORE_TOOL, "any") == ["plain.sh"]
        assert planned(registry, HookEventName.AFTER_TOOL, "any") == []
        assert planned(registry, HookEventName.BEFORE_MODEL) == ["plain.sh"]

    def test_a_hook_without_a_name_is_switched_by_its_command(self) -> None:
        registry = registry_of(self.hooks)

        assert registry.set_hook_enabled("plain.sh", False) is True

        assert planned(registry, BEFORE_TOOL, "any") == ["guard.sh"]
        assert planned(registry, HookEventName.BEFORE_MODEL) == ["plain.sh"]  # that one is called "other"

    def test_a_hook_with_a_name_is_not_switched_by_its_command(self) -> None:
        registry = registry_of(self.hooks)

        assert registry.set_hook_enabled("guard.sh", False) is False
        assert planned(registry, BEFORE_TOOL, "any") == ["guard.sh", "plain.sh"]

    def test_a_disabled_hook_can_be_enabled_again(self) -> None:
        registry = registry_of(self.hooks, disabled_hooks=["guard"])

        registry.set_hook_enabled("guard", True)

        assert planned(registry, BEFORE_TOOL, "any") == ["guard.sh", "plain.sh"]

    def test_switching_a_hook_that_does_not_exist_is_reported(self, caplog: pytest.LogCaptureFixture) -> None:
        registry = registry_of(self.hooks)

        assert registry.set_hook_enabled("gaurd", False) is False
        assert "gaurd" in caplog.text
        assert all(entry.enabled for entry in registry.get_all_hooks())


@pytest.mark.parametrize(
    ("disabled", "run"),
    [
        ([], ["guard.sh", "plain.sh"]),
        (["guard"], ["plain.sh"]),
        (["plain.sh"], ["guard.sh"]),
        (["guard", "plain.sh"], []),
        (["guard.sh"], ["guard.sh", "plain.sh"]),
        (["Guard", "plain", ""], ["guard.sh", "plain.sh"]),
    ],
)
def test_the_configuration_disables_hooks_by_name_or_by_command_where_they_have_no_name(
    disabled: list[str], run: list[str]
) -> None:
    """D-20."""
    registry = registry_of({"BeforeTool": [named("guard", "guard.sh"), group("plain.sh")]}, disabled_hooks=disabled)

    assert planned(registry, BEFORE_TOOL, "any") == run


def test_a_disabled_hook_does_not_hide_another_one_with_its_command() -> None:
    hooks = {"BeforeTool": [named("off", "check.sh"), named("on", "check.sh")]}

    assert planned(registry_of(hooks, disabled_hooks=["off"]), BEFORE_TOOL, "any") == ["check.sh"]


def test_a_changed_registry_has_the_same_hooks_and_leaves_the_first_alone() -> None:
    registry = registry_of({"BeforeTool": [group("one", "two")], "AfterTool": [group("three")]})

    changed = registry.changed(lambda entry: msgspec.structs.replace(entry, enabled=entry.name == "two"))

    assert [entry.name for entry in changed.get_all_hooks()] == ["one", "two", "three"]
    assert [entry.name for entry in changed.get_hooks_for_event(BEFORE_TOOL)] == ["two"]
    assert changed.get_hooks_for_event(HookEventName.AFTER_TOOL) == []
    assert [entry.name for entry in registry.get_hooks_for_event(BEFORE_TOOL)] == ["one", "two"]
