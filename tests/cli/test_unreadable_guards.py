"""No command starts an agent, a worker or a proxy if the guards of its user or administrator cannot be read (D-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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


@pytest.mark.parametrize("proxy", PROXIES)
def test_a_broken_project_file_does_not_stop_a_proxy(world: CliProject, proxy: str) -> None:
    """A clone must not stop its user. The proxy does not claim that the file has no hooks."""
    world.put("project", "{")

    ended = world.run(*COMMANDS[proxy])

    assert ended.status == 0
    assert (world.root / "started").exists()
    assert f"{world.project_file}:1:2: " in ended.stderr
    assert f"no hook of {world.root} runs in this proxy: nothing is checked" in ended.stderr
    assert "no hooks are configured" not in ended.stderr
