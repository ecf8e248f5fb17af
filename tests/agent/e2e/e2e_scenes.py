"""Scenes: runs that several tests look at. Each is played once a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support.agent import HTTP, REPLAY, AgentProject, AgentRun

if TYPE_CHECKING:
    from typing import TypeAlias

Scene: TypeAlias = "Callable[[AgentProject], AgentRun]"
"""Configures a project with its hooks, and runs the agent in it."""

both_ways = pytest.mark.parametrize("over", [REPLAY, HTTP])
"""For tests of a scene that is played from a recording as well as over HTTP."""
