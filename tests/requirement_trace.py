"""Which test proves which requirement.

``python tests/requirement_trace.py`` prints each id with its tests; ``--check`` prints only what is wrong, and fails
for an id without a test, for a test that names an unknown id, and for a pending id that has a test already.

The ids are those of ``docs/requirements.md``; ids that cannot be proven yet are in ``PENDING``, each with the reason.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ROOT / "docs" / "requirements.md"

PENDING: dict[str, str] = {}


class Collector:
    """A pytest plugin that notes the requirement marks of every collected test."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("requirement"):
                for requirement in mark.args:
                    self.tests[requirement].add(item.nodeid.partition("[")[0])


def known_ids() -> list[str]:
    """The ids in the first column of the requirements table, in order."""
    return re.findall(r"^\| ((?:HOOK|DELTA)-[\w-]+) \|", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)


def collect() -> dict[str, set[str]]:
    """The tests that carry each id."""
    collector = Collector()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        # The tests of the frameworks cannot be imported here: they have an environment of their own.
        where = [str(ROOT / "tests"), "--ignore", str(ROOT / "tests" / "integrations")]
        status = pytest.main(["--collect-only", "-q", "--rootdir", str(ROOT), *where], [collector])
    if status != pytest.ExitCode.OK:
        sys.exit(f"the tests cannot be collected:\n{output.getvalue()}")
    return collector.tests


def problems(ids: list[str], tests: dict[str, set[str]]) -> list[str]:
    """What is wrong, a sentence each."""
    unproven = [f"{each} has no test" for each in ids if each not in tests and each not in PENDING]
    unknown = [
        f"{each} is not a requirement, but {min(tests[each])} names it" for each in sorted(tests.keys() - set(ids))
    ]
    stale = [f"{each} is listed as pending, but has a test" for each in PENDING if each in tests]
    return unproven + unknown + stale


def main(arguments: list[str]) -> int:
    ids, tests = known_ids(), collect()
    wrong = problems(ids, tests)
    if "--check" not in arguments:
        for each in ids:
            print(each, *(sorted(tests.get(each, ())) or [f"pending: {PENDING.get(each, 'no test')}"]), sep="\n    ")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    proven = sum(each in tests for each in ids)
    print(f"{len(ids)} requirements, {proven} proven, {len(PENDING)} pending, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
