"""Every promise of the threat model names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "tests" / "promises.md"


def test_every_promise_has_a_test_that_exists() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "`test_" in line]
    named = [name for row in rows for name in re.findall(r"`(test_\w+(?:\.py)?)`", row)]
    files = list((ROOT / "tests").rglob("test_*.py"))
    defined = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8"))}

    assert len(rows) >= 60
    assert [name for name in named if name not in defined | {file.name for file in files}] == []
