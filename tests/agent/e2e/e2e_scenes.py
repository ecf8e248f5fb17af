"""Runs that several tests look at: each is made once a module, side by side with the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.agent import HTTP, REPLAY, AgentProject, AgentRun

if TYPE_CHECKING:
    from typing import TypeAlias

Play: TypeAlias = "Callable[[AgentProject], AgentRun]"

both_ways = pytest.mark.parametrize("over", [REPLAY, HTTP])
"""For tests of a scene that is played from a recording as well as over HTTP."""


@dataclass(frozen=True)
class Scene:
    """A project, its hooks, and a run in it."""

    name: str
    play: Play
    ways: tuple[str, ...] = (REPLAY,)


def scene(*ways: str) -> Callable[[Play], Scene]:
    """Make a function a scene that is played in these ways."""
    return lambda play: Scene(play.__name__, play, ways or (REPLAY, HTTP))
