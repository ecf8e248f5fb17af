"""A home of its own for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.project import Project


@pytest.fixture(autouse=True)
def _home(sandbox: Project) -> None: ...
