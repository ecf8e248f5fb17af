"""Hooks in the language of Claude Code, run through the whole engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, Hooks
from tests.dialects.products import ForeignProject

MakeHooks = Callable[..., Hooks]


@pytest.fixture(autouse=True)
def _own_environment(own_environment: None) -> None: ...


@pytest.fixture
def claude(tmp_path: Path) -> MakeHooks:
    """Hooks of one event of Claude Code: a command, and other fields of the hook."""

    def make(event: str, command: str, matcher: str = "*", **fields: Any) -> Hooks:
        hook = {"type": "command", "command": command, **fields}
        groups = {event: [{"matcher": matcher, "hooks": [hook]}]}
        return Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks=groups, dialect="claude"))

    return make


@pytest.fixture
def received(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """What a hook with the command ``cat > payload.json`` got."""

    def read() -> dict[str, Any]:
        payload: dict[str, Any] = json.loads((tmp_path / "payload.json").read_text())
        return payload

    return read


@pytest.fixture
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> ForeignProject:
    """A project for the agent whose name the test module has as ``DIALECT``."""
    (tmp_path / "project").mkdir(exist_ok=True)
    return ForeignProject(tmp_path / "project", Path(os.environ["HOME"]), request.module.DIALECT)
