"""A project and a home of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.project import Project

Write = Callable[[str, Any], Path]


@pytest.fixture(autouse=True)
def home(sandbox: Project) -> Path:
    return sandbox.home


@pytest.fixture
def project(sandbox: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(sandbox.root)
    return sandbox.root


@pytest.fixture
def write(project: Path) -> Write:
    """Write a file of the project: a text as it is, anything else as JSON."""

    def write(name: str, content: Any) -> Path:
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return file

    return write
