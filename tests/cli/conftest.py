"""Worlds to run the command in."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from llxprt_hooks.cli.main import run_command_line
from tests.cli.cli_world import Call, Run, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def call(world: World, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Iterator[Call]:
    """Run the command in this process, which is quick enough for tables; as if with approval for the project."""
    monkeypatch.chdir(world.project)
    for name, value in world.environment(LLXPRT_TRUST_PROJECT_HOOKS="1").items():
        monkeypatch.setenv(name, value)
    root = logging.getLogger()
    before = root.level, root.handlers[:]

    def call(*arguments: str) -> Run:
        root.handlers[:] = []
        with warnings.catch_warnings():
            status = run_command_line(arguments)
        captured = capfdbinary.readouterr()
        return Run(status, captured.out.decode(), captured.err.decode())

    yield call
    root.setLevel(before[0])
    root.handlers[:] = before[1]
