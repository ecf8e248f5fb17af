"""Fixtures and settings for all folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.project import Project

# How long an example takes says more about the machine than about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A throwaway project; this process knows only its home and its settings, and nothing is approved."""
    project = Project(tmp_path)
    project.enter(monkeypatch)
    return project
