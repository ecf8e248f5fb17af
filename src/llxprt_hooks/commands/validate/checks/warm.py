"""Suggests to run Python scripts in an interpreter that waits for them."""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.process import SpawnError, run_child, spawn
from llxprt_hooks.process.shell.direct_exec import SpawnContext
from llxprt_hooks.process.shell.environment import process_environment
from llxprt_hooks.process.shell.python_start import python_start
from llxprt_hooks.process.warm import PythonStart, ZygotePool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.commands.validate.diagnostic import Diagnostic
    from llxprt_hooks.commands.validate.entries import FileHook
    from llxprt_hooks.commands.validate.inspection import Inspection

_ROUNDS: Final = 3
_TIMEOUT: Final = 10.0


def check_warm(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find hooks that start Python each time, and say how long that takes."""
    switch = hook.file.root.at("hooksConfig", "warm")
    if not hook.can_run or hook.node.at("warm") or (switch and switch.scalar in (True, False)):
        return
    directory = str(inspection.directory.resolve())
    context = SpawnContext(process_environment(), directory)
    direct = context.direct_command(hook.command)
    python = python_start(direct, context.environment, directory) if direct else None
    if python is None or not Path(directory, _script(python)).is_file():  # another check reports a missing script
        return
    # An interpreter of the project, which nobody may have approved, is not run.
    times = None if Path(python.executable).is_relative_to(directory) else _times(python.executable)
    taking = "" if times is None else f", which takes {times.cold:.0f} ms here, and {times.warm:.1f} ms with `warm`"
    fix = 'Add `"warm": true` to the hook.'
    yield hook.in_command(Rule.NOT_WARM, None, f"every event starts Python{taking}", fix)


def _script(python: PythonStart) -> str:
    return python.argv[1 + len(python.flags)]


class _Times(NamedTuple):
    """Milliseconds for an empty script, at best."""

    cold: float
    warm: float


@lru_cache(maxsize=64)
def _times(executable: str) -> _Times | None:
    """Run an empty script both ways. None if one of them fails."""
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-") as folder, ThreadPoolExecutor(1) as thread:
        script = Path(folder, "empty.py")
        script.touch()
        python = PythonStart(executable, (executable, "-I", str(script)), ("-I",))
        try:  # in a thread, because an event loop may be running in this one
            return thread.submit(asyncio.run, _measured(python)).result()
        except SpawnError:
            return None
        finally:
            _zygotes.close(1.0)


async def _measured(python: PythonStart) -> _Times | None:
    start = partial(spawn, python.argv, stdin=b"", env={}, cwd="/", output_limit=0)
    offer = partial(_zygotes.offer, python, stdin=b"", env={}, cwd="/", output_limit=0, otherwise=start)
    cold = [await run_child(start, timeout=_TIMEOUT) for _ in range(_ROUNDS)]
    warm = [await run_child(lambda: offer() or start(), timeout=_TIMEOUT) for _ in range(_ROUNDS)]
    if not all(each.exit_code == 0 for each in cold) or not all(each.exit_code == 0 and each.warm for each in warm):
        return None
    return _Times(min(each.duration for each in cold), min(each.duration for each in warm))


_zygotes = ZygotePool()
_zygotes.patience = _TIMEOUT
