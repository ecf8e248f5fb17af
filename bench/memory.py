"""Prints by how many bytes this process grew at most while a hook printed 1 GiB, and how many seconds that took."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path

from llxprt_hooks import Config

SMALL = "echo done"
LARGE = "yes 'a line of text that nobody wanted' | head -c 1073741824"


def peak() -> int:
    """The largest resident size so far, in bytes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else size * 1024
    # What getrusage reports on Linux is at least the size of the process that started this one.
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


async def run(command: str) -> None:
    hook = {"type": "command", "command": command}
    system = Config(enable_hooks=True, hooks={"BeforeAgent": [{"hooks": [hook]}]}).get_hook_system()
    assert system is not None
    await system.initialize()
    result = await system.get_event_handler().fire_before_agent_event("hello")
    [ran] = result.results
    if ran.exit_code != 0 or not ran.stdout:
        sys.exit(f"the hook failed: {ran.error}")


def main() -> None:
    asyncio.run(run(SMALL))
    before, started = peak(), time.perf_counter()
    asyncio.run(run(LARGE))
    print(peak() - before, time.perf_counter() - started)


if __name__ == "__main__":
    main()
