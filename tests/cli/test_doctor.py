"""``llxprt-hooks doctor``: whether hooks work on this machine, for people and for fleet tools."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.fleet import canary
from llxprt_hooks.settings import levels
from tests.support.http_server import hook_server
from tests.support.project import files_in
from tests.support.worker import Worker

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject
    from tests.support.nats_server import NatsServer

STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def by_what(findings: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {finding["what"]: finding for finding in findings}


def test_doctor_passes_without_hooks(world: CliProject) -> None:
    run = world.run("doctor", approved=False)

    assert (run.status, run.stderr) == (0, "")
    assert run.stdout.endswith("No hooks are configured here: no call is checked. Nothing is broken.\n")
    assert "got its payload, and blocked with exit code 2" in run.stdout


def test_it_changes_nothing_and_runs_nothing_of_the_project(world: CliProject) -> None:
    world.script("guard.sh", "touch ran")
    for shell in ("sh", "bash"):
        world.script(f"bin/{shell}", "touch ran")
    world.configure(BeforeTool="./guard.sh", SessionStart="touch ran")
    before = files_in(world.folder)

    run = world.run("doctor", PATH=f"bin:{world.environment()['PATH']}")

    assert run.status == 0
    assert files_in(world.folder) == before


def test_the_state_of_every_hook_is_shown(world: CliProject) -> None:
    world.script("fine.sh", "exit 0")
    world.configure(
        BeforeTool=[{"name": "gone", "command": "./gone.sh"}, {"name": "fine", "command": "./fine.sh"}],
        AfterTool={"name": "no-interpreter", "command": "./odd"},
        SessionEnd={"name": "off", "command": "true"},
    )
    world.write("odd", "#!/no/such/interpreter\n", 0o755)
    world.write("plain", "", 0o644)
    world.configure(level="user", SessionStart={"name": "not-executable", "command": f"{world.root}/plain"})
    world.put("system", {"hooksConfig": {"disabled": ["off"]}})
    world.write("open.sh", "#!/bin/sh\n", 0o777)
    open_kit = [{"type": "command", "name": "open", "command": f"{world.root}/open.sh"}]
    missing_kit = [{"type": "command", "name": "no-program", "command": "no-such-program --check"}]
    world.extension("kit", {"hooks": {"PreCompress": [{"hooks": open_kit}], "Notification": [{"hooks": missing_kit}]}})

    run = world.run("doctor", "--json")

    assert run.status == 1
    assert not run.json["ok"]
    hooks = {hook["name"]: (hook["health"], hook["source"], hook["state"]) for hook in run.json["hooks"]}
    assert hooks == {
        "gone": ("broken", "project", "enabled"),
        "fine": ("ok", "project", "enabled"),
        "no-interpreter": ("broken", "project", "enabled"),
        "off": ("notice", "project", "disabled"),
        "not-executable": ("broken", "user", "enabled"),
        "open": ("broken", "extension kit", "enabled"),
        "no-program": ("broken", "extension kit", "enabled"),
    }
    problems = {hook["name"]: hook["problems"] for hook in run.json["hooks"]}
    assert problems["gone"] == [f"{world.root / 'gone.sh'} does not exist"]


def test_a_missing_script_is_found_whatever_the_folder_of_its_extension_is_called(world: CliProject) -> None:
    hooks = {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "${extensionPath}/missing.sh"}]}]}}
    folders = [world.extension(name, hooks).parent.parent for name in ("my ext", "plain")]
    world.put("user", {"enableHooks": True})

    checked = world.run("doctor", "--json").json["hooks"]

    assert [hook["health"] for hook in checked] == ["broken", "broken"]
    assert [hook["problems"] for hook in checked] == [[f"{folder}/missing.sh does not exist"] for folder in folders]


def test_only_the_broken_hook_of_a_shared_name_is_broken(world: CliProject) -> None:
    world.configure(BeforeTool=["true", {"name": "guard", "command": "./gone.sh"}])
    world.configure(level="user", BeforeTool={"name": "guard", "command": "true"})

    checked = world.run("doctor", "--json").json["hooks"]

    found = {(hook["source"], hook["name"]): hook["health"] for hook in checked}
    assert found == {("project", "true"): "ok", ("project", "guard"): "broken", ("user", "guard"): "ok"}


def test_no_hook_of_a_project_that_is_not_approved_runs(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "fine", "command": "true"})

    run = world.run("doctor", "--json", approved=False)

    assert (run.status, run.json["ok"], run.json["configured"], run.json["running"]) == (1, False, 1, 0)
    assert run.json["summary"] == "No hook of this project runs: it is not approved."
    assert by_what(run.json["levels"])["project"]["state"] == "read, not approved"
    assert (run.json["hooks"][0]["health"], run.json["hooks"][0]["state"]) == ("notice", "not approved")
    assert "`llxprt-hooks trust`" in run.json["notices"][0]


def test_a_script_that_cannot_run_is_broken_before_the_approval_too(world: CliProject) -> None:
    world.write("guard.sh", "#!/bin/sh\n", 0o644)
    world.configure(BeforeTool={"name": "guard", "command": "./guard.sh"})

    run = world.run("doctor", approved=False)

    assert run.status == 1
    assert "BROKEN  BeforeTool  guard" in run.stdout
    assert run.stdout.endswith(
        "No hook of this project runs: it is not approved. "
        "1 problem. `llxprt-hooks validate` explains problems in settings.\n"
    )


def one_hook(event: str = "BeforeTool", *, matcher: str = "^write_file$", **fields: object) -> dict[str, Any]:
    hook = {"type": "command", "name": "guard", "command": "true", **fields}
    return {"enableHooks": True, "hooks": {event: [{"matcher": matcher, "hooks": [hook]}]}}


ENDINGS: dict[str, tuple[dict[str, Any], int, str]] = {
    "works": (one_hook(), 0, "1 of 1 hook runs. Nothing is broken."),
    "turned off": ({**one_hook(), "enableHooks": False}, 0, "No hook runs: hooks are off. Nothing is broken."),
    "never turned on": ({"hooks": one_hook()["hooks"]}, 1, "No hook runs: hooks are off."),
    "disabled": (
        {**one_hook(), "hooksConfig": {"disabled": ["guard"]}},
        0,
        "No hook runs: disabled. Nothing is broken.",
    ),
    "misspelled switch": (
        {"enabledHooks": True, "hooks": one_hook()["hooks"]},
        1,
        "No hook runs: hooks are off. 1 problem. `llxprt-hooks validate` explains problems in settings.",
    ),
    "unknown event": (
        one_hook("PreToolUse"),
        1,
        "No hook works. 1 problem. `llxprt-hooks validate` explains problems in settings.",
    ),
    "no type": (
        one_hook(type=None),
        1,
        "No hook works. 1 problem. `llxprt-hooks validate` explains problems in settings.",
    ),
    "misspelled key": (
        one_hook(failclosed=True),
        1,
        "1 of 1 hook runs. 1 problem. `llxprt-hooks validate` explains problems in settings.",
    ),
    "invalid matcher": (
        one_hook(matcher="^(write_file"),
        1,
        (
            "No hook runs: its matcher is not a valid regular expression. "
            "1 problem. `llxprt-hooks validate` explains problems in settings."
        ),
    ),
    "no such tool": (
        one_hook(matcher="^wirte_file$"),
        0,
        "1 of 1 hook runs. 1 with a warning: `llxprt-hooks validate` explains it.",
    ),
}


@pytest.mark.parametrize(("settings", "status", "ending"), ENDINGS.values(), ids=ENDINGS)
def test_it_ends_with_how_many_hooks_run(world: CliProject, settings: dict[str, Any], status: int, ending: str) -> None:
    world.put("project", settings)

    run = world.run("doctor")

    assert run.stdout.splitlines()[-1] == ending
    assert run.status == status


def test_it_counts_the_hooks_of_all_files(world: CliProject) -> None:
    world.put("user", one_hook("BeforeTol"))
    world.configure(BeforeTool=["true", "echo"], SessionEnd="./gone.sh")

    run = world.run("doctor")

    assert run.stdout.endswith("2 of 4 hooks run. 2 problems. `llxprt-hooks validate` explains problems in settings.\n")


@pytest.mark.parametrize("place", ["settings.json", ".llxprt/setting.json", "../.llxprt/settings.json"])
def test_hooks_that_are_not_read_here_are_not_well(world: CliProject, place: str) -> None:
    world.write(place, one_hook())

    run = world.run("doctor")

    assert run.status == 1
    assert "block nothing" in run.stdout
    assert run.stdout.endswith("No hooks are configured here: no call is checked.\n")


def test_the_server_of_an_http_hook_is_tried_without_a_request(world: CliProject) -> None:
    with hook_server() as server:
        hook = {"type": "http", "name": "policy", "url": server.url, "headers": {"Authorization": "Bearer t0ken"}}
        world.configure(BeforeTool=[{"hooks": [hook]}], AfterTool=[{"hooks": [hook]}])
        reached = world.run("doctor", "--json")
        shown = world.run("doctor").stdout
        assert server.received == []
    missed = world.run("doctor", "--json")

    port = server.url.rpartition(":")[2].partition("/")[0]
    tried = f"a connection to 127.0.0.1, port {port}"
    assert reached.status == 0
    assert [hook["reached"] for hook in reached.json["hooks"]] == [f"{tried} was opened"] * 2
    assert f"{tried} was opened" in shown
    assert missed.status == 1
    for hook in missed.json["hooks"]:
        assert (hook["health"], hook["reached"]) == ("broken", "")
        [problem] = hook["problems"]
        assert problem.startswith(f"{tried} could not be opened: ")
        assert problem.endswith(". Start the server, or correct `url`")


@pytest.mark.parametrize("name", ["not approved", "disabled"])
def test_the_server_of_a_hook_that_does_not_run_is_not_tried(world: CliProject, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        hook = {"type": "http", "name": "policy", "url": f"http://127.0.0.1:{server.getsockname()[1]}/"}
        world.configure(BeforeTool=[{"hooks": [hook]}])
        if name == "disabled":
            world.put("system", {"hooksConfig": {"disabled": ["policy"]}})
        run = world.run("doctor", "--json", approved=name == "disabled")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()

    assert run.json["hooks"][0]["state"] == name
    assert run.json["hooks"][0]["problems"] == []


def test_the_worker_of_a_nats_hook_is_asked_without_an_event(world: CliProject, own_nats_server: NatsServer) -> None:
    hook = {"type": "nats", "name": "policy", "servers": [own_nats_server.url]}
    world.configure(BeforeTool=[{"hooks": [hook]}])
    ran = world.folder / "ran"
    policy = {
        "enableHooks": True,
        "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": f"touch {ran}"}]}]},
    }
    world.write(world.folder / "policy/.llxprt/settings.json", json.dumps(policy))

    def problem() -> str:
        run = world.run("doctor", "--json")
        assert run.status == 1
        [found] = run.json["hooks"][0]["problems"]
        return str(found)

    tried = f"an empty message to llxprt.hooks at {own_nats_server.url}"
    assert problem() == f"{tried} was not sent: no worker listens there. Start one, or correct `subject`"
    with Worker(world, "--nats", own_nats_server.url, "-C", str(world.folder / "policy")):
        run = world.run("doctor", "--json")
    assert (run.status, run.json["hooks"][0]["reached"]) == (0, f"{tried} was answered")
    assert not ran.exists()
    own_nats_server.stop()
    assert problem().startswith(f"cannot connect to NATS at {own_nats_server.url}: ")


def test_a_change_since_the_approval_is_reported(world: CliProject) -> None:
    world.configure(BeforeTool="true")
    world.approve()
    world.configure(BeforeTool="false")

    run = world.run("doctor", "--json", approved=False)

    assert run.json["hooks"][0]["state"] == "changed since approved"


@pytest.mark.parametrize("level", ["project", "user", "system"])
@pytest.mark.parametrize(("content", "mode"), [("{", 0o600), ('{"enableHooks": true}', 0o666)], ids=["broken", "open"])
def test_a_file_that_cannot_be_used_is_broken(world: CliProject, level: str, content: str, mode: int) -> None:
    world.put(level, content).chmod(mode)

    run = world.run("doctor", "--json")

    assert run.status == 1
    found = by_what(run.json["levels"])[level]
    assert (found["health"], found["path"]) == ("broken", str(world.files[level]))
    assert ("expected" if content == "{" else "may write to this file") in found["state"]
    assert run.json["problems"] == []


def test_a_mistake_in_the_settings_is_broken(world: CliProject) -> None:
    world.put("user", {"enableHooks": "yes"})

    run = world.run("doctor")

    assert run.status == 1
    assert "`enableHooks` must be true or false" in run.stdout
    assert "1 problem. `llxprt-hooks validate` explains problems in settings." in run.stdout


def test_hooks_that_are_off_are_reported(world: CliProject) -> None:
    world.put("user", {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}})

    run = world.run("doctor", "--json")

    assert (run.status, run.json["summary"]) == (1, "No hook runs: hooks are off.")
    assert run.json["hooks"][0]["state"] == "hooks are off"
    assert run.json["notices"] == ['hooks are off: no settings file has `"enableHooks": true`']


def test_a_file_that_turns_hooks_off_is_named(world: CliProject) -> None:
    world.put("user", {"enableHooks": False})
    world.put("project", {"hooks": one_hook()["hooks"]})

    run = world.run("doctor", "--json")

    assert (run.status, run.json["notices"]) == (0, [f"hooks are off: {world.user_file} turns them off"])


def test_extensions_are_shown(world: CliProject) -> None:
    world.extension("kit", {"hooks": {}})

    assert by_what(world.run("doctor", "--json").json["levels"])["extension"]["state"] == "read: kit"


@needs_root
def test_managed_hooks_are_marked(world: CliProject, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = {"type": "command", "command": "true", "name": "guard"}
    standard = world.write(world.folder / "standard.json", {"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    monkeypatch.setattr(levels, "SYSTEM_SETTINGS", standard)
    assert "not used: it is not managed" in call("doctor", "--json").json["levels"][-1]["state"]

    managed = {"hooksConfig": {"managed": True}, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    world.write(standard, managed)
    run = call("doctor", "--json")

    assert [(each["path"], each["state"]) for each in run.json["levels"]][-1] == (str(standard), "read, managed")
    assert [(each["source"], each["managed"], each["runs"]) for each in run.json["hooks"]] == [("managed", True, True)]
    assert "managed, enabled" in call("doctor").stdout


FILES = {"log": "log", "trust store": "trust"}


@pytest.mark.parametrize("what", FILES)
def test_files_that_others_can_read_are_broken(world: CliProject, what: str) -> None:
    file = world.put(FILES[what], "{}\n")
    assert by_what(world.run("doctor", "--json").json["files"])[what]["state"] == "private and writable"
    file.chmod(0o644)

    run = world.run("doctor", "--json")

    assert run.status == 1
    assert "others can read it (mode 0644" in by_what(run.json["files"])[what]["state"]


@pytest.mark.parametrize("what", FILES)
def test_a_folder_in_the_place_of_a_file_is_broken(world: CliProject, what: str) -> None:
    world.files[FILES[what]].mkdir(parents=True)

    assert "is not a file" in by_what(world.run("doctor", "--json").json["files"])[what]["state"]


def test_without_a_home_nothing_can_be_written(world: CliProject) -> None:
    run = world.run("doctor", "--json", HOME="")

    assert run.status == 1
    assert "is not a folder" in by_what(run.json["files"])["log"]["state"]


def test_a_folder_that_others_can_write_is_broken(world: CliProject) -> None:
    (world.home / ".llxprt").mkdir()
    (world.home / ".llxprt").chmod(0o777)

    run = world.run("doctor", "--json")

    assert "may write to the folder" in by_what(run.json["files"])["trust store"]["state"]


@needs_root
def test_a_file_of_another_user_is_broken(world: CliProject) -> None:
    os.chown(world.put("log", ""), STRANGER, -1)

    assert by_what(world.run("doctor", "--json").json["files"])["log"]["state"] == "it belongs to another user"


def test_a_file_that_cannot_be_written_is_broken(
    world: CliProject, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, access = world.put("log", ""), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != file and access(path, mode))

    assert "you may not write to" in by_what(call("doctor", "--json").json["files"])["log"]["state"]


@pytest.mark.parametrize("command", ["exit 0", "exit 1", "echo 'another reason' >&2; exit 2"])
def test_a_canary_that_does_not_block_is_broken(call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(canary, "_COMMAND", command)

    run = call("doctor", "--json")

    assert run.status == 1
    assert run.json["canary"]["state"].startswith("a hook that must block did not: ")


def test_it_fits_on_a_terminal(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "gone", "command": "./gone.sh"})

    shown, status = world.screen("llxprt-hooks doctor", columns=80)

    assert status == 1
    assert "BROKEN" in shown


def test_nothing_of_the_project_reaches_the_terminal_raw(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "a\x1b[2Jb\u202e", "command": "./\x1b[31m.sh"})

    run = world.run("doctor")

    assert "\x1b" not in run.stdout
    assert "\u202e" not in run.stdout
