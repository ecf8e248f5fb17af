"""Prints how many seconds something took, and by how many bytes this process grew at most meanwhile.

    python growth.py hooks|payload|events|sessions SIZE COMMAND

SIZE is a number of hooks of one event, of bytes for one hook, of events at once with one hook each, or of sessions one
after the other, which nobody ends, with a tool call and a function hook each. COMMAND is what all other hooks run.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from memory import peak

from llxprt_hooks import Config, Hooks, allow, fire_before_tool_hook

TOOL_INPUT = {"file_path": "src/app.py"}


def config_of(command: str, hooks: int) -> Config:
    groups = [{"hooks": [{"type": "command", "command": f"{command} {number}"} for number in range(hooks)]}]
    return Config(enable_hooks=True, hooks={"BeforeTool": groups})


async def fired(config: Config, tool_input: dict[str, Any]) -> None:
    output = await fire_before_tool_hook(config, "write_file", tool_input)
    assert output is not None, "the hook did not answer"


def of_hooks(size: int, command: str) -> Callable[[], Awaitable[object]]:
    config = config_of(command, size)
    return lambda: fired(config, TOOL_INPUT)


def of_payload(size: int, command: str) -> Callable[[], Awaitable[object]]:
    config, tool_input = config_of(command, 1), {"content": "x" * size}
    return lambda: fired(config, tool_input)


def of_events(size: int, command: str) -> Callable[[], Awaitable[object]]:
    config = config_of(command, 1)
    return lambda: asyncio.gather(*(fired(config, TOOL_INPUT) for _ in range(size)))


def of_sessions(size: int, command: str) -> Callable[[], Awaitable[object]]:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: allow())

    async def converse() -> None:
        for number in range(size):
            with hooks.session(f"session {number}"):
                await hooks.run_tool("write_file", TOOL_INPUT, lambda arguments: "done")
            await asyncio.sleep(0)

    return converse


KINDS = {"hooks": of_hooks, "payload": of_payload, "events": of_events, "sessions": of_sessions}


async def main() -> None:
    kind, size, command = sys.argv[1:]
    await fired(config_of(command, 1), TOOL_INPUT)
    await of_sessions(1, command)()
    run = KINDS[kind](int(size), command)
    before, started = peak(), time.perf_counter()
    await run()
    print(time.perf_counter() - started, peak() - before)


if __name__ == "__main__":
    asyncio.run(main())
