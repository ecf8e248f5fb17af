"""Suggests to run Python scripts in an interpreter that waits for them."""

from __future__ import annotations

import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks.diagnosis.rules import NOT_WARM
from llxprt_hooks.shell.direct_exec import SpawnContext
from llxprt_hooks.shell.environment import process_environment
from llxprt_hooks.shell.python_start import python_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.diagnosis.diagnostic import Diagnostic
    from llxprt_hooks.diagnosis.entries import HookEntry
    from llxprt_hooks.diagnosis.inspection import Inspection
    from llxprt_hooks.process.warm import PythonStart

_ROUNDS: Final = 3
_TIMEOUT: Final = 10.0


def check_warm(inspection: Inspection, hook: HookEntry) -> Iterator[Diagnostic]:
    """Find hooks that start Python each time, and say how long that takes."""
    node, switch = hook.command_node, hook.file.root.at("hooksConfig", "warm")
    if node is None or not hook.can_run or hook.node.at("warm") or (switch and switch.scalar is False):
        return
    directory = str(inspection.directory.resolve())
    context = SpawnContext(process_environment(), directory)
    direct = context.direct_command(hook.command)
    python = python_start(direct, context.direct_environment(direct), directory) if direct else None
    if python is None or not Path(directory, _script(python)).is_file():  # another check reports a missing script
        return
    # An interpreter of the project, which nobody may have approved, is not run.
    seconds = None if Path(python.executable).is_relative_to(directory) else _start_time(python.executable)
    taking = "" if seconds is None else f", which takes {seconds * 1000:.0f} ms here"
    fix = 'Add `"warm": true`: an interpreter that waits runs the unchanged script in about a tenth of the time.'
    yield hook.file.at(NOT_WARM, node, f"every event starts Python{taking}", fix)


def _script(python: PythonStart) -> str:
    return python.argv[1 + len(python.flags)]


@lru_cache(maxsize=64)
def _start_time(executable: str) -> float | None:
    """Seconds that an interpreter takes to start and end, at best."""
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        try:
            subprocess.run(
                [executable, "-I", "-c", ""],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd="/",
                env={},
                timeout=_TIMEOUT,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        times.append(time.perf_counter() - started)
    return min(times)
