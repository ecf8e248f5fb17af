"""What ``make check`` and ``make test`` show of their steps."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.processes import DEADLINE

SCRIPT = Path(__file__).with_name("run_parallel.py")

MAKEFILE = """
.PHONY: first second broken last
first:
	@echo one; until test -e seen; do sleep 0.01; done
second:
	@printf 'two, unfinished'
broken:
	@touch seen; echo "went wrong" >&2; exit 3
last:
	@touch last
"""


def test_lists_run_at_once_and_every_target_runs_after_a_failure(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    ended = subprocess.run(
        [sys.executable, SCRIPT, "make", "first second", "broken last"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE,
        check=False,
    )

    assert ended.returncode == 1
    output, _, summary = ended.stdout.partition("\n\n")
    assert "first  | one" in output.splitlines()
    assert "second | two, unfinished" in output.splitlines()
    assert "broken | went wrong" in output.splitlines()
    assert (tmp_path / "last").exists()
    verdicts = [re.split(" {2,}", line)[:2] for line in summary.splitlines()]
    assert verdicts[:4] == [["first", "passed"], ["second", "passed"], ["broken", "FAILED"], ["last", "passed"]]
    assert verdicts[-1] == ["Failed: broken"]
