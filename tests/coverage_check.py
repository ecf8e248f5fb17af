"""How much of the engine the last run of the tests has covered.

``python tests/coverage_check.py`` prints lines and branches for each measured file, and fails for an uncovered line in
a package of ``COMPLETE``. Such a line needs a test or, where no test can get there, a comment that says why:
``# pragma: no cover - the reason``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from coverage import Coverage

PACKAGE = Path(__file__).parent.parent / "src" / "llxprt_hooks"

COMPLETE = ("engine", "model", "protocol", "trust")
"""Packages without an uncovered line."""


def main() -> int:
    coverage = Coverage()
    coverage.load()
    coverage.report(file=sys.stdout, show_missing=True, skip_covered=True)
    missing = {
        file: lines
        for package in COMPLETE
        for file in sorted((PACKAGE / package).rglob("*.py"))
        if (lines := coverage.analysis2(str(file))[3])
    }
    for file, lines in missing.items():
        print(f"{file.relative_to(PACKAGE)}: no test covers line {', '.join(map(str, lines))}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
