"""The documentation lists every diagnostic, as it is."""

from __future__ import annotations

import re
from pathlib import Path

from llxprt_hooks.commands.validate import Rule

PAGE = Path(__file__).parents[3] / "docs" / "validate.md"
TESTS = [Path(__file__).parent, *(Path(__file__).parents[2] / name for name in ("cli", "dialects"))]


def test_every_diagnostic_is_documented_with_its_severity() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (error|warning|hint) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [(rule.code, rule.severity.value) for rule in Rule]


def test_every_diagnostic_has_a_test() -> None:
    files = [file for folder in TESTS for file in folder.glob("test_*.py") if file != Path(__file__)]
    tests = "".join(file.read_text(encoding="utf-8") for file in files)

    assert [rule.code for rule in Rule if f'"{rule.code}"' not in tests] == []
