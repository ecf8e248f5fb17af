"""The commands with ``--dialect claude``: they show and run Claude Code's hooks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.cli import CliProject

HOOKS = {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "grep -q 'rm x' && exit 2 || true"}]}],
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


MISTAKEN = {
    "permissions": {"deny": ["Read(.env)"], "allow": ["Bash(ls)"]},
    "hooks": {
        "PreToolUsee": [{"hooks": [{"type": "command", "command": "true"}]}],
        "WorktreeCreate": [{"hooks": [{"type": "command", "command": "true"}]}],
        "PreToolUse": [
            {"hooks": [{"type": "command"}]},
            {"hooks": [{"type": "prompt", "prompt": "ok?"}]},
            {"hooks": [{"type": "command", "command": "$CLAUDE_PROJECT_DIR/none.sh", "timout": 5, "id": "x"}]},
        ],
    },
}


@pytest.mark.parametrize("file", [[], [".claude/settings.json"]], ids=["all files", "one file"])
def test_validate_finds_mistakes_and_gaps_in_the_words_of_claude_code(world: CliProject, file: list[str]) -> None:
    world.write(".claude/settings.json", json.dumps(MISTAKEN))

    result = _run(world, "validate", "--json", *file)

    found = {
        (each["code"], each["message"].partition(":")[0].partition(" --dry-run")[0])
        for each in result.json["diagnostics"]
    }
    assert result.status == 1
    assert found == {
        ("dialect-mistake", "hooks.PreToolUsee"),
        ("dialect-gap", "hooks.WorktreeCreate"),
        ("dialect-gap", "permissions.deny"),
        ("dialect-mistake", "hooks.PreToolUse[0].hooks[0]"),
        ("dialect-gap", "hooks.PreToolUse[1].hooks[0]"),
        ("misspelt-key", "hooks.PreToolUse[2].hooks[0]"),
        ("program-not-found", "hooks.PreToolUse[2].hooks[0]"),
        (
            "not-trusted",
            "this project is not approved. To see what would run, run `llxprt-hooks trust --dialect claude",
        ),
    }
    messages = "\n".join(each["message"] for each in result.json["diagnostics"])
    assert "Did you mean `PreToolUse`?" in messages
    assert "did you mean `timeout`?" in messages


def test_dialects_lists_what_is_here_and_what_would_run(claude_project: CliProject) -> None:
    plain = claude_project.run("dialects", approved=False)
    _run(claude_project, "trust", "--yes")
    found = _run(claude_project, "dialects", "--json").json["dialects"]

    assert "(claude): not used" in plain.stdout
    assert "because this project is not approved" in plain.stdout
    [claude] = [each for each in found if each["name"] == "claude"]
    assert claude["used"] is True
    [file] = claude["files"]
    assert [(hook["event"], hook["runs"]) for hook in file["hooks"]] == [(event, True) for event in HOOKS]


def test_fire_asks_the_hooks_for_permission(claude_project: CliProject) -> None:
    no = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny"}}}
    hook = {"type": "command", "command": f"echo '{json.dumps(no)}'"}
    claude_project.write(".claude/settings.json", json.dumps({"hooks": {"PermissionRequest": [{"hooks": [hook]}]}}))
    _run(claude_project, "trust", "--yes")

    asked = _run(claude_project, "fire", "PermissionRequest", "--tool", "Bash", "--json")
    before = _run(claude_project, "fire", "PreToolUse", "--tool", "Bash", "--json")

    assert (asked.status, asked.json["reason"]) == (2, "Permission denied by hook")
    assert (before.status, before.json["results"]) == (0, [])


def test_tests_of_hooks_may_use_their_names(claude_project: CliProject) -> None:
    _run(claude_project, "trust", "--yes")
    cases = [
        {"event": "PreToolUse", "input": {"tool_name": "Bash", "tool_input": {"command": command}},
         "expect": {"decision": decision}}
        for command, decision in (("rm x", "deny"), ("ls", "allow"))
    ]  # fmt: skip
    claude_project.write("guard.hooktest.json", json.dumps(cases))

    result = _run(claude_project, "test", "guard.hooktest.json", "--json")

    assert (result.status, [each["passed"] for each in result.json["tests"]]) == (0, [True, True])


def test_doctor_shows_the_files_of_claude_code(claude_project: CliProject) -> None:
    [file] = [each for each in _run(claude_project, "doctor", "--json").json["levels"] if each["what"] == "claude"]

    assert file["path"].endswith(".claude/settings.json")
    assert "not approved" in file["state"]
