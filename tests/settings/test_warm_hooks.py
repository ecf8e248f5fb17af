"""Which hooks are warm: those that say so, and those of levels and agents that the settings name (D-167)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, HookEventName

CHECK = {"type": "command", "command": "check"}
NOT_WARM = {"type": "command", "command": "never", "warm": False}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two hooks, one of which is never warm; the user has one, and one for Claude Code."""
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    _write(tmp_path / "somebody/.claude/settings.json", {"hooks": _hooks("PreToolUse", "claude")})
    _write(tmp_path / "somebody/.llxprt/settings.json", {"hooks": _hooks("BeforeTool", "own")})
    return tmp_path / "code"


def _hooks(event: str, command: str) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "command", "command": command}]}]}


def _write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def warm_in(project: Path, warm: object) -> set[str]:
    hooks = {"BeforeTool": [{"hooks": [CHECK, NOT_WARM]}]}
    _write(
        project / ".llxprt/settings.json",
        {"enableHooks": True, "hooks": hooks, "hooksConfig": {} if warm is None else {"warm": warm}},
    )
    config = Config.load(project, dialects=("claude",))
    assert config.settings is not None
    assert config.settings.problems == ()
    system = config.get_hook_system()
    assert system is not None
    system.plan(HookEventName.BEFORE_TOOL)
    return {each.config.command for each in system.get_all_hooks() if each.config.warm}


@pytest.mark.parametrize(
    ("warm", "which"),
    [
        (None, set()),
        (False, set()),
        (True, {"check", "own", "claude"}),
        (["project"], {"check"}),
        (["user"], {"own", "claude"}),
        (["claude"], {"claude"}),
        (["claude", "project"], {"claude", "check"}),
        (["llxprt"], {"check", "own"}),
    ],
)
def test_levels_and_agents_make_their_hooks_warm(project: Path, warm: object, which: set[str]) -> None:
    assert warm_in(project, warm) == which


def test_an_unknown_name_is_reported_and_ignored(project: Path) -> None:
    _write(project / ".llxprt/settings.json", {"enableHooks": True, "hooksConfig": {"warm": ["everybody"]}})

    config = Config.load(project)

    assert config.settings is not None
    [problem] = config.settings.problems
    assert "everybody" in str(problem)
    assert config.warm


def test_a_hook_of_a_managed_file_decides_itself(tmp_path: Path) -> None:
    from llxprt_hooks.settings.definitions import HookScope, HookSet
    from llxprt_hooks.settings.load import load_settings

    settings = load_settings(tmp_path)
    managed = HookSet(_hooks("BeforeTool", "check"), scope=HookScope.MANAGED)

    assert settings.warmed(managed, "system") is managed
