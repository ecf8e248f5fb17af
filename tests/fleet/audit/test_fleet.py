"""A small fleet whose workers are killed and whose server is restarted: no decision is wrong, no record is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FLEET = Path(__file__).parents[3] / "bench" / "fleet_load.py"


@pytest.mark.slow
def test_every_request_gets_its_decision_or_a_failure_and_is_recorded_once() -> None:
    options = ("--agents", "20", "--workers", "2", "--processes", "2", "--seconds", "6")
    done = subprocess.run([sys.executable, FLEET, *options], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong decisions" in done.stdout
    assert "2 workers killed; the server restarted once" in done.stdout
    assert ", 0 twice" in done.stdout
