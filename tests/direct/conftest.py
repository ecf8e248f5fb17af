"""One world for all tests of direct execution; those that change files make a folder of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.direct.direct_world import World

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The directory in which the hooks run, empty at first."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory
