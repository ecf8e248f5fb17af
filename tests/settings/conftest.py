"""A home, a project and a system level of their own for every test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[Path, object], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("LLXPRT_SYSTEM_SETTINGS_PATH", str(tmp_path / "etc" / "settings.json"))
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS", raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def project_file(project: Path) -> Path:
    return project / ".llxprt" / "settings.json"


@pytest.fixture
def user_file(home: Path) -> Path:
    return home / ".llxprt" / "settings.json"


@pytest.fixture
def system_file(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "settings.json"


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
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Approve the project's hooks for this process."""
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
