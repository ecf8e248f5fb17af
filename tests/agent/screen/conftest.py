"""A project for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.screen.project import InteractiveProject


@pytest.fixture
def project(tmp_path: Path) -> InteractiveProject:
    return InteractiveProject(tmp_path)
