"""Every promise of the threat model names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"


def test_every_promise_has_a_test_that_exists() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "`test_" in line]
    named = [name for row in rows for name in re.findall(r"`(test_\w+(?:\.py)?)`", row)]
    files = list((ROOT / "tests").rglob("test_*.py"))
    defined = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8"))}

    assert len(rows) >= 60
    assert [name for name in named if name not in defined | {file.name for file in files}] == []


def test_every_decision_about_security_has_a_promise() -> None:
    promises = _section("What is promised")

    assert [f"D-{number}" for number in (21, *range(26, 38), 47, 49) if f"D-{number}" not in promises] == []


def test_every_known_attack_is_closed_with_a_test_or_open_with_a_reason() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", _section("Known attacks"), re.MULTILINE)[1:]

    assert len(rows) >= 28
    for attack, now, tests in rows:
        assert "`test_" in tests or now.startswith("open: "), attack
        assert re.match(r"(closed|measured|open)\b", now), attack
        assert now != "open", attack


def test_the_table_has_the_ten_risks_in_order() -> None:
    assert re.findall(r"^\| (ASI\d\d) ", _section("The OWASP list for agents"), re.MULTILINE) == [
        f"ASI{number:02}" for number in range(1, 11)
    ]


def _section(title: str) -> str:
    return PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
