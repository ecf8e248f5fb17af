"""Run targets of the Makefile in parallel, and show the result of each at the end.

    python tests/run_parallel.py make 'lint test-docs' 'test-engine test-others'

After the name of make, each argument is a list of targets that run one after another; the lists run at the same time.
Every target runs, also after one that fails. Every line of output begins with the name of its target.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True)
class Step:
    """A target that has run."""

    target: str
    passed: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.target:<20} {'passed' if self.passed else 'FAILED':<8} {self.seconds:5.0f} s"


def main(make: str, *arguments: str) -> int:
    lists = [each.split() for each in arguments]
    width = max(len(target) for targets in lists for target in targets)
    start = time.monotonic()
    with ThreadPoolExecutor(len(lists)) as pool:
        done = pool.map(lambda targets: [_run(make, target, width) for target in targets], lists)
        steps = list(chain.from_iterable(done))
    failed = [step.target for step in steps if not step.passed]
    print("", *steps, f"{'all':<20} {'':<8} {time.monotonic() - start:5.0f} s", sep="\n")
    if failed:
        print(f"\nFailed: {', '.join(failed)}")
    return 1 if failed else 0


def _run(make: str, target: str, width: int) -> Step:
    start = time.monotonic()
    command = [make, "--no-print-directory", target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        for line in process.stdout:
            # In one call: a line of another target must not get between the name and its line.
            sys.stdout.write(f"{target:<{width}} | {line.decode(errors='replace').rstrip()}\n")
            sys.stdout.flush()
    return Step(target, process.returncode == 0, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
