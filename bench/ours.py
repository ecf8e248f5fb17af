"""Ours: the whole way of an event, from the trigger that an agent calls to the merged answer.

    python ours.py PLAIN SHELL [PYTHON]

Speaks the language of floor.c: "plain|shell|cold|warm COUNT WIDTH PAYLOAD" on stdin, nanoseconds of each batch on
stdout. The last two are the Python hook.
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
def config_of(command: str, width: int, warm: bool) -> Config:
    """Hooks that differ by a last argument: the same command would run but once."""
    commands = [command] if width == 1 else [f"{command} {number}" for number in range(width)]
    hooks = [{"type": "command", "command": each, **({"warm": True} if warm else {})} for each in commands]
    return Config(session_id="bench", enable_hooks=True, hooks={"BeforeTool": [{"hooks": hooks}]})


async def batch(config: Config, event: dict[str, Any]) -> int:
    started = time.perf_counter_ns()
    output = await fire_before_tool_hook(config, event["tool_name"], event["tool_input"])
    elapsed = time.perf_counter_ns() - started
    if output is None or output.decision != "allow":
        sys.exit(f"ours: the hook failed: {output}")
    return elapsed


def main() -> None:
    plain, shell, *python = sys.argv[1:]
    commands = {"plain": plain, "shell": shell, **dict.fromkeys(("cold", "warm"), "".join(python))}
    zygotes.patience = 60
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            kind, count, width, file = line.rstrip("\n").split(" ", 3)
            config = config_of(commands[kind], int(width), kind == "warm")
            event = json.loads(Path(file).read_bytes())
            print(*(runner.run(batch(config, event)) for _ in range(int(count))), flush=True)


if __name__ == "__main__":
    main()
