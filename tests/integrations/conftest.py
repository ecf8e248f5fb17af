"""Fixtures for the frameworks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _few_certificates(few_certificates: None) -> None: ...


@pytest.fixture
def own_loop() -> Iterator[None]:
    """An event loop for ``run_sync``, which otherwise makes one and never closes it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Some clients leave open connections to the garbage collector."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
