"""Whether a tool call may run: by itself, or only after the user said so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from llxprt_hooks.agent.tools.tool import Tool, ToolKind


class ApprovalMode(StrEnum):
    """How much is approved beforehand."""

    DEFAULT = "default"
    AUTO_EDIT = "auto_edit"
    YOLO = "yolo"


_FREE: Mapping[ApprovalMode, frozenset[ToolKind]] = {
    ApprovalMode.DEFAULT: frozenset({ToolKind.READ}),
    ApprovalMode.AUTO_EDIT: frozenset({ToolKind.READ, ToolKind.EDIT}),
    ApprovalMode.YOLO: frozenset(ToolKind),
}

Ask: TypeAlias = Callable[[Tool, Mapping[str, Any]], Awaitable[bool]]
"""Asks the user; None where there is no user to ask."""

Announce: TypeAlias = Callable[[Tool, Mapping[str, Any]], None]
"""Called when approval is needed, before the user is asked."""


class Approval:
    """Grants or refuses calls; asks about one at a time."""

    def __init__(self, mode: ApprovalMode, *, ask: Ask | None = None, announce: Announce = lambda *_: None) -> None:
        self._free = _FREE[mode]
        self._ask = ask
        self._announce = announce
        self._asking = asyncio.Lock()

    def needed(self, tool: Tool) -> bool:
        return tool.kind not in self._free

    async def refusal(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Why a call may not run, as a sentence for the model, or None."""
        if not self.needed(tool):
            return None
        self._announce(tool, arguments)
        if self._ask is None:
            mode = ApprovalMode.AUTO_EDIT if tool.kind is ToolKind.EDIT else ApprovalMode.YOLO
            return (
                f"{tool.name} needs the user's approval, and nobody is there to give it. "
                f"The user can allow it with --approval-mode {mode}."
            )
        async with self._asking:
            approved = await self._ask(tool, arguments)
        return None if approved else f"The user did not allow this call of {tool.name}."

    @property
    def interactive(self) -> bool:
        """Whether there is a user to ask."""
        return self._ask is not None
