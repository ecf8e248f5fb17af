"""A warm hook for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from llxprt_hooks.process.warm import zygotes
from tests.warm.warm_hook import WarmHook


@pytest.fixture
async def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WarmHook]:
    monkeypatch.setattr(zygotes, "patience", 60.0)
    zygotes._failures.clear()
    yield WarmHook(tmp_path)
    zygotes.close(60.0)
