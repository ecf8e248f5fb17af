"""Projects to run the command in, and scenes played in them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.agent import REPLAY, AgentProject, AgentRun

Played: TypeAlias = Callable[..., AgentRun]
Scene: TypeAlias = Callable[[AgentProject], AgentRun]
"""Configures a project with its hooks, and runs the agent in it, for several tests of a module."""


@pytest.fixture
def project(tmp_path: Path) -> AgentProject:
    """A project whose model answers from a recording."""
    return AgentProject(tmp_path, REPLAY)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Plays a scene when it is first asked for; gives its run."""

    @functools.cache
    def play(scene: Scene, way: str = REPLAY) -> AgentRun:
        return scene(AgentProject(tmp_path_factory.mktemp("scene"), way))

    return play
