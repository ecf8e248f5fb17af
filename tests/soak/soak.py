"""Thousands of events with hooks that misbehave, many at once, and a look at what is left behind.

``python -m tests.soak.soak [EVENTS] [SEED]`` prints its figures and fails if anything leaked, any exception reached the
caller, or anything but an explicit decision blocked.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from llxprt_hooks import Config, ToolResult, execute_tool_with_hooks
from llxprt_hooks.process.warm import zygotes
from tests.soak.faults import BLOCK, Fault, faults

AT_ONCE = 8
RAN = "the tool ran"
MARK = "LLXPRT_SOAK"


@dataclass(slots=True)
class Report:
    """What was done, and what was wrong."""

    events: int = 0
    hooks: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    blocked: int = 0
    problems: list[str] = field(default_factory=list)
    leaks: dict[str, int] = field(default_factory=dict)
    memory_before: float = 0.0
    memory_after: float = 0.0
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return not self.problems and not any(self.leaks.values())

    def lines(self) -> list[str]:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(_grouped(self.by_kind).items()))
        leaks = ", ".join(f"{name} {count}" for name, count in self.leaks.items())
        return [
            f"events {self.events}, hooks run {self.hooks}, blocked {self.blocked}, {self.seconds:.0f} s",
            f"faults by kind: {kinds}",
            f"leaks: {leaks}",
            f"memory before {self.memory_before:.0f} MiB, after {self.memory_after:.0f} MiB",
            *self.problems[:20],
        ]


async def soak(events: int, seed: int) -> Report:
    """Fire so many events, each with a few hooks drawn at random."""
    report = Report()
    chance = random.Random(seed)
    os.environ[MARK] = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="llxprt soak $(touch pwned) ") as folder:
        known = faults(Path(folder))
        # What is made once and stays is made now; the last one takes long enough for the watchdog to be started.
        await _fire([*known[:3], Fault("slow", "sleep 0.1")], folder, report, big=False)
        before = await _settled()
        report.memory_before = _memory()
        started = time.monotonic()
        gate = asyncio.Semaphore(AT_ONCE)

        async def one() -> None:
            async with gate:
                chosen = chance.choices(known, [fault.weight for fault in known], k=chance.randint(1, 4))
                await _fire(chosen, folder, report, big=chance.random() < 0.1)

        async with asyncio.TaskGroup() as group:
            for _ in range(events):
                group.create_task(one())
        report.seconds = time.monotonic() - started
        if (Path(folder) / "pwned").exists() or Path("pwned").exists():
            report.problems.append("the folder's name was run as code")
    after = await _settled()
    report.leaks = {name: after[name] - before[name] for name in after}
    report.memory_after = _memory()
    return report


async def _fire(chosen: list[Fault], folder: str, report: Report, *, big: bool) -> None:
    commands = list({fault.command: fault for fault in chosen}.values())
    hooks = [
        {"type": "command", "command": each.command, "timeout": each.timeout, "warm": each.warm} for each in commands
    ]
    config = Config(enable_hooks=True, working_dir=folder, hooks={"BeforeTool": [{"hooks": hooks}]})
    arguments = {"content": "x" * (2_000_000 if big else 10)}
    report.events += 1
    report.hooks += len(commands)
    report.by_kind.update(fault.kind for fault in commands)
    try:
        result = await execute_tool_with_hooks(config, "write_file", arguments, lambda _: ToolResult(RAN))
    except Exception as error:
        report.problems.append(f"{[fault.kind for fault in commands]} raised {error!r}")
        return
    blocked = result.error is not None
    report.blocked += blocked
    if blocked != any(fault.outcome == BLOCK for fault in commands):
        report.problems.append(f"{[fault.kind for fault in commands]}: {result.llm_content[:200]}")


def _state() -> dict[str, int]:
    return {
        "descriptors": len(os.listdir("/dev/fd")),
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "zombies": _zombies(),
        "processes": len(_marked()),
    }


async def _settled() -> dict[str, int]:
    """The state when nothing more is bound to end: children that were meant to live on, interpreters, threads."""
    for _ in range(600):
        zygotes.close()
        gc.collect()
        starting = any(thread.name == "start the watchdog" for thread in threading.enumerate())
        if not _marked() and not _zombies() and not starting:
            break
        await asyncio.sleep(0.1)
    return _state()


def _marked() -> list[int]:
    """The living processes other than this one that were started by this soak, by the mark in their environment."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) != os.getpid() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _zombies() -> int:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return sum(_is_zombie(child) for child in children)


def _is_zombie(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _memory() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _grouped(kinds: Counter[str]) -> Counter[str]:
    grouped: Counter[str] = Counter()
    for kind, count in kinds.items():
        grouped["exit codes" if kind.startswith("exit ") else "signals" if kind.isupper() else kind] += count
    return grouped


def main(arguments: list[str]) -> int:
    logging.disable()
    events = int(arguments[0]) if arguments else 4000
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(10**6)
    report = asyncio.run(soak(events, seed))
    print(f"seed {seed}", *report.lines(), sep="\n")
    print("clean" if report.clean else "NOT CLEAN")
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
