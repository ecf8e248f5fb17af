"""What the tests of commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.mcp_connection import Connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.project import Project


@pytest.fixture
def project(sandbox: Project) -> Project:
    return sandbox


@pytest.fixture
def connect(sandbox: Project) -> Iterator[Connections]:
    connections = Connections(sandbox)
    yield connections
    for each in connections.made:
        each.close()
