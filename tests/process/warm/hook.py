"""A hook that runs warm, and the processes behind it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from llxprt_hooks import Config, HookExecutionResult
from llxprt_hooks.process.warm import zygotes
from tests.support.processes import eventually, lives

ALLOWS = "print('{}')"


class WarmHook:
    """A hook in a folder of its own, whose script can be replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def run(self, script: str, **fields: Any) -> HookExecutionResult:
        (self.folder / "hook.py").write_text(script)
        hook = {"type": "command", "command": f"{sys.executable} hook.py", "warm": True, **fields}
        config = Config(
            enable_hooks=True,
            working_dir=self.folder,
            hooks={"BeforeTool": [{"hooks": [hook]}]},
            output_limit=1000,
        )
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        result = await system.get_event_handler().fire_before_tool_event("write_file", {"content": "x"})
        return result.results[0]

    async def warm(self, script: str = ALLOWS, **fields: Any) -> HookExecutionResult:
        result = await self.run(script, **fields)
        assert result.warm
        return result

    def zygote(self) -> int:
        """The process that waits for the scripts of this hook; the latest one is the one that was used last."""
        return list(zygotes._zygotes.values())[-1].pid


async def waiting_child(zygote: int) -> int:
    """The one child of a zygote that waits, when all others are gone."""
    await eventually(lambda: len(children(zygote)) == 1)
    return children(zygote)[0]


def children(pid: int) -> list[int]:
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if lives(child)]
