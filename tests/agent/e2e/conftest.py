"""Projects to run the command in, and scenes played in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.agent.e2e.e2e_scenes import Scene
from tests.support.agent import REPLAY, AgentProject, AgentRun

Played: TypeAlias = Callable[..., AgentRun]


@pytest.fixture
def project(tmp_path: Path) -> AgentProject:
    """A project whose model answers from a recording."""
    return AgentProject(tmp_path, REPLAY)


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The runs of the module's scenes, which are all played when the first one is asked for."""
    scenes = [each for each in vars(request.module).values() if isinstance(each, Scene)]
    scenes += getattr(request.module, "MORE_SCENES", [])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            (scene.name, way): pool.submit(scene.play, AgentProject(tmp_path_factory.mktemp("scene"), way))
            for scene in scenes
            for way in scene.ways
        }
        yield lambda scene, way=REPLAY: runs[scene.name, way].result()
