"""The soak, shortened. ``make soak`` runs it at length."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.soak import ahead as started_ahead
from tests.soak.faults import faults
from tests.soak.soak import soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc to find what is left behind")


@pytest.mark.requirement("HOOK-110", "HOOK-111")
async def test_whatever_hooks_do_nothing_is_raised_lost_or_left_behind() -> None:
    seed = random.randrange(10**6)

    report = await soak(120, seed)

    assert report.problems == [], f"seed {seed}"
    assert report.leaks == dict.fromkeys(report.leaks, 0), f"seed {seed}"
    assert report.events >= 120


def test_every_kind_of_fault_is_there(tmp_path: Path) -> None:
    kinds = {fault.kind for fault in faults(tmp_path)}

    assert {f"exit {code}" for code in range(1, 256) if code != 2} <= kinds
    assert {"SIGKILL", "SIGSEGV", "SIGPIPE", "hang", "SIGTERM ignored", "missing", "bad shebang"} <= kinds


async def test_no_decision_is_wrong_when_processes_that_wait_are_killed() -> None:
    seed = random.randrange(10**6)

    figures = await started_ahead.soak(100, seed)

    assert figures.wrong == [], f"seed {seed}"
