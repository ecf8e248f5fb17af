"""A project, a home of its own, and hooks that are trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.recipes.project import RecipeProject

OUTSIDE = ("XDG_", "CI", "GIT_", "COST_CAP", "POLICY_", "CHAT_", "TEST_FIRST", "TEST_AFTER")
"""Variables that recipes read begin so."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecipeProject:
    project = RecipeProject(tmp_path, "my shop", approved=True)
    for name in [each for each in os.environ if each.startswith(OUTSIDE) or each.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    project.enter(monkeypatch)
    return project


@pytest.fixture(autouse=True)
def home(bench: RecipeProject) -> Path:
    return bench.home
