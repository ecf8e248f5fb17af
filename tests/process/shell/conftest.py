"""One set of programs for all tests of direct execution; those that change files make a folder of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.process.shell.programs import Programs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The directory in which the hooks run, empty at first."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory
