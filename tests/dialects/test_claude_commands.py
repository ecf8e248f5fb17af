"""The commands with ``--dialect claude``: they show and run Claude Code's hooks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.cli import CliProject

HOOKS = {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "grep -q rm && exit 2 || true"}]}],
    "PostToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}],
    "Stop": [{"hooks": [{"type": "command", "command": "exit 2"}]}],
}


@pytest.fixture
def claude_project(world: CliProject) -> CliProject:
    folder = world.root / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"hooks": HOOKS}))
    return world


def _run(project: CliProject, *arguments: str) -> Any:
    return project.run(*arguments, "--dialect", "claude", approved=False)


def test_trust_approves_the_hooks_and_fire_takes_their_names(claude_project: CliProject) -> None:
    call = ("fire", "PreToolUse", "--tool", "Bash", "--json", "--args", json.dumps({"command": "rm x"}))

    assert _run(claude_project, *call).status == 1
    assert _run(claude_project, "trust", "--yes").status == 0
    fired = _run(claude_project, *call)

    assert fired.status == 2
    assert fired.json["event"] == "BeforeTool"
    assert fired.json["blocked"] is True
    assert [each["dialect"] for each in fired.json["results"]] == ["claude"]


def test_list_shows_the_dialect_of_each_hook(claude_project: CliProject) -> None:
    hooks = _run(claude_project, "list", "--json").json["hooks"]

    assert {(hook["dialect"], hook["where"]) for hook in hooks} == {
        ("claude", f"hooks.{event}[0].hooks[0]") for event in HOOKS
    }


def test_a_call_that_has_happened_is_never_blocked_and_a_stop_is(claude_project: CliProject) -> None:
    _run(claude_project, "trust", "--yes")

    after = _run(claude_project, "fire", "PostToolUse", "--tool", "Write", "--json")
    stop = _run(claude_project, "fire", "Stop", "--json")

    assert (after.status, after.json["blocked"]) == (0, False)
    assert after.json["final_output"]["hookSpecificOutput"]["additionalContext"].endswith("]: no")
    assert (stop.status, stop.json["blocked"]) == (2, True)


def test_an_unknown_dialect_is_wrong_usage(claude_project: CliProject) -> None:
    result = claude_project.run("list", "--dialect", "klingon", approved=False)

    assert result.status == 64
    assert "klingon" in result.stderr


def test_trust_approves_what_the_projects_own_settings_ask_for(claude_project: CliProject) -> None:
    call = ("fire", "PreToolUse", "--tool", "Bash", "--args", json.dumps({"command": "rm x"}))
    native = claude_project.root / ".llxprt" / "settings.json"
    native.parent.mkdir(exist_ok=True)
    native.write_text(json.dumps({"hooksConfig": {"dialects": ["claude"]}}))

    assert claude_project.run("trust", "--yes", approved=False).status == 0
    assert claude_project.run(*call, approved=False).status == 2
    native.unlink()
    (claude_project.root / ".claude" / "settings.json").unlink()
    dropped = claude_project.run("fire", "BeforeTool", "--tool", "run_shell_command", approved=False)

    assert dropped.status == 2
    assert "changed since the project was approved" in dropped.stdout
    assert claude_project.run("trust", "--yes", approved=False).status == 0
    assert claude_project.run("fire", "BeforeTool", "--tool", "run_shell_command", approved=False).status == 0
