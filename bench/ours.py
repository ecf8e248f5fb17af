"""Ours: the whole way of an event, from the trigger that an agent calls to the merged answer.

    python ours.py KIND COMMAND [KIND COMMAND] …

Speaks the language of floor.c: "KIND COUNT WIDTH PAYLOAD" on stdin, nanoseconds of each batch on stdout. A kind may
have a prefix: "warm:KIND" for the same hook with `"warm": true`, "claude:KIND" for one in Claude's dialect.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.process.warm import zygotes


@cache
def config_of(command: str, width: int, prefix: str) -> Config:
    """Hooks that differ by a last argument: the same command would run but once."""
    commands = [command] if width == 1 else [f"{command} {number}" for number in range(width)]
    hooks = [{"type": "command", "command": each, **({"warm": True} if prefix == "warm" else {})} for each in commands]
    if prefix == "claude":
        groups = {"PreToolUse": [{"hooks": hooks}]}
        return Config(session_id="bench", enable_hooks=True, hooks=groups, dialect="claude")
    return Config(session_id="bench", enable_hooks=True, hooks={"BeforeTool": [{"hooks": hooks}]})


async def batch(config: Config, event: dict[str, Any]) -> int:
    started = time.perf_counter_ns()
    output = await fire_before_tool_hook(config, event["tool_name"], event["tool_input"])
    elapsed = time.perf_counter_ns() - started
    if output is None or output.is_blocking_decision() or output.implied:
        sys.exit(f"ours: the hook failed: {output}")
    return elapsed


def main() -> None:
    commands = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    zygotes.patience = 60
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            kind, count, width, file = line.rstrip("\n").split(" ", 3)
            prefix, _, kind = kind.rpartition(":")
            config = config_of(commands[kind], int(width), prefix)
            event = json.loads(Path(file).read_bytes())
            print(*(runner.run(batch(config, event)) for _ in range(int(count))), flush=True)


if __name__ == "__main__":
    main()
