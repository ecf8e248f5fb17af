"""Fuzzing: settings files, protocol bytes, bus messages, recordings, payloads, the hook log, the trust store,
model data of hooks.

One module a target. Each feeds its target with arbitrary bytes and JSON and with valid documents that were mutated, and
holds that nothing raises but the documented error, that nothing hangs, and that no explicit decision is lost.

``corpus/<target>/`` holds what was found and the classic cases, and is tested by every run; to add a case is to put a
file there, named after what it is. In ``corpus/protocol_bytes`` a name that begins with ``deny-`` says that the bytes
block, and one that begins with ``text-`` that they are plain text; in ``corpus/bus`` one that begins with ``silent-``
says that nobody is to answer.

``make test`` runs a few hundred examples a target. A longer run, and how to repeat a failure:

    FUZZ_EXAMPLES=5000 .venv/bin/pytest tests/fuzz

What Hypothesis finds is kept in ``.hypothesis`` and tried first in the next run; it also prints a
``@reproduce_failure`` line.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import guard
from tests.fuzz.project import FuzzedProject


@pytest.fixture(scope="session", autouse=True)
def _stderr_of_the_terminal(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where to say what hangs, if only ending the process helps."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        guard.last_words = os.dup(2)
    yield
    os.close(guard.last_words)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FuzzedProject]:
    """A home, a project and a system level of their own, in which this process then lives."""
    world = FuzzedProject(tmp_path)
    monkeypatch.chdir(world.root)
    world.enter(monkeypatch)
    yield world
    monkeypatch.undo()
    shutil.rmtree(tmp_path)
