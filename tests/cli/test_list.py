"""``llxprt-hooks list``: every hook, where it comes from, and whether it may run."""

from __future__ import annotations

import pytest

from tests.support.cli import ESCAPE, Call, CliProject
from tests.support.project import hooks_of


def everything(world: CliProject) -> None:
    """Hooks at all levels."""
    world.configure(
        BeforeTool=[
            {
                "matcher": "write_file|replace",
                "sequential": True,
                "hooks": [
                    {
                        "type": "command",
                        "name": "no-secrets",
                        "command": "sh hooks/no-secrets.sh --all --of --them --and --more",
                        "timeout": 2500,
                        "failClosed": True,
                        "description": "Keeps keys out of files",
                    }
                ],
            }
        ]
    )
    world.configure(level="user", AfterModel={"name": "redact", "command": "redact --mail"}, BeforeTool="nameless")
    world.configure(level="system", BeforeTool={"name": "audit", "command": "audit"})
    world.extension("kit", {"hooks": hooks_of({"SessionStart": {"name": "greet", "command": "echo hello"}})})


def rows(listing: str) -> dict[str, list[str]]:
    """The table's rows by the name of the hook."""
    lines = [line.split() for line in listing.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    return {line[0]: line[1:] for line in lines if line[0] != "hook"}


def test_a_misspelled_event_is_named_before_the_project_is_approved(world: CliProject) -> None:
    world.put("project", {"enableHooks": True, "hooks": {"BeforTool": hooks_of({"BeforeTool": "a"})["BeforeTool"]}})

    listed = world.run("list", approved=False)
    fired = world.run("fire", "BeforeTool", approved=False)

    assert listed.stdout == "no usable hooks; run `llxprt-hooks validate` to see why\n"
    for told in (listed.stderr, fired.stdout):
        assert "hooks.BeforTool: discarded, so it blocks nothing: unknown event" in told
        assert "it blocks nothing: unknown event. Did you mean `BeforeTool`?" in told
        assert "do not apply, because this project is not approved" in told


def test_the_profile_is_named_if_hooks_act(world: CliProject) -> None:
    hooks = hooks_of({"BeforeTool": "a"})
    for profile, named in (("standard", False), ("full", True)):
        world.put("project", {"enableHooks": True, "hooksConfig": {"profile": profile}, "hooks": hooks})

        assert ("profile full: " in world.run("list").stdout) is named
        assert world.run("list", "--json").json["profile"] == profile


def test_hooks_are_grouped_by_event_with_matcher_source_mode_timeout_and_state(world: CliProject) -> None:
    everything(world)

    run = world.run("list")

    headings = [line for line in run.stdout.splitlines() if not line.startswith(" ")]
    assert headings[1:] == ["BeforeTool", "AfterModel", "SessionStart"]
    assert rows(run.stdout) == {
        "no-secrets": ["write_file|replace", "project", "sequential", "2.5", "s", "enabled"],
        "(unnamed)": ["*", "user", "parallel", "60", "s", "enabled"],
        "audit": ["*", "system", "parallel", "60", "s", "enabled"],
        "redact": ["*", "user", "parallel", "60", "s", "enabled"],
        "greet": ["*", "extension", "kit", "parallel", "60", "s", "enabled"],
    }
    for shown in ("nameless", "redact --mail", "echo hello", "Keeps keys out of files", "blocks when it fails"):
        assert f"      {shown}\n" in run.stdout
    assert run.stderr == ""


def test_hooks_that_do_not_run_are_listed_with_the_reason(world: CliProject) -> None:
    everything(world)
    world.put("user", {"enableHooks": True, "hooksConfig": {"disabled": ["audit", "no-secrets"]}})

    run = world.run("list", approved=False)

    assert rows(run.stdout)["no-secrets"][-3:] == ["disabled,", "not", "approved"]
    assert rows(run.stdout)["audit"][-1] == "disabled"
    assert "`llxprt-hooks trust`" in run.stderr


def test_approval_of_the_project_is_shown(world: CliProject) -> None:
    everything(world)

    assert f"{world.root}: approved for this process" in world.run("list").stdout
    world.approve()
    assert f"{world.root}: approved\n" in world.run("list", approved=False).stdout


def test_a_change_since_the_approval_is_shown(world: CliProject) -> None:
    everything(world)
    world.approve()
    world.configure(BeforeTool={"name": "other", "command": "other"})

    run = world.run("list", approved=False)

    assert "changed since approved" in run.stdout
    assert "has changed since it was approved" in run.stderr


def test_settings_that_cannot_be_read_are_reported_on_stderr_and_affect_nothing_else(world: CliProject) -> None:
    everything(world)
    world.put("project", '{"hooks": \x1b[31m}')

    run = world.run("list")

    assert "redact" in run.stdout
    assert f"{world.project_file}:1:11:" in run.stderr
    assert ESCAPE not in run.stderr
    assert run.status == 0


def test_a_folder_without_hooks_says_how_to_begin(world: CliProject) -> None:
    run = world.run("list")

    assert run.stdout == "no hooks are configured; run `llxprt-hooks init` to create one\n"
    assert run.status == 0


def test_unusable_hooks_point_to_validate(world: CliProject) -> None:
    world.put("user", {"enableHooks": True, "hooks": {"beforeTool": [{"hooks": []}]}})

    run = world.run("list")

    assert run.stdout == "no usable hooks; run `llxprt-hooks validate` to see why\n"
    assert "Did you mean `BeforeTool`?" in run.stderr


@pytest.mark.parametrize(("timeout", "shown"), [(5, "5 ms"), (1500, "1.5 s"), (1e9, "1,000,000 s")])
def test_time_outs_are_shown_in_the_unit_that_fits(world: CliProject, timeout: float, shown: str) -> None:
    world.configure(BeforeTool={"name": "guard", "command": "true", "timeout": timeout})

    assert f"  {shown}  " in world.run("list").stdout


@pytest.mark.parametrize("command", ["list", "validate", "trust", "doctor", "fire BeforeTool"])
def test_every_command_says_the_same_about_a_folder_below_a_project(world: CliProject, command: str) -> None:
    everything(world)
    below = world.root / "src"
    below.mkdir()

    run = world.run(*command.split(), "-C", str(below))

    assert (
        f"Hooks in {world.root} don't apply to its subfolders: they won't run here, so they block nothing. "
        f"Load that folder, or pass `-C {world.root}` on the command line."
    ) in run.stdout + run.stderr


@pytest.mark.parametrize("command", ["list", "validate", "trust"])
@pytest.mark.parametrize("place", [".llxprt/settings.json", "src/settings.json"])
def test_where_hooks_were_found_elsewhere_nothing_says_to_create_one(
    world: CliProject, command: str, place: str
) -> None:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}
    world.write(place, {"enableHooks": True, "hooks": hooks})
    (world.root / "src").mkdir(exist_ok=True)

    run = world.run(command, "-C", "src")

    assert run.status == 0
    assert "llxprt-hooks init" not in run.stdout + run.stderr


def test_a_hook_with_an_invalid_matcher_is_not_enabled(world: CliProject) -> None:
    world.configure(BeforeTool=[{"matcher": "^(write_file", "hooks": [{"type": "command", "command": "true"}]}])

    assert "its matcher is not a valid regular expression" in world.run("list").stdout
    [hook] = world.run("list", "--json").json["hooks"]
    assert (hook["enabled"], hook["runs"]) == (True, False)


def test_a_project_that_is_not_approved_is_not_said_to_have_hooks_off(world: CliProject) -> None:
    everything(world)
    world.put("user", {})

    assert "hooks are off" not in world.run("list", approved=False).stderr


def test_hooks_that_are_off_are_listed_with_a_warning(world: CliProject) -> None:
    world.put("user", {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}})

    run = world.run("list")

    assert rows(run.stdout)["(unnamed)"][-3:] == ["hooks", "are", "off"]
    assert '`"enableHooks": true`' in run.stderr


def test_json_shows_programs_what_runs_and_why_not(world: CliProject) -> None:
    everything(world)
    world.put("system", {"enableHooks": True, "hooksConfig": {"disabled": ["redact"]}})

    listing = world.run("list", "--json", approved=False).json

    assert list(listing) == ["enabled", "profile", "trust", "hooks", "notices", "problems"]
    assert (listing["enabled"], listing["trust"]) == (True, "untrusted")
    hooks = {hook["name"]: hook for hook in listing["hooks"]}
    guard = hooks["no-secrets"]
    assert guard == {
        "name": "no-secrets",
        "command": "sh hooks/no-secrets.sh --all --of --them --and --more",
        "type": "command",
        "dialect": "llxprt",
        "description": "Keeps keys out of files",
        "event": "BeforeTool",
        "matcher": "write_file|replace",
        "sequential": True,
        "timeout_ms": 2500,
        "fail_closed": True,
        "mode": "enforce",
        "stream": "whole",
        "warm": False,
        "source": "project",
        "file": str(world.project_file),
        "where": "hooks.BeforeTool[0].hooks[0]",
        "managed": False,
        "enabled": True,
        "approved": False,
        "runs": False,
    }
    assert {name: (hook["enabled"], hook["approved"], hook["runs"]) for name, hook in hooks.items()} == {
        "no-secrets": (True, False, False),
        "nameless": (True, True, True),
        "redact": (False, True, False),
        "greet": (True, True, True),
    }


def test_a_narrow_terminal_loses_no_command(world: CliProject) -> None:
    everything(world)

    listing = world.run("list", COLUMNS="40").stdout

    assert "sh hooks/no-secrets.sh --all --of --them --and --more" in listing
    others = [line for line in listing.splitlines() if "no-secrets.sh" not in line and str(world.root) not in line]
    assert max(map(len, others)) <= 40
    for word in ("no-secrets", "write_file|replace", "project, sequential, 2.5 s", "enabled", "extension kit"):
        assert word in listing


def test_a_terminal_of_40_columns_shows_all_of_it(world: CliProject) -> None:
    everything(world)

    screen, _ = world.screen("llxprt-hooks list", columns=40, NO_COLOR="1")

    assert "sh hooks/no-secrets.sh --all --of --them --and --more" in screen.replace("\r\n", "")
    assert "project, sequential, 2.5 s" in screen


def test_without_a_terminal_a_hook_is_a_line_for_grep(world: CliProject) -> None:
    everything(world)
    matcher = "|".join(f"tool_number_{number}" for number in range(40))
    world.configure(
        level="user",
        BeforeTool={"matcher": matcher, "hooks": [{"type": "command", "name": "long", "command": "true"}]},
    )

    assert rows(world.run("list").stdout)["long"][:2] == [matcher, "user"]


def test_what_files_say_cannot_command_the_terminal(world: CliProject) -> None:
    world.configure(
        BeforeTool={"name": "a\x1b[2J\nb", "command": "true\x1b]0;x\x07\r\nrm -rf", "description": "\x9b31m"}
    )

    for columns in ("40", "200"):
        run = world.run("list", COLUMNS=columns)
        assert not {ESCAPE, "\x07", "\r", "\x9b"} & set(run.stdout + run.stderr)
        assert r"true\x1b]0;x\x07\r\nrm -rf" in run.stdout


def test_a_problem_with_a_hook_has_its_line_and_column(call: Call, world: CliProject) -> None:
    world.put("user", '{\n  "hooks": {\n    "BeforeTool": [{ "hooks": [\n      { "type": "odd" }\n    ] }]\n  }\n}')
    world.extension("x", {"hooks": {"AfterTool": [{"hooks": [{"name": "no command", "type": "command"}]}]}})

    of_user, of_extension = call("list", "--json").json["problems"]

    assert of_user.startswith(
        f"{world.user_file}:4:17: hooks.BeforeTool[0].hooks[0]: discarded, so it blocks nothing: `type` "
    )
    assert of_extension.startswith(str(world.home / ".llxprt" / "extensions" / "x" / "hooks" / "hooks.json") + ":1:")
    assert ": hooks.AfterTool[0].hooks[0]: discarded, so it blocks nothing: it needs `command`" in of_extension
