"""Every diagnostic is listed, for the terminal and the documentation, and has a test."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from llxprt_hooks.cli.main import cli
from llxprt_hooks.commands.validate import Rule
from llxprt_hooks.commands.validate.rules import GROUPS, grouped_rules

PAGE = Path(__file__).parents[3] / "docs" / "validate.md"
TESTS = [Path(__file__).parent, *(Path(__file__).parents[2] / name for name in ("cli", "dialects"))]


def test_every_diagnostic_is_listed_once_in_its_group() -> None:
    groups = grouped_rules()

    assert list(groups) == list(GROUPS)
    assert [rule for rules in groups.values() for rule in rules] == list(Rule)


def test_the_list_has_every_diagnostic_with_its_severity_an_example_and_the_reason() -> None:
    printed = CliRunner().invoke(cli, ["validate", "--list"], terminal_width=1000, env={"COLUMNS": "1000"})

    found = re.findall(r"^  ([\w-]+): (\w+)\n +for example: (.+)\n +why: (.+)$", printed.output, re.MULTILINE)
    assert found == [(rule.code, rule.severity.value, rule.example, rule.why) for rule in Rule]


def test_the_page_has_the_command_that_prints_the_list() -> None:
    """The site fills in the block."""
    assert "\n```{findings}\nllxprt-hooks validate --list\n```\n" in PAGE.read_text(encoding="utf-8")


def test_every_diagnostic_has_a_test() -> None:
    files = [file for folder in TESTS for file in folder.glob("test_*.py") if file != Path(__file__)]
    tests = "".join(file.read_text(encoding="utf-8") for file in files)

    assert [rule.code for rule in Rule if f'"{rule.code}"' not in tests] == []
