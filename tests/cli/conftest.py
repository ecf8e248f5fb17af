"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.mcp_connection import Connections

if TYPE_CHECKING:
    from tests.support.project import Project


@pytest.fixture
def connect(sandbox: Project) -> Iterator[Connections]:
    connections = Connections(sandbox)
    yield connections
    for each in connections.made:
        each.close()
