"""``llxprt-hooks prove``: start an agent with a scripted model and a canary guard, and see which calls are guarded."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from llxprt_hooks._support.json_codec import decode_text, write_json
from llxprt_hooks._support.text import one_line
from llxprt_hooks.commands.log import LogFilter, LogReader
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.levels import LOG_VARIABLE, SYSTEM_SETTINGS_VARIABLE
from llxprt_hooks.testing.proof import Refusal, Scene, Tools, Verdict, try_ways

if TYPE_CHECKING:
    from llxprt_hooks.fleet.audit.record import Record


def prove_program(command: Sequence[str], directory: str, *, seconds: float, tools: Tools) -> Iterator[Verdict]:
    """Start a program once for each way in which a model can call its tools, and judge what it did."""
    with TemporaryDirectory(prefix="llxprt-hooks-prove-") as folder:
        settings, recorded = Path(folder) / "settings.json", Path(folder) / "log" / "hooks.jsonl"

        def run(scene: Scene) -> str:
            settings.write_bytes(write_json({"enableHooks": True, "hooks": scene.hooks}))
            settings.chmod(0o600)
            log = LogReader(recorded, LogFilter(event=HookEventName.BEFORE_TOOL), events=True)
            log.read()
            ours = {SYSTEM_SETTINGS_VARIABLE: str(settings), LOG_VARIABLE: str(recorded)}
            problem = _run(command, directory, {**os.environ, **scene.environment, **ours}, seconds)
            scene.refusals.extend(_refusals(log.read()))
            return problem

        yield from try_ways(run, tools)


def _refusals(records: Iterable[Record]) -> Iterator[Refusal]:
    """What hooks refused. In a chain, one of the program's own may do so before the canary guard is asked."""
    for record in records:
        if "hooks" in record and (record.get("blocked") or record.get("stopped")):
            yield Refusal(str(record.get("reason") or ""), bool(record.get("stopped")))


def _run(command: Sequence[str], directory: str, environment: dict[str, str], seconds: float) -> str:
    """Run a program to its end; why its run proves nothing, or nothing."""
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"
    try:
        _, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"the program did not end within {seconds:g} s"
    finally:
        _kill_group(process)
    if process.returncode == 0:
        return ""
    lines = decode_text(stderr).strip().splitlines()
    return f"the program exited with {process.returncode}" + (f": {one_line(lines[-1])}" if lines else "")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End what the program left behind; with it, a program that did not end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
