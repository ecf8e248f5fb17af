"""A server for each test, and each client in turn."""

from collections.abc import Iterator

import pytest

from tests.clients.drivers import DRIVERS, Driver, driving
from tests.support.api_server import APIServer


@pytest.fixture(autouse=True)
def _few_certificates(few_certificates: None) -> None: ...


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    return api_server


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest, server: APIServer) -> Iterator[Driver]:
    with driving(request.param, server) as driver:
        yield driver
