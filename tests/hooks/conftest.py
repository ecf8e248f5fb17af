"""A project of its own for every test."""

import pytest


@pytest.fixture(autouse=True)
def _own_environment(own_environment: None) -> None: ...
