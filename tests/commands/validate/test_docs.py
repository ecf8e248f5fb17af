"""The documentation lists every diagnostic, as it is."""

from __future__ import annotations

import re
from pathlib import Path

from llxprt_hooks.commands.validate import Rule

PAGE = Path(__file__).parents[3] / "docs" / "validate.md"
TESTS = Path(__file__).parent


def test_every_diagnostic_is_documented_with_its_severity() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (error|warning|hint) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [(rule.code, rule.severity.value) for rule in Rule]


def test_every_diagnostic_has_a_test() -> None:
    tests = "".join(file.read_text(encoding="utf-8") for file in TESTS.glob("test_[!cd]*.py"))

    assert [rule.code for rule in Rule if f'"{rule.code}"' not in tests] == []
