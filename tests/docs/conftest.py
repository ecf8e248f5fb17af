"""Every example has a home of its own, and no system settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.project import Project


@pytest.fixture(autouse=True)
def home(sandbox: Project) -> Path:
    return sandbox.home
