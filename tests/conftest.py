"""What holds for all tests."""

import logging
import os
from collections.abc import Iterator

import pytest

pytest_plugins = ["tests.support.fixtures"]

# Workers that run tests side by side inherit the size of a terminal, which programs under test would take for theirs.
for variable in ("COLUMNS", "LINES"):
    os.environ.pop(variable, None)


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Commands that run in the test's own process quieten logging; the next test hears everything again."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if handler not in handlers and type(handler) is logging.StreamHandler:
            root.removeHandler(handler)
