"""A project and a home of their own, and approved hooks, for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.validate.marks import DiagnosedProject


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiagnosedProject:
    place = DiagnosedProject(tmp_path, approved=True)
    place.enter(monkeypatch)
    monkeypatch.chdir(place.root)
    return place
