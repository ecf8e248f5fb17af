"""Fixtures and settings for all folders."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import pytest
from hypothesis import settings

from tests.support.api_server import APIServer
from tests.support.nats_server import NatsServer
from tests.support.project import APPROVED, Project

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject

# How long an example takes says more about the machine than about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


Once = Callable[[str, Callable[[Path], object]], Path]
"""Makes the content of a folder with that name, if nobody has, and returns the folder."""


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """For what takes long to make: the workers that run the tests share it."""
    own = tmp_path_factory.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made_once(name: str, make: Callable[[Path], object]) -> Path:
        folder, is_made = common / name, common / f"{name}.made"
        with open(common / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_made.exists():
                folder.mkdir(exist_ok=True)
                make(folder)
                is_made.touch()
        return folder

    return made_once


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A throwaway project; this process knows only its home and its settings, and nothing is approved."""
    project = Project(tmp_path)
    project.enter(monkeypatch)
    return project


@pytest.fixture
def world(tmp_path: Path) -> CliProject:
    """A throwaway project to run the command in."""
    from tests.support.cli import CliProject  # not loaded for tests of the engine

    return CliProject(tmp_path)


@pytest.fixture(name="call")
def _call(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command in this process, in the project, with its hooks approved."""
    from tests.support.cli import call

    monkeypatch.chdir(world.root)
    world.enter(monkeypatch, **APPROVED)
    return call


@pytest.fixture
def api_server() -> Iterator[APIServer]:
    """A server that answers as the APIs of OpenAI and Anthropic do."""
    with APIServer().running() as server:
        yield server


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """A real NATS server, which all tests share. Each test uses a subject or a stream of its own."""
    with NatsServer().running() as server:
        yield server


@pytest.fixture
def own_nats_server() -> Iterator[NatsServer]:
    """A real NATS server that the test may stop."""
    with NatsServer().running() as server:
        yield server


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
