"""What the tests of planning and running share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The directory in which the hooks run, empty at first."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes an executable script, outside the project, and returns its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return write
