"""Every example has a home of its own, and no system settings."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("LLXPRT_SYSTEM_SETTINGS_PATH", str(tmp_path / "none.json"))
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS", raising=False)
    monkeypatch.delenv("DEBUG", raising=False)
    return folder
