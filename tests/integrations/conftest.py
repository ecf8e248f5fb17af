"""Fixtures for the frameworks."""

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture
def own_loop() -> Iterator[None]:
    """An event loop for ``run_sync``, which otherwise makes one and never closes it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)
