"""What the tests of commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.mcp_connection import Connections

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.project import Project


@pytest.fixture
def project(sandbox: Project) -> Project:
    return sandbox


@pytest.fixture
def connect(sandbox: Project, one_certificate: Path) -> Iterator[Connections]:
    connections = Connections(sandbox, SSL_CERT_FILE=str(one_certificate))
    yield connections
    for each in connections.made:
        each.close()
