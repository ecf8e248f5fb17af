"""D-36: hooks of the administrator that nobody else can switch off, change or replace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.commands.enable import SwitchError, disable_hook, enable_hook
from llxprt_hooks.commands.fire import attempt
from llxprt_hooks.commands.list import Inventory, take_inventory
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings import levels
from llxprt_hooks.settings.definitions import HookScope
from llxprt_hooks.settings.load import load_settings

if TYPE_CHECKING:
    from tests.settings.conftest import Write

pytestmark = [
    pytest.mark.usefixtures("trusting"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can write managed settings"),
]

STRANGER = 54321
GUARD = {"type": "command", "name": "guard", "command": "echo managed >&2; exit 2", "timeout": 5000}


def hooks(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": [{"hooks": list(listed)}]}}


def managed(**config: Any) -> dict[str, Any]:
    return {"hooksConfig": {"managed": True, **config}, **hooks(GUARD)}


def command(name: str) -> dict[str, Any]:
    return {"type": "command", "command": name}


@pytest.fixture
def standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The administrator's file, in a place of the test's own."""
    file = tmp_path / "standard" / "settings.json"
    monkeypatch.setattr(levels, "SYSTEM_SETTINGS", file)
    return file


def commands(project: Path) -> list[str]:
    """The commands that can run, in order."""
    config = Config.load(project)
    registry = HookRegistry(config)
    registry.initialize()
    return [entry.config.command for entry in registry.get_all_hooks() if entry.enabled and config.enable_hooks]


def states(inventory: Inventory) -> dict[str, tuple[str, str]]:
    return {item.definition.config.command: (item.source, inventory.state(item)) for item in inventory.items}


def test_they_run_first(
    project: Path, project_file: Path, user_file: Path, system_file: Path, standard: Path, write: Write
) -> None:
    write(project_file, {"enableHooks": True, **hooks(command("p"))})
    write(user_file, hooks(command("u")))
    write(system_file, hooks(command("s")))
    write(standard, managed())

    assert commands(project) == [GUARD["command"], "p", "u", "s"]


OFF = {
    "the switch": {"enableHooks": False},
    "an alias": {"tools": {"enableHooks": False}, "hooksConfig": {"enabled": False}},
    "another alias": {"hooks": {"enabled": False}},
    "their name": {"hooksConfig": {"disabled": ["guard"]}, "enableHooks": True},
    "an alias of that": {"hooks": {"disabled": ["guard", GUARD["command"]]}, "enableHooks": True},
    "their environment": {"hooksConfig": {"environment": {"allow": []}}, "enableHooks": True},
    "nothing": {},
}


@pytest.mark.parametrize("content", OFF.values(), ids=OFF)
@pytest.mark.parametrize("level", ["project", "user", "system"])
async def test_no_other_level_switches_them_off(
    project: Path,
    project_file: Path,
    user_file: Path,
    system_file: Path,
    standard: Path,
    write: Write,
    content: dict[str, Any],
    level: str,
) -> None:
    write({"project": project_file, "user": user_file, "system": system_file}[level], content)
    write(standard, managed())

    output = await fire_before_tool_hook(Config.load(project), "write_file", {})

    assert output is not None
    assert output.is_blocking_decision()
    assert output.reason == "managed"


def test_only_their_own_file_restricts_their_environment(
    project: Path, user_file: Path, standard: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s")
    write(user_file, {"hooksConfig": {"environment": {"allow": []}}})
    write(standard, managed(environment={"deny": ["SECRET"]}))

    config = Config.load(project)

    inherited = config.inherited_environment(HookScope.MANAGED)
    assert inherited["PATH"] == os.environ["PATH"]
    assert "SECRET" not in inherited
    assert config.inherited_environment(HookScope.USER) == {"LLXPRT_PROJECT_TRUSTED": "1"}


def test_while_others_are_off_they_are_the_only_ones(
    project: Path, user_file: Path, home: Path, standard: Path, write: Write
) -> None:
    write(user_file, {"enableHooks": False, **hooks(command("u"))})
    write(home / ".llxprt" / "extensions" / "e" / "llxprt-extension.json", {"name": "e"})
    write(home / ".llxprt" / "extensions" / "e" / "hooks" / "hooks.json", hooks(command("e")))
    write(standard, managed())

    assert commands(project) == [GUARD["command"]]
    assert states(take_inventory(str(project))) == {
        GUARD["command"]: ("managed", "enabled"),
        "u": ("user", "hooks are off"),
        "e": ("extension e", "hooks are off"),
    }


def test_a_duplicate_does_not_take_their_place(project: Path, project_file: Path, standard: Path, write: Write) -> None:
    duplicate = {**GUARD, "timeout": 90_000, "name": "mine", "failClosed": True}
    write(project_file, {"enableHooks": True, **hooks(duplicate)})
    write(standard, managed())

    system = Config.load(project).get_hook_system()
    assert system is not None
    plan = system.ready_event_handler()._planner.create_execution_plan(HookEventName.BEFORE_TOOL, "write_file")

    assert plan is not None
    [planned] = plan.hook_configs
    assert (planned.name, planned.timeout, planned.fail_closed) == ("guard", 5000, False)


async def test_only_they_run_if_the_administrator_says_so(
    project: Path, project_file: Path, user_file: Path, home: Path, standard: Path, write: Write
) -> None:
    write(project_file, {"enableHooks": True, **hooks(command("p"))})
    write(user_file, hooks(command("u")))
    write(home / ".llxprt" / "extensions" / "e" / "llxprt-extension.json", {"name": "e"})
    write(home / ".llxprt" / "extensions" / "e" / "hooks" / "hooks.json", hooks(command("e")))
    write(standard, managed(managedOnly=True))

    assert commands(project) == [GUARD["command"]]
    inventory = take_inventory(str(project))
    assert {state for _, state in states(inventory).values()} == {"enabled", "only managed hooks run"}
    assert [item.managed for item in inventory.items if inventory.runs(item)] == [True]
    plan = (
        await attempt(str(project), HookEventName.BEFORE_TOOL, {"tool_name": "x", "tool_input": {}}, run=False)
    ).plan
    assert [(hook.definition.config.command, hook.why) for hook in plan if not hook.runs] == [
        (name, "only managed hooks run") for name in ("p", "u", "e")
    ]


def test_without_any_managed_hook_nothing_runs_then(
    project: Path, user_file: Path, standard: Path, write: Write
) -> None:
    write(user_file, {"enableHooks": True, **hooks(command("u"))})
    write(standard, {"hooksConfig": {"managed": True, "managedOnly": True}})

    assert commands(project) == []


def test_their_own_file_may_switch_them_off(project: Path, user_file: Path, standard: Path, write: Write) -> None:
    write(standard, {**managed(disabled=["guard"])})
    assert commands(project) == []

    write(standard, {**managed(), "enableHooks": False})
    assert commands(project) == []


def test_the_system_file_that_the_variable_names_may_be_managed_too(
    project: Path, user_file: Path, system_file: Path, standard: Path, write: Write
) -> None:
    write(user_file, {"enableHooks": False})
    write(system_file, managed())

    assert commands(project) == [GUARD["command"]]


def test_the_variable_replaces_an_unmanaged_standard_file(
    project: Path, system_file: Path, standard: Path, write: Write
) -> None:
    write(standard, {"enableHooks": True, **hooks(command("standard"))})
    write(system_file, {"enableHooks": True, **hooks(command("named"))})

    assert commands(project) == ["named"]


def test_a_standard_file_that_is_broken_is_reported(project: Path, standard: Path, write: Write) -> None:
    write(standard, "{")

    [problem] = load_settings(project).problems

    assert problem.file == standard


@pytest.mark.parametrize("part", ["settings.json", "."])
def test_only_root_can_say_so(
    project: Path,
    system_file: Path,
    user_file: Path,
    standard: Path,
    write: Write,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(user_file, {"enableHooks": True, "hooksConfig": {"disabled": ["guard"]}})
    write(standard, managed(managedOnly=True))
    monkeypatch.delenv("LLXPRT_SYSTEM_SETTINGS_PATH")
    os.chown(standard.parent / part, STRANGER, -1)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    loaded = load_settings(project)

    assert commands(project) == []
    assert '"managed" is ignored: ' in loaded.problems[0].message
    assert "belongs to the user with the id" in loaded.problems[0].message


@pytest.mark.parametrize("level", ["project", "user"])
def test_no_other_level_can_say_so(
    project: Path, project_file: Path, user_file: Path, standard: Path, write: Write, level: str
) -> None:
    file = write(project_file if level == "project" else user_file, managed(managedOnly=True))

    loaded = load_settings(project)

    assert not loaded.enabled
    assert [str(problem).removeprefix(f"{file}:1:") for problem in loaded.problems] == [
        '29: "managed" is ignored: only the system\'s settings can be managed',
        '50: "managedOnly" is ignored: only the system\'s settings can be managed',
    ]


def test_only_managed_settings_can_leave_the_others_out(project: Path, system_file: Path, write: Write) -> None:
    write(system_file, {"enableHooks": True, "hooksConfig": {"managedOnly": True}, **hooks(command("s"))})

    assert commands(project) == ["s"]
    assert '"managedOnly" is ignored: it needs `"managed": true`' in load_settings(project).problems[0].message


def test_disabling_one_is_refused(project: Path, user_file: Path, standard: Path, write: Write) -> None:
    write(standard, managed())

    with pytest.raises(SwitchError, match=f"guard is managed: only the administrator can disable it, in {standard}"):
        disable_hook(str(project), "guard")
    assert not user_file.exists()


def test_a_hook_of_the_same_name_can_be_disabled(project: Path, user_file: Path, standard: Path, write: Write) -> None:
    write(user_file, {"enableHooks": True, **hooks({**command("u"), "name": "guard"})})
    write(standard, managed())

    assert disable_hook(str(project), "guard") == [user_file]
    assert commands(project) == [GUARD["command"]]
    assert enable_hook(str(project), "guard") == [user_file]
    assert commands(project) == [GUARD["command"], "u"]


async def test_a_session_cannot_switch_them_either(project: Path, standard: Path, write: Write) -> None:
    write(standard, managed())
    system = Config.load(project).get_hook_system()
    assert system is not None
    await system.initialize()

    assert not system.set_hook_enabled("guard", False)
    assert [entry.enabled for entry in system.get_all_hooks()] == [True]


def test_no_other_settings_change_the_profile_of_managed_hooks(
    project: Path, project_file: Path, standard: Path, write: Write
) -> None:
    write(standard, managed(profile="full"))
    write(project_file, {"enableHooks": True, "hooksConfig": {"profile": "standard"}})

    assert Config.load(project).profile == "full"
