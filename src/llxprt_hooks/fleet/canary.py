"""A hook that must block, fired through the whole engine: does this process still start hooks and obey them?"""

from __future__ import annotations

from typing import Final

from llxprt_hooks._support.logger import without_warnings
from llxprt_hooks.config import Config
from llxprt_hooks.core.calls.tool import fire_before_tool_hook

_WORD: Final = "llxprt-hooks-canary"
_COMMAND: Final = f'read -r payload; case $payload in *{_WORD}*) echo "{_WORD}" >&2; exit 2 ;; esac'
"""Blocks if it gets its payload. Only builtins of the shell: it must work wherever hooks can."""


async def canary_problem() -> str | None:
    """Return why a hook that must block did not, or nothing."""
    hook = {"type": "command", "name": "canary", "command": _COMMAND, "timeout": 10_000}
    # In the root folder: nothing of a project is involved.
    config = Config(enable_hooks=True, working_dir="/", hooks={"BeforeTool": [{"hooks": [hook]}]})
    with without_warnings():
        output = await fire_before_tool_hook(config, "canary", {"canary": _WORD})
    if output is not None and output.is_blocking_decision() and output.reason == _WORD:
        return None
    said = output.system_message or output.reason if output else None
    return f"a hook that must block did not: {said or 'no hook could be run'}"
