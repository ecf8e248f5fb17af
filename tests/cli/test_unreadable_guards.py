"""No command starts an agent, a worker or a proxy if guards of its user or administrator cannot be read (D-27).

The same goes for guards that its user requires and that would not run (D-116).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.cli import CliProject

COMMANDS = {
    "run": ("run", "-y", "-p", "hi", "--replay", "answers.jsonl"),
    "serve": ("serve", "--http", "127.0.0.1:0"),
    "mcp-proxy": ("mcp-proxy", "--", "touch", "started"),
    "model-proxy": ("model-proxy", "--", "touch", "started"),
}
PROXIES = [name for name in COMMANDS if name.endswith("proxy")]


@pytest.mark.parametrize("level", ["user", "system"])
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_starts_without_the_guards_of_user_and_system(world: CliProject, command: str, level: str) -> None:
    world.configure(BeforeTool=world.hook())
    world.write("answers.jsonl")
    file = world.put(level, '{"enableHooks": true, "hooks": {')

    ended = world.run(*COMMANDS[command])

    assert (ended.status, ended.stdout) == (1, "")
    refusal = f"Error: These settings cannot be read, so their hooks would not run:\n{file}:1:33: expected a key"
    assert refusal in ended.stderr
    assert "nothing is checked" not in ended.stderr
    assert not (world.root / "started").exists()


def unapproved(world: CliProject) -> str:
    world.configure(BeforeTool=world.hook())
    return "not approved"


def changed(world: CliProject) -> str:
    world.configure(BeforeTool=world.script("guard.sh", "exit 2"))
    world.approve()
    world.script("guard.sh", "exit 0")
    return "guard.sh"


def broken(world: CliProject) -> str:
    return f"{world.put('project', '{')}:1:2: "


def of_another_user(world: CliProject) -> str:
    world.configure(BeforeTool=world.hook())
    world.project_file.chmod(0o666)
    return str(world.project_file)


def unusable(world: CliProject) -> str:
    world.configure(BeforeTool=[{"hooks": [{"type": "comand", "command": "true"}]}])
    world.approve()
    return "comand"


def never_enabled(world: CliProject) -> str:
    world.put("user", {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}})
    return "enableHooks"


def in_the_parent_folder(world: CliProject) -> str:
    world.configure(BeforeTool=world.hook())
    world.approve()
    world.root = world.root / "src"
    world.root.mkdir()
    return f"pass `-C {world.root.parent}`"


STATES = (unapproved, changed, broken, of_another_user, unusable, never_enabled, in_the_parent_folder)


@pytest.mark.parametrize("proxy", PROXIES)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_proxy_does_not_start_if_configured_hooks_may_not_run(
    world: CliProject, state: Callable[[CliProject], str], proxy: str
) -> None:
    problem = state(world)

    ended = world.run(*COMMANDS[proxy], approved=False)

    assert (ended.status, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Error: Not all configured hooks may run, so the proxy does not start.")
    assert "pass --allow-unguarded" in ended.stderr
    assert problem in ended.stderr
    assert not (world.root / "started").exists()


@pytest.mark.parametrize("proxy", PROXIES)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_proxy_starts_unguarded_if_that_is_allowed(
    world: CliProject, state: Callable[[CliProject], str], proxy: str
) -> None:
    problem = state(world)
    name, *arguments = COMMANDS[proxy]

    ended = world.run(name, "--allow-unguarded", *arguments, approved=False)

    assert ended.status == 0
    assert (world.root / "started").exists()
    assert problem in ended.stderr


@pytest.mark.parametrize("proxy", PROXIES)
def test_hooks_that_their_user_turned_off_do_not_stop_a_proxy(world: CliProject, proxy: str) -> None:
    group = {"hooks": [{"type": "command", "command": world.hook()}]}
    world.put("project", {"enableHooks": False, "hooks": {"BeforeTool": [group]}})

    ended = world.run(*COMMANDS[proxy])

    assert ended.status == 0
    assert (world.root / "started").exists()
    assert f"no hook of {world.root} runs in this proxy: nothing is checked" in ended.stderr
    assert "no hooks are configured" not in ended.stderr
