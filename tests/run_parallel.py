"""Run targets of the Makefile in parallel, and show the result of each at the end.

    python tests/run_parallel.py make 'lint test-docs' 'test-engine test-others'

After the name of make, each argument is a list of targets that run one after another; the lists run at the same time.
A target that fails ends its list. Every line of output begins with the name of its target.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A target that has run, or was left out because one before it failed."""

    target: str
    verdict: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.target:<20} {self.verdict:<8} {f'{self.seconds:5.0f} s' if self.seconds else ''}".rstrip()


def main(make: str, *arguments: str) -> int:
    lists = [each.split() for each in arguments]
    width = max(len(target) for targets in lists for target in targets)
    start = time.monotonic()
    with ThreadPoolExecutor(len(lists)) as pool:
        steps = [step for done in pool.map(lambda targets: _run_list(make, targets, width), lists) for step in done]
    print("", *steps, f"{'all':<20} {'':<8} {time.monotonic() - start:5.0f} s", sep="\n", flush=True)
    return 0 if all(step.verdict == "passed" for step in steps) else 1


def _run_list(make: str, targets: Sequence[str], width: int) -> list[Step]:
    steps: list[Step] = []
    for target in targets:
        is_lost = any(step.verdict != "passed" for step in steps)
        steps.append(Step(target, "not run") if is_lost else _run(make, target, width))
    return steps


def _run(make: str, target: str, width: int) -> Step:
    start = time.monotonic()
    command = [make, "--no-print-directory", target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        for line in process.stdout:
            # In one call: a line of another target must not get between the name and its line.
            sys.stdout.write(f"{target:<{width}} | {line.decode(errors='replace').rstrip()}\n")
            sys.stdout.flush()
    return Step(target, "failed" if process.returncode else "passed", time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
