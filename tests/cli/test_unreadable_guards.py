"""No command starts an agent, a worker or a proxy if guards of its user or administrator cannot be read (D-27).

The same goes for guards that its user requires and that would not run (D-116).
"""

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


REQUIRED = {"mcp-proxy": "BeforeTool:write_file", "model-proxy": "BeforeModel"}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_starts_without_a_required_hook(world: CliProject, command: str) -> None:
    name, *rest = COMMANDS[command]
    required = REQUIRED.get(command, "BeforeTool:write_file")
    world.configure(BeforeTool={"matcher": "glob", "hooks": [{"type": "command", "command": world.hook()}]})
    world.write("answers.jsonl")

    ended = world.run(name, "--require-hook", required, *rest)

    assert (ended.status, ended.stdout) == (1, "")
    assert f"Error: Required hooks are missing:\n{required}: no hook would run. " in ended.stderr
    assert not (world.root / "started").exists()


@pytest.mark.parametrize("proxy", PROXIES)
def test_a_proxy_starts_with_its_required_hook(world: CliProject, proxy: str) -> None:
    world.configure(BeforeTool=world.hook(), BeforeModel=world.hook())
    ended = world.run(proxy, "--require-hook", REQUIRED[proxy], *COMMANDS[proxy][1:])
    assert (ended.status, (world.root / "started").exists()) == (0, True)


@pytest.mark.parametrize("proxy", PROXIES)
def test_a_proxy_does_not_start_if_it_never_fires_the_event_of_a_required_hook(world: CliProject, proxy: str) -> None:
    world.configure(SessionEnd=world.hook(), AfterAgent=world.hook())
    ended = world.run(proxy, "--require-hook", "AfterAgent", *COMMANDS[proxy][1:])
    assert (ended.status, (world.root / "started").exists()) == (1, False)
    assert "AfterAgent: no hook would run, because " in ended.stderr


@pytest.mark.parametrize("command", [*COMMANDS, "fire"])
@pytest.mark.parametrize(
    ("required", "words"),
    [
        ("PreToolUse", "unknown hook event 'PreToolUse'. Did you mean `BeforeTool`?"),
        ("BeforeTool:", "found 'BeforeTool:'"),
    ],
)
def test_a_required_hook_that_cannot_be_understood_is_wrong_usage(
    world: CliProject, command: str, required: str, words: str
) -> None:
    world.write("answers.jsonl")
    name, *rest = COMMANDS.get(command, ("fire", "BeforeTool"))
    ended = world.run(name, "--require-hook", required, *rest)
    assert (ended.status, ended.stdout) == (64, "")
    assert words in ended.stderr
