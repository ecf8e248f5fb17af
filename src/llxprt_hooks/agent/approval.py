"""Decide whether a tool call may run: without asking, or only with the user's approval."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from llxprt_hooks.agent.tools.tool import Tool, ToolKind


class ApprovalMode(StrEnum):
    """Which kinds of tools run without asking."""

    DEFAULT = "default"
    AUTO_EDIT = "auto_edit"
    YOLO = "yolo"


_ALLOWED_KINDS: Mapping[ApprovalMode, frozenset[ToolKind]] = {
    ApprovalMode.DEFAULT: frozenset({ToolKind.READ}),
    ApprovalMode.AUTO_EDIT: frozenset({ToolKind.READ, ToolKind.EDIT}),
    ApprovalMode.YOLO: frozenset(ToolKind),
}

Ask: TypeAlias = Callable[[Tool, Mapping[str, Any]], Awaitable[bool]]
"""Asks the user. True means yes."""

Announce: TypeAlias = Callable[[Tool, Mapping[str, Any]], None]
"""Called when approval is needed, before the user is asked."""


class Approval:
    """Approves or refuses calls. Asks about one call at a time."""

    def __init__(self, mode: ApprovalMode, *, ask: Ask | None = None, announce: Announce = lambda *_: None) -> None:
        self._allowed_kinds = _ALLOWED_KINDS[mode]
        self._ask = ask
        self._announce = announce
        self._asking = asyncio.Lock()

    def needed(self, tool: Tool) -> bool:
        return tool.kind not in self._allowed_kinds

    async def refusal(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Return why a call may not run, as a sentence for the model, or None if it may."""
        if not self.needed(tool):
            return None
        self._announce(tool, arguments)
        if self._ask is None:
            mode = ApprovalMode.AUTO_EDIT if tool.kind is ToolKind.EDIT else ApprovalMode.YOLO
            return (
                f"{tool.name} needs the user's approval, but this run is not interactive. "
                f"The user can allow it with --approval-mode {mode}."
            )
        async with self._asking:
            approved = await self._ask(tool, arguments)
        return None if approved else f"The user did not allow this {tool.name} call."

    @property
    def interactive(self) -> bool:
        """Whether a user can be asked."""
        return self._ask is not None
