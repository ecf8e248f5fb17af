"""How much of the engine the last run of the tests has covered.

``python tests/coverage_check.py`` prints lines and branches for each measured file, and fails for an uncovered line in
what ``COMPLETE`` lists. Such a line needs a test or, where no test can get there, a comment that says why:
``# pragma: no cover - the reason``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from coverage import Coverage

PACKAGE = Path(__file__).parent.parent / "src" / "llxprt_hooks"

COMPLETE = (
    "core/engine",
    "core/executors",
    "core/protocol",
    "model",
    "settings/definitions",
    "settings/did_you_mean",
    "settings/hook_entries",
    "settings/load",
    "settings/matcher",
    "settings/schema",
    "settings/trust",
)
"""Packages and modules without an uncovered line."""


def main() -> int:
    coverage = Coverage()
    coverage.load()
    coverage.report(file=sys.stdout, show_missing=True, skip_covered=True)
    files = {name: sorted((*PACKAGE.glob(f"{name}.py"), *(PACKAGE / name).rglob("*.py"))) for name in COMPLETE}
    if unknown := [name for name, found in files.items() if not found]:
        print(f"no such package or module: {', '.join(unknown)}", file=sys.stderr)
        return 1
    missing = {file: lines for found in files.values() for file in found if (lines := coverage.analysis2(str(file))[3])}
    for file, lines in missing.items():
        print(f"{file.relative_to(PACKAGE)}: no test covers line {', '.join(map(str, lines))}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
