"""A working directory with an outside that has a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from llxprt_hooks.agent.tools import Workspace
from tests.agent.tools.calls import SECRET


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)
