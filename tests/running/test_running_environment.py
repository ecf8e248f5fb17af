"""``hooksConfig.environment``: which variables hooks inherit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.shell.environment import process_environment
from tests.support.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = Project(tmp_path, approved=True)
    project.enter(monkeypatch)
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("LC_TEST", "kept")
    return project.root


async def inherited(project: Path, **hooks_config: Any) -> dict[str, str]:
    """The environment of a hook of the project."""
    settings = {
        "enableHooks": True,
        "hooksConfig": hooks_config,
        "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "env -0 > env"}]}]},
    }
    file = project / ".llxprt" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings))
    await fire_before_tool_hook(Config.load(project), "write_file", {})
    variables = (project / "env").read_text().split("\0")
    return dict(variable.split("=", 1) for variable in variables if variable)


@pytest.mark.requirement("HOOK-188")
async def test_by_default_hooks_inherit_everything(project: Path) -> None:
    environment = await inherited(project)

    assert environment["API_TOKEN"] == "secret"
    assert environment["LLXPRT_PROJECT_DIR"] == str(project)


async def test_what_is_denied_is_not_inherited(project: Path) -> None:
    environment = await inherited(project, environment={"deny": ["API_*"]})

    assert "API_TOKEN" not in environment
    assert environment["LC_TEST"] == "kept"


async def test_only_what_is_allowed_is_inherited_beside_the_project_directory(project: Path) -> None:
    environment = await inherited(project, environment={"allow": ["PATH", "LC_*"]})

    assert "API_TOKEN" not in environment
    assert "HOME" not in environment
    assert environment["LC_TEST"] == "kept"
    assert environment["GEMINI_PROJECT_DIR"] == environment["CLAUDE_PROJECT_DIR"] == str(project)


async def test_a_change_of_the_environment_is_seen_by_the_next_event(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(
        enable_hooks=True,
        working_dir=project,
        hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": "printenv MINE >> seen"}]}]},
    )
    for value in ("1", "2", None, "3"):
        if value is None:
            monkeypatch.delenv("MINE")
        else:
            monkeypatch.setenv("MINE", value)
        await fire_before_tool_hook(config, "write_file", {})

    assert (project / "seen").read_text() == "1\n2\n3\n"


@pytest.mark.parametrize("kept", [True, False], ids=["as Python keeps it", "kept otherwise"])
def test_the_environment_is_the_same_object_until_it_changes(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kept:
        monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setitem(os.environ, "MINE", "1")
    first = process_environment()
    assert first["MINE"] == "1"
    assert (process_environment() is first) is kept

    monkeypatch.setitem(os.environ, "MINE", "2")

    assert process_environment()["MINE"] == "2"
    assert first["MINE"] == "1"
