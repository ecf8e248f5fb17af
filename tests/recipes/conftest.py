"""A project, a home of its own, and hooks that are trusted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.recipes.recipe_bench import Bench


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("LLXPRT_SYSTEM_SETTINGS_PATH", str(tmp_path / "none.json"))
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in (*os.environ,):
        if name.startswith(("XDG_", "CI", "GIT_", "COST_CAP", "POLICY_", "CHAT_", "TEST_FIRST", "TEST_AFTER")):
            monkeypatch.delenv(name)
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    project = tmp_path / "my shop"
    project.mkdir()
    return Bench(project)
