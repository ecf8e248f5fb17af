"""Thousands of events with hooks that are started ahead, and random kills.

``python -m tests.soak.ahead [EVENTS] [SEED]`` fails if a call was allowed that the hook refuses, if one was refused
that no killed process explains, or if anything leaked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field

from llxprt_hooks import Config, HookExecutionResult, HookObserver, Hooks
from llxprt_hooks.process.ahead import ahead

REFUSAL = json.dumps({"decision": "deny", "reason": "no"})
GUARD = f"read -r line; case $line in *forbidden*) echo '{REFUSAL}';; *) echo '{{}}';; esac"
AT_ONCE = 4


@dataclass
class Figures(HookObserver):
    """What was done, and what was wrong."""

    ahead: int = 0
    killed: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)

    def hook_ended(self, result: HookExecutionResult) -> None:
        self.ahead += result.ahead
        self.lost += result.signal is not None


async def soak(events: int, seed: int) -> Figures:
    """Fire so many events, one of four forbidden, and kill a process that waits now and then."""
    chance, figures = random.Random(seed), Figures()
    with tempfile.TemporaryDirectory(prefix="llxprt-soak-") as folder:
        hook = {"type": "command", "command": GUARD, "warm": True, "failClosed": True}
        hooks = {"BeforeTool": [{"hooks": [hook, {**hook, "command": f"{GUARD}; exit 0"}]}]}
        config = Config(enable_hooks=True, working_dir=folder, observer=figures, hooks=hooks)
        guarded, gate = Hooks(config), asyncio.Semaphore(AT_ONCE)

        async def one() -> None:
            async with gate:
                await asyncio.sleep(chance.choice((0, 0, 0.02, 0.05)))
                if chance.random() < 0.1:
                    figures.killed += _kill_one(chance)
                forbidden, lost = chance.random() < 0.25, figures.lost
                text = "forbidden" if forbidden else "fine"
                refused = (await guarded.run_tool("write_file", {"text": text}, lambda _: "ran")).error is not None
                if forbidden > refused or (refused > forbidden and figures.lost == lost):
                    figures.wrong.append(f"{text}: refused {refused}")

        async with asyncio.TaskGroup() as group:
            for _ in range(events):
                group.create_task(one())
    return figures


def _kill_one(chance: random.Random) -> bool:
    waiting = list(ahead._waiting.values())
    if not waiting:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(waiting).child.pid, signal.SIGKILL)
    return True


def state() -> tuple[int, int]:
    """The descriptors and children of this process, when nothing waits any more."""
    ahead.close()
    while ahead._thread is not None:
        time.sleep(0.01)
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        return len(os.listdir("/proc/self/fd")), len(children.read().split())


def main(arguments: list[str]) -> int:
    events = int(arguments[0]) if arguments else 10_000
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(10**6)
    asyncio.run(soak(20, seed))
    before, started = state(), time.monotonic()
    figures = asyncio.run(soak(events, seed))
    after = state()
    print(f"seed {seed}: {events} events in {time.monotonic() - started:.0f} s, {figures.ahead} runs started ahead,")
    print(f"{figures.killed} processes killed while they waited, {figures.lost} just when they were used")
    print(f"descriptors and children before {before}, after {after}", *figures.wrong[:20], sep="\n")
    return 0 if before == after and not figures.wrong else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
