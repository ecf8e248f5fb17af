"""A warm hook for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from llxprt_hooks.process.warm import ScriptOffer, pool, zygotes
from tests.process.warm.hook import WarmHook
from tests.support.processes import DEADLINE


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that a busy machine lets wait is not passed over."""
    monkeypatch.setattr(ScriptOffer, "seconds", DEADLINE)
    monkeypatch.setattr(pool, "_SEND_TIMEOUT", DEADLINE)


@pytest.fixture
async def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WarmHook]:
    monkeypatch.setattr(zygotes, "patience", 60.0)
    zygotes._failures.clear()
    yield WarmHook(tmp_path)
    zygotes.close(60.0)
