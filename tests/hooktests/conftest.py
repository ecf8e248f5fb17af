"""Projects with hooks and their tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Call, CliProject, call
from tests.support.project import APPROVED


@pytest.fixture
def world(tmp_path: Path) -> CliProject:
    return CliProject(tmp_path)


@pytest.fixture(name="call")
def _call(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command in this process, in the project, with its hooks approved."""
    monkeypatch.chdir(world.root)
    world.enter(monkeypatch, **APPROVED)
    return call
