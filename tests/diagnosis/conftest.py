"""A project and a home of their own, and no approvals, for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnosis.diagnosis_marks import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setenv("HOME", str(place.home))
    monkeypatch.setenv("LLXPRT_SYSTEM_SETTINGS_PATH", str(place.system_file))
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    monkeypatch.chdir(place.project)
    return place
