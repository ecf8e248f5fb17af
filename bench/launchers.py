"""Compare the ways to start a process: how much faster is a whole plain hook with each of them?

    python bench/launchers.py [--rounds N] [--hooks N]

Both run in this process, alternating hook by hook, so that noise of the machine hits both. A round is a number of such
pairs; its ratio is fork_exec / Popen, of the lower quartiles. Printed are the median and the quartiles over all rounds:
a median of 0.95 means that a hook takes 5 % less time with fork_exec.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import busy, machine
from scene import ANSWER, Scene

import llxprt_hooks.process.child as child_module
from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.process import fork_exec, launch

LAUNCHERS: dict[str, Callable[..., None]] = {"fork_exec": fork_exec.launch, "popen": launch.launch}

PROGRAM = f"""#include <stdio.h>
int main(void) {{ puts({json.dumps(ANSWER)}); return 0; }}
"""
"""The smallest hook: it reads nothing and allows."""


def main() -> None:
    arguments = _arguments()
    if fork_exec.launch is launch.launch:
        sys.exit("fork_exec is not used on this Python: there is nothing to compare.")
    print("\n".join(f"{name}: {value}" for name, value in machine().items()))
    print(busy() or "the machine is idle")
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-bench-") as folder, asyncio.Runner() as runner:
        scene = Scene.make(Path(folder))
        os.environ.update(scene.environment())
        for name, command in {"compiled program": _compiled(scene.folder), "sh script": scene.plain}.items():
            config = _config(command, scene.folder)
            rounds = [runner.run(_round(config, arguments.hooks)) for _ in range(arguments.rounds + 1)][1:]
            print(f"{name}: {_summary(rounds)}")


def _summary(rounds: list[dict[str, float]]) -> str:
    ratios = [times["fork_exec"] / times["popen"] for times in rounds]
    low, middle, high = statistics.quantiles(ratios, n=4)
    each = ", ".join(f"{name} {statistics.median(times[name] for times in rounds) * 1e3:.3f} ms" for name in LAUNCHERS)
    return f"fork_exec / popen = {middle:.3f} (middle half {low:.3f} to {high:.3f}, {len(rounds)} rounds); {each}"


async def _round(config: Config, hooks: int) -> dict[str, float]:
    """Seconds of an event, for each launcher; they take turns in going first."""
    taken: dict[str, list[float]] = {name: [] for name in LAUNCHERS}
    for number in range(hooks):
        for name in sorted(LAUNCHERS, reverse=bool(number % 2)):
            child_module.launch = LAUNCHERS[name]
            taken[name].append(await _event(config))
    return {name: statistics.quantiles(times, n=4)[0] for name, times in taken.items()}


async def _event(config: Config) -> float:
    tool_input: dict[str, Any] = {"file_path": "src/app.py", "content": "x" * 1000}
    started = time.perf_counter()
    output = await fire_before_tool_hook(config, "write_file", tool_input)
    elapsed = time.perf_counter() - started
    if output is None or output.decision != "allow":
        sys.exit(f"the hook failed: {output}")
    return elapsed


def _config(command: str, folder: Path) -> Config:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}
    return Config(session_id="bench", working_dir=folder, enable_hooks=True, hooks=hooks)


def _compiled(folder: Path) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return f"/bin/echo '{ANSWER}'"
    subprocess.run([compiler, "-O2", "-xc", "-o", str(folder / "hook"), "-"], input=PROGRAM, text=True, check=True)
    return str(folder / "hook")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the ways to start a process.")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--hooks", type=int, default=50, help="pairs of hooks in a round")
    return parser.parse_args()


if __name__ == "__main__":
    main()
