"""A home, a project and a system level of their own for every test."""

from __future__ import annotations

import grp
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.project import Project

Write = Callable[[Path, object], Path]


@pytest.fixture(autouse=True)
def home(sandbox: Project) -> Path:
    return sandbox.home


@pytest.fixture
def project(sandbox: Project) -> Path:
    return sandbox.root


@pytest.fixture
def project_file(sandbox: Project) -> Path:
    return sandbox.project_file


@pytest.fixture
def user_file(sandbox: Project) -> Path:
    return sandbox.user_file


@pytest.fixture
def system_file(sandbox: Project) -> Path:
    return sandbox.system_file


@pytest.fixture
def write() -> Write:
    """Write a value as JSON, or a text or bytes as they are, making folders as needed."""

    def write(file: Path, content: object) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        file.chmod(0o644)
        return file

    return write


@pytest.fixture
def shared_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every group a member that owns none of the files here."""
    monkeypatch.setattr(grp, "getgrgid", lambda group: grp.struct_group(("team", "x", group, ["somebody"])))


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Approve the project's hooks for this process."""
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
