"""Fixtures and settings for all folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from hypothesis import settings

from tests.support.nats_server import NatsServer
from tests.support.project import Project

# How long an example takes says more about the machine than about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A throwaway project; this process knows only its home and its settings, and nothing is approved."""
    project = Project(tmp_path)
    project.enter(monkeypatch)
    return project


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """A real NATS server, which all tests share. Each test uses a subject of its own."""
    server = NatsServer()
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the first certificate of the usual ones."""
    first, end, _ = Path(certifi.where()).read_text(encoding="utf-8").partition("-----END CERTIFICATE-----\n")
    file = tmp_path_factory.mktemp("certificates") / "one.pem"
    file.write_text(first + end, encoding="utf-8")
    return file


@pytest.fixture
def few_certificates(one_certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new client reads all certificates, which takes longer than most tests. Servers without TLS need none."""
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))
